//! A coroutine that gets its stack when it starts and gives it back when it ends.
//!
//! Only the hub's loop starts and resumes; only code on the coroutine suspends. That is what makes the cells below
//! sound: the loop and the coroutine never run at the same time, and the coroutine never touches `coroutine`.

use std::cell::{Cell, UnsafeCell};
use std::ptr;

use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::stack::Stack;

/// See the module.
pub(crate) struct Fiber {
    /// `None` before the start and after the end. Touched only by the loop.
    coroutine: UnsafeCell<Option<Coroutine<(), (), (), Stack>>>,
    /// The coroutine's way out, at the bottom of its stack: valid from the first resume until it ends.
    yielder: Cell<*const Yielder<(), ()>>,
}

impl Fiber {
    pub(crate) fn new() -> Fiber {
        Fiber { coroutine: UnsafeCell::new(None), yielder: Cell::new(ptr::null()) }
    }

    pub(crate) fn has_started(&self) -> bool {
        // SAFETY: a read of the discriminant; `resume` holds its reference only inside the `Some`, which it never
        // replaces while the coroutine runs.
        unsafe { (*self.coroutine.get()).is_some() }
    }

    /// Gives the fiber its stack and its entry, which runs at the first `resume`.
    ///
    /// # Safety
    ///
    /// Only from the hub's loop, on a fiber that has not started. `self` and whatever `entry` points to must stay in
    /// place until the coroutine has ended or for ever. `entry` must not unwind.
    pub(crate) unsafe fn start(&self, stack: Stack, entry: impl FnOnce() + 'static) {
        let yielder: *const Cell<*const Yielder<(), ()>> = &self.yielder;
        let coroutine = Coroutine::with_stack(stack, move |out: &Yielder<(), ()>, ()| {
            // SAFETY: the caller keeps `self` in place while the coroutine lives.
            unsafe { &*yielder }.set(out);
            let no_unwind = NoUnwind;
            entry();
            std::mem::forget(no_unwind);
        });
        // SAFETY: not started, so nobody holds a reference into the cell.
        unsafe { *self.coroutine.get() = Some(coroutine) };
    }

    /// Runs the coroutine until it suspends or ends. Returns its stack when it has ended.
    ///
    /// # Safety
    ///
    /// Only from the hub's loop, on a fiber that has started and not ended.
    #[inline]
    pub(crate) unsafe fn resume(&self) -> Option<Stack> {
        // SAFETY: the loop is the only one to touch the cell, and it isn't re-entered while the coroutine runs.
        let slot = unsafe { &mut *self.coroutine.get() };
        match slot.as_mut()?.resume(()) {
            CoroutineResult::Yield(()) => None,
            CoroutineResult::Return(()) => slot.take().map(Coroutine::into_stack),
        }
    }

    /// Back to the loop; returns at the next `resume`.
    ///
    /// # Safety
    ///
    /// Only from code that runs on this coroutine.
    #[inline(always)]
    pub(crate) unsafe fn suspend(&self) {
        // SAFETY: set at the first resume, and the yielder lives as long as the coroutine that calls.
        unsafe { &*self.yielder.get() }.suspend(());
    }
}

/// The last resort should `entry` unwind all the same: out of its coroutine it would go on in the loop, in the name of a greenlet
/// whose stack is gone.
struct NoUnwind;

impl Drop for NoUnwind {
    fn drop(&mut self) {
        std::process::abort();
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        // A coroutine that is still suspended is leaked, stack and all: its frames may be borrowed, and unwinding it
        // here would run them outside of the hub.
        std::mem::forget(self.coroutine.get_mut().take());
    }
}
