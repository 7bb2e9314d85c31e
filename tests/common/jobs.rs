//! For jobs of a pool: what holds them up, what counts them, and looking at the pool until it is as wanted.

use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use greenroom::{AsyncResult, ThreadPool, sleep};
use greenroom_pool::PoolStats;

/// Holds jobs up, as blocking code does, until it is opened.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn new() -> Gate {
        Gate::default()
    }

    pub(crate) fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    pub(crate) fn wait(&self) {
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), |open| !*open).unwrap());
    }
}

/// Parks until the pool's numbers are as wanted.
pub(crate) fn until(pool: &ThreadPool, wanted: impl Fn(&PoolStats) -> bool) {
    while !wanted(&pool.stats()) {
        sleep(Duration::from_micros(100));
    }
}

/// Lets a job of the pool begin that waits at the gate.
pub(crate) fn hold(pool: &ThreadPool, gate: &Gate) -> AsyncResult<()> {
    let (running, gate) = (pool.stats().running, gate.clone());
    let held = pool.spawn(move || gate.wait(), ());
    until(pool, |stats| stats.running > running);
    held
}

/// Counts what is made and not dropped, and what is dropped twice, on all threads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens(Arc<(AtomicIsize, AtomicUsize)>);

impl Tokens {
    pub(crate) fn new() -> Tokens {
        Tokens::default()
    }

    pub(crate) fn make(&self) -> Token {
        self.0.0.fetch_add(1, SeqCst);
        Token { of: self.clone(), is_alive: true }
    }

    /// How many live.
    pub(crate) fn alive(&self) -> isize {
        self.0.0.load(SeqCst)
    }

    /// Parks until none lives: what a job captured is dropped a moment before its result is there, or after.
    #[track_caller]
    pub(crate) fn expect_none(&self) {
        for _ in 0..100_000 {
            if self.alive() == 0 {
                break;
            }
            sleep(Duration::from_micros(100));
        }
        assert_eq!((self.alive(), self.0.1.load(SeqCst)), (0, 0), "leaked, or dropped twice");
    }
}

/// See [`Tokens`].
#[derive(Debug)]
pub(crate) struct Token {
    of: Tokens,
    is_alive: bool,
}

impl Drop for Token {
    fn drop(&mut self) {
        self.of.0.0.fetch_sub(1, SeqCst);
        if !std::mem::replace(&mut self.is_alive, false) {
            self.of.0.1.fetch_add(1, SeqCst);
        }
    }
}
