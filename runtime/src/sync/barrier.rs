//! A place where a number of them meet.

use std::fmt;
use std::time::Duration;

use super::crowd::Crowd;
use super::line::Line;
use crate::reason::Reason;

/// Lets nobody pass until `n` are there; then all go on, and it serves the next `n`.
///
/// ```
/// use std::sync::Arc;
/// use greenroom::sync::Barrier;
///
/// let barrier = Arc::new(Barrier::new(3));
/// let thread = std::thread::spawn({
///     let barrier = Arc::clone(&barrier);
///     move || barrier.wait().is_leader()
/// });
/// let greenlet = greenroom::spawn({
///     let barrier = Arc::clone(&barrier);
///     move || barrier.wait().is_leader()
/// });
/// let leaders = [barrier.wait().is_leader(), thread.join().unwrap(), greenlet.join().unwrap()];
/// assert_eq!(leaders.iter().filter(|&&leader| leader).count(), 1);
/// ```
pub struct Barrier {
    /// How many wait.
    line: Line<Crowd<usize>>,
    n: usize,
}

impl Barrier {
    /// One for `n`; for 0 as for 1, nobody waits.
    ///
    /// ```
    /// static START: greenroom::sync::Barrier = greenroom::sync::Barrier::new(1);
    /// assert!(START.wait().is_leader());
    /// ```
    pub const fn new(n: usize) -> Barrier {
        Barrier { line: Crowd::line(0), n }
    }

    /// Parks until `n` are there; the last to come doesn't park, and is the leader. One that is killed while it waits, or
    /// whose outer timeout elapses, doesn't count any more.
    ///
    /// # Panics
    ///
    /// With "this would block forever", on main, when nobody can ever come.
    ///
    /// ```
    /// use std::rc::Rc;
    /// use greenroom::sync::Barrier;
    ///
    /// let barrier = Rc::new(Barrier::new(2));
    /// let other = Rc::clone(&barrier);
    /// let other = greenroom::spawn(move || other.wait().is_leader());
    /// assert_ne!(barrier.wait().is_leader(), other.join().unwrap());
    /// ```
    pub fn wait(&self) -> BarrierWaitResult {
        match self.wait_until(None) {
            Some(result) => result,
            None => unreachable!("without a deadline it waits until all are there"),
        }
    }

    /// The same for at most `d`. `None`: they were not there in time, and this one doesn't count any more.
    ///
    /// ```
    /// let barrier = greenroom::sync::Barrier::new(2);
    /// assert!(barrier.wait_timeout(std::time::Duration::from_millis(1)).is_none());
    /// ```
    pub fn wait_timeout(&self, d: Duration) -> Option<BarrierWaitResult> {
        self.wait_until(Some(d))
    }

    fn wait_until(&self, timeout: Option<Duration>) -> Option<BarrierWaitResult> {
        let mut queue = self.line.lock();
        if queue.state.state + 1 >= self.n {
            queue.state.state -= queue.waiters.discard_lost();
        }
        if queue.state.state + 1 >= self.n {
            queue.state.state = 0;
            self.line.call_all(queue);
            return Some(BarrierWaitResult { is_leader: true });
        }
        queue.state.state += 1;
        let passed = self.line.wait(
            queue,
            (),
            Reason::Barrier,
            timeout,
            || (),
            |mut queue, called| {
                if !called {
                    queue.state.state -= 1;
                }
            },
        );
        passed.then_some(BarrierWaitResult { is_leader: false })
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").field("n", &self.n).field("waiting", &self.line.lock().state.state).finish()
    }
}

/// What [`Barrier::wait`] returns.
///
/// ```
/// let result = greenroom::sync::Barrier::new(1).wait();
/// assert!(result.is_leader());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierWaitResult {
    is_leader: bool,
}

impl BarrierWaitResult {
    /// True for exactly one of the `n`: the last to come.
    ///
    /// ```
    /// assert!(greenroom::sync::Barrier::new(1).wait().is_leader());
    /// ```
    pub fn is_leader(&self) -> bool {
        self.is_leader
    }
}
