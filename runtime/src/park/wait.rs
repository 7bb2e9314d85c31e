//! One wait of the code that runs.

use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Instant;

use super::thread;
use crate::greenlet::core::{Core, Parked, Phase};
use crate::greenlet::current;
use crate::greenlet::unwind::{self, Interrupt};
use crate::hub::{self, Inner};
use crate::reason::Reason;
use crate::wake::{Settled, WaitCell, WaitList, Waiter};

/// A wait that can be woken from now on, whether it is parked yet or not. Waits nest: one that is made inside of another
/// has a cell of its own.
pub(crate) struct Wait {
    /// Taken out by the destructor.
    cell: ManuallyDrop<Arc<WaitCell>>,
    epoch: u64,
}

/// How a park ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Woken {
    /// Somebody woke it, or had before.
    Notified,
    /// Its deadline has passed.
    TimedOut,
}

impl Woken {
    pub(crate) fn timed_out(self) -> bool {
        self == Woken::TimedOut
    }
}

impl Wait {
    #[inline(always)]
    pub(crate) fn new() -> Wait {
        // SAFETY: both are used in this call only, and the code that runs outlives it.
        let (cell, key) = match unsafe { (hub::peek(), current::peek()) } {
            (Some(hub), Some(core)) => (hub.take_cell(), core.key()),
            _ => (thread::take_cell(), 0),
        };
        let epoch = cell.begin(key);
        Wait { cell: ManuallyDrop::new(cell), epoch }
    }

    /// What others wake it by.
    #[inline]
    pub(crate) fn waiter(&self) -> Waiter {
        Waiter::new(&self.cell, self.epoch)
    }

    /// Takes this wait's waiter out of a list. False: it isn't there any more, so it was handed something.
    #[inline]
    pub(crate) fn leave<T>(&self, list: &mut WaitList<T>, place: usize) -> bool {
        list.remove(place, &self.cell, self.epoch)
    }

    /// Parks until woken or until the deadline has passed. A kill or an outer timeout unwinds.
    #[inline(always)]
    pub(crate) fn park(&self, reason: Reason, deadline: Option<Instant>) -> Woken {
        match self.park_until_interrupt(reason, deadline) {
            Ok(woken) => woken,
            Err(interrupt) => current::with(|core| unwind::raise(core, interrupt)),
        }
    }

    /// The same, but gives a kill or an outer timeout to the caller, who must see to it that it is raised.
    #[inline(always)]
    pub(crate) fn park_until_interrupt(&self, reason: Reason, deadline: Option<Instant>) -> Result<Woken, Interrupt> {
        self.park_as(reason, deadline, false)
    }

    /// Parks until woken, whatever else happens meanwhile.
    pub(crate) fn park_shielded(&self, reason: Reason) {
        // Shielded and without a deadline, there is nothing else that it could return.
        let _ = self.park_as(reason, None, true);
    }

    #[inline(always)]
    fn park_as(&self, reason: Reason, deadline: Option<Instant>, shielded: bool) -> Result<Woken, Interrupt> {
        // SAFETY: both are used in this call only, and the code that runs outlives it.
        match unsafe { (hub::peek(), current::peek()) } {
            (Some(hub), Some(core)) if !self.cell.is_of_thread() => {
                self.park_on_hub(hub, core, reason, deadline, shielded)
            }
            _ => current::with(|core| self.park_thread(core, deadline, shielded)),
        }
    }

    #[inline(always)]
    fn park_on_hub(
        &self,
        hub: &Inner,
        core: &Core,
        reason: Reason,
        deadline: Option<Instant>,
        shielded: bool,
    ) -> Result<Woken, Interrupt> {
        let unwinding = hub.is_unwinding(core);
        let interruptible = !shielded && !unwinding && core.phase.get() == Phase::Live;
        if interruptible && core.is_kill_due() {
            return Err(Interrupt::Kill);
        }
        let scope = if shielded { None } else { core.next_scope(unwinding) };
        let nearest = earlier(deadline, scope);
        if let Some(nearest) = nearest {
            if self.cell.settle(self.epoch) == Settled::Notified {
                return Ok(Woken::Notified);
            }
            // A sleep gives way to others even when it is over before it begins.
            let now = Instant::now();
            if nearest <= now && !matches!(reason, Reason::Sleep(_)) {
                return expire(core, now, deadline, scope, unwinding);
            }
            hub.arm(nearest, core);
        }
        if self.cell.arm(self.epoch) {
            // SAFETY: this frame holds the cell, and clears the place when it is resumed.
            let parked = unsafe { Parked::new(&self.cell, self.epoch, reason, interruptible) };
            core.parked.set(Some(parked));
            let report = hub.switch_out(core, unwinding);
            core.parked.set(None);
            if nearest.is_some() {
                hub.disarm(core);
            }
            let settled = self.cell.settle(self.epoch);
            if let Err(report) = report {
                panic!("{report}");
            }
            if interruptible && core.is_kill_due() {
                return Err(Interrupt::Kill);
            }
            if settled == Settled::Kicked {
                return expire(core, Instant::now(), deadline, scope, unwinding);
            }
        } else {
            if nearest.is_some() {
                hub.disarm(core);
            }
            self.cell.settle(self.epoch);
        }
        Ok(Woken::Notified)
    }

    fn park_thread(&self, core: &Core, deadline: Option<Instant>, shielded: bool) -> Result<Woken, Interrupt> {
        let unwinding = unwind::is_unwinding(core, 0);
        let scope = if shielded { None } else { core.next_scope(unwinding) };
        match thread::park(&self.cell, self.epoch, earlier(deadline, scope)) {
            Settled::Notified => Ok(Woken::Notified),
            _ => expire(core, Instant::now(), deadline, scope, unwinding),
        }
    }
}

impl Drop for Wait {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the last use of the cell in this wait.
        let cell = unsafe { ManuallyDrop::take(&mut self.cell) };
        // SAFETY: used in this call only.
        match unsafe { hub::peek() } {
            Some(hub) if !cell.is_of_thread() => hub.give_cell(cell),
            _ => thread::give_cell(cell),
        }
    }
}

/// The park's own deadline (`deadline`) or that of a timeout around it (`scope`) has passed: the earlier one counts.
#[cold]
fn expire(
    core: &Core,
    now: Instant,
    deadline: Option<Instant>,
    scope: Option<Instant>,
    unwinding: bool,
) -> Result<Woken, Interrupt> {
    let own_first = match (deadline, scope) {
        (Some(own), Some(scope)) => own < scope,
        (own, _) => own.is_some(),
    };
    if !own_first && let Some(id) = core.take_expired(now, unwinding) {
        return Err(Interrupt::Elapsed(id));
    }
    Ok(Woken::TimedOut)
}

#[inline]
fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
