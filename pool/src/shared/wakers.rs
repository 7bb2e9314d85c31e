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
    /// How many are registered, woken or not; written under the lock, read by wakers before they take it.
    registered: AtomicUsize,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    /// Given to the next one that registers.
    next_id: u64,
    /// Those that have not been woken, in ascending order of their ids.
    wakers: VecDeque<(u64, Waker)>,
    /// How many have been woken and are still registered.
    woken: usize,
}

impl Wakers {
    /// Puts a waker at the end. The caller must look again afterwards whether what it waits for has happened.
    pub(crate) fn register(&self, waker: Waker) -> u64 {
        let mut list = self.lock();
        let id = list.next_id;
        list.next_id += 1;
        list.wakers.push_back((id, waker));
        self.note(&list);
        id
    }

    /// Puts a waker back into the place that one with this id had. The caller must look again, as after `register`.
    pub(crate) fn renew(&self, id: u64, waker: Waker) {
        let mut list = self.lock();
        let before = list.take(id);
        let index = list.wakers.partition_point(|waker| waker.0 < id);
        list.wakers.insert(index, (id, waker));
        self.note(&list);
        drop(list); // a waker's destructor is foreign code
        drop(before);
    }

    /// Ends a registration, whether it has been woken or not.
    pub(crate) fn remove(&self, id: u64) {
        let mut list = self.lock();
        let removed = list.take(id);
        self.note(&list);
        drop(list); // a waker's destructor is foreign code
        drop(removed);
    }

    /// Is anybody registered, woken or not?
    pub(crate) fn is_awaited(&self) -> bool {
        self.registered.load(SeqCst) > 0
    }

    /// Is this waker still to be woken?
    pub(crate) fn contains(&self, id: u64) -> bool {
        self.lock().wakers.binary_search_by_key(&id, |waker| waker.0).is_ok()
    }

    /// Wakes those that came first, as many as `there_is_for`, those included that have been woken and are still
    /// registered: what is there for them is nobody else's.
    pub(crate) fn wake_first(&self, there_is_for: impl Fn() -> usize) {
        while self.is_awaited() {
            let mut list = self.lock();
            if list.woken >= there_is_for() {
                return;
            }
            let Some((_, waker)) = list.wakers.pop_front() else {
                return;
            };
            list.woken += 1;
            drop(list);
            shield(|| waker.wake());
        }
    }

    /// Wakes all that are registered now.
    pub(crate) fn wake_all(&self) {
        if !self.is_awaited() {
            return;
        }
        let mut list = self.lock();
        let all = std::mem::take(&mut list.wakers);
        list.woken += all.len();
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

    fn note(&self, list: &List) {
        self.registered.store(list.wakers.len() + list.woken, SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl List {
    /// Takes out a registration; `None`: it has been woken.
    fn take(&mut self, id: u64) -> Option<(u64, Waker)> {
        match self.wakers.binary_search_by_key(&id, |waker| waker.0) {
            Ok(index) => self.wakers.remove(index),
            Err(_) => {
                self.woken -= 1;
                None
            }
        }
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
