//! Waiting for the jobs of a pool, or for its end; and how many threads it may have.

use std::time::{Duration, Instant};

use super::ThreadPool;
use crate::greenlet::current;
use crate::park::Wait;
use crate::reason::Reason;

impl ThreadPool {
    /// Changes the most threads the pool may have. With more, threads for the jobs that wait are started at once. With fewer,
    /// idle ones beyond the new number leave, and busy ones do so after their job; with 0, what is queued waits until there are
    /// more again. More than 16,383 count as 16,383. Doesn't park. A pool that was shut down stays so.
    ///
    /// If the kernel refuses the pool its only thread, queued jobs run on the calling thread and stall its hub.
    ///
    /// ```
    /// let pool = greenroom::ThreadPool::new(0);
    /// let queued = pool.spawn(|| "done", ());
    /// assert_eq!(pool.stats().queued, 1);
    /// pool.set_max_threads(1);
    /// assert_eq!(queued.get().unwrap(), "done");
    /// ```
    pub fn set_max_threads(&self, n: usize) {
        // It may run jobs in here: what is meant for this greenlet must not unwind them.
        current::with(|core| core.undisturbed(|| self.pool.resize(n)));
    }

    /// Parks until nothing is queued or running, for at most `timeout`. Returns whether it came to that; `None` has no limit, and
    /// times that overflow the clock haven't either. On main the hub runs meanwhile; a thread without a hub blocks.
    ///
    /// Others may submit jobs meanwhile; a pool that never is without one keeps the caller waiting. Called from one of the pool's
    /// own jobs it returns false at once, since that job can't wait for itself.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = greenroom::ThreadPool::new(1);
    /// let (go, gate) = std::sync::mpsc::channel::<()>();
    /// pool.spawn(move || gate.recv(), ());
    /// assert!(!pool.join(Some(Duration::from_millis(1))));
    /// go.send(()).unwrap();
    /// assert!(pool.join(None));
    /// ```
    pub fn join(&self, timeout: Option<Duration>) -> bool {
        if self.pool.is_worker() {
            return false;
        }
        let deadline = deadline(timeout);
        let wait = Wait::new();
        let quiet = self.pool.on_quiet(wait.waiter().into());
        while !quiet.is_woken() {
            if wait.park(Reason::PoolJoin, deadline).timed_out() {
                return quiet.is_woken();
            }
        }
        true
    }

    /// Ends the pool: refuses jobs from now on, cancels those queued, and parks until the running ones are done and all threads
    /// have left, for at most `timeout`. Returns whether they have left; `None` has no limit. On main the hub runs meanwhile; a
    /// thread without a hub blocks.
    ///
    /// What is cancelled is told so: [`spawn`](ThreadPool::spawn) and [`imap`](ThreadPool::imap) give
    /// [`TaskError::Cancelled`](crate::TaskError::Cancelled), [`apply`](ThreadPool::apply) and [`map`](ThreadPool::map) panic. What a
    /// cancelled job has captured is dropped on this thread, or on a worker. A job that runs can't be ended; after the time is over
    /// it runs on, and its thread leaves afterwards.
    ///
    /// Called from one of the pool's own jobs it doesn't wait, and returns false. Called again it waits again.
    ///
    /// ```
    /// use greenroom::{ApplyError, TaskError, ThreadPool};
    ///
    /// let pool = ThreadPool::new(0);
    /// let queued = pool.spawn(|| unreachable!(), ());
    /// assert!(pool.shutdown(None));
    /// assert!(matches!(queued.get(), Err::<(), _>(TaskError::Cancelled)));
    /// assert!(matches!(pool.try_apply(|| (), ()), Err(ApplyError::ShutDown)));
    /// ```
    pub fn shutdown(&self, timeout: Option<Duration>) -> bool {
        let deadline = deadline(timeout);
        if self.close() {
            return true;
        }
        if self.pool.is_worker() {
            return false;
        }
        let wait = Wait::new();
        let mut left = self.pool.on_left(wait.waiter().into());
        loop {
            while !left.is_woken() {
                if wait.park(Reason::PoolShutdown, deadline).timed_out() {
                    return self.close();
                }
            }
            if self.close() {
                return true;
            }
            left.renew(wait.waiter().into());
        }
    }

    /// Refuses jobs and cancels those queued. Returns whether all threads have left.
    fn close(&self) -> bool {
        // Destructors of what is cancelled run in here: what is meant for this greenlet must not unwind them.
        current::with(|core| core.undisturbed(|| self.pool.shutdown(Some(Duration::ZERO))))
    }
}

fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}
