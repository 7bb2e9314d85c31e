//! A bit of state and the line in front of it: where everything in this folder parks.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::park::Wait;
use crate::reason::Reason;
use crate::wake::{WaitList, Waiter};

/// See the module. `S`: the state; `T`: what a waiter waits for, if that differs from one to the other.
pub(super) struct Line<S, T = ()> {
    /// Locked for moments only, never while code of the user runs.
    queue: Mutex<Queue<S, T>>,
}

/// What the lock of a [`Line`] protects.
pub(super) struct Queue<S, T = ()> {
    pub(super) state: S,
    /// Whoever is taken out of it has been called; see README.md.
    pub(super) waiters: WaitList<T>,
}

/// The lock of a [`Line`], held.
pub(super) type Locked<'a, S, T = ()> = MutexGuard<'a, Queue<S, T>>;

impl<S, T> Line<S, T> {
    pub(super) const fn new(state: S) -> Line<S, T> {
        Line { queue: Mutex::new(Queue { state, waiters: WaitList::new() }) }
    }

    pub(super) fn lock(&self) -> Locked<'_, S, T> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stands in line and parks until called. False: the time was over first.
    ///
    /// `outside` is called once, before the park and outside of the lock. `missed` is called if it leaves without having
    /// been called, or can't use it since it unwinds; with the lock under which it left, and whether it had been called.
    pub(super) fn wait<'a>(
        &'a self,
        mut queue: Locked<'a, S, T>,
        what: T,
        reason: Reason,
        timeout: Option<Duration>,
        outside: impl FnOnce(),
        missed: impl FnOnce(Locked<'a, S, T>, bool),
    ) -> bool {
        let wait = Wait::new();
        let place = queue.waiters.push_for(wait.waiter(), what);
        drop(queue);
        let mut spot = Spot { line: self, place, wait, missed: Some(missed) };
        outside();
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        while spot.wait.park(reason, deadline).timed_out() {
            if deadline.is_some() {
                return spot.is_called();
            }
        }
        spot.missed = None;
        true
    }
}

impl<S, T> Queue<S, T> {
    /// The oldest waiter that is not lost, and what it waits for.
    pub(super) fn front(&mut self) -> Option<&T> {
        while self.waiters.first().is_some_and(|(waiter, _)| waiter.is_lost()) {
            drop(self.waiters.pop());
        }
        self.waiters.first().map(|(_, what)| what)
    }

    /// Takes out the oldest waiter that is not lost. The caller has to wake it, after the lock.
    pub(super) fn call(&mut self) -> Option<Waiter> {
        self.front()?;
        self.waiters.pop()
    }
}

/// A place in the line, given up on every path.
struct Spot<'a, S, T, F: FnOnce(Locked<'a, S, T>, bool)> {
    line: &'a Line<S, T>,
    place: usize,
    wait: Wait,
    /// `None`: there is nothing to give up any more.
    missed: Option<F>,
}

impl<'a, S, T, F: FnOnce(Locked<'a, S, T>, bool)> Spot<'a, S, T, F> {
    /// The time is over. Whether it was called all the same; else it has left.
    fn is_called(&mut self) -> bool {
        let mut queue = self.line.lock();
        let called = !self.wait.leave(&mut queue.waiters, self.place);
        if let Some(missed) = self.missed.take()
            && !called
        {
            missed(queue, false);
        }
        called
    }
}

impl<'a, S, T, F: FnOnce(Locked<'a, S, T>, bool)> Drop for Spot<'a, S, T, F> {
    fn drop(&mut self) {
        if let Some(missed) = self.missed.take() {
            let mut queue = self.line.lock();
            let called = !self.wait.leave(&mut queue.waiters, self.place);
            missed(queue, called);
        }
    }
}
