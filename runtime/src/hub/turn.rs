//! The loop. It runs on main's stack whenever main is parked.
//!
//! One turn: everything that was made ready from outside (deadlines, other threads), then what the greenlets made ready
//! themselves, in order, up to a budget; then a look at the outside again. So a crowd of busy greenlets delays a timer
//! by one turn, however long the ready queue is, and a flood of timers can't keep the ready queue from moving.

use std::time::{Duration, Instant};

use super::inner::Inner;
use crate::greenlet::core::{Core, MAIN, Phase};

/// Resumes of one turn that come from the ready queue.
const BUDGET: usize = 64;

/// How long the hub sleeps, with nothing of its own to wait for, before it looks for a deadlock the first time.
const PATIENCE: Duration = Duration::from_millis(10);
/// It looks again after twice the time, up to this.
const MOST_PATIENCE: Duration = Duration::from_secs(60);

impl Inner {
    /// The code of `core`, which runs, gives way until it is resumed. It has made sure that it will be, or is parked.
    /// `Err`: it is main, and nothing can ever wake it; the text says what everybody waits for.
    #[inline]
    pub(crate) fn switch_out(&self, core: &Core, unwinding: bool) -> Result<(), String> {
        self.mid_unwind.set(self.mid_unwind.get() + usize::from(unwinding));
        let result = if core.is_main() {
            self.run_until_main()
        } else {
            // SAFETY: `core` is the one that runs, on its own coroutine.
            unsafe { core.fiber.suspend() };
            Ok(())
        };
        self.mid_unwind.set(self.mid_unwind.get() - usize::from(unwinding));
        result
    }

    fn run_until_main(&self) -> Result<(), String> {
        loop {
            if self.turn_left.get() == 0 {
                self.look()?;
                self.turn_left.set(self.urgent.borrow().len() + self.ready.len().min(BUDGET));
            }
            self.turn_left.set(self.turn_left.get() - 1);
            let urgent = self.urgent.borrow_mut().pop_front();
            match urgent.or_else(|| self.ready.pop()) {
                Some(MAIN) => return Ok(()),
                Some(key) => self.resume(key),
                None => self.turn_left.set(0),
            }
        }
    }

    /// The running slice has taken long: the loop looks at the outside before it resumes anybody else.
    pub(crate) fn end_turn(&self) {
        self.turn_left.set(0);
    }

    fn has_ready(&self) -> bool {
        self.ready.len() > 0 || !self.urgent.borrow().is_empty()
    }

    /// Takes in what has come from outside; sleeps until there is something to resume.
    fn look(&self) -> Result<(), String> {
        let mut patience = PATIENCE;
        loop {
            self.receive();
            self.fire();
            if self.has_ready() || self.release_idlers() {
                return Ok(());
            }
            self.sleep(&mut patience)?;
        }
    }

    /// Other threads' wakes and closures.
    pub(crate) fn receive(&self) {
        if !self.door.is_quiet() {
            self.urgent.borrow_mut().extend(self.door.collect());
        }
        loop {
            let call = self.calls.borrow().as_ref().and_then(|calls| calls.try_recv().ok());
            match call {
                Some(call) => self.accept(call),
                None => return,
            }
        }
    }

    /// Deadlines that have passed.
    fn fire(&self) {
        let mut timers = self.timers.borrow_mut();
        if timers.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(key) = timers.pop_due(now) {
            if self.is_ready_at_deadline(key) {
                self.urgent.borrow_mut().push_back(key);
            }
        }
    }

    /// A deadline ends a park or begins a delayed greenlet, unless something else was first.
    fn is_ready_at_deadline(&self, key: usize) -> bool {
        let ends = |core: &Core| match core.phase.get() {
            Phase::Delayed => {
                core.phase.set(Phase::Live);
                true
            }
            _ => core.parked.borrow().as_ref().is_some_and(|parked| parked.cell.kick(parked.epoch)),
        };
        match key {
            MAIN => ends(&self.main),
            key => self.table.borrow().get(key).and_then(Option::as_ref).is_some_and(|task| ends(task.core())),
        }
    }

    /// Those who wait until nothing else is ready. False: there is nobody.
    fn release_idlers(&self) -> bool {
        self.idlers.borrow_mut().wake_all() > 0
    }

    /// Sleeps until the next deadline or until another thread rings.
    fn sleep(&self, patience: &mut Duration) -> Result<(), String> {
        self.door.announce_sleep();
        let has_calls = self.calls.borrow().as_ref().is_some_and(|calls| !calls.is_empty());
        if self.door.is_quiet() && !has_calls {
            let deadline = self.timers.borrow().next();
            let at_most = deadline.is_none().then_some(*patience);
            self.sleeps.set(self.sleeps.get() + 1);
            self.reactor.borrow_mut().sleep(deadline, at_most);
            self.door.awake();
            if deadline.is_none() && self.door.is_quiet() {
                *patience = (*patience * 2).min(MOST_PATIENCE);
                return self.check_deadlock();
            }
        } else {
            self.door.awake();
        }
        Ok(())
    }
}
