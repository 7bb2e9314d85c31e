//! Waiting for a pool without blocking a thread.

use std::fmt;
use std::task::Waker;

use crate::pool::Pool;
use crate::shared::Wakers;

/// A waker that waits for a pool: the answer of [`Pool::on_room`] and [`Pool::on_quiet`].
///
/// It is woken once at most; to wait again in the same place, [`renew`](Registration::renew) it. Dropping it ends the wait.
/// Of those that wait for room, as many are woken and not yet dropped as there is room for: what one gives up, or has found
/// gone, is told to the next when it is dropped. So drop it after the attempt, whatever came of that.
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
enum What {
    Room,
    Quiet,
}

impl Pool {
    /// Calls the waker when there is room in the queue: at once if there is now, else in turn, one waker for each job that
    /// leaves the queue. Shutting down wakes all. Never blocks.
    ///
    /// Room is announced, not reserved: whoever is woken tries again, and registers again if others were faster.
    ///
    /// ```
    /// use greenroom_pool::{Pool, Rejected};
    /// use std::sync::mpsc::{Sender, channel};
    /// use std::sync::Arc;
    /// use std::task::Wake;
    ///
    /// struct Tell(Sender<()>);
    /// impl Wake for Tell {
    ///     fn wake(self: Arc<Self>) {
    ///         self.0.send(()).unwrap();
    ///     }
    /// }
    ///
    /// let pool = Pool::builder().max_threads(1).queue_limit(1).build();
    /// let (sender, woken) = channel();
    /// for _ in 0..100 {
    ///     while pool.submit(|| ()) == Err(Rejected::QueueFull) {
    ///         let registration = pool.on_room(Arc::new(Tell(sender.clone())).into());
    ///         woken.recv().unwrap();
    ///         drop(registration);
    ///     }
    /// }
    /// ```
    pub fn on_room(&self, waker: Waker) -> Registration {
        let id = self.shared.room.register(waker);
        self.shared.tell_room();
        Registration { pool: self.clone(), what: What::Room, id }
    }

    /// Does somebody wait for room, or has been woken for it and not made the attempt yet? Who comes now and doesn't want to
    /// overtake lines up with [`on_room`](Pool::on_room) before the first attempt. Never blocks.
    ///
    /// ```
    /// assert!(!greenroom_pool::Pool::new(1).is_awaited());
    /// ```
    pub fn is_awaited(&self) -> bool {
        self.shared.room.is_awaited()
    }

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
        let id = self.shared.quiet.register(waker);
        self.tell_if_quiet();
        Registration { pool: self.clone(), what: What::Quiet, id }
    }

    fn tell_if_quiet(&self) {
        if self.shared.is_quiet() {
            self.shared.quiet.wake_all();
        }
    }

    fn wakers(&self, what: What) -> &Wakers {
        match what {
            What::Room => &self.shared.room,
            What::Quiet => &self.shared.quiet,
        }
    }
}

impl Registration {
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

    /// Waits again, before all who registered later: for one who was woken and found that others were faster. As at the
    /// first time, the waker is called at once if what it waits for is so now. Never blocks.
    ///
    /// ```
    /// use greenroom_pool::Pool;
    /// use std::task::Waker;
    ///
    /// let pool = Pool::new(1);
    /// let mut registration = pool.on_room(Waker::noop().clone());
    /// registration.renew(Waker::noop().clone());
    /// assert!(registration.is_woken()); // there still is room
    /// ```
    pub fn renew(&mut self, waker: Waker) {
        self.pool.wakers(self.what).renew(self.id, waker);
        match self.what {
            What::Room => self.pool.shared.tell_room(),
            What::Quiet => self.pool.tell_if_quiet(),
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.pool.wakers(self.what).remove(self.id);
        if self.what == What::Room {
            self.pool.shared.tell_room();
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
