//! Whose code runs on this thread.

use std::cell::Cell;
use std::ptr;
use std::rc::Rc;

use super::core::Core;
use super::outcome::panic_message;
use super::unwind;
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
        self.0.locals.drop_all(|payload| {
            log::error!(
                "a greenlet-local value of a thread panicked when it was dropped: {}",
                panic_message(&*payload)
            );
            unwind::drop_payload(payload);
        });
        clear();
    }
}

fn clear() {
    CURRENT.set(ptr::null());
    // SAFETY: null is no note.
    unsafe { publish(ptr::null()) };
}

/// Calls `f` with the core of the code that runs.
#[inline]
pub(crate) fn with<R>(f: impl FnOnce(&Core) -> R) -> R {
    // SAFETY: the code that runs here is the greenlet's own, so it can't end before `f` returns.
    match unsafe { peek() } {
        Some(core) => f(core),
        None => with_thread(f),
    }
}

/// The first question on a thread, or one after its own core is gone: then it gets one for this call.
#[cold]
fn with_thread<R>(f: impl FnOnce(&Core) -> R) -> R {
    struct Stray;

    impl Drop for Stray {
        fn drop(&mut self) {
            clear();
        }
    }

    if let Some(own) = of_thread() {
        return f(&own);
    }
    let core = Core::of_thread();
    // SAFETY: the core outlives `_stray`, which puts nobody in its place. The hub of this thread, which could switch to
    // others meanwhile, has ended before `OWN`.
    unsafe { set(&core) };
    let _stray = Stray;
    f(&core)
}

/// The core of the code that runs; `None` if nobody on this thread has asked before.
///
/// # Safety
///
/// Not to be used after the code that asks has returned.
#[inline(always)]
pub(crate) unsafe fn peek<'a>() -> Option<&'a Core> {
    // SAFETY: null or, see `CURRENT`, alive while its code runs.
    unsafe { CURRENT.get().as_ref() }
}

/// The thread's own core: main's, if there is a hub. `None` in a thread that is ending.
pub(crate) fn of_thread() -> Option<Rc<Core>> {
    let own = OWN.try_with(|own| {
        if CURRENT.get().is_null() {
            // SAFETY: the thread's own.
            unsafe { set(&own.0) };
        }
        Rc::clone(&own.0)
    });
    own.ok()
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
