//! All stacks of one size.

use std::io;

use super::Stack;
use super::slab::Slab;
use crate::sys;

/// Address space of a first slab: 64 stacks of the default size.
const FIRST_SLAB: usize = 16 << 20;

/// Address space of the largest slab: 32,768 stacks of the default size, so a million take some forty mappings.
const LARGEST_SLAB: usize = 8 << 30;

/// The slabs of one stack size, and the stacks that nobody has.
#[derive(Debug)]
pub(super) struct Shelf {
    /// Bytes of a stack: a power of two, two pages at least. The same for every stack and slab here.
    pub(super) size: usize,
    /// Given back and left as they were, the latest last: its pages are the likeliest to be in the cache.
    pub(super) warm: Vec<Stack>,
    /// Given back, and then all their pages but the top one to the kernel.
    pub(super) cool: Vec<Stack>,
    /// Given back, and then all their pages to the kernel.
    pub(super) cold: Vec<Stack>,
    /// Only the last one may have memory left to carve.
    slabs: Vec<Slab>,
}

impl Shelf {
    /// A shelf that holds nothing yet.
    pub(super) const fn new(size: usize) -> Shelf {
        Shelf { size, warm: Vec::new(), cool: Vec::new(), cold: Vec::new(), slabs: Vec::new() }
    }

    /// Keeps `stack` and its top page, where every greenlet begins; gives the other pages to the kernel.
    pub(super) fn cool(&mut self, stack: Stack) {
        let usable = stack.bounds.usable();
        // SAFETY: whole pages of a slab, and the stack was given back, so nothing lies on it.
        unsafe { sys::discard(usable.start..usable.end - sys::page_size()) };
        self.cool.push(stack);
    }

    /// Keeps `stack`; gives its pages to the kernel.
    pub(super) fn chill(&mut self, stack: Stack) {
        // SAFETY: as in `cool`.
        unsafe { sys::discard(stack.bounds.usable()) };
        self.cold.push(stack);
    }

    /// A stack that nobody has had before.
    pub(super) fn carve(&mut self) -> io::Result<Stack> {
        if self.slabs.last().is_none_or(Slab::is_used_up) {
            // Doubling keeps the mappings few and the address space proportional to what is in use.
            let next = self.slabs.last().map_or(FIRST_SLAB, |last| last.bytes().saturating_mul(2));
            self.slabs.push(Slab::reserve(next.min(LARGEST_SLAB).max(self.size), self.size)?);
        }
        let index = self.slabs.len() - 1;
        self.slabs[index].carve(self.size, u32::try_from(index).expect("fewer slabs than pages of memory")).map_err(
            |error| {
                io::Error::new(
                    error.kind(),
                    format!(
                        "{error} (guard page; before Linux 6.13 each splits a mapping, and sysctl vm.max_map_count \
                         limits those)"
                    ),
                )
            },
        )
    }

    /// How many stacks are out: neither on the shelf nor uncut.
    pub(super) fn in_use(&self) -> usize {
        let carved: usize = self.slabs.iter().map(Slab::carved).sum();
        carved / self.size - self.warm.len() - self.cool.len() - self.cold.len()
    }

    /// Number of slabs, and the address space in them.
    pub(super) fn mapped(&self) -> (usize, usize) {
        (self.slabs.len(), self.slabs.iter().map(Slab::bytes).sum())
    }
}

impl Drop for Shelf {
    /// Unmaps each slab whose stacks are all back; the others stay mapped for as long as the process runs.
    fn drop(&mut self) {
        let mut back = vec![0; self.slabs.len()];
        for stack in self.warm.drain(..).chain(self.cool.drain(..)).chain(self.cold.drain(..)) {
            back[stack.slab as usize] += stack.size();
        }
        for (slab, back) in self.slabs.drain(..).zip(back) {
            if slab.carved() == back {
                // SAFETY: as many bytes of stacks came back as were cut from it, and the list of them is gone.
                unsafe { slab.release() };
            }
        }
    }
}
