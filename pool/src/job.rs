//! What the queue holds: a thin pointer to a job.
//!
//! Whatever the job is, its memory begins with a [`Header`] whose one field knows how to finish it. So a queue entry is
//! eight bytes, and closures and leases share one queue.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;

use crate::lease::Verdict;

/// What became of a job that left the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ran; perhaps it panicked.
    Ran,
    /// It was cancelled, or its owner had revoked it.
    NeverRan,
}

/// How every job begins in memory.
#[repr(C)]
pub(crate) struct Header {
    /// Runs or cancels the job that begins here. Called once for each [`JobRef`], with the pointer the JobRef was made of.
    finish: unsafe fn(NonNull<Header>, Verdict) -> Outcome,
    /// Whether its owner has revoked the job that begins here, for good.
    is_revoked: unsafe fn(NonNull<Header>) -> bool,
}

impl Header {
    pub(crate) const fn new(
        finish: unsafe fn(NonNull<Header>, Verdict) -> Outcome,
        is_revoked: unsafe fn(NonNull<Header>) -> bool,
    ) -> Header {
        Header { finish, is_revoked }
    }
}

/// A job on its way through the queue. There is one JobRef for one job in flight; finishing the job consumes it.
#[derive(Debug)]
pub(crate) struct JobRef(NonNull<Header>);

// SAFETY: `JobRef::new` takes only closures that are Send; who calls `from_header` vouches for the rest.
unsafe impl Send for JobRef {}

impl JobRef {
    /// A job that owns all it needs, in one allocation.
    pub(crate) fn new<F: FnOnce() + Send + 'static>(closure: F) -> JobRef {
        let job = Box::new(Closure { header: Header::new(finish_closure::<F>, |_| false), closure });
        JobRef(NonNull::from(Box::leak(job)).cast())
    }

    /// A job that somebody else laid out.
    ///
    /// # Safety
    /// `header` points to a job laid out to begin with a [`Header`]; its `finish` may be called with this pointer, once,
    /// on any thread, at any time from now on.
    pub(crate) unsafe fn from_header(header: NonNull<Header>) -> JobRef {
        JobRef(header)
    }

    /// Whether nothing is left to do but to free it.
    pub(crate) fn is_revoked(&self) -> bool {
        // SAFETY: the pointer is valid, by the contract of the two constructors, and not used up yet.
        unsafe { (self.0.as_ref().is_revoked)(self.0) }
    }

    /// Runs the job, or cancels it, and frees what the queue owned of it. Never unwinds.
    pub(crate) fn finish(self, verdict: Verdict) -> Outcome {
        // SAFETY: the pointer is valid and unused so far, by the contract of the two constructors; it is used up here.
        unsafe { (self.0.as_ref().finish)(self.0, verdict) }
    }
}

/// A closure on the heap.
#[repr(C)]
struct Closure<F> {
    header: Header,
    closure: F,
}

/// # Safety
/// `header` comes from [`JobRef::new`] with the same `F`, and nobody uses it afterwards.
unsafe fn finish_closure<F: FnOnce()>(header: NonNull<Header>, verdict: Verdict) -> Outcome {
    // SAFETY: `JobRef::new` leaked a `Box<Closure<F>>` to make this pointer, and this is its only use.
    let job = unsafe { Box::from_raw(header.cast::<Closure<F>>().as_ptr()) };
    match verdict {
        Verdict::Run => {
            shield(job.closure);
            Outcome::Ran
        }
        Verdict::Cancel => {
            shield(|| drop(job));
            Outcome::NeverRan
        }
    }
}

/// Calls `f` and stops a panic here. The panic hook has reported it by now, and there is nobody to hand the payload to.
pub(crate) fn shield(f: impl FnOnce()) {
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else { return };
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // A payload whose destructor panics: the next one might do it as well.
        mem::forget(second);
    }
}
