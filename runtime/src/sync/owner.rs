//! Who owns a re-entrant lock.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::greenlet::current;

/// Nobody. No owner has this number.
pub(super) const NOBODY: u64 = 0;

/// Numbers of threads; those of greenlets are smaller, for some centuries.
const THREAD: u64 = 1 << 63;
/// The hub's loop, which runs on a thread of its own accord, while main is parked.
const LOOP: u64 = 1 << 62;

/// The number of the greenlet that runs, or of the thread. Different from all others of the process, for ever.
pub(super) fn current() -> u64 {
    current::with(|core| match core.id().0 {
        0 if core.is_scheduler() => thread() | LOOP,
        // Main is its thread, with a hub or before there is one.
        0 => thread(),
        id => id,
    })
}

fn thread() -> u64 {
    static THREADS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(NOBODY) };
    }
    // Without a destructor it can be reached until the very end of its thread.
    NUMBER.with(|number| {
        if number.get() == NOBODY {
            number.set(THREAD | THREADS.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}
