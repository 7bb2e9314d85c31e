//! The closure of a greenlet, then its outcome: one allocation together with the core.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::core::{Core, Phase};
use super::outcome::{JoinError, Outcome};
use super::unwind::{self, Interrupt};

/// What the hub does with a greenlet.
pub(crate) trait Task {
    fn core(&self) -> &Core;

    /// Runs the body to its end, on the greenlet's own stack, and never unwinds. `unseen` gets a panic that nobody can
    /// ask for any more; it runs on the same stack, so it may park.
    fn run(&self, unseen: &dyn Fn(&Core, JoinError));

    /// Ends a greenlet that can't run: its body is dropped where the caller is, and `error` is its outcome.
    fn fail(&self, error: JoinError, unseen: &dyn Fn(&Core, JoinError));
}

/// What the handle does with a greenlet.
pub(crate) trait TaskOf<T>: Task {
    /// The outcome, once it is there; it can be taken once.
    fn take(&self) -> Option<Result<T, JoinError>>;
}

/// See the module.
pub(crate) struct Body<F, T> {
    core: Core,
    /// Never borrowed while code of the user runs.
    stage: RefCell<Stage<F, T>>,
    /// A body may hold anything that the thread may: it never leaves it.
    not_send: PhantomData<*mut ()>,
}

enum Stage<F, T> {
    Ready(F),
    Running,
    Done(Result<T, JoinError>),
    Taken,
}

impl<F: FnOnce() -> T, T> Body<F, T> {
    #[inline(always)]
    pub(crate) fn new(core: Core, f: F) -> Body<F, T> {
        Body { core, stage: RefCell::new(Stage::Ready(f)), not_send: PhantomData }
    }

    /// The body's result, or how it ended without one.
    fn outcome(&self, f: F) -> Result<T, JoinError> {
        if self.core.killed.get() && !self.core.is_link.get() {
            self.core.phase.set(Phase::Ending);
            return Err(match unwind::drop_caught(f) {
                Ok(()) => JoinError::killed(),
                Err(payload) => JoinError::panicked(payload),
            });
        }
        catch_unwind(AssertUnwindSafe(f)).map_err(|payload| {
            if unwind::is_raised(&*payload, &self.core, Interrupt::Kill) {
                JoinError::killed()
            } else {
                JoinError::panicked(payload)
            }
        })
    }

    /// Keeps the outcome for whoever holds the handle, and drops what belongs to the greenlet; without one, the outcome is dropped here, on the greenlet's own
    /// stack, where a destructor may park.
    fn end(&self, result: Result<T, JoinError>, unseen: &dyn Fn(&Core, JoinError)) {
        self.core.phase.set(Phase::Ending);
        let outcome = match &result {
            Ok(_) => Outcome::Value,
            Err(error) if error.is_killed() => Outcome::Killed,
            Err(_) => Outcome::Panicked,
        };
        if self.core.watched.get() {
            *self.stage.borrow_mut() = Stage::Done(result);
        } else {
            match result {
                Ok(value) => {
                    if let Err(payload) = unwind::drop_caught(value) {
                        unseen(&self.core, JoinError::panicked(payload));
                    }
                }
                Err(error) => unseen(&self.core, error),
            }
        }
        self.core.locals.drop_all(|payload| unseen(&self.core, JoinError::panicked(payload)));
        self.core.phase.set(Phase::Done(outcome));
    }
}

impl<F: FnOnce() -> T, T> Task for Body<F, T> {
    fn core(&self) -> &Core {
        &self.core
    }

    fn run(&self, unseen: &dyn Fn(&Core, JoinError)) {
        let Stage::Ready(f) = self.stage.replace(Stage::Running) else {
            unreachable!("a greenlet's body runs once");
        };
        self.end(self.outcome(f), unseen);
    }

    fn fail(&self, error: JoinError, unseen: &dyn Fn(&Core, JoinError)) {
        let body = self.stage.replace(Stage::Running);
        if let Err(second) = unwind::drop_caught(body) {
            unwind::drop_payload(second);
        }
        self.end(Err(error), unseen);
    }
}

impl<F: FnOnce() -> T, T> TaskOf<T> for Body<F, T> {
    fn take(&self) -> Option<Result<T, JoinError>> {
        let mut stage = self.stage.borrow_mut();
        match &*stage {
            Stage::Done(_) => match mem::replace(&mut *stage, Stage::Taken) {
                Stage::Done(result) => Some(result),
                _ => None,
            },
            _ => None,
        }
    }
}
