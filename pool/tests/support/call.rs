//! A job that borrows, as a caller of `Pool::lend` would lay it out in its stack frame.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::cell::Cell;
use std::sync::atomic::{AtomicU8, Ordering::Acquire, Ordering::Release};
use std::thread::{self, Thread};

use greenroom_pool::lease::{Lease, Verdict};
use greenroom_pool::{Pool, Rejected};

const OPEN: u8 = 0;
const RAN: u8 = 1;
const CANCELLED: u8 = 2;

/// A frame: what the job borrows, where it leaves its result, and how it tells its owner.
pub(crate) struct Call<'a> {
    input: &'a [u64],
    sum: Cell<u64>,
    settled: AtomicU8,
    owner: Thread,
}

impl<'a> Call<'a> {
    pub(crate) fn new(input: &'a [u64]) -> Call<'a> {
        Call { input, sum: Cell::new(0), settled: AtomicU8::new(OPEN), owner: thread::current() }
    }

    /// # Safety
    /// The call stays where it is until it is settled, the lease revoked, or the lease dropped unsettled.
    pub(crate) unsafe fn lend(&self, pool: &Pool, lease: &mut Lease) -> Result<(), Rejected> {
        // SAFETY: `execute` reads a `Call`, which stays until it is settled, by this function's contract.
        unsafe { pool.lend(lease, (&raw const *self).cast(), execute) }
    }

    /// The sum, if the job ran.
    pub(crate) fn wait(&self) -> Option<u64> {
        loop {
            match self.settled.load(Acquire) {
                OPEN => thread::park(),
                RAN => return Some(self.sum.get()),
                _ => return None,
            }
        }
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.settled.load(Acquire) != OPEN
    }
}

unsafe fn execute(frame: *const (), verdict: Verdict) {
    // SAFETY: lent by `Call::lend`, and not settled yet.
    let call = unsafe { &*frame.cast::<Call<'_>>() };
    let settled = match verdict {
        Verdict::Run => {
            call.sum.set(call.input.iter().sum());
            RAN
        }
        Verdict::Cancel => CANCELLED,
    };
    let owner = call.owner.clone();
    call.settled.store(settled, Release);
    owner.unpark();
}
