//! Waiting for a change of what a mutex protects.

use std::fmt;
use std::mem;
use std::time::{Duration, Instant};

use super::crowd::Crowd;
use super::line::{Line, Locked};
use super::mutex::MutexGuard;
use crate::reason::Reason;

/// `std::sync::Condvar` for a [`Mutex`](super::Mutex) of greenroom. It wakes nobody without a notification; one that was given to
/// a waiter that is killed goes to the next in line, whose condition may then not hold: wait in a loop, or use
/// [`wait_while`](Condvar::wait_while).
///
/// ```
/// use std::sync::Arc;
/// use greenroom::sync::{Condvar, Mutex};
///
/// let pair = Arc::new((Mutex::new(false), Condvar::new()));
/// let thread = std::thread::spawn({
///     let pair = Arc::clone(&pair);
///     move || {
///         *pair.0.lock() = true;
///         pair.1.notify_one();
///     }
/// });
/// let ready = pair.1.wait_while(pair.0.lock(), |ready| !*ready);
/// assert!(*ready);
/// # drop(ready);
/// # thread.join().unwrap();
/// ```
pub struct Condvar {
    /// How often all were notified.
    line: Line<Crowd<u64>>,
}

impl Condvar {
    /// One that nobody waits for.
    ///
    /// ```
    /// static CHANGED: greenroom::sync::Condvar = greenroom::sync::Condvar::new();
    /// CHANGED.notify_all();
    /// ```
    pub const fn new() -> Condvar {
        Condvar { line: Crowd::line(0) }
    }

    /// Unlocks the mutex and parks until it is notified, both in one step; then locks the mutex again. A kill or an outer
    /// timeout unwinds from here with the mutex unlocked.
    ///
    /// # Panics
    ///
    /// With "this would block forever", on main, when nothing can ever notify it.
    ///
    /// ```
    /// use std::rc::Rc;
    /// use greenroom::sync::{Condvar, Mutex};
    ///
    /// let pair = Rc::new((Mutex::new(0), Condvar::new()));
    /// let mut number = pair.0.lock();
    /// greenroom::spawn({
    ///     let pair = Rc::clone(&pair);
    ///     move || {
    ///         *pair.0.lock() = 7;
    ///         pair.1.notify_one();
    ///     }
    /// });
    /// while *number == 0 {
    ///     number = pair.1.wait(number);
    /// }
    /// assert_eq!(*number, 7);
    /// ```
    pub fn wait<'a, T: ?Sized>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        self.wait_until(guard, None).0
    }

    /// The same, but waits for at most `d` for the notification. Locking the mutex again can take longer.
    ///
    /// ```
    /// use std::time::Duration;
    /// use greenroom::sync::{Condvar, Mutex};
    ///
    /// let mutex = Mutex::new(());
    /// let (_guard, result) = Condvar::new().wait_timeout(mutex.lock(), Duration::from_millis(1));
    /// assert!(result.timed_out());
    /// ```
    pub fn wait_timeout<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        d: Duration,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        self.wait_until(guard, Some(d))
    }

    /// Waits while the condition holds. Doesn't park if it doesn't.
    ///
    /// ```
    /// use greenroom::sync::{Condvar, Mutex};
    ///
    /// let mutex = Mutex::new(7);
    /// assert_eq!(*Condvar::new().wait_while(mutex.lock(), |number| *number == 0), 7);
    /// ```
    pub fn wait_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        while condition(&mut guard) {
            guard = self.wait(guard);
        }
        guard
    }

    /// Waits while the condition holds, for at most `d`. `timed_out` says that it still holds.
    ///
    /// ```
    /// use std::time::Duration;
    /// use greenroom::sync::{Condvar, Mutex};
    ///
    /// let (mutex, condvar) = (Mutex::new(0), Condvar::new());
    /// let (_guard, result) = condvar.wait_timeout_while(mutex.lock(), Duration::from_millis(1), |number| *number == 0);
    /// assert!(result.timed_out());
    /// ```
    pub fn wait_timeout_while<'a, T: ?Sized>(
        &self,
        mut guard: MutexGuard<'a, T>,
        d: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        let deadline = Instant::now().checked_add(d);
        loop {
            if !condition(&mut guard) {
                return (guard, WaitTimeoutResult { timed_out: false });
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return (guard, WaitTimeoutResult { timed_out: true });
            }
            guard = self.wait_until(guard, left).0;
        }
    }

    /// Wakes the oldest waiter, if there is one. Doesn't park.
    ///
    /// ```
    /// greenroom::sync::Condvar::new().notify_one();
    /// ```
    pub fn notify_one(&self) {
        call_one(self.line.lock());
    }

    /// Wakes everybody who waits at this moment, oldest first. Doesn't park.
    ///
    /// ```
    /// greenroom::sync::Condvar::new().notify_all();
    /// ```
    pub fn notify_all(&self) {
        let mut queue = self.line.lock();
        queue.state.state += 1;
        self.line.call_all(queue);
    }

    fn wait_until<'a, T: ?Sized>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Option<Duration>,
    ) -> (MutexGuard<'a, T>, WaitTimeoutResult) {
        let mutex = guard.mutex();
        let queue = self.line.lock();
        let round = queue.state.state;
        let notified = self.line.wait(
            queue,
            (),
            Reason::Condvar,
            timeout,
            || drop(guard),
            |queue, called| {
                if called {
                    pass_on(queue, round);
                }
            },
        );
        // Until the mutex is locked, the notification is of no use yet.
        let unused = notified.then(|| Unused { condvar: self, round });
        let guard = mutex.lock();
        mem::forget(unused);
        (guard, WaitTimeoutResult { timed_out: !notified })
    }
}

fn call_one(mut queue: Locked<'_, Crowd<u64>>) {
    let waiter = queue.call();
    drop(queue);
    if let Some(waiter) = waiter {
        waiter.wake();
    }
}

/// One that came in that round was notified, and can't use it. If all have been notified since it came, so were those who
/// could have got it in its place.
fn pass_on(queue: Locked<'_, Crowd<u64>>, round: u64) {
    if queue.state.state == round {
        call_one(queue);
    }
}

/// A notification that goes to the next in line when this is dropped.
struct Unused<'a> {
    condvar: &'a Condvar,
    round: u64,
}

impl Drop for Unused<'_> {
    fn drop(&mut self) {
        pass_on(self.condvar.line.lock(), self.round);
    }
}

impl Default for Condvar {
    fn default() -> Condvar {
        Condvar::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}

/// Whether a wait of a [`Condvar`] ended because its time was over.
///
/// ```
/// use std::time::Duration;
/// use greenroom::sync::{Condvar, Mutex};
///
/// let mutex = Mutex::new(());
/// let (_guard, result) = Condvar::new().wait_timeout(mutex.lock(), Duration::ZERO);
/// assert!(result.timed_out());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult {
    timed_out: bool,
}

impl WaitTimeoutResult {
    /// True: it was not notified in time.
    ///
    /// ```
    /// use greenroom::sync::{Condvar, Mutex};
    ///
    /// let mutex = Mutex::new(());
    /// let result = Condvar::new().wait_timeout_while(mutex.lock(), std::time::Duration::ZERO, |()| false).1;
    /// assert!(!result.timed_out());
    /// ```
    pub fn timed_out(&self) -> bool {
        self.timed_out
    }
}
