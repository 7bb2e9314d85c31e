//! Something that several waits can be for at once.

use std::cell::Cell;
use std::sync::Arc;

use crate::wake::{Tally, WaitCell, WaitList, Waiter};

/// What [`wait`](crate::wait()) needs to know of an object. Nobody outside can name it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be waited for with `wait` or `iwait`",
    note = "greenlets, events, semaphores and async results can; a queue has its own `get` and `join`"
)]
pub trait Watch {
    /// Whether it is ready; if not, the watcher is in its list of waiters from now on.
    fn watch(&self, watcher: &Watcher) -> bool;

    /// The watcher leaves the list, if it is in it.
    fn unwatch(&self, watcher: &Watcher);
}

/// One object's part of such a wait. Being woken, it takes nothing: no permit, no value.
#[allow(missing_debug_implementations, reason = "nobody outside can name it")]
pub struct Watcher {
    cell: Arc<WaitCell>,
    epoch: u64,
    /// Its place in the object's list.
    place: Cell<Option<usize>>,
}

impl Watcher {
    pub(crate) fn new(tally: &Arc<Tally>, number: usize) -> Watcher {
        let (cell, epoch) = tally.wait(number);
        Watcher { cell, epoch, place: Cell::new(None) }
    }

    /// Stands in a list from now on.
    pub(crate) fn enter<T>(&self, list: &mut WaitList<T>, what: T) {
        self.place.set(Some(list.push_for(Waiter::new(&self.cell, self.epoch), what)));
    }

    /// Leaves the list, if it is still in it.
    pub(crate) fn leave<T>(&self, list: &mut WaitList<T>) {
        if let Some(place) = self.place.take() {
            list.remove(place, &self.cell, self.epoch);
        }
    }
}
