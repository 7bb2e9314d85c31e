//! Waiting for several things at once.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::park::{Wait, Watch, Watcher};
use crate::reason::Reason;
use crate::wake::Tally;

/// What [`wait`] and [`iwait`] can wait for: a [`Greenlet`](crate::Greenlet) or [`ScopedGreenlet`](crate::ScopedGreenlet) (its
/// end), an [`Event`](crate::sync::Event) (that it is set), a [`Semaphore`](crate::sync::Semaphore) or
/// [`BoundedSemaphore`](crate::sync::BoundedSemaphore) (that it has a permit, which stays in it), and an
/// [`AsyncResult`](crate::AsyncResult) (that it is there). Nothing else can be.
///
/// ```
/// use greenroom::{Waitable, spawn, wait};
///
/// let greenlets: Vec<_> = (0..3).map(|n| spawn(move || n)).collect();
/// let objects: Vec<_> = greenlets.iter().map(|greenlet| greenlet as &dyn Waitable).collect();
/// assert_eq!(wait(&objects, usize::MAX, None).len(), 3); // all of them
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be waited for with `wait` or `iwait`",
    note = "greenlets, events, semaphores and async results can; a queue has its own `get` and `join`"
)]
pub trait Waitable: Watch {}

impl<W: Watch> Waitable for W {}

/// Waits until `count` of the objects are ready, for at most `timeout`. Returns the indices of those that are, in the order
/// in which they became so; those that were ready before come first. More than there are objects means all of them.
///
/// Parks, unless enough are ready. An object that is there twice gives both indices. What was ready once counts, even if it
/// isn't any more, as an event that was cleared. Nothing is taken, and afterwards nothing is left in the objects' lists.
///
/// # Panics
///
/// With "this would block forever", on main and without a timeout, when nothing can ever make them ready.
///
/// ```
/// use std::time::Duration;
/// use greenroom::sync::Event;
/// use greenroom::{sleep, spawn, wait};
///
/// let slow = spawn(|| sleep(Duration::from_millis(20)));
/// let fast = spawn(|| sleep(Duration::from_millis(1)));
/// let event = Event::new();
/// assert_eq!(wait(&[&slow, &event, &fast], 2, None), [2, 0]);
/// event.set();
/// assert_eq!(wait(&[&event], 1, Some(Duration::ZERO)), [0]);
/// ```
pub fn wait(objects: &[&dyn Waitable], count: usize, timeout: Option<Duration>) -> Vec<usize> {
    iwait(objects, timeout).take(count).collect()
}

/// The same, one index at a time: the iterator's `next` parks until one more of the objects is ready. It ends after the last,
/// or when the timeout, which counts from this call, is over. Watches all of them from this call until it is dropped.
///
/// # Panics
///
/// `next` does, as [`wait`].
///
/// ```
/// use greenroom::{iwait, promise, spawn};
///
/// let (first, second) = (promise(), promise());
/// spawn(move || {
///     second.0.set("second");
///     first.0.set("first");
/// });
/// assert_eq!(iwait(&[&first.1, &second.1], None).collect::<Vec<_>>(), [1, 0]);
/// ```
pub fn iwait<'a>(objects: &'a [&'a dyn Waitable], timeout: Option<Duration>) -> IWait<'a> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let tally = Tally::new();
    let watchers = (0..objects.len()).map(|number| Watcher::new(&tally, number)).collect();
    let all = IWait { objects, watchers, tally, left: objects.len(), deadline };
    for (number, (object, watcher)) in all.objects.iter().zip(&all.watchers).enumerate() {
        if object.watch(watcher) {
            all.tally.add(number);
        }
    }
    all
}

/// Gives the indices of objects as they become ready; see [`iwait`].
#[must_use = "an iterator does nothing until it is used"]
pub struct IWait<'a> {
    objects: &'a [&'a dyn Waitable],
    /// One for each.
    watchers: Vec<Watcher>,
    tally: Arc<Tally>,
    /// How many have not been given.
    left: usize,
    deadline: Option<Instant>,
}

impl Iterator for IWait<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        if self.left == 0 {
            return None;
        }
        let wait = Wait::new();
        while {
            if let Some(number) = self.tally.next_or_wake(wait.waiter()) {
                self.left -= 1;
                return Some(number);
            }
            !wait.park(Reason::Any(self.left), self.deadline).timed_out() || self.deadline.is_none()
        } {}
        let number = self.tally.next()?;
        self.left -= 1;
        Some(number)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

impl Drop for IWait<'_> {
    fn drop(&mut self) {
        for (object, watcher) in self.objects.iter().zip(&self.watchers) {
            object.unwatch(watcher);
        }
    }
}

impl fmt::Debug for IWait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IWait").field("left", &self.left).finish_non_exhaustive()
    }
}
