//! Waking from anywhere: the part of a wait that other threads may touch.
//!
//! * `cell`: one wait's state, and the `Waiter` by which it is woken exactly once.
//! * `inbox`: the lock-free list of woken cells that other threads leave for a hub.
//! * `bell`: what ends the hub's sleep.
//! * `door`: a hub's cross-thread side: its inbox, the closures sent to it, and the bell that ends its sleep.
//! * `list`: who waits for something, in order.
//! * `ready`: the hub's ready queue, and how a wake on the hub's own thread finds it.
//! * `tally`: several waits of one owner.
//!
//! README.md beside this file argues why no wake is lost and none arrives twice.

mod bell;
mod cell;
mod door;
mod inbox;
mod list;
#[cfg(all(test, loom))]
mod models;
mod ready;
mod tally;

pub(crate) use bell::Bell;
pub(crate) use cell::{Home, Settled, WaitCell, Waiter};
pub(crate) use door::{Abandon, Call, Door};
pub(crate) use list::WaitList;
pub(crate) use ready::Ready;
pub(crate) use tally::Tally;

/// Atomics that the model checker can watch.
mod atomic {
    #[cfg(loom)]
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};
    #[cfg(not(loom))]
    pub(super) use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};
}
