//! Locks and signals between greenlets, hubs, pool workers and plain threads.
//!
//! What waits here parks: a greenlet alone, main with its hub's loop running meanwhile, a thread without a hub as a thread,
//! and it gets no hub from that. Names are those of `std::sync`; nearly every call that waits has a `_timeout` form.
//!
//! # What holds for all of them
//!
//! * *First come, first served.* What is released goes to the oldest waiter directly: a holder that releases and takes again
//!   in a loop starves nobody.
//! * *Nothing gets lost.* A kill, a timeout or a deadline ends a wait at any moment. What the waiter was handed at that very
//!   moment is its own if it can still use it (a deadline), else goes to the next in line (a kill, an outer timeout).
//! * *Ready beats expired.* What can be had at once is had, even with a zero timeout. `Duration::MAX`, and whatever else
//!   overflows the clock, is no deadline.
//! * *No poisoning.* A guard that is dropped by a panic, a kill or a timeout releases its lock, and the next holder finds what
//!   is there.
//! * Nothing is allocated per operation, once a line has had its length.
//!
//! To share one, put it into an `Arc` (an `Rc` on one thread, a `static`), or borrow it in a [`scope`](crate::scope()): unlike queues
//! and groups these don't clone. A guard or permit borrows its primitive, so it can't be given to a greenlet that outlives it:
//! take it inside of that greenlet.
//!
//! # Panics
//!
//! All that wait panic on the main of a hub, with "this would block forever", when nothing can ever end the wait and no plain thread is
//! alive that might. A thread without a hub, main before its first `spawn` included, blocks.
//!
//! # Limits
//!
//! A thread that ends without [`Hub::shutdown`](crate::Hub::shutdown) leaks its suspended greenlets, and with them whatever
//! they hold; those that stood in line are passed over from then on. The same goes for a guard given to `std::mem::forget`.

// How the files share the work (README.md beside this file argues the hand-over):
//
// * `line`: a bit of state and the line in front of it; the one place here that parks.
// * `crowd`: a line that is let in all at once.
// * `permits`: a line for a number of permits; all locks are made of it.
// * the others: one primitive each.

mod barrier;
mod bounded;
mod condvar;
mod crowd;
mod event;
mod line;
mod mutex;
mod once_cell;
mod owner;
mod permits;
mod rlock;
mod rwlock;
mod semaphore;

pub use barrier::{Barrier, BarrierWaitResult};
pub use bounded::BoundedSemaphore;
pub use condvar::{Condvar, WaitTimeoutResult};
pub use event::Event;
pub use mutex::{Mutex, MutexGuard};
pub use once_cell::OnceCell;
pub use rlock::{RLock, RLockGuard};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use semaphore::{Permit, ReleaseError, Semaphore};
