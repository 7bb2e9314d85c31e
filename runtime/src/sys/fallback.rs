//! Every other Unix, and Linux under `--cfg greenroom_fallback`.

use std::convert::Infallible;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::memory::{advise, map, protect};

/// Reserves address space for `bytes`, all zero, committed page by page as it is touched; returns the lowest address.
pub(crate) fn reserve(bytes: usize) -> io::Result<usize> {
    map(bytes, 0)
}

/// Lets the kernel take the pages of `range` when it needs memory; the addresses stay ours, what they hold doesn't.
///
/// # Safety
///
/// `range` is whole pages that [`reserve`] returned, and nobody needs what they hold.
pub(crate) unsafe fn discard(range: Range<usize>) {
    // SAFETY: passed on to the caller. A refusal leaves the pages as they are.
    let _ = unsafe { advise(range, libc::MADV_FREE) };
}

/// Makes the pages of `range` fault on every access.
///
/// # Safety
///
/// `range` is whole pages that [`reserve`] returned, and nobody has a reference into them.
pub(crate) unsafe fn guard(range: Range<usize>) -> io::Result<()> {
    // SAFETY: passed on to the caller.
    unsafe { protect(range) }
}

/// Whether guards cost no mapping: never here.
#[cfg(test)]
pub(crate) fn guards_are_advice() -> bool {
    false
}

/// Bytes that the kernel pushes to deliver one signal, by the C headers.
pub(crate) fn signal_frame_size() -> usize {
    libc::SIGSTKSZ
}

/// How many threads this process has: nothing portable tells.
pub(crate) fn thread_count() -> Option<usize> {
    None
}

/// A wake-up finer than the poll's own timeout: none here, so the poll's milliseconds have to do.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// There is no value of this type.
    never: Infallible,
}

impl Alarm {
    /// Always `None`.
    pub(crate) fn new(_registry: &mio::Registry, _token: mio::Token) -> Option<Alarm> {
        None
    }

    /// Can't be called.
    pub(crate) fn set(&self, _deadline: Instant) {
        match self.never {}
    }
}

/// There is none here.
#[derive(Debug)]
pub(crate) enum ShortSlice {}

impl ShortSlice {
    pub(crate) fn take(_: Duration) -> Option<ShortSlice> {
        None
    }

    pub(crate) fn restore(self) {
        match self {}
    }
}
