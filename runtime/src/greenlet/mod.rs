//! One coroutine and its bookkeeping.
//!
//! * `fiber`: the coroutine itself: start, resume, suspend.
//! * `core`: what the hub and the waits know of a greenlet, whatever it returns; main and plain threads have one too.
//! * `current`: whose code runs on this thread.
//! * `body`: the closure, then its outcome.
//! * `locals`: the values that belong to it.
//! * `outcome`: how it ended.
//! * `roster`: greenlets that belong together.
//! * `unwind`: kill and timeout, delivered by unwinding.

pub(crate) mod body;
pub(crate) mod core;
pub(crate) mod current;
pub(crate) mod fiber;
pub(crate) mod locals;
pub(crate) mod outcome;
pub(crate) mod roster;
pub(crate) mod unwind;

use std::fmt;

/// Tells one greenlet from every other of the process, for ever: ids are not reused.
///
/// ```
/// let a = greenroom::spawn(|| ());
/// let b = greenroom::spawn(|| ());
/// assert_ne!(a.id(), b.id());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GreenletId(pub(crate) u64);

impl fmt::Display for GreenletId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for GreenletId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GreenletId({})", self.0)
    }
}
