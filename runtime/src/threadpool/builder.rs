//! The options of a pool.

use std::time::Duration;

use greenroom_pool::{Admission, Pool, PoolBuilder, Priority};

use super::ThreadPool;

/// The options of a [`ThreadPool`], to be made with [`ThreadPool::builder`].
///
/// ```
/// use std::time::Duration;
/// use greenroom::ThreadPool;
///
/// let pool = ThreadPool::builder()
///     .name("images")
///     .max_threads(4)
///     .keep_alive(Duration::from_secs(60))
///     .queue_limit(100)
///     .build();
/// assert_eq!(pool.max_threads(), 4);
/// ```
#[derive(Clone, Debug)]
#[must_use = "build() makes the pool"]
pub struct ThreadPoolBuilder {
    options: PoolBuilder,
}

impl ThreadPool {
    /// The options for a pool, each with its default.
    ///
    /// ```
    /// let pool = greenroom::ThreadPool::builder().name("files").build();
    /// assert_eq!(pool.max_threads(), 10);
    /// ```
    pub fn builder() -> ThreadPoolBuilder {
        ThreadPoolBuilder { options: Pool::builder() }
    }
}

impl ThreadPoolBuilder {
    /// The most threads the pool may have; 10 if not set. More than 16,383 count as 16,383. With 0 every job waits until
    /// [`ThreadPool::set_max_threads`] allows more.
    ///
    /// ```
    /// assert_eq!(greenroom::ThreadPool::builder().max_threads(3).build().max_threads(), 3);
    /// ```
    pub fn max_threads(self, threads: usize) -> ThreadPoolBuilder {
        ThreadPoolBuilder { options: self.options.max_threads(threads) }
    }

    /// How long a thread waits for a job before it leaves; 5 seconds if not set. Less than a millisecond counts as one; what
    /// overflows the clock, as [`Duration::MAX`] does, means for ever.
    ///
    /// ```
    /// use std::time::Duration;
    /// use greenroom::{ThreadPool, sleep};
    ///
    /// let pool = ThreadPool::builder().keep_alive(Duration::from_millis(1)).build();
    /// pool.run(|| ());
    /// while pool.stats().threads > 0 {
    ///     sleep(Duration::from_millis(1));
    /// }
    /// ```
    pub fn keep_alive(self, keep_alive: Duration) -> ThreadPoolBuilder {
        ThreadPoolBuilder { options: self.options.keep_alive(keep_alive) }
    }

    /// The most jobs that may wait in the queue; 8,192 if not set. More than 1,048,575 count as that many. Whoever calls the pool
    /// beyond that parks, or gets [`ApplyError::QueueFull`](crate::ApplyError::QueueFull) from
    /// [`try_apply`](ThreadPool::try_apply).
    ///
    /// # Panics
    ///
    /// If the limit is 0, for such a pool would refuse every job.
    ///
    /// ```
    /// use greenroom::ThreadPool;
    ///
    /// let pool = ThreadPool::builder().max_threads(0).queue_limit(1).build();
    /// let queued = pool.spawn(|| (), ());
    /// assert!(pool.try_apply(|| (), ()).is_err());
    /// ```
    pub fn queue_limit(self, jobs: usize) -> ThreadPoolBuilder {
        ThreadPoolBuilder { options: self.options.queue_limit(jobs) }
    }

    /// What the threads are named: `name-1`, `name-2` and so on; `greenroom-pool` if not set. Linux keeps the first 15 bytes of it
    /// for tools such as `top`.
    ///
    /// # Panics
    ///
    /// If the name contains a NUL, which no thread's name may.
    ///
    /// ```
    /// let pool = greenroom::ThreadPool::builder().name("disk").build();
    /// assert_eq!(pool.run(|| std::thread::current().name().map(String::from)).as_deref(), Some("disk-1"));
    /// ```
    pub fn name(self, name: impl Into<String>) -> ThreadPoolBuilder {
        ThreadPoolBuilder { options: self.options.name(name) }
    }

    /// When a queued job begins, while there are threads for it; [`Admission::CpuAware`] if not set.
    ///
    /// ```
    /// use greenroom::{Admission, ThreadPool};
    ///
    /// let pool = ThreadPool::builder().admission(Admission::Plain).build();
    /// assert_eq!(pool.run(|| 1), 1);
    /// ```
    pub fn admission(self, admission: Admission) -> ThreadPoolBuilder {
        ThreadPoolBuilder { options: self.options.admission(admission) }
    }

    /// What its threads are to the kernel's scheduler; [`Priority::Low`] if not set.
    ///
    /// ```
    /// use greenroom::{Priority, ThreadPool};
    ///
    /// let pool = ThreadPool::builder().priority(Priority::Same).build();
    /// assert_eq!(pool.run(|| 1), 1);
    /// ```
    pub fn priority(self, priority: Priority) -> ThreadPoolBuilder {
        ThreadPoolBuilder { options: self.options.priority(priority) }
    }

    /// Whether those who wait for a short time, a worker for its next job and a hub for what its jobs bring, do so awake when there is a
    /// core to spare and it paid the last time; true if not set. It makes a hand-over several times faster, and may keep a
    /// core busy that nobody else wanted.
    ///
    /// ```
    /// let pool = greenroom::ThreadPool::builder().spin(false).build();
    /// assert_eq!(pool.run(|| 1), 1);
    /// ```
    pub fn spin(self, spin: bool) -> ThreadPoolBuilder {
        ThreadPoolBuilder { options: self.options.spin(spin) }
    }

    /// Makes the pool. It has no threads until a job needs one. Never fails.
    ///
    /// ```
    /// assert_eq!(greenroom::ThreadPool::builder().build().stats().threads, 0);
    /// ```
    pub fn build(self) -> ThreadPool {
        self.options.build().into()
    }
}
