//! The handle of a greenlet.

use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::GreenletId;
use crate::greenlet::body::{Task, TaskOf};
use crate::greenlet::core::{Core, Phase};
use crate::greenlet::current;
use crate::greenlet::outcome::{JoinError, Outcome};
use crate::greenlet::roster::Roster;
use crate::greenlet::unwind::{self, Interrupt};
use crate::hub::{self, Inner};
use crate::park::{Enlisted, Wait, Watch, Watcher};
use crate::reason::Reason;

/// A greenlet: by it one waits for the end, gets the value, kills. It stays on the thread of its hub. Dropping it
/// detaches the greenlet, which goes on.
///
/// ```
/// let greenlet = greenroom::spawn(|| 6 * 7);
/// assert!(!greenlet.is_finished());
/// assert_eq!(greenlet.join().unwrap(), 42);
/// ```
///
/// ```compile_fail
/// let greenlet = greenroom::spawn(|| ());
/// std::thread::spawn(move || greenlet.join()); // a greenlet isn't Send
/// ```
pub struct Greenlet<T> {
    task: Rc<dyn TaskOf<T>>,
}

impl<T> Greenlet<T> {
    pub(super) fn new(task: Rc<dyn TaskOf<T>>) -> Greenlet<T> {
        Greenlet { task }
    }

    pub(super) fn core(&self) -> &Core {
        self.task.core()
    }

    /// It belongs to the roster until it ends. Only for one that was just spawned.
    pub(crate) fn belong_to(&self, roster: &Rc<Roster>)
    where
        T: 'static,
    {
        roster.add(&(Rc::clone(&self.task) as Rc<dyn Task>));
    }

    /// Waits for the end and gives the value. Parks unless the greenlet has ended.
    ///
    /// # Errors
    ///
    /// [`JoinError`] when it panicked (the payload is in it) or was killed.
    ///
    /// # Panics
    ///
    /// With "this would block forever", on main, when nothing can ever end the greenlet; joining oneself is such a case. And in a
    /// destructor of the thread, after its hub has ended and left the greenlet behind; the other methods return at once there.
    ///
    /// ```
    /// assert_eq!(greenroom::spawn(|| "value").join().unwrap(), "value");
    /// assert!(greenroom::spawn(|| std::panic::resume_unwind(Box::new(1))).join().unwrap_err().is_panic());
    /// ```
    pub fn join(self) -> Result<T, JoinError> {
        if !self.wait_until(None) {
            panic!("greenlet {} was left behind when its thread's hub ended: it has no outcome", self.id());
        }
        self.take()
    }

    /// The same, waiting at most `d`. `Err(self)`: it has not ended. Parks; zero time looks only.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let slow = greenroom::spawn(|| greenroom::sleep(Duration::from_millis(20)));
    /// let slow = slow.join_timeout(Duration::from_millis(1)).unwrap_err();
    /// slow.join().unwrap();
    /// ```
    pub fn join_timeout(self, d: Duration) -> Result<Result<T, JoinError>, Self> {
        if self.wait_timeout(d) { Ok(self.take()) } else { Err(self) }
    }

    /// Waits for the end; the outcome stays with the greenlet. Parks unless it has ended.
    ///
    /// # Panics
    ///
    /// As [`join`](Greenlet::join).
    ///
    /// ```
    /// let greenlet = greenroom::spawn(|| ());
    /// greenlet.wait();
    /// assert!(greenlet.is_finished());
    /// ```
    pub fn wait(&self) {
        self.wait_until(None);
    }

    /// Waits for the end for at most `d`; returns whether it has ended. Parks; zero time looks only.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let greenlet = greenroom::spawn(|| greenroom::sleep(Duration::from_secs(10)));
    /// assert!(!greenlet.wait_timeout(Duration::from_millis(1)));
    /// ```
    pub fn wait_timeout(&self, d: Duration) -> bool {
        self.wait_until(Some(d))
    }

    /// Whether it has ended: returned, panicked, or died of a kill. Doesn't park.
    pub fn is_finished(&self) -> bool {
        self.core().is_done()
    }

    /// Kills it: it unwinds at its next park, or where it is parked now, and its destructors run; one that has not begun
    /// never runs. Returns when it is dead. Killing one that has ended does nothing; killing oneself unwinds here (in a destructor that runs because one is dying it does nothing).
    ///
    /// Parks. A job that already runs on a pool is waited for, and so are destructors that park. A body that catches the
    /// unwinding meets it again at its next park. If the caller is killed or times out while it waits, the kill stays
    /// pending.
    ///
    /// # Panics
    ///
    /// As [`join`](Greenlet::join).
    ///
    /// ```
    /// let greenlet = greenroom::spawn(|| greenroom::sleep(std::time::Duration::MAX));
    /// greenlet.kill();
    /// assert!(greenlet.join().unwrap_err().is_killed());
    /// ```
    pub fn kill(&self) {
        self.request_kill();
        if !kill_here(self.core()) {
            self.wait();
        }
    }

    /// The same, waiting at most `d`; returns whether it is dead. If not, the kill stays pending.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// struct Stubborn;
    /// impl Drop for Stubborn {
    ///     fn drop(&mut self) {
    ///         greenroom::sleep(Duration::from_millis(50));
    ///     }
    /// }
    ///
    /// let greenlet = greenroom::spawn(|| {
    ///     let _stubborn = Stubborn;
    ///     greenroom::sleep(Duration::MAX);
    /// });
    /// greenroom::yield_now();
    /// assert!(!greenlet.kill_timeout(Duration::from_millis(1)));
    /// greenlet.wait();
    /// ```
    pub fn kill_timeout(&self, d: Duration) -> bool {
        self.request_kill();
        !kill_here(self.core()) && self.wait_timeout(d)
    }

    /// Kills it without waiting for its end. Doesn't park.
    ///
    /// ```
    /// let greenlet = greenroom::spawn(|| greenroom::sleep(std::time::Duration::MAX));
    /// greenlet.request_kill();
    /// assert!(!greenlet.is_finished());
    /// greenlet.wait();
    /// ```
    pub fn request_kill(&self) {
        hub::with_current(|hub| {
            if let Some(hub) = hub {
                hub.request_kill(self.core());
            }
        });
    }

    /// Runs `f` in a greenlet of its own when this one ends, or now that it has ended. Links run in the order in which
    /// they were added; a panic in one goes to [`Hub::on_error`](crate::Hub::on_error) and doesn't stop the next. In a
    /// shutdown they run until they park. Doesn't park.
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc};
    /// use greenroom::Outcome;
    ///
    /// let seen = Rc::new(Cell::new(None));
    /// let greenlet = greenroom::spawn(|| greenroom::sleep(std::time::Duration::MAX));
    /// let link = Rc::clone(&seen);
    /// greenlet.link(move |outcome| link.set(Some(*outcome)));
    /// greenlet.kill();
    /// greenroom::yield_now();
    /// assert_eq!(seen.get(), Some(Outcome::Killed));
    /// ```
    pub fn link(&self, f: impl FnOnce(&Outcome) + 'static) {
        let core = self.core();
        match core.phase.get() {
            Phase::Done(outcome) => hub::with_current(|hub| {
                if let Some(hub) = hub.filter(|hub| !hub.has_ended()) {
                    hub.add_link(core, move || f(&outcome));
                }
            }),
            _ => core.links.borrow_mut().push(Box::new(f)),
        }
    }

    /// Its id.
    pub fn id(&self) -> GreenletId {
        self.core().id()
    }

    /// The name its [`Builder`](crate::Builder) gave it.
    pub fn name(&self) -> Option<&str> {
        self.core().note.name.as_deref()
    }

    fn wait_until(&self, timeout: Option<Duration>) -> bool {
        let core = self.core();
        if core.is_done() {
            return true;
        }
        if hub::with_current(|hub| hub.is_none()) {
            // It was leaked with its hub, and this is a destructor of the thread.
            return false;
        }
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let wait = Wait::new();
        let _enlisted = Enlisted::new(&core.joiners, &wait);
        while !core.is_done() {
            if wait.park(Reason::Join(core.id()), deadline).timed_out() {
                return core.is_done();
            }
        }
        true
    }

    fn take(&self) -> Result<T, JoinError> {
        // Nothing is left for the destructor.
        self.core().watched.set(false);
        self.task.take().expect("joining consumes the handle, so the outcome is there and untaken")
    }
}

impl<T> Watch for Greenlet<T> {
    fn watch(&self, watcher: &Watcher) -> bool {
        let core = self.core();
        if !core.is_done() {
            watcher.enter(&mut core.joiners.borrow_mut(), ());
        }
        core.is_done()
    }

    fn unwatch(&self, watcher: &Watcher) {
        watcher.leave(&mut self.core().joiners.borrow_mut());
    }
}

impl<T> Drop for Greenlet<T> {
    fn drop(&mut self) {
        // A value nobody took is dropped here; a panic nobody took is reported here.
        if self.core().watched.replace(false)
            && let Some(Err(error)) = self.task.take()
        {
            Inner::report_unseen(self.core(), error);
        }
    }
}

impl<T> fmt::Debug for Greenlet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Greenlet")
            .field("id", &self.id())
            .field("name", &self.name())
            .field("finished", &self.is_finished())
            .finish()
    }
}

/// Unwinds if `core` is the greenlet that runs, and may. Otherwise returns whether it is the one that runs: it is dying
/// already, and the caller is one of its destructors.
pub(crate) fn kill_here(core: &Core) -> bool {
    let is_here = current::with(|me| std::ptr::eq(me, core));
    let may_unwind = || hub::with_current(|hub| hub.is_some_and(|hub| !hub.is_unwinding(core)));
    if is_here && core.is_kill_due() && may_unwind() {
        unwind::raise(core, Interrupt::Kill);
    }
    is_here
}
