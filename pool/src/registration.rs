//! Waiting for a pool without blocking a thread.

use std::fmt;

use crate::pool::Pool;

/// A waker that waits for a pool: the answer of [`Pool::on_room`] and [`Pool::on_quiet`].
///
/// It is woken once at most; to wait again, register again. Dropping it ends the wait. One that waits for room, has been
/// woken, and is dropped while there still is room wakes the next in line, so whoever gives up doesn't swallow
/// what others wait for. Hence drop it after the attempt that it was to announce.
///
/// ```
/// use greenroom_pool::Pool;
/// use std::task::Waker;
///
/// let pool = Pool::new(1);
/// let registration = pool.on_room(Waker::noop().clone());
/// assert!(registration.is_woken()); // there is room now
/// ```
#[must_use = "dropping it ends the wait"]
pub struct Registration {
    /// Keeps the pool from retiring while somebody waits for it.
    pool: Pool,
    what: What,
    /// Names the waker in its list.
    id: u64,
}

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Room,
    Quiet,
}

impl Registration {
    pub(crate) fn new(pool: Pool, what: What, id: u64) -> Registration {
        Registration { pool, what, id }
    }

    /// Has the waker been woken? Never blocks.
    ///
    /// ```
    /// use greenroom_pool::Pool;
    /// use std::task::Waker;
    ///
    /// let pool = Pool::builder().max_threads(0).queue_limit(1).build();
    /// pool.submit(|| ())?;
    /// let registration = pool.on_room(Waker::noop().clone());
    /// assert!(!registration.is_woken());
    /// pool.resize(1); // a worker takes the job, and there is room
    /// pool.join(None);
    /// assert!(registration.is_woken());
    /// # Ok::<(), greenroom_pool::Rejected>(())
    /// ```
    pub fn is_woken(&self) -> bool {
        !self.pool.wakers(self.what).contains(self.id)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let was_woken = !self.pool.wakers(self.what).remove(self.id);
        if was_woken && self.what == What::Room {
            self.pool.pass_room_on();
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("what", &self.what)
            .field("woken", &self.is_woken())
            .finish_non_exhaustive()
    }
}
