//! A place in the frame of somebody who is parked, through which an item goes from hand to hand.

use std::cell::UnsafeCell;

/// Empty for one who waits for an item; with an item for one who waits to get rid of it.
pub(super) struct Slot<T>(UnsafeCell<Option<T>>);

/// How others reach a slot while its owner stands in line.
pub(super) struct SlotRef<T>(*const Slot<T>);

// SAFETY: by it an item goes to another thread, and nothing else.
unsafe impl<T: Send> Send for SlotRef<T> {}

impl<T> Slot<T> {
    pub(super) fn new(item: Option<T>) -> Slot<T> {
        Slot(UnsafeCell::new(item))
    }

    pub(super) fn reference(&self) -> SlotRef<T> {
        SlotRef(self)
    }

    /// What is in it.
    ///
    /// # Safety
    ///
    /// Only for the owner, while no reference of the slot is in a line: before it gets in, after somebody took it out, or
    /// after it has left.
    pub(super) unsafe fn take(&self) -> Option<T> {
        // SAFETY: nobody else reaches the slot then, as the caller promises.
        unsafe { (*self.0.get()).take() }
    }
}

impl<T> SlotRef<T> {
    /// Exchanges what is in the slot.
    ///
    /// # Safety
    ///
    /// Under the lock of the line out of which this reference was taken, in the same critical section. The owner, who
    /// doesn't touch the slot while it stands in line, learns of its having been taken out under that lock or by a wake
    /// that comes after it; until then its frame stays.
    pub(super) unsafe fn exchange(self, item: Option<T>) -> Option<T> {
        // SAFETY: the slot is there and nobody else reaches it, as argued above.
        unsafe { std::mem::replace(&mut *(*self.0).0.get(), item) }
    }
}
