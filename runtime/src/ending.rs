//! Waiting for the end of a hub's greenlets, and bringing it about.

use std::time::{Duration, Instant};

use crate::greenlet::unwind::{self, Interrupt};
use crate::greenlet::{core::Core, current};
use crate::hub::{Hub, Stage};
use crate::park::{Enlisted, Wait};
use crate::reason::Reason;

impl Hub {
    /// Runs greenlets until none is left, or the time is over. Returns whether none is left; `None` has no limit, and
    /// times that overflow the clock haven't either.
    ///
    /// Parks the main greenlet. An outer [`timeout`](crate::timeout) ends it.
    ///
    /// # Panics
    ///
    /// In a greenlet: it would wait for itself. And with "this would block forever" when there is no limit and the
    /// greenlets that are left wait for something that nothing can ever bring.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// greenroom::spawn(|| greenroom::sleep(Duration::from_millis(1)));
    /// assert!(greenroom::hub().join(None));
    ///
    /// greenroom::spawn(|| greenroom::sleep(Duration::from_secs(10)));
    /// assert!(!greenroom::hub().join(Some(Duration::from_millis(1))));
    /// ```
    #[track_caller]
    pub fn join(&self, timeout: Option<Duration>) -> bool {
        current::with(|core| {
            assert!(core.is_main(), "Hub::join in greenlet {}: only main can wait for all greenlets", core.id());
        });
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.inner().receive();
        self.until_live(0, deadline)
    }

    /// Ends all greenlets by killing them, and waits until they are dead, so that their destructors run; those may park,
    /// but not spawn. From a greenlet: the others first, then it unwinds itself.
    ///
    /// Afterwards [`spawn`](crate::spawn()) panics and [`Builder::spawn`](crate::Builder::spawn) errs; main may go on and
    /// may still park. A thread that ends without this leaks its suspended greenlets: their stacks stay mapped and their
    /// destructors don't run.
    ///
    /// A greenlet that swallows every kill and parks again is never dead: then this never returns, except through an
    /// outer [`timeout`](crate::timeout).
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc, time::Duration};
    ///
    /// struct Note(Rc<Cell<bool>>);
    /// impl Drop for Note {
    ///     fn drop(&mut self) {
    ///         self.0.set(true);
    ///     }
    /// }
    ///
    /// let dropped = Rc::new(Cell::new(false));
    /// let note = Note(Rc::clone(&dropped));
    /// greenroom::spawn(move || {
    ///     let _note = note;
    ///     greenroom::sleep(Duration::MAX);
    /// });
    /// greenroom::yield_now();
    /// greenroom::hub().shutdown();
    /// assert!(dropped.get());
    /// ```
    pub fn shutdown(&self) {
        current::with(|me| self.end_all(me));
    }

    fn end_all(&self, me: &Core) {
        let inner = self.inner();
        inner.set_stage(Stage::ShuttingDown);
        inner.kill_all_but(me);
        // Those that wait for this one in a scope can't end before it.
        self.until_live(usize::from(!me.is_main()) + me.behind(), None);
        inner.set_stage(Stage::Ended);
        inner.give_slice_back();
        if !me.is_main() {
            me.killed.set(true);
            if !inner.is_unwinding(me) {
                unwind::raise(me, Interrupt::Kill);
            }
        }
    }

    /// Waits until at most `rest` greenlets have not ended. Returns whether it came to that.
    fn until_live(&self, rest: usize, deadline: Option<Instant>) -> bool {
        let inner = self.inner();
        let wait = Wait::new();
        while inner.live() > rest {
            let _enlisted = Enlisted::new(inner.leavers(rest), &wait);
            if wait.park(Reason::HubJoin, deadline).timed_out() {
                return inner.live() <= rest;
            }
        }
        true
    }
}
