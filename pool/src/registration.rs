//! Waiting for a pool without blocking a thread.

use std::fmt;
use std::task::Waker;
use std::time::Duration;

use crate::pool::Pool;

/// A waker that waits until a pool is quiet, or its workers have left: the answer of [`Pool::on_quiet`] and
/// [`Pool::on_left`].
///
/// It is woken once at most; to wait again in the same place, [`renew`](Registration::renew) it. Dropping it ends the wait.
///
/// ```
/// use greenroom_pool::Pool;
/// use std::task::Waker;
///
/// let pool = Pool::new(1);
/// let registration = pool.on_quiet(Waker::noop().clone());
/// assert!(registration.is_woken()); // it is quiet now
/// ```
#[must_use = "dropping it ends the wait"]
pub struct Registration {
    /// Keeps the pool from retiring while somebody waits for it.
    pool: Pool,
    /// Names the waker in its list.
    id: u64,
    /// Whether what it waits for is so now.
    is_so: fn(&Pool) -> bool,
}

impl Pool {
    /// Calls the waker when nothing is queued or running: at once if that is so now. Never blocks.
    ///
    /// It is [`join`](Pool::join) for those who can't block a thread; look at [`stats`](Pool::stats) when woken, for a new job
    /// may have come since.
    ///
    /// ```
    /// let pool = greenroom_pool::Pool::new(1);
    /// let registration = pool.on_quiet(std::task::Waker::noop().clone());
    /// assert!(registration.is_woken());
    /// ```
    pub fn on_quiet(&self, waker: Waker) -> Registration {
        self.register(waker, |pool| pool.shared.is_quiet())
    }

    /// Calls the waker when all workers have left and nothing is queued: at once if that is so now. Never blocks.
    ///
    /// It is the waiting of [`shutdown`](Pool::shutdown) for those who can't block a thread. It may be called earlier too, when
    /// nothing runs: look whether `shutdown(Some(Duration::ZERO))` is true when woken, and
    /// [`renew`](Registration::renew) it if not.
    ///
    /// ```
    /// let pool = greenroom_pool::Pool::new(1);
    /// let registration = pool.on_left(std::task::Waker::noop().clone());
    /// assert!(registration.is_woken()); // no job, no worker
    /// ```
    pub fn on_left(&self, waker: Waker) -> Registration {
        self.register(waker, |pool| pool.has_left(Some(Duration::ZERO)))
    }

    fn register(&self, waker: Waker, is_so: fn(&Pool) -> bool) -> Registration {
        let registration = Registration { pool: self.clone(), id: self.shared.quiet.register(waker), is_so };
        registration.tell_if_so();
        registration
    }
}

impl Registration {
    /// Has the waker been woken? Never blocks.
    ///
    /// ```
    /// use greenroom_pool::Pool;
    /// use std::task::Waker;
    ///
    /// let pool = Pool::new(0);
    /// pool.submit(|| ())?;
    /// let registration = pool.on_quiet(Waker::noop().clone());
    /// assert!(!registration.is_woken());
    /// pool.resize(1); // a worker runs the job
    /// pool.join(None);
    /// assert!(registration.is_woken());
    /// # Ok::<(), greenroom_pool::Rejected>(())
    /// ```
    pub fn is_woken(&self) -> bool {
        !self.pool.shared.quiet.contains(self.id)
    }

    /// Waits again, before all who registered later. As at the first time, the waker is called at once if what it waits for is so
    /// now. Never blocks.
    ///
    /// ```
    /// use greenroom_pool::Pool;
    /// use std::task::Waker;
    ///
    /// let pool = Pool::new(1);
    /// let mut registration = pool.on_quiet(Waker::noop().clone());
    /// registration.renew(Waker::noop().clone());
    /// assert!(registration.is_woken()); // it still is
    /// ```
    pub fn renew(&mut self, waker: Waker) {
        self.pool.shared.quiet.renew(self.id, waker);
        self.tell_if_so();
    }

    fn tell_if_so(&self) {
        if (self.is_so)(&self.pool) {
            self.pool.shared.quiet.wake_all();
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.pool.shared.quiet.remove(self.id);
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("woken", &self.is_woken()).finish_non_exhaustive()
    }
}
