//! A line that is let in all at once.

use std::mem;

use super::line::{Line, Locked};
use crate::wake::WaitList;

/// The state of such a line.
pub(super) struct Crowd<S> {
    pub(super) state: S,
    /// An empty list that has been as long as it gets, for the next time.
    spare: WaitList,
}

impl<S> Crowd<S> {
    pub(super) const fn line(state: S) -> Line<Crowd<S>> {
        Line::new(Crowd { state, spare: WaitList::new() })
    }
}

impl<S> Line<Crowd<S>> {
    /// Calls everybody who is there, oldest first, and wakes them outside of the lock.
    pub(super) fn call_all(&self, mut queue: Locked<'_, Crowd<S>>) {
        if queue.waiters.is_empty() {
            return;
        }
        let spare = mem::replace(&mut queue.state.spare, WaitList::new());
        let mut all = mem::replace(&mut queue.waiters, spare);
        drop(queue);
        all.wake_all();
        self.lock().state.spare = all;
    }
}
