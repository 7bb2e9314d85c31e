//! Jobs that borrow from their caller.
//!
//! [`Pool::submit`](crate::Pool::submit) takes a closure that owns everything, and puts it on the heap. Who waits for the
//! job anyway can do without both: the job lives in the waiting caller's stack frame and may use whatever that frame
//! can. A [`Lease`] is the small piece of heap that makes it possible to change one's mind: the queue points to the lease,
//! never straight to the frame, so a caller that has to leave revokes the lease and takes its frame with it. A lease
//! serves job after job without allocating again.
//!
//! This is the raw mechanism, meant to build safe calls on; README.md beside this file argues why it is sound.

use std::cell::Cell;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::job::{Header, JobRef, Outcome, shield};

/// What a lent job is to do when it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Do the work.
    Run,
    /// The pool was shut down before a worker took the job. Tell whoever waits, and don't do the work.
    Cancel,
}

/// The function of a lent job: gets the frame it was lent with, and what to do.
type Execute = unsafe fn(*const (), Verdict);

/// A place on the heap through which jobs are lent to a pool, one at a time: see [`Pool::lend`](crate::Pool::lend).
///
/// Dropping it revokes the job lent last if that still waits. A job that has been called goes on; its frame is the
/// owner's concern, as [`Pool::lend`](crate::Pool::lend) demands.
///
/// ```
/// use greenroom_pool::Pool;
/// use greenroom_pool::lease::{Lease, Verdict};
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::thread::{self, Thread};
///
/// struct Frame<'a> { text: &'a str, length: std::cell::Cell<usize>, owner: Thread, done: AtomicBool }
///
/// unsafe fn count(frame: *const (), verdict: Verdict) {
///     // SAFETY: the owner below keeps its frame, and leaves it alone, until it sees `done`.
///     let frame = unsafe { &*frame.cast::<Frame<'_>>() };
///     if verdict == Verdict::Run {
///         frame.length.set(frame.text.len());
///     }
///     let owner = frame.owner.clone();
///     frame.done.store(true, Ordering::Release); // the frame may be gone from here on
///     owner.unpark();
/// }
///
/// let pool = Pool::new(1);
/// let mut lease = Lease::new();
/// let text = String::from("borrowed");
/// let frame = Frame { text: &text, length: 0.into(), owner: thread::current(), done: false.into() };
/// // SAFETY: this frame waits until `done`, and `count` doesn't unwind.
/// unsafe { pool.lend(&mut lease, (&raw const frame).cast(), count)? };
/// while !frame.done.load(Ordering::Acquire) {
///     thread::park();
/// }
/// assert_eq!(frame.length.get(), 8);
/// # Ok::<(), greenroom_pool::Rejected>(())
/// ```
pub struct Lease {
    /// The loan to use next or in use now; none before the first job, and after a revocation has left it to the queue.
    loan: Option<NonNull<Loan>>,
}

/// The heap part of a lease. It is *at rest* (claimed, not in the queue), *queued* (not claimed) or *revoked* (claimed,
/// in the queue).
#[repr(C)]
struct Loan {
    header: Header,
    /// Whoever turns it from false to true decides: a worker calls the job, the owner revokes it.
    claimed: AtomicBool,
    /// Set by the owner at rest, read by the worker before it claims.
    frame: Cell<*const ()>,
    /// Set by the owner at rest, read by the worker before it claims.
    execute: Cell<Execute>,
}

// SAFETY: the owner touches the loan through `&mut self` only, and shares it with a worker under the protocol of `claimed`.
unsafe impl Send for Lease {}

impl Lease {
    /// A lease with nothing lent. Allocates on first use.
    ///
    /// ```
    /// let mut lease = greenroom_pool::lease::Lease::new();
    /// assert!(!lease.revoke()); // nothing to revoke
    /// ```
    pub const fn new() -> Lease {
        Lease { loan: None }
    }

    /// Takes back the job lent last, unless it has been called. Never blocks.
    ///
    /// Returns true if the job was still queued: it will never be called, and nobody uses its frame any more. Returns false
    /// if it is being called or has been, or if there was nothing lent. A revoked job still takes its place in the
    /// queue until a worker comes by; the next job lent gets a new piece of heap.
    ///
    /// ```
    /// use greenroom_pool::Pool;
    /// use greenroom_pool::lease::{Lease, Verdict};
    ///
    /// unsafe fn never(_: *const (), _: Verdict) { unreachable!() }
    ///
    /// let pool = Pool::new(0); // no threads: the job waits
    /// let mut lease = Lease::new();
    /// // SAFETY: `never` uses no frame.
    /// unsafe { pool.lend(&mut lease, std::ptr::null(), never)? };
    /// assert!(lease.revoke());
    /// pool.resize(1);
    /// assert!(pool.join(None));
    /// # Ok::<(), greenroom_pool::Rejected>(())
    /// ```
    pub fn revoke(&mut self) -> bool {
        let Some(loan) = self.loan else { return false };
        // SAFETY: the lease owns its loan until the swap below gives it to the queue.
        let won = unsafe { !(*loan.as_ptr()).claimed.swap(true, Ordering::AcqRel) };
        if won {
            self.loan = None;
        }
        won
    }

    /// Makes the job for the queue to hold.
    ///
    /// # Panics
    /// If the job lent last is still queued.
    ///
    /// # Safety
    /// That of [`Pool::lend`](crate::Pool::lend).
    pub(crate) unsafe fn prepare(&mut self, frame: *const (), execute: Execute) -> JobRef {
        let pointer = *self.loan.get_or_insert_with(|| Loan::allocate(execute));
        // SAFETY: the lease owns its loan, which is alive.
        let loan = unsafe { pointer.as_ref() };
        let at_rest = loan.claimed.load(Ordering::Acquire);
        assert!(at_rest, "the job lent last through this lease is still queued: wait for it or revoke it first");
        loan.frame.set(frame);
        loan.execute.set(execute);
        loan.claimed.store(false, Ordering::Relaxed); // published by the queue
        // SAFETY: a Loan begins with a Header whose `finish_loan` wants this pointer; it lives until it is claimed.
        unsafe { JobRef::from_header(pointer.cast()) }
    }

    /// Takes back a job that the queue refused.
    pub(crate) fn put_to_rest(&mut self, _refused: JobRef) {
        if let Some(loan) = self.loan {
            // SAFETY: the lease owns its loan; no queue holds it.
            unsafe { (*loan.as_ptr()).claimed.store(true, Ordering::Relaxed) };
        }
    }
}

impl Loan {
    fn allocate(execute: Execute) -> NonNull<Loan> {
        NonNull::from(Box::leak(Box::new(Loan {
            header: Header::new(finish_loan, is_revoked),
            claimed: AtomicBool::new(true),
            frame: Cell::new(std::ptr::null()),
            execute: Cell::new(execute),
        })))
    }
}

/// # Safety
/// `header` comes from [`Lease::prepare`], through the queue, and is used once for each time it was prepared.
unsafe fn finish_loan(header: NonNull<Header>, verdict: Verdict) -> Outcome {
    let loan = header.cast::<Loan>().as_ptr();
    // SAFETY: an entry in the queue keeps its loan alive: the owner frees it only when it has seen the claim made here.
    // Fields are read through the raw pointer, since no reference may outlast the claim.
    let (frame, execute, revoked) =
        unsafe { ((*loan).frame.get(), (*loan).execute.get(), (*loan).claimed.swap(true, Ordering::AcqRel)) };
    if revoked {
        // SAFETY: the owner gave the loan up when it revoked the job, so this entry was the last that knew of it.
        drop(unsafe { Box::from_raw(loan) });
        return Outcome::NeverRan;
    }
    // From here on the loan may be reused or freed by its owner; only copies are used.
    // SAFETY: the claim was won, so the owner of the frame keeps it for this call, by the contract of `Pool::lend`.
    shield(|| unsafe { execute(frame, verdict) });
    match verdict {
        Verdict::Run => Outcome::Ran,
        Verdict::Cancel => Outcome::NeverRan,
    }
}

/// # Safety
/// `header` comes from [`Lease::prepare`], and is in the queue.
unsafe fn is_revoked(header: NonNull<Header>) -> bool {
    // SAFETY: an entry in the queue keeps its loan alive; claimed there means revoked.
    unsafe { (*header.cast::<Loan>().as_ptr()).claimed.load(Ordering::Acquire) }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.revoke();
        if let Some(loan) = self.loan {
            // SAFETY: not revoked, so the loan is at rest: never queued, or claimed by a worker that has done with it.
            drop(unsafe { Box::from_raw(loan.as_ptr()) });
        }
    }
}

impl Default for Lease {
    fn default() -> Lease {
        Lease::new()
    }
}

impl fmt::Debug for Lease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lease").finish_non_exhaustive()
    }
}
