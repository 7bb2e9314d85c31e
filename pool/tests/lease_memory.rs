//! What lending costs in memory: nothing after the first time, and nothing is left behind.
//!
//! One test in a process of its own, for it counts the allocations of all threads.

#[path = "support/call.rs"]
mod call;
mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst};

use call::Call;
use greenroom_pool::Pool;
use greenroom_pool::lease::Lease;
use support::{hold, until};

/// The system's allocator, counting.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static ALIVE: AtomicIsize = AtomicIsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, SeqCst);
        ALIVE.fetch_add(1, SeqCst);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALIVE.fetch_sub(1, SeqCst);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn lending_allocates_nothing_and_leaves_nothing_behind() {
    let pool = Pool::new(2);
    let mut lease = Lease::new();
    let mut lend = |times| {
        for _ in 0..times {
            let call = Call::new(&[1, 2, 3]);
            // SAFETY: the call is waited for.
            unsafe { call.lend(&pool, &mut lease) }.unwrap();
            assert_eq!(call.wait(), Some(6));
        }
    };
    drop((hold(&pool), hold(&pool))); // both workers exist
    // What a thread sets up when it first sleeps may still fall into the first rounds.
    let mut allocations_of_a_round = || {
        let before = ALLOCATIONS.load(SeqCst);
        lend(2000);
        ALLOCATIONS.load(SeqCst) - before
    };
    assert!((0..20).any(|_| allocations_of_a_round() == 0));

    let leave_in_every_state = || {
        let call = Call::new(&[1]);
        for outcome in 0..4 {
            let mut lease = Lease::new();
            // SAFETY: the call is waited for, revoked, or left by its lease before it can run.
            unsafe { call.lend(&pool, &mut lease) }.unwrap();
            match outcome {
                0 => drop(call.wait()),
                1 => drop(lease.revoke() || call.wait().is_some()),
                2 => drop(lease),
                _ => {
                    lease.revoke();
                    drop(lease);
                }
            }
        }
        pool.join(None);
    };
    leave_in_every_state();
    let before = ALIVE.load(SeqCst);
    for _ in 0..500 {
        leave_in_every_state();
    }
    until("all is freed that was allocated", || ALIVE.load(SeqCst) <= before);
}
