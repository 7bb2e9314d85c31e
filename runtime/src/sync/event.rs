//! A flag that others wait for.

use std::fmt;
use std::time::Duration;

use super::crowd::Crowd;
use super::line::Line;
use crate::park::{Watch, Watcher};
use crate::reason::Reason;

/// A flag that is set and cleared, and that any number waits for, on any thread.
///
/// [`set`](Event::set) wakes everybody who waits at that moment, oldest first, even if it is cleared again before they run.
///
/// ```
/// use std::sync::Arc;
/// use greenroom::sync::Event;
///
/// let event = Arc::new(Event::new());
/// let waiter = greenroom::spawn({
///     let event = Arc::clone(&event);
///     move || event.wait()
/// });
/// std::thread::spawn(move || event.set());
/// waiter.join().unwrap();
/// ```
pub struct Event {
    /// Whether it is set.
    line: Line<Crowd<bool>>,
}

impl Event {
    /// One that is not set.
    ///
    /// ```
    /// static READY: greenroom::sync::Event = greenroom::sync::Event::new();
    /// assert!(!READY.is_set());
    /// ```
    pub const fn new() -> Event {
        Event { line: Crowd::line(false) }
    }

    /// Sets it and wakes all who wait. On a set one it does nothing. Doesn't park.
    ///
    /// ```
    /// let event = greenroom::sync::Event::new();
    /// event.set();
    /// event.wait();
    /// ```
    pub fn set(&self) {
        let mut queue = self.line.lock();
        queue.state.state = true;
        self.line.call_all(queue);
    }

    /// Clears it: whoever comes from now on waits. Those that [`set`](Event::set) has woken go on. Doesn't park.
    ///
    /// ```
    /// let event = greenroom::sync::Event::new();
    /// event.set();
    /// event.clear();
    /// assert!(!event.is_set());
    /// ```
    pub fn clear(&self) {
        self.line.lock().state.state = false;
    }

    /// Whether it is set. Doesn't park.
    ///
    /// ```
    /// let event = greenroom::sync::Event::new();
    /// event.set();
    /// assert!(event.is_set());
    /// ```
    pub fn is_set(&self) -> bool {
        self.line.lock().state.state
    }

    /// Parks until it is set; not at all if it is.
    ///
    /// # Panics
    ///
    /// With "this would block forever", on main, when nothing can ever set it.
    ///
    /// ```
    /// use std::rc::Rc;
    /// use greenroom::sync::Event;
    ///
    /// let event = Rc::new(Event::new());
    /// greenroom::spawn({
    ///     let event = Rc::clone(&event);
    ///     move || event.set()
    /// });
    /// event.wait();
    /// ```
    pub fn wait(&self) {
        self.wait_for(Reason::Event, None);
    }

    /// The same for at most `d`; returns whether it was set. Zero time looks only.
    ///
    /// ```
    /// let event = greenroom::sync::Event::new();
    /// assert!(!event.wait_timeout(std::time::Duration::from_millis(1)));
    /// ```
    pub fn wait_timeout(&self, d: Duration) -> bool {
        self.wait_for(Reason::Event, Some(d))
    }

    pub(super) fn wait_for(&self, reason: Reason, timeout: Option<Duration>) -> bool {
        let queue = self.line.lock();
        queue.state.state || self.line.wait(queue, (), reason, timeout, || (), |_, _| ())
    }
}

impl Watch for Event {
    fn watch(&self, watcher: &Watcher) -> bool {
        let mut queue = self.line.lock();
        if !queue.state.state {
            watcher.enter(&mut queue.waiters, ());
        }
        queue.state.state
    }

    fn unwatch(&self, watcher: &Watcher) {
        watcher.leave(&mut self.line.lock().waiters);
    }
}

impl Default for Event {
    fn default() -> Event {
        Event::new()
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Event").field("set", &self.is_set()).finish()
    }
}
