//! A place in a list of waiters, given up on every path: return, kill, timeout, panic.

use std::cell::RefCell;

use super::Wait;
use crate::wake::WaitList;

/// See the module. For lists of one thread, whose wakes are for everybody.
pub(crate) struct Enlisted<'a> {
    list: &'a RefCell<WaitList>,
    place: usize,
    wait: &'a Wait,
}

impl<'a> Enlisted<'a> {
    pub(crate) fn new(list: &'a RefCell<WaitList>, wait: &'a Wait) -> Enlisted<'a> {
        let place = list.borrow_mut().push(wait.waiter());
        Enlisted { list, place, wait }
    }
}

impl Drop for Enlisted<'_> {
    fn drop(&mut self) {
        self.wait.leave(&mut self.list.borrow_mut(), self.place);
    }
}
