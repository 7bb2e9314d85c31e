//! Kill and timeout: an interrupt is delivered by unwinding, at a park, with a payload of greenroom's own. It goes
//! through `resume_unwind`, so no panic hook runs; destructors do.
//!
//! While a greenlet unwinds, its destructors may park, and nothing may be raised in them: that would abort the process.
//! `thread::panicking()` tells, but it is per thread: when a destructor parks in the middle of unwinding, the flag
//! stays up for whoever runs meanwhile. The hub counts such parks; while there are none the flag is exact, and while
//! there are some, a greenlet's own record decides. The record can miss one case: a panic of the greenlet's own that
//! began while another was parked like that. Raising in such a destructor aborts, as a second panic there would.
//! Holding the interrupt back instead could wait for ever: for a destructor that waits for the very greenlet it killed.

use std::any::Any;
use std::panic::resume_unwind;
use std::thread;

use super::core::Core;
use super::{GreenletId, current};

/// What ends a wait from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// The greenlet is to end.
    Kill,
    /// The timeout with this id has expired.
    Elapsed(u64),
}

/// What unwinds. Whoever catches and drops it has ended the unwinding.
struct Payload {
    interrupt: Interrupt,
    /// The greenlet it was raised in.
    greenlet: GreenletId,
    /// Its key: main and threads all have the same id.
    key: usize,
    /// Whether that was unwinding already: the timeout was entered by a destructor.
    was_unwinding: bool,
}

impl Payload {
    fn is_of(&self, core: &Core) -> bool {
        self.greenlet == core.id() && self.key == core.key()
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        current::with(|core| {
            if self.is_of(core) {
                core.unwinding.set(self.was_unwinding);
            }
        });
    }
}

/// Unwinds the code that runs.
pub(crate) fn raise(core: &Core, interrupt: Interrupt) -> ! {
    let was_unwinding = core.unwinding.replace(true);
    resume_unwind(Box::new(Payload { interrupt, greenlet: core.id(), key: core.key(), was_unwinding }))
}

/// Goes on unwinding with a payload that was caught, after parks that may have noted that nothing unwinds.
pub(crate) fn resume(core: &Core, payload: Box<dyn Any + Send>) -> ! {
    if is_ours(&*payload) {
        core.unwinding.set(true);
    }
    resume_unwind(payload)
}

/// Whether a caught payload is that of this interrupt in this greenlet.
pub(crate) fn is_raised(payload: &(dyn Any + Send), core: &Core, interrupt: Interrupt) -> bool {
    let payload = payload.downcast_ref::<Payload>();
    payload.is_some_and(|payload| payload.is_of(core) && payload.interrupt == interrupt)
}

/// Whether a caught payload is greenroom's own.
pub(crate) fn is_ours(payload: &(dyn Any + Send)) -> bool {
    payload.is::<Payload>()
}

/// Whether the code of `core`, which runs, is unwinding. `others`: how many other greenlets of the thread are parked
/// in the middle of unwinding.
#[inline]
pub(crate) fn is_unwinding(core: &Core, others: usize) -> bool {
    if !thread::panicking() {
        core.unwinding.set(false);
    } else if others == 0 {
        core.unwinding.set(true);
    }
    core.unwinding.get()
}

/// Drops something whose destructor may panic; returns that panic.
pub(crate) fn drop_caught<T>(value: T) -> Result<(), Box<dyn Any + Send>> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(value)))
}

/// Drops a panic payload, which can panic itself, without end in theory; the third is forgotten.
pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = drop_caught(payload)
        && let Err(third) = drop_caught(second)
    {
        std::mem::forget(third);
    }
}
