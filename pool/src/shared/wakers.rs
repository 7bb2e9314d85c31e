//! Those who wait for something about the pool, first come first served.
//!
//! "Register, then look again" on one side, "change the word, then look who waits" on the other, both sequentially
//! consistent: one of the two sees the other, so no wake is lost. When nobody waits the second look is one load.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use crate::job::shield;

/// A queue of wakers.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    /// The length of the list; written under its lock, read by wakers before they take it.
    waiting: AtomicUsize,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    /// Given to the next one that registers.
    next_id: u64,
    /// In ascending order of their ids.
    wakers: VecDeque<(u64, Waker)>,
}

impl Wakers {
    /// Puts a waker at the end. The caller must look again afterwards whether what it waits for has happened.
    pub(crate) fn register(&self, waker: Waker) -> u64 {
        let mut list = self.lock();
        let id = list.next_id;
        list.next_id += 1;
        list.wakers.push_back((id, waker));
        self.waiting.store(list.wakers.len(), SeqCst);
        id
    }

    /// Puts a waker back into the place that one with this id had. The caller must look again, as after `register`.
    pub(crate) fn renew(&self, id: u64, waker: Waker) {
        let mut list = self.lock();
        let before = match list.wakers.binary_search_by_key(&id, |waker| waker.0) {
            Ok(index) => list.wakers.remove(index),
            Err(_) => None,
        };
        let index = list.wakers.partition_point(|waker| waker.0 < id);
        list.wakers.insert(index, (id, waker));
        self.waiting.store(list.wakers.len(), SeqCst);
        drop(list); // a waker's destructor is foreign code
        drop(before);
    }

    /// Takes a waker out again, if it has not been woken.
    pub(crate) fn remove(&self, id: u64) {
        let mut list = self.lock();
        let removed = match list.wakers.binary_search_by_key(&id, |waker| waker.0) {
            Ok(index) => list.wakers.remove(index),
            Err(_) => None,
        };
        self.waiting.store(list.wakers.len(), SeqCst);
        drop(list); // a waker's destructor is foreign code
        drop(removed);
    }

    /// Is this waker still to be woken?
    pub(crate) fn contains(&self, id: u64) -> bool {
        self.lock().wakers.binary_search_by_key(&id, |waker| waker.0).is_ok()
    }

    /// Wakes all that are registered now.
    pub(crate) fn wake_all(&self) {
        if self.waiting.load(SeqCst) == 0 {
            return;
        }
        let mut list = self.lock();
        let all = std::mem::take(&mut list.wakers);
        self.waiting.store(0, SeqCst);
        drop(list);
        for (_, waker) in all {
            shield(|| waker.wake());
        }
    }

    /// Blocks the current thread until `done`, which is looked at after each wake, or until the deadline. Returns what
    /// `done` said last.
    pub(crate) fn wait(&self, deadline: Option<Instant>, done: impl Fn() -> bool) -> bool {
        while !done() {
            let sleeper = Arc::new(Sleeper { thread: thread::current(), woken: AtomicBool::new(false) });
            let id = self.register(sleeper.clone().into());
            let in_time = done() || sleeper.sleep(deadline);
            self.remove(id);
            if !in_time {
                return done();
            }
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A waker for a blocked thread.
struct Sleeper {
    thread: Thread,
    woken: AtomicBool,
}

impl Sleeper {
    /// Blocks until woken. False if the deadline came first.
    fn sleep(&self, deadline: Option<Instant>) -> bool {
        while !self.woken.load(SeqCst) {
            match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(left) if left.is_zero() => return false,
                Some(left) => thread::park_timeout(left),
            }
        }
        true
    }
}

impl Wake for Sleeper {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, SeqCst);
        self.thread.unpark();
    }
}
