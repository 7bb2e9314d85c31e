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

/// Keys of greenlets that can run, in the order in which they became so.
pub(crate) struct Ready {
    /// The queue. Never borrowed while anything else runs.
    queue: RefCell<VecDeque<usize>>,
    /// The door of the same hub, by which a cell tells that it is at home here.
    door: Arc<Door>,
}

impl Ready {
    pub(crate) fn new(door: Arc<Door>) -> Ready {
        Ready { queue: RefCell::new(VecDeque::new()), door }
    }

    #[inline]
    pub(crate) fn push(&self, key: usize) {
        self.queue.borrow_mut().push_back(key);
    }

    #[inline]
    pub(crate) fn pop(&self) -> Option<usize> {
        self.queue.borrow_mut().pop_front()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.queue.borrow().len()
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
