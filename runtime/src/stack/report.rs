//! One line on stderr, composed where nothing may allocate.

use std::panic::Location;

use super::overflow::Note;

/// Bytes of a line. It is on an alternate signal stack that may be 8 KiB, most of it taken by the kernel.
const LENGTH: usize = 512;

/// Longest name that is shown.
const LONGEST_NAME: usize = 64;

/// Longest path that is shown; of a longer one, the end.
const LONGEST_PATH: usize = 160;

/// Text in a fixed buffer; what doesn't fit is cut off.
pub(super) struct Line {
    /// The first `len` bytes are the text.
    bytes: [u8; LENGTH],
    /// At most `LENGTH`.
    len: usize,
}

impl Line {
    /// What to say when the greenlet of `note` has run into its guard page.
    pub(super) fn overflow(note: &Note) -> Line {
        let mut line = Line { bytes: [0; LENGTH], len: 0 };
        line.text("greenroom: ");
        if note.id == 0 {
            line.text("the main greenlet");
        } else {
            line.text("greenlet ");
            line.number(note.id);
            if let Some(name) = &note.name {
                line.text(" \"");
                line.text(&name[..name.floor_char_boundary(LONGEST_NAME)]);
                line.text("\"");
            }
            line.text(" (spawned at ");
            line.place(note.site);
            line.text(")");
        }
        line.text(" overflowed its stack of ");
        line.number(note.bounds.get().size() as u64);
        line.text(" bytes; spawn it with Builder::stack_size, or run the deep call in on_big_stack\n");
        line
    }

    /// The text so far.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn text(&mut self, text: &str) {
        for &byte in text.as_bytes() {
            if self.len < LENGTH {
                self.bytes[self.len] = byte;
                self.len += 1;
            }
        }
    }

    fn number(&mut self, mut number: u64) {
        let mut digits = [0; 20]; // u64::MAX has 20
        let mut first = digits.len();
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.text(str::from_utf8(&digits[first..]).unwrap_or("?"));
    }

    fn place(&mut self, site: &Location<'_>) {
        let path = site.file();
        let cut = path.ceil_char_boundary(path.len().saturating_sub(LONGEST_PATH));
        self.text(&path[cut..]);
        self.text(":");
        self.number(site.line().into());
        self.text(":");
        self.number(site.column().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Bounds;
    use std::cell::Cell;

    fn line(id: u64, name: Option<&str>) -> String {
        let bounds = Bounds { guard: 4096, limit: 8192, base: 4096 + 262_144 };
        let note = Note { bounds: Cell::new(bounds), id, name: name.map(Into::into), site: Location::caller() };
        String::from_utf8(Line::overflow(&note).as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn names_the_greenlet_its_site_and_its_size() {
        let line = line(17, Some("login"));
        assert!(line.starts_with("greenroom: greenlet 17 \"login\" (spawned at "), "{line}");
        assert!(line.contains(&format!("{}:", file!())), "{line}");
        assert!(
            line.ends_with(
                ") overflowed its stack of 262144 bytes; spawn it with Builder::stack_size, \
                 or run the deep call in on_big_stack\n"
            ),
            "{line}"
        );
    }

    #[test]
    fn zero_is_main_and_a_name_is_optional() {
        assert!(line(0, None).starts_with("greenroom: the main greenlet overflowed its stack"));
        assert!(line(u64::MAX, None).starts_with("greenroom: greenlet 18446744073709551615 (spawned at "));
    }

    #[test]
    fn a_long_name_is_cut_at_a_character_and_the_advice_still_fits() {
        let line = line(1, Some(&"ö".repeat(1000)));
        assert!(line.contains(&format!("\"{}\"", "ö".repeat(32))), "{line}");
        assert!(line.ends_with("on_big_stack\n"));
    }
}
