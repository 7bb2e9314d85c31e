//! A line for a number of permits, of which each waiter needs one or more.

use std::time::Duration;

use super::line::{Line, Locked};
use crate::park::{Watch, Watcher};
use crate::reason::Reason;

/// What a watcher needs: a permit to be free, of which it takes nothing.
const WATCHES: usize = 0;

/// See the module. After every critical section the line is empty, or what is free is too little for its front.
pub(super) struct Permits {
    /// How many are free; and how many each in the line needs: `WATCHES` for one who wants to know when there is one.
    line: Line<usize, usize>,
    /// The most that may be free.
    limit: usize,
}

impl Permits {
    pub(super) const fn new(free: usize, limit: usize) -> Permits {
        Permits { line: Line::new(free), limit }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    pub(super) fn free(&self) -> usize {
        self.line.lock().state
    }

    /// Takes `need`; parks until they are there. False: the time was over first.
    pub(super) fn acquire(&self, need: usize, reason: Reason, timeout: Option<Duration>) -> bool {
        let mut queue = self.line.lock();
        if take(&mut queue, need) {
            return true;
        }
        self.line.wait(
            queue,
            need,
            reason,
            timeout,
            || (),
            |mut queue, called| {
                if called {
                    // Others may have released more than they had meanwhile.
                    queue.state = queue.state.saturating_add(need).min(self.limit);
                }
                self.hand_out(queue);
            },
        )
    }

    /// Takes `need` if nobody is in line and they are there.
    pub(super) fn try_acquire(&self, need: usize) -> bool {
        take(&mut self.line.lock(), need)
    }

    /// Gives back, or adds. False, and nothing is changed: it would be more than the limit.
    pub(super) fn release(&self, count: usize) -> bool {
        let mut queue = self.line.lock();
        match queue.state.checked_add(count) {
            Some(free) if free <= self.limit => queue.state = free,
            _ => return false,
        }
        self.hand_out(queue);
        true
    }

    /// Calls the front of the line while there is enough for it.
    fn hand_out<'a>(&'a self, mut queue: Locked<'a, usize, usize>) {
        while let Some(left) = after_front(&mut queue) {
            queue.state = left;
            let waiter = queue.waiters.pop();
            let is_last = after_front(&mut queue).is_none();
            drop(queue);
            if let Some(waiter) = waiter {
                waiter.wake();
            }
            if is_last {
                return;
            }
            queue = self.line.lock();
        }
    }
}

impl Watch for Permits {
    fn watch(&self, watcher: &Watcher) -> bool {
        let mut queue = self.line.lock();
        let ready = queue.state > 0;
        if !ready {
            watcher.enter(&mut queue.waiters, WATCHES);
        }
        ready
    }

    // Who watches keeps nobody behind it from what is free, so nobody gains by its leaving.
    fn unwatch(&self, watcher: &Watcher) {
        watcher.leave(&mut self.line.lock().waiters);
    }
}

fn take(queue: &mut Locked<'_, usize, usize>, need: usize) -> bool {
    let left = queue.state.checked_sub(need);
    match left {
        Some(left) if queue.front().is_none() => {
            queue.state = left;
            true
        }
        _ => false,
    }
}

/// What would be left after the front of the line; `None` if nobody is there or it needs more.
fn after_front(queue: &mut Locked<'_, usize, usize>) -> Option<usize> {
    match *queue.front()? {
        WATCHES => Some(queue.state).filter(|&free| free > 0),
        need => queue.state.checked_sub(need),
    }
}
