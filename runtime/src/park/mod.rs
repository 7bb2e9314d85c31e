//! The one way to block and to be woken.
//!
//! Everything in greenroom that waits makes a [`Wait`], hands its waiter to whoever will wake it, and parks in a loop
//! over its own condition. What parks depends on where the code runs: a greenlet switches to its hub; main on a thread
//! with a hub runs the loop; any other thread parks as such, and gets no hub from it.
//!
//! * `wait`: `Wait`, and the rule of `park`.
//! * `thread`: parking an OS thread.
//! * `enlisted`: a place in a list of waiters, given up on every path.
//! * `watch`: something that several waits can be for at once.
//!
//! A kill beats a wake, so a primitive that hands something to a waiter must pass it on when the waiter is gone (its
//! place in the list tells); a wake beats a deadline.

mod enlisted;
mod thread;
mod wait;
mod watch;

pub(crate) use enlisted::Enlisted;
pub(crate) use wait::Wait;
pub(crate) use watch::{Watch, Watcher};
