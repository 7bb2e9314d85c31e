//! Several waits of one owner, who wants to know which of them were woken, in order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Home, WaitCell, Waiter};

/// See the module. Each wait has a number.
pub(crate) struct Tally {
    state: Mutex<State>,
}

struct State {
    /// Which were woken, in that order.
    woken: VecDeque<usize>,
    /// By whom the owner is woken, while it is parked.
    owner: Option<Waiter>,
}

impl Tally {
    pub(crate) fn new() -> Arc<Tally> {
        Arc::new(Tally { state: Mutex::new(State { woken: VecDeque::new(), owner: None }) })
    }

    /// A wait with that number; whoever wakes it adds the number to those that were woken.
    pub(crate) fn wait(self: &Arc<Self>, number: usize) -> (Arc<WaitCell>, u64) {
        let cell = WaitCell::new(Home::Tally(Arc::clone(self)));
        let epoch = cell.begin(number);
        cell.arm(epoch);
        (cell, epoch)
    }

    /// Adds a number, and wakes the owner.
    pub(crate) fn add(&self, number: usize) {
        let mut state = self.lock();
        state.woken.push_back(number);
        let owner = state.owner.take();
        drop(state);
        if let Some(owner) = owner {
            owner.wake();
        }
    }

    /// The next that was woken.
    pub(crate) fn next(&self) -> Option<usize> {
        self.lock().woken.pop_front()
    }

    /// The same; if there is none, `owner` is woken when there is.
    pub(crate) fn next_or_wake(&self, owner: Waiter) -> Option<usize> {
        let mut state = self.lock();
        let next = state.woken.pop_front();
        if next.is_none() {
            state.owner = Some(owner);
        }
        next
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
