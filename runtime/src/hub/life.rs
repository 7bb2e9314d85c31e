//! How greenlets start, run and end on a hub.

use std::rc::Rc;
use std::time::Instant;

use super::inner::{Inner, Stage};
use crate::greenlet::body::{Body, Task};
use crate::greenlet::core::{Core, Phase};
use crate::greenlet::current;
use crate::greenlet::outcome::JoinError;
use crate::greenlet::roster::Roster;
use crate::wake::Call;

impl Inner {
    /// Adds a greenlet. It is ready at once, or at `start`; `Some(None)` is never.
    #[inline(always)]
    pub(crate) fn add<F, T>(&self, core: impl FnOnce() -> Core, f: F, start: Option<Option<Instant>>) -> Rc<Body<F, T>>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        // Made in place: `Rc::new` would copy its several hundred bytes, right after they were written.
        let mut place = Rc::new_uninit();
        Rc::get_mut(&mut place).expect("nobody else has it yet").write(Body::new(core(), f));
        // SAFETY: written in the line above.
        let body: Rc<Body<F, T>> = unsafe { place.assume_init() };
        let place = self.table.borrow_mut().insert(Some(Rc::clone(&body) as Rc<dyn Task>));
        body.core().place.set(place);
        match start {
            None => self.ready.push(body.core().key()),
            Some(start) => {
                body.core().phase.set(Phase::Delayed);
                if let Some(start) = start {
                    self.timers.borrow_mut().arm(start, place);
                }
            }
        }
        body
    }

    /// Runs a greenlet until it parks, yields or ends.
    #[inline]
    pub(super) fn resume(&self, key: usize) {
        // SAFETY: it came out of the ready queue, which holds a greenlet once at most, and only one that has not ended: it
        // gets in by its spawn, or by whoever ends its park or its delay, and being ready it can't end before it comes out. The table
        // holds it until `finish`, which only the loop calls, below and at the end of `start`.
        let core = unsafe { Core::of_key(key) };
        if !core.fiber.has_started() && !self.start(core) {
            return;
        }
        self.resumes.set(self.resumes.get() + 1);
        // SAFETY: the core is alive, as above, until the scheduler's takes its place.
        unsafe { current::set(core) };
        // SAFETY: this is the loop; the fiber has started, and one that has ended is not in the table any more.
        let ended = unsafe { core.fiber.resume() };
        self.enter_loop();
        if let Some(stack) = ended {
            self.stacks.give(stack);
            self.finish(core.place.get());
        }
    }

    /// From here on the loop runs, and no greenlet's code, nor main's.
    #[inline]
    pub(super) fn enter_loop(&self) {
        // SAFETY: the scheduler lies in the hub, and gives way to a greenlet or main before that ends.
        unsafe { current::set(&self.scheduler) };
    }

    /// From here on main's code runs.
    #[inline]
    pub(super) fn leave_loop(&self) {
        // SAFETY: the thread's own.
        unsafe { current::set(&self.main) };
    }

    /// Gives a greenlet its stack. False: there is none, and it waits for one or has ended.
    #[inline(never)]
    fn start(&self, core: &Core) -> bool {
        let task: *const dyn Task = match self.table.borrow().get(core.place.get()) {
            Some(Some(task)) => Rc::as_ptr(task),
            _ => unreachable!("greenlet {} is ready but not in the table", core.id()),
        };
        let stack = match core.stack_size {
            None => self.stacks.take(),
            Some(bytes) => self.stacks.take_sized(bytes),
        };
        match stack {
            Ok(stack) => {
                core.note.bounds.set(stack.bounds());
                // SAFETY: not started yet. The table holds the task, and with it the fiber, until `finish`, which runs
                // after the coroutine has ended; or for ever, when the thread ends. `run` doesn't unwind.
                unsafe { core.fiber.start(stack, move || (*task).run(&Inner::report_unseen)) };
                true
            }
            Err(_) if self.stacks.stats().in_use > 0 && !core.is_kill_due() => {
                self.starved.borrow_mut().push_back(core.key());
                false
            }
            Err(error) => {
                let error = if core.is_kill_due() {
                    JoinError::killed()
                } else {
                    JoinError::panicked(Box::new(format!("greenlet {} could not start: {error}", core.id())))
                };
                // SAFETY: the table holds the task until the next line.
                unsafe { (*task).fail(error, &Inner::report_unseen) };
                self.finish(core.place.get());
                false
            }
        }
    }

    /// Takes a greenlet out of those that wait for a stack. False: it wasn't among them.
    fn ends_starving(&self, core: &Core) -> bool {
        let mut starved = self.starved.borrow_mut();
        let place = starved.iter().position(|&starved| starved == core.key());
        place.and_then(|place| starved.remove(place)).is_some()
    }

    /// A greenlet's body has ended: tells everyone who waits for that.
    fn finish(&self, place: usize) {
        let Some(task) = self.table.borrow_mut().remove(place) else {
            return;
        };
        let core = task.core();
        let Phase::Done(outcome) = core.phase.get() else {
            unreachable!("the body of greenlet {} has ended without an outcome", core.id());
        };
        if let Some(starved) = self.starved.borrow_mut().pop_front() {
            self.ready.push(starved);
        }
        drop(core.membership.take());
        core.joiners.borrow_mut().wake_all();
        if !core.links.borrow().is_empty() {
            for link in core.links.take() {
                self.add_link(core, move || link(&outcome));
            }
        }
        if self.live() <= self.rest.get() {
            self.leavers.borrow_mut().wake_all();
        }
    }

    /// Runs a link of `core` in a greenlet of its own.
    pub(crate) fn add_link(&self, core: &Core, link: impl FnOnce() + 'static) {
        let link_core = Core::new(self.next_id(), None, core.note.site, None);
        link_core.watched.set(false);
        link_core.is_link.set(true);
        link_core.killed.set(self.stage.get() != Stage::Running);
        self.add(|| link_core, link, None);
    }

    /// Another thread's closure becomes a greenlet.
    pub(super) fn accept(&self, call: Call) {
        let core = Core::new(self.next_id(), None, call.site, None);
        core.watched.set(false);
        *core.call.borrow_mut() = Some(call.result);
        self.add(|| core, call.body, None);
    }

    /// Kills every greenlet but `me`. What is added later is a link, which is born killed.
    pub(crate) fn kill_all_but(&self, me: &Core) {
        let tasks: Vec<Rc<dyn Task>> = self.table.borrow().iter().filter_map(|(_, task)| task.clone()).collect();
        for task in tasks.iter().filter(|task| !std::ptr::eq(task.core(), me)) {
            self.request_kill(task.core());
        }
    }

    /// Kills every member but `me`.
    pub(crate) fn kill_members(&self, roster: &Roster, me: &Core) {
        for member in roster.members().iter().filter(|member| !std::ptr::eq(member.core(), me)) {
            self.request_kill(member.core());
        }
    }

    /// Lets a greenlet know that it is to end. It is ready afterwards, unless it is in a place where it must not unwind.
    pub(crate) fn request_kill(&self, core: &Core) {
        if core.is_done() {
            return;
        }
        core.killed.set(true);
        let key = core.key();
        if core.phase.get() == Phase::Delayed {
            self.timers.borrow_mut().disarm(core.place.get());
            core.phase.set(Phase::Live);
            self.ready.push(key);
        } else {
            let ends_park = core.parked.get().is_some_and(|parked| parked.interruptible && parked.kick());
            if ends_park || self.ends_starving(core) {
                self.ready.push(key);
            }
        }
    }
}
