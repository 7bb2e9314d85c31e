//! The list of woken cells that other threads leave for a hub: a lock-free stack, linked through the cells themselves,
//! so that a wake allocates nothing and a worker that loses the CPU in the middle of it blocks nobody.

use std::ptr;
use std::sync::Arc;

use super::WaitCell;
use super::atomic::{AtomicPtr, Ordering};

/// Many producers, one consumer, oldest first.
pub(super) struct Inbox {
    /// The newest cell, or null. Every cell in the list is one `Arc` strong count.
    head: AtomicPtr<WaitCell>,
}

impl Inbox {
    pub(super) fn new() -> Inbox {
        Inbox { head: AtomicPtr::new(ptr::null_mut()) }
    }

    /// The caller has moved the cell out of its parked state, so it is in no list.
    pub(super) fn push(&self, cell: Arc<WaitCell>) {
        let node = Arc::into_raw(cell).cast_mut();
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            // SAFETY: the strong count that `into_raw` gave up keeps the cell alive until `take` takes it back.
            unsafe { &*node }.next.store(head, Ordering::Relaxed);
            match self.head.compare_exchange_weak(head, node, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.load(Ordering::SeqCst).is_null()
    }

    /// Takes all there is, oldest first.
    pub(super) fn take(&self) -> Batch {
        let mut newest = self.head.swap(ptr::null_mut(), Ordering::SeqCst);
        let mut oldest = ptr::null_mut();
        while !newest.is_null() {
            // SAFETY: the swap made this list ours alone; each cell in it is kept alive by its strong count.
            let cell = unsafe { &*newest };
            let next = cell.next.load(Ordering::Relaxed);
            cell.next.store(oldest, Ordering::Relaxed);
            oldest = newest;
            newest = next;
        }
        Batch { oldest }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// Cells taken out of an inbox.
pub(super) struct Batch {
    /// The next one to give out, or null; the rest hangs on it.
    oldest: *mut WaitCell,
}

impl Iterator for Batch {
    type Item = Arc<WaitCell>;

    fn next(&mut self) -> Option<Arc<WaitCell>> {
        if self.oldest.is_null() {
            return None;
        }
        // SAFETY: the batch owns one strong count of each of its cells, given up by `push`; this takes it back.
        let cell = unsafe { Arc::from_raw(self.oldest) };
        self.oldest = cell.next.load(Ordering::Relaxed);
        Some(cell)
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}
