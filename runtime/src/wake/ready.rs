//! The ready queue, and how a wake on the hub's own thread finds it without passing through the inbox.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;

use super::Door;

thread_local! {
    /// The ready queue of this thread's hub; null without one. Set and cleared by `Installed` alone.
    static HERE: Cell<*const Ready> = const { Cell::new(ptr::null()) };
}

/// Keys of greenlets that can run, in the order in which they became so. Each is in it once at most: whoever changes what keeps
/// a greenlet from running adds it, and nobody else.
pub(crate) struct Ready {
    /// Those that something on this thread made ready. Never borrowed while anything else runs.
    usual: RefCell<VecDeque<usize>>,
    /// Those that a deadline or another thread made ready: they go first.
    urgent: RefCell<VecDeque<usize>>,
    /// The door of the same hub, by which a cell tells that it is at home here.
    door: Arc<Door>,
}

impl Ready {
    pub(crate) fn new(door: Arc<Door>) -> Ready {
        Ready { usual: RefCell::default(), urgent: RefCell::default(), door }
    }

    #[inline]
    pub(crate) fn push(&self, key: usize) {
        self.usual.borrow_mut().push_back(key);
    }

    pub(crate) fn push_urgent(&self, key: usize) {
        self.urgent.borrow_mut().push_back(key);
    }

    pub(crate) fn extend_urgent(&self, keys: impl Iterator<Item = usize>) {
        self.urgent.borrow_mut().extend(keys);
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<usize> {
        let urgent = self.urgent.borrow_mut().pop_front();
        urgent.or_else(|| self.usual.borrow_mut().pop_front())
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.urgent.borrow().len() + self.usual.borrow().len()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many a turn resumes that begins now: all the urgent ones, and up to `budget` others.
    #[inline]
    pub(crate) fn turn(&self, budget: usize) -> usize {
        self.urgent.borrow().len() + self.usual.borrow().len().min(budget)
    }

    /// Makes this the queue of the current thread's hub.
    ///
    /// # Safety
    ///
    /// `withdraw` must be called on this thread before the queue is dropped or moved.
    pub(crate) unsafe fn install(&self) {
        HERE.set(self);
    }

    /// Undoes `install`.
    pub(crate) fn withdraw(&self) {
        HERE.set(ptr::null());
    }

    /// Makes a greenlet ready if it belongs to the hub of the thread that calls. False: it doesn't.
    #[inline]
    pub(super) fn push_here(door: &Arc<Door>, key: usize) -> bool {
        let here = HERE.get();
        if here.is_null() {
            return false;
        }
        // SAFETY: `install` promised that the queue stays where it is until `withdraw` has cleared the pointer, and
        // both run on this thread.
        let here = unsafe { &*here };
        let home = Arc::ptr_eq(&here.door, door);
        if home {
            here.push(key);
        }
        home
    }
}
