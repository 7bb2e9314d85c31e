//! A job on the caller's own stack. README.md beside this file argues why nothing outlives what it points to.

use std::any::Any;
use std::cell::{RefCell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use greenroom_pool::lease::{Lease, Verdict};
use greenroom_pool::{Pool, Rejected};

use super::{ApplyError, Call, discard};
use crate::greenlet::{current, unwind};
use crate::hub;
use crate::park::Wait;
use crate::reason::Reason;
use crate::wake::Waiter;

/// What to do when the pool's queue is at its limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenFull {
    Park,
    Refuse,
}

thread_local! {
    /// Leases of this thread that no job uses.
    static LEASES: RefCell<Vec<Lease>> = const { RefCell::new(Vec::new()) };
}

/// A job, in the frame of [`run`]. Before it is lent it is the caller's; while it is lent, it is the worker's from the
/// claim to `done`; after `done`, or a revocation, it is the caller's again.
struct Frame<F, A, R> {
    /// The function and its arguments; taken out by the worker.
    call: UnsafeCell<Option<(F, A)>>,
    /// What came of it; written by the worker before `done`.
    result: UnsafeCell<Option<Ran<R>>>,
    /// The caller's waiter; taken out by the worker, since the frame may be gone when it wakes.
    waiter: UnsafeCell<Option<Waiter>>,
    /// The worker's last access to the frame.
    done: AtomicBool,
}

enum Ran<R> {
    Value(R),
    Panicked(Box<dyn Any + Send>),
    /// The pool shut down before a worker took the job.
    Cancelled,
}

impl<F, A, R> Frame<F, A, R> {
    /// Drops what is in it before the caller unwinds: a destructor that panics in the middle of that would abort.
    fn discard(self) {
        discard(self.call);
        discard(self.result);
    }
}

/// Runs `f` on the pool; the caller parks until then. A kill or timeout revokes the job if it is still queued, else waits
/// for it, and unwinds.
pub(super) fn run<F, A>(pool: &Pool, f: F, args: A, when_full: WhenFull) -> Result<F::Output, ApplyError>
where
    F: Call<A> + Send,
    A: Send,
    F::Output: Send,
{
    let wait = Wait::new();
    let frame = Frame {
        call: UnsafeCell::new(Some((f, args))),
        result: UnsafeCell::new(None),
        waiter: UnsafeCell::new(Some(wait.waiter())),
        done: AtomicBool::new(false),
    };
    let mut lent = Lent::new(&frame.done);
    let address: *const Frame<F, A, F::Output> = &frame;
    // SAFETY: `execute` matches the frame's type and doesn't unwind. The frame stays in place until it is done or revoked: the
    // code below waits for one of the two, and if it unwinds, `lent` does. `F`, `A` and the output are `Send`, so the worker
    // may use, make and drop them.
    unsafe { lent.lend(pool, address.cast(), execute::<F, A>, when_full) }.map_err(|refusal| match refusal {
        Rejected::QueueFull => ApplyError::QueueFull,
        Rejected::ShutDown => ApplyError::ShutDown,
    })?;
    while !lent.is_done() {
        if let Err(interrupt) = wait.park_until_interrupt(Reason::PoolJob, None) {
            if !lent.revoke() {
                while !lent.is_done() {
                    wait.park_shielded(Reason::PoolJob);
                }
            }
            drop(lent);
            frame.discard();
            current::with(|core| unwind::raise(core, interrupt));
        }
    }
    drop(lent);
    match frame.result.into_inner() {
        Some(Ran::Value(value)) => Ok(value),
        Some(Ran::Panicked(payload)) => Err(ApplyError::Panicked(payload)),
        Some(Ran::Cancelled) => Err(ApplyError::ShutDown),
        None => unreachable!("a job that is done has a result"),
    }
}

/// The worker's side.
///
/// # Safety
///
/// `frame` is a lent `Frame<F, A, F::Output>`, and this is the one call for it.
unsafe fn execute<F: Call<A>, A>(frame: *const (), verdict: Verdict) {
    let frame: *const Frame<F, A, F::Output> = frame.cast();
    // SAFETY: the claim made the frame this thread's; its owner reads nothing but `done` until that is set.
    let (call, waiter) = unsafe { (&mut *(*frame).call.get(), (*(*frame).waiter.get()).take()) };
    let ran = match verdict {
        Verdict::Cancel => Ran::Cancelled,
        Verdict::Run => match call.take() {
            Some((f, args)) => match catch_unwind(AssertUnwindSafe(|| f.call(args))) {
                Ok(value) => Ran::Value(value),
                Err(payload) => Ran::Panicked(payload),
            },
            None => unreachable!("a job runs once"),
        },
    };
    // SAFETY: still this thread's; the store to `done` hands it back, after which it is not touched any more. `waiter`
    // is our own.
    unsafe {
        *(*frame).result.get() = Some(ran);
        (*frame).done.store(true, Ordering::Release);
    }
    if let Some(waiter) = waiter {
        waiter.wake();
    }
}

/// The lease of a job, and the promise that the frame outlives the job on every path.
struct Lent<'a> {
    /// `Some` until the destructor.
    lease: Option<Lease>,
    /// Whether a job is out that was not revoked.
    is_out: bool,
    awaited: Option<Awaited>,
    done: &'a AtomicBool,
}

impl<'a> Lent<'a> {
    fn new(done: &'a AtomicBool) -> Lent<'a> {
        let used = LEASES.try_with(|leases| leases.borrow_mut().pop()).ok().flatten();
        Lent { lease: Some(used.unwrap_or_default()), is_out: false, awaited: None, done }
    }

    /// # Safety
    ///
    /// As `Pool::lend`; the frame must stay in place until this is dropped.
    unsafe fn lend(
        &mut self,
        pool: &Pool,
        frame: *const (),
        execute: unsafe fn(*const (), Verdict),
        when_full: WhenFull,
    ) -> Result<(), Rejected> {
        let Some(lease) = &mut self.lease else {
            unreachable!("the lease is there until the destructor");
        };
        // If the kernel gives the pool no thread, it runs jobs in here, perhaps somebody else's: what is meant for this
        // greenlet must not unwind them.
        let lend = || match when_full {
            // SAFETY: the caller's promise.
            WhenFull::Park => unsafe { pool.lend_in_line(lease, frame, execute) },
            // SAFETY: the caller's promise.
            WhenFull::Refuse => unsafe { pool.lend(lease, frame, execute) },
        };
        current::with(|core| core.undisturbed(lend))?;
        self.is_out = true;
        self.awaited = if pool.spins() { Awaited::begin() } else { None };
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Takes the job back. False: a worker has it or has done it.
    fn revoke(&mut self) -> bool {
        let revoked = self.lease.as_mut().is_some_and(Lease::revoke);
        self.is_out &= !revoked;
        revoked
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        if self.is_out && !self.is_done() && !self.revoke() {
            // Only a panic between lending and here comes this way, as a park in a place where none is allowed: the
            // thread waits, since the frame must not die before the worker is through.
            while !self.is_done() {
                std::thread::yield_now();
            }
        }
        if let Some(lease) = self.lease.take() {
            let _ = LEASES.try_with(|leases| leases.borrow_mut().push(lease));
        }
    }
}

/// A job that a greenlet of this thread's hub waits for, awake if that pays: the hub counts these.
struct Awaited(());

impl Awaited {
    fn begin() -> Option<Awaited> {
        count_awaited(1).then_some(Awaited(()))
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        count_awaited(-1);
    }
}

/// False: this thread has no hub.
fn count_awaited(change: isize) -> bool {
    // SAFETY: used in this call only.
    let hub = unsafe { hub::peek() };
    hub.map(|hub| hub.jobs_out.set(hub.jobs_out.get().saturating_add_signed(change))).is_some()
}
