//! The options of a pool.

use std::time::Duration;

use crate::admission::Admission;
use crate::pool::Pool;
use crate::priority::Priority;
use crate::shared::{QUEUE_LIMIT, Starter, THREADS_LIMIT, os_thread};

/// The options of a pool, to be made with [`Pool::builder`].
///
/// ```
/// use greenroom_pool::Pool;
/// use std::time::Duration;
///
/// let pool = Pool::builder()
///     .name("images")
///     .max_threads(4)
///     .keep_alive(Duration::from_secs(60))
///     .queue_limit(100)
///     .build();
/// assert_eq!(pool.stats().max_threads, 4);
/// ```
#[derive(Clone, Debug)]
#[must_use = "build() makes the pool"]
pub struct PoolBuilder {
    /// At most `THREADS_LIMIT`.
    pub(crate) max_threads: usize,
    pub(crate) keep_alive: Duration,
    /// From 1 to `QUEUE_LIMIT`.
    pub(crate) queue_limit: usize,
    /// Contains no NUL.
    pub(crate) name: String,
    pub(crate) admission: Admission,
    pub(crate) priority: Priority,
    pub(crate) spin: bool,
    /// How threads are started. Tests set another one.
    pub(crate) starter: Starter,
}

impl PoolBuilder {
    /// The most threads a pool can have; a larger number counts as this one.
    pub const MAX_THREADS: usize = THREADS_LIMIT;

    /// The most jobs a queue can hold; a larger number counts as this one.
    pub const MAX_QUEUE: usize = QUEUE_LIMIT;

    pub(crate) fn new() -> PoolBuilder {
        PoolBuilder {
            max_threads: 10,
            keep_alive: Duration::from_secs(5),
            queue_limit: 8192,
            name: String::from("greenroom-pool"),
            admission: Admission::CpuAware,
            priority: Priority::Low,
            spin: true,
            starter: os_thread,
        }
    }

    /// The most threads the pool may have; 10 if not set. More than [`MAX_THREADS`](Self::MAX_THREADS) count as that
    /// many. With 0 every job waits until [`Pool::resize`] allows more.
    ///
    /// ```
    /// use greenroom_pool::{Pool, PoolBuilder};
    ///
    /// let pool = Pool::builder().max_threads(usize::MAX).build();
    /// assert_eq!(pool.stats().max_threads, PoolBuilder::MAX_THREADS);
    /// assert_eq!(pool.stats().threads, 0); // none is needed yet
    /// ```
    pub fn max_threads(mut self, threads: usize) -> Self {
        self.max_threads = threads.min(Self::MAX_THREADS);
        self
    }

    /// How long a thread waits for a job before it leaves; 5 seconds if not set. Less than a millisecond counts as one;
    /// what overflows the clock, as [`Duration::MAX`] does, means for ever.
    ///
    /// ```
    /// use greenroom_pool::Pool;
    /// use std::time::Duration;
    ///
    /// let pool = Pool::builder().keep_alive(Duration::from_millis(1)).build();
    /// pool.submit(|| ())?;
    /// while pool.stats().threads > 0 {
    ///     std::thread::yield_now();
    /// }
    /// # Ok::<(), greenroom_pool::Rejected>(())
    /// ```
    pub fn keep_alive(mut self, keep_alive: Duration) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// The most jobs that may wait in the queue; 8,192 if not set. Each takes 24 bytes from the beginning. More than
    /// [`MAX_QUEUE`](Self::MAX_QUEUE) count as that many.
    ///
    /// # Panics
    /// If the limit is 0, for such a pool would refuse every job.
    ///
    /// ```
    /// use greenroom_pool::{Pool, Rejected};
    ///
    /// let pool = Pool::builder().max_threads(0).queue_limit(1).build();
    /// assert_eq!(pool.submit(|| ()), Ok(()));
    /// assert_eq!(pool.submit(|| ()), Err(Rejected::QueueFull));
    /// ```
    pub fn queue_limit(mut self, jobs: usize) -> Self {
        assert!(jobs > 0, "a queue_limit of 0 would refuse every job: allow at least 1");
        self.queue_limit = jobs.min(Self::MAX_QUEUE);
        self
    }

    /// What the threads are named: `name-1`, `name-2` and so on; `greenroom-pool` if not set. A number is used once. Linux
    /// keeps the first 15 bytes of it for tools such as `top`.
    ///
    /// # Panics
    /// If the name contains a NUL, which no thread's name may.
    ///
    /// ```
    /// use greenroom_pool::Pool;
    ///
    /// let pool = Pool::builder().name("disk").build();
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// pool.submit(move || sender.send(std::thread::current().name().map(String::from)).unwrap())?;
    /// assert_eq!(receiver.recv().unwrap().as_deref(), Some("disk-1"));
    /// # Ok::<(), greenroom_pool::Rejected>(())
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        assert!(!self.name.contains('\0'), "a thread's name can't contain a NUL, but {:?} does", self.name);
        self
    }

    /// When a queued job begins, while there are threads for it; [`Admission::CpuAware`] if not set.
    ///
    /// ```
    /// use greenroom_pool::{Admission, Pool};
    ///
    /// let hashes = Pool::builder().admission(Admission::Plain).build();
    /// # drop(hashes);
    /// ```
    pub fn admission(mut self, admission: Admission) -> Self {
        self.admission = admission;
        self
    }

    /// What its threads are to the kernel's scheduler; [`Priority::Low`] if not set.
    ///
    /// ```
    /// use greenroom_pool::{Pool, Priority};
    ///
    /// let hashes = Pool::builder().priority(Priority::Idle).build();
    /// # drop(hashes);
    /// ```
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Whether an idle worker waits awake for a moment when that pays (see [`Spin`](crate::Spin)); true if not set.
    ///
    /// ```
    /// let pool = greenroom_pool::Pool::builder().spin(false).build();
    /// assert!(!pool.spins());
    /// ```
    pub fn spin(mut self, spin: bool) -> Self {
        self.spin = spin;
        self
    }

    /// Makes the pool. It has no threads until a job needs one. Never fails.
    ///
    /// ```
    /// let pool = greenroom_pool::Pool::builder().build();
    /// assert_eq!(pool.stats().threads, 0);
    /// ```
    pub fn build(self) -> Pool {
        Pool::from_builder(self)
    }
}
