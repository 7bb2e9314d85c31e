//! Whose code runs on this thread.

use std::cell::Cell;
use std::ptr;
use std::rc::Rc;

use super::core::Core;
use crate::stack::publish;

thread_local! {
    /// The greenlet whose code runs, or main, or null before the first question. What it points to outlives the time
    /// it stands here: the hub's table holds a greenlet until its coroutine has ended, `OWN` holds the thread's.
    static CURRENT: Cell<*const Core> = const { Cell::new(ptr::null()) };
    /// The thread's own core.
    static OWN: Own = Own(Rc::new(Core::of_thread()));
}

struct Own(Rc<Core>);

impl Drop for Own {
    fn drop(&mut self) {
        CURRENT.set(ptr::null());
        // SAFETY: null is no note.
        unsafe { publish(ptr::null()) };
    }
}

/// Calls `f` with the core of the code that runs.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&Core) -> R) -> R {
    let current = CURRENT.get();
    if current.is_null() {
        return f(&of_thread());
    }
    // SAFETY: see `CURRENT`; the code that runs here is the greenlet's own, so it can't end before `f` returns.
    f(unsafe { &*current })
}

/// The thread's own core: main's, if there is a hub. A thread that is ending gets a fresh one for this call.
#[cold]
pub(crate) fn of_thread() -> Rc<Core> {
    let own = OWN.try_with(|own| {
        if CURRENT.get().is_null() {
            // SAFETY: the thread's own.
            unsafe { set(&own.0) };
        }
        Rc::clone(&own.0)
    });
    own.unwrap_or_else(|_| Rc::new(Core::of_thread()))
}

/// The hub's loop switches: from here on this core's code runs, and a stack overflow is its.
///
/// # Safety
///
/// `core` must stay alive until the next call, or be the thread's own.
#[inline]
pub(crate) unsafe fn set(core: &Core) {
    CURRENT.set(core);
    // SAFETY: the note lies in the core.
    unsafe { publish(&core.note) };
}
