//! Linux: memory advice, procfs, the auxiliary vector.

use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::memory::{advise, map, protect};

/// `MADV_GUARD_INSTALL` (Linux 6.13): a marker in the page table, not a mapping of its own.
const GUARD_INSTALL: libc::c_int = 102;

/// `AT_MINSIGSTKSZ`: what one signal frame takes on this processor (libc names it only for Android).
const MIN_SIGNAL_STACK: libc::c_ulong = 51;

/// Set once the kernel has answered `EINVAL` to [`GUARD_INSTALL`]: it is too old, or the process locks its memory.
static ADVICE_UNKNOWN: AtomicBool = AtomicBool::new(false);

/// Reserves address space for `bytes`, all zero, committed page by page as it is touched; returns the lowest address.
pub(crate) fn reserve(bytes: usize) -> io::Result<usize> {
    let start = map(bytes, libc::MAP_NORESERVE)?;
    // Refused only by a kernel that has no huge pages, which is what was asked for.
    // SAFETY: the mapping is new and ours, and page sizes don't change what it holds.
    let _ = unsafe { advise(start..start + bytes, libc::MADV_NOHUGEPAGE) };
    Ok(start)
}

/// Gives the pages of `range` back at once; the addresses stay ours and read as zero. Guards inside it survive.
///
/// The kernel may refuse (locked memory); then the pages stay as they are.
///
/// # Safety
///
/// `range` is whole pages that [`reserve`] returned, and nobody needs what they hold.
pub(crate) unsafe fn discard(range: Range<usize>) {
    // SAFETY: passed on to the caller.
    let _ = unsafe { advise(range, libc::MADV_DONTNEED) };
}

/// Makes the pages of `range` fault on every access.
///
/// # Safety
///
/// `range` is whole pages that [`reserve`] returned, and nobody has a reference into them.
pub(crate) unsafe fn guard(range: Range<usize>) -> io::Result<()> {
    // Relaxed: a thread that hasn't heard of the refusal asks once more.
    if !ADVICE_UNKNOWN.load(Ordering::Relaxed) {
        // SAFETY: passed on to the caller.
        match unsafe { advise(range.clone(), GUARD_INSTALL) } {
            Ok(()) => return Ok(()),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                ADVICE_UNKNOWN.store(true, Ordering::Relaxed);
            }
            // Anything else is about this range or this moment, and says nothing about the next.
            Err(_) => {}
        }
    }
    // SAFETY: passed on to the caller.
    unsafe { protect(range) }
}

/// Whether guards cost no mapping, as far as is known: the kernel has refused none so far.
#[cfg(test)]
pub(crate) fn guards_are_advice() -> bool {
    !ADVICE_UNKNOWN.load(Ordering::Relaxed)
}

/// Bytes that the kernel pushes to deliver one signal (AVX-512 and AMX made it outgrow the constants in C headers).
pub(crate) fn signal_frame_size() -> usize {
    // SAFETY: getauxval reads what the kernel handed over at exec; 0 for an entry that it doesn't know.
    let known = unsafe { libc::getauxval(MIN_SIGNAL_STACK) };
    usize::try_from(known).unwrap_or(0).max(libc::MINSIGSTKSZ)
}

/// How many threads this process has, or `None` without procfs.
///
/// A thread counts until the kernel has buried it, which is some microseconds after `join` returned: the answer may be
/// too high for a moment, never too low.
pub(crate) fn thread_count() -> Option<usize> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the path is a C string, and `stat` has room for the answer.
    if unsafe { libc::stat(c"/proc/self/task".as_ptr(), stat.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so it has filled `stat`.
    let links = unsafe { stat.assume_init() }.st_nlink;
    // A directory has two links and one more per directory in it, here one per thread: no need to list them. Something
    // that mimics procfs without that rule shows as a process without threads.
    usize::try_from(links).ok()?.checked_sub(2).filter(|&threads| threads > 0)
}

/// A shorter slice for the current thread, with the one that it had: undone by `restore`, on the same thread.
#[derive(Debug)]
pub(crate) struct ShortSlice {
    before: u64,
}

impl ShortSlice {
    /// Asks the scheduler (Linux 6.12) to let this thread run for such a time at most before others get their turn, and in return to
    /// run it sooner when it wakes up. Changes nothing else. None: it has a shorter one, or a policy that knows no slice, or
    /// the kernel refuses.
    pub(crate) fn take(slice: Duration) -> Option<ShortSlice> {
        let attributes = scheduling()?;
        let slice = u64::try_from(slice.as_nanos()).ok()?;
        let fair = matches!(attributes.sched_policy as libc::c_int, libc::SCHED_OTHER | libc::SCHED_BATCH);
        let before = attributes.sched_runtime;
        // A kernel that doesn't know slices says 0.
        let shorter = fair && slice < before;
        (shorter && set_slice(attributes, slice)).then_some(ShortSlice { before })
    }

    /// Undoes it.
    pub(crate) fn restore(self) {
        if let Some(attributes) = scheduling() {
            set_slice(attributes, self.before);
        }
    }
}

/// How the scheduler treats this thread.
fn scheduling() -> Option<libc::sched_attr> {
    let mut attributes = MaybeUninit::<libc::sched_attr>::zeroed();
    let size = size_of::<libc::sched_attr>();
    // SAFETY: the place has room for `size` bytes, of which the kernel fills in what it knows; all zero is a value too.
    unsafe {
        let error = libc::syscall(libc::SYS_sched_getattr, 0, attributes.as_mut_ptr(), size, 0);
        (error == 0).then(|| attributes.assume_init())
    }
}

fn set_slice(mut attributes: libc::sched_attr, slice: u64) -> bool {
    attributes.sched_runtime = slice;
    // SAFETY: the attributes are read only; they are the kernel's own but for the slice.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_count_is_the_number_of_entries() {
        // Other tests start and end threads meanwhile, so look until both agree.
        let agreed = (0..1000).any(|_| {
            let listed = std::fs::read_dir("/proc/self/task").unwrap().count();
            thread_count() == Some(listed)
        });
        assert!(agreed);
    }

    #[test]
    fn a_slice_is_taken_and_given_back_and_nothing_else_changes() {
        let read = || {
            let attributes = scheduling().unwrap();
            (attributes.sched_policy, attributes.sched_nice, attributes.sched_flags, attributes.sched_runtime)
        };
        let before = read();
        match ShortSlice::take(Duration::from_micros(100)) {
            Some(slice) => {
                assert_eq!(read(), (before.0, before.1, before.2, 100_000));
                assert!(ShortSlice::take(Duration::from_micros(200)).is_none(), "it has a shorter one");
                slice.restore();
            }
            None => assert!(before.3 < 100_000, "{before:?}"),
        }
        assert_eq!(read(), before);
    }

    #[test]
    fn a_signal_frame_fits_the_alternate_stack() {
        assert!((2048..1 << 20).contains(&signal_frame_size()));
    }
}
