//! The loop. It runs on main's stack whenever main is parked.
//!
//! One turn: everything that was made ready from outside (deadlines, other threads), then what the greenlets made ready
//! themselves, in order, up to a budget; then a look at the outside again. So a crowd of busy greenlets delays a timer
//! by one turn, however long the ready queue is, and a flood of timers can't keep the ready queue from moving.

use std::time::{Duration, Instant};

use greenroom_pool::{Role, Spin};

use super::asleep::Asleep;
use super::inner::Inner;
use crate::greenlet::core::{Core, MAIN, Parked, Phase};
use crate::wake::Call;

/// Resumes of one turn that come from the ready queue.
const BUDGET: usize = 64;

/// How long the hub sleeps, with nothing of its own to wait for, before it looks for a deadlock the first time.
const PATIENCE: Duration = Duration::from_millis(10);
/// It looks again after twice the time, up to this.
const MOST_PATIENCE: Duration = Duration::from_secs(60);

impl Inner {
    /// The code of `core`, which runs, gives way until it is resumed. It has made sure that it will be, or is parked.
    /// `Err`: it is main, and nothing can ever wake it; the text says what everybody waits for.
    #[inline(always)]
    pub(crate) fn switch_out(&self, core: &Core, unwinding: bool) -> Result<(), String> {
        if unwinding || !core.is_greenlet() {
            return self.switch_out_slowly(core, unwinding);
        }
        // SAFETY: `core` is the one that runs, on its own coroutine.
        unsafe { core.fiber.suspend() };
        Ok(())
    }

    #[inline(never)]
    fn switch_out_slowly(&self, core: &Core, unwinding: bool) -> Result<(), String> {
        assert!(!core.is_scheduler(), "the hub's own loop can't park: a logger or Waker of this thread tried to");
        self.mid_unwind.set(self.mid_unwind.get() + usize::from(unwinding));
        let result = if core.is_main() {
            self.enter_loop();
            let result = self.run_until_main();
            self.leave_loop();
            result
        } else {
            // SAFETY: as above.
            unsafe { core.fiber.suspend() };
            Ok(())
        };
        self.mid_unwind.set(self.mid_unwind.get() - usize::from(unwinding));
        result
    }

    fn run_until_main(&self) -> Result<(), String> {
        loop {
            let mut left = self.turn_left.get();
            if left == 0 {
                // Nothing to look at is the common case, and this is the hot path.
                if !self.door.is_quiet() || !self.timers.borrow().is_empty() || self.ready.is_empty() {
                    self.look()?;
                }
                left = self.ready.turn(BUDGET);
            }
            self.turn_left.set(left - 1);
            match self.ready.pop() {
                Some(key) if key == self.main.key() => return Ok(()),
                Some(key) => self.resume(key),
                None => self.turn_left.set(0),
            }
        }
    }

    /// The running slice has taken long: the loop looks at the outside before it resumes anybody else.
    pub(crate) fn end_turn(&self) {
        self.turn_left.set(0);
    }

    /// Takes in what has come from outside; sleeps until there is something to resume.
    #[inline(never)]
    fn look(&self) -> Result<(), String> {
        let mut patience = PATIENCE;
        loop {
            self.receive();
            self.fire();
            if !self.ready.is_empty() || self.release_idlers() {
                return Ok(());
            }
            self.sleep(&mut patience)?;
        }
    }

    /// Other threads' wakes and closures.
    pub(crate) fn receive(&self) {
        if self.door.is_quiet() {
            return;
        }
        self.ready.extend_urgent(self.door.collect());
        while self.door.take_calls() {
            while let Some(call) = self.next_call() {
                self.accept(call);
            }
        }
    }

    fn next_call(&self) -> Option<Call> {
        self.calls.borrow().as_ref()?.try_recv().ok()
    }

    /// Deadlines that have passed.
    fn fire(&self) {
        let mut timers = self.timers.borrow_mut();
        if timers.is_empty() {
            return;
        }
        let now = Instant::now();
        while let Some(place) = timers.pop_due(now) {
            if let Some(key) = self.ready_at_deadline(place) {
                self.ready.push_urgent(key);
            }
        }
    }

    /// A deadline ends a park or begins a delayed greenlet, unless something else was first.
    fn ready_at_deadline(&self, place: usize) -> Option<usize> {
        let ends = |core: &Core| match core.phase.get() {
            Phase::Delayed => {
                core.phase.set(Phase::Live);
                Some(core.key())
            }
            _ => core.parked.get().filter(Parked::kick).map(|_| core.key()),
        };
        match place {
            MAIN => ends(&self.main),
            place => self.table.borrow().get(place).and_then(Option::as_ref).and_then(|task| ends(task.core())),
        }
    }

    /// Those who wait until nothing else is ready. False: there is nobody.
    fn release_idlers(&self) -> bool {
        self.idlers.borrow_mut().wake_all() > 0
    }

    /// Waits awake for a moment, if jobs are out that are likely to be done by then. True: something has come.
    fn spin(&self) -> bool {
        let in_time = |deadline| deadline >= Instant::now() + Spin::MOMENT;
        self.jobs_out.get() > 0
            && self.timers.borrow().next().is_none_or(in_time)
            && self.spin.until(Role::Master, || !self.door.is_quiet())
    }

    /// Sleeps until the next deadline or until another thread rings.
    fn sleep(&self, patience: &mut Duration) -> Result<(), String> {
        if self.spin() {
            return Ok(());
        }
        self.door.announce_sleep();
        if self.door.is_quiet() {
            let deadline = self.timers.borrow().next();
            let asleep = deadline.is_none().then(Asleep::begin);
            let at_most = deadline.is_none().then_some(*patience);
            self.sleeps.set(self.sleeps.get() + 1);
            self.reactor.borrow_mut().sleep(deadline, at_most);
            drop(asleep);
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
