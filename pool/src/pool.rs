//! The handle to a pool.

use std::fmt;
use std::ptr;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use crate::builder::PoolBuilder;
use crate::error::Rejected;
use crate::job::JobRef;
use crate::lease::{Lease, Verdict};
use crate::shared::{Shared, current_is_worker};
use crate::stats::PoolStats;

/// A pool of OS threads. A clone is another handle to the same pool.
///
/// A thread is started when a job comes and no worker is idle, up to `max_threads`; jobs beyond that wait in a queue,
/// first come first served. A worker that has done a job takes the next one by itself, and leaves when none has come
/// for `keep_alive`.
///
/// When the last handle is dropped the workers finish what is queued and leave. If `max_threads` is 0 at that
/// time, what is queued is cancelled instead.
///
/// # When the system refuses a thread
///
/// As long as the pool has a worker, jobs wait for it. If it has none, the thread that called [`submit`](Pool::submit),
/// [`lend`](Pool::lend) or [`resize`](Pool::resize) stands in: it runs queued jobs itself, in their order, before the call
/// returns, until none is left or a worker can be had. So no job is stranded; but don't hold a lock in such a call
/// that a job may want. Each later job tries to start a thread again.
pub struct Pool {
    /// Counts this handle.
    pub(crate) shared: Arc<Shared>,
}

/// Is the current thread running a job of any pool? Never blocks.
///
/// Code that hands work to pools can ask it to run such work in place. It is also true in a job that a thread runs on
/// behalf of a pool that got no thread (see [`Pool`]), and while a job is cancelled.
///
/// ```
/// let pool = greenroom_pool::Pool::new(1);
/// let (sender, receiver) = std::sync::mpsc::channel();
/// pool.submit(move || sender.send(greenroom_pool::in_worker()).unwrap())?;
/// assert_eq!(receiver.recv(), Ok(true));
/// assert!(!greenroom_pool::in_worker());
/// # Ok::<(), greenroom_pool::Rejected>(())
/// ```
pub fn in_worker() -> bool {
    current_is_worker(None)
}

/// Names a pool without being a handle to it: the answer of [`Pool::id`]. When the last handle, job and worker of a pool are
/// gone, another pool may get its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolId(usize);

impl PoolId {
    /// Is the current thread running a job of that pool? Never blocks. As [`Pool::is_worker`].
    ///
    /// ```
    /// let pool = greenroom_pool::Pool::new(1);
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let id = pool.id();
    /// pool.submit(move || sender.send(id.is_worker()).unwrap())?;
    /// assert_eq!(receiver.recv(), Ok(true));
    /// assert!(!id.is_worker());
    /// # Ok::<(), greenroom_pool::Rejected>(())
    /// ```
    pub fn is_worker(self) -> bool {
        current_is_worker(Some(ptr::without_provenance(self.0)))
    }
}

impl Pool {
    /// A pool of at most so many threads, with the other options as they are in [`PoolBuilder`].
    ///
    /// ```
    /// let pool = greenroom_pool::Pool::new(4);
    /// assert_eq!(pool.stats().max_threads, 4);
    /// ```
    pub fn new(max_threads: usize) -> Pool {
        Pool::builder().max_threads(max_threads).build()
    }

    /// The options for a pool, each with its default.
    ///
    /// ```
    /// let pool = greenroom_pool::Pool::builder().name("files").build();
    /// ```
    pub fn builder() -> PoolBuilder {
        PoolBuilder::new()
    }

    pub(crate) fn from_builder(options: PoolBuilder) -> Pool {
        Pool { shared: Arc::new(Shared::new(options)) }
    }

    /// Queues a job and returns; a worker runs it. Doesn't block, unless it has to stand in for a thread that the system
    /// refuses (see [`Pool`]).
    ///
    /// A panic in the job ends the job alone. The panic hook reports it as any other; its payload is dropped.
    ///
    /// # Errors
    /// [`Rejected::QueueFull`] and [`Rejected::ShutDown`]; the job is dropped.
    ///
    /// ```
    /// let pool = greenroom_pool::Pool::new(1);
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// pool.submit(move || sender.send(6 * 7).unwrap())?;
    /// assert_eq!(receiver.recv(), Ok(42));
    /// # Ok::<(), greenroom_pool::Rejected>(())
    /// ```
    pub fn submit(&self, job: impl FnOnce() + Send + 'static) -> Result<(), Rejected> {
        self.shared.enqueue(JobRef::new(job)).map_err(|(job, reason)| {
            job.finish(Verdict::Cancel);
            reason
        })
    }

    /// Queues a job that lives in the caller's `frame`, and returns. A worker calls `execute(frame, Verdict::Run)`; if the
    /// pool is shut down before, it is `execute(frame, Verdict::Cancel)`, on the thread that shuts down or on a worker.
    /// Allocates nothing if the lease has been used before. Blocks no more than [`submit`](Pool::submit) does; if the
    /// current thread has to stand in, `execute` may have been called when this returns.
    ///
    /// The pool never reads through `frame`: any pointer will do that `execute` can make use of.
    ///
    /// # Errors
    /// [`Rejected::QueueFull`] and [`Rejected::ShutDown`]: `execute` will not be called.
    ///
    /// # Panics
    /// If the job lent last through this lease is still queued.
    ///
    /// # Safety
    /// From now on, until the job is settled, it must be sound to call `execute(frame, _)` once, on any thread. It is
    /// settled when `execute` has told its owner so by its own means, or [`Lease::revoke`] has returned true, or the lease
    /// has been dropped while the job was queued, or this function has returned an error. `execute` must not
    /// unwind.
    ///
    /// ```
    /// use greenroom_pool::Pool;
    /// use greenroom_pool::lease::{Lease, Verdict};
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// static CALLS: AtomicUsize = AtomicUsize::new(0);
    ///
    /// unsafe fn call(_: *const (), _: Verdict) {
    ///     CALLS.fetch_add(1, Ordering::Relaxed);
    /// }
    ///
    /// let pool = Pool::new(1);
    /// let mut lease = Lease::new();
    /// for _ in 0..3 {
    ///     // SAFETY: `call` uses no frame and doesn't unwind.
    ///     unsafe { pool.lend(&mut lease, std::ptr::null(), call)? };
    ///     pool.join(None);
    /// }
    /// assert_eq!(CALLS.load(Ordering::Relaxed), 3);
    /// # Ok::<(), greenroom_pool::Rejected>(())
    /// ```
    pub unsafe fn lend(
        &self,
        lease: &mut Lease,
        frame: *const (),
        execute: unsafe fn(*const (), Verdict),
    ) -> Result<(), Rejected> {
        // SAFETY: the caller's promise, passed on.
        let job = unsafe { lease.prepare(frame, execute) };
        self.shared.enqueue(job).map_err(|(job, reason)| {
            lease.put_to_rest(job);
            reason
        })
    }

    /// The same, but if the queue is full the job stands in line for it, first come first served: whoever makes room lets the
    /// first one in. So nobody else's [`lend_in_line`](Pool::lend_in_line) overtakes it, and its caller need not do anything
    /// for it. The line has no limit; who lends waits for the job, so it holds one for each of those.
    ///
    /// # Errors
    /// [`Rejected::ShutDown`]: `execute` will not be called.
    ///
    /// # Panics
    /// As [`lend`](Pool::lend).
    ///
    /// # Safety
    /// That of [`lend`](Pool::lend).
    ///
    /// ```
    /// use greenroom_pool::Pool;
    /// use greenroom_pool::lease::{Lease, Verdict};
    ///
    /// unsafe fn nothing(_: *const (), _: Verdict) {}
    ///
    /// let pool = Pool::builder().max_threads(0).queue_limit(1).build();
    /// let mut leases = [const { Lease::new() }; 3];
    /// for lease in &mut leases {
    ///     // SAFETY: `nothing` uses no frame and doesn't unwind.
    ///     unsafe { pool.lend_in_line(lease, std::ptr::null(), nothing)? };
    /// }
    /// pool.resize(1);
    /// assert!(pool.join(None));
    /// assert_eq!(pool.stats().completed, 3);
    /// # Ok::<(), greenroom_pool::Rejected>(())
    /// ```
    pub unsafe fn lend_in_line(
        &self,
        lease: &mut Lease,
        frame: *const (),
        execute: unsafe fn(*const (), Verdict),
    ) -> Result<(), Rejected> {
        // SAFETY: the caller's promise, passed on.
        let job = unsafe { lease.prepare(frame, execute) };
        self.shared.enqueue_in_line(job, || None).map_err(|(job, reason)| {
            lease.put_to_rest(job);
            reason
        })
    }

    /// The same, for those who wait until the job has left the line: if it has to stand in it, `left` is called, before this
    /// returns, and the waker that it gives is woken when the job is in the queue or has been cancelled. If the job is revoked the
    /// waker may be dropped instead.
    ///
    /// # Errors
    /// [`Rejected::ShutDown`]: `execute` will not be called.
    ///
    /// # Panics
    /// As [`lend`](Pool::lend).
    ///
    /// # Safety
    /// That of [`lend`](Pool::lend).
    ///
    /// ```
    /// use greenroom_pool::Pool;
    /// use greenroom_pool::lease::{Lease, Verdict};
    /// use std::task::Waker;
    ///
    /// unsafe fn nothing(_: *const (), _: Verdict) {}
    ///
    /// let pool = Pool::builder().max_threads(0).queue_limit(1).build();
    /// let mut in_line = 0;
    /// let mut leases = [const { Lease::new() }; 3];
    /// for lease in &mut leases {
    ///     let left = || {
    ///         in_line += 1;
    ///         Waker::noop().clone()
    ///     };
    ///     // SAFETY: `nothing` uses no frame and doesn't unwind.
    ///     unsafe { pool.lend_in_line_and_wake(lease, std::ptr::null(), nothing, left)? };
    /// }
    /// assert_eq!(in_line, 2);
    /// # Ok::<(), greenroom_pool::Rejected>(())
    /// ```
    pub unsafe fn lend_in_line_and_wake(
        &self,
        lease: &mut Lease,
        frame: *const (),
        execute: unsafe fn(*const (), Verdict),
        left: impl FnOnce() -> Waker,
    ) -> Result<(), Rejected> {
        // SAFETY: the caller's promise, passed on.
        let job = unsafe { lease.prepare(frame, execute) };
        self.shared.enqueue_in_line(job, || Some(left())).map_err(|(job, reason)| {
            lease.put_to_rest(job);
            reason
        })
    }

    /// Changes the most threads the pool may have. Doesn't wait for anything, unless it has to stand in for a thread that
    /// the system refuses (see [`Pool`]).
    ///
    /// With more, threads for the jobs that wait are started at once. With less, idle workers beyond the new number leave,
    /// and busy ones do so after their job; with 0, what is queued waits until there is more again. More than
    /// [`PoolBuilder::MAX_THREADS`] count as that many. A pool that was shut down stays so.
    ///
    /// ```
    /// let pool = greenroom_pool::Pool::new(0);
    /// pool.submit(|| ())?;
    /// assert_eq!(pool.stats().queued, 1);
    /// pool.resize(1);
    /// assert!(pool.join(None));
    /// assert_eq!(pool.stats().completed, 1);
    /// # Ok::<(), greenroom_pool::Rejected>(())
    /// ```
    pub fn resize(&self, max_threads: usize) {
        self.shared.resize(max_threads.min(PoolBuilder::MAX_THREADS));
    }

    /// Blocks until nothing is queued or running, or until the timeout. Returns whether it came to that.
    ///
    /// Others may submit jobs meanwhile; a pool that never is without one keeps the caller waiting. Called from one of the
    /// pool's own jobs it returns false at once, since that job can't wait for itself.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = greenroom_pool::Pool::new(1);
    /// let (go, gate) = std::sync::mpsc::channel::<()>();
    /// pool.submit(move || gate.recv().unwrap())?;
    /// assert!(!pool.join(Some(Duration::ZERO)));
    /// go.send(()).unwrap();
    /// assert!(pool.join(None));
    /// # Ok::<(), greenroom_pool::Rejected>(())
    /// ```
    pub fn join(&self, timeout: Option<Duration>) -> bool {
        !self.is_worker() && self.shared.join(timeout)
    }

    /// Refuses jobs from now on, cancels those queued, and blocks until the running ones are done and all workers have left,
    /// or until the timeout. Returns whether they have left.
    ///
    /// A closure that is cancelled is dropped, a lent job is called with [`Verdict::Cancel`], by this thread or a worker;
    /// a panic in it is caught. Called from one of the pool's own jobs it doesn't wait, and returns false. Called again it
    /// waits again.
    ///
    /// ```
    /// use greenroom_pool::{Pool, Rejected};
    ///
    /// let pool = Pool::new(1);
    /// pool.submit(|| ())?;
    /// assert!(pool.shutdown(None));
    /// assert_eq!(pool.stats().threads, 0);
    /// assert_eq!(pool.submit(|| ()), Err(Rejected::ShutDown));
    /// # Ok::<(), Rejected>(())
    /// ```
    pub fn shutdown(&self, timeout: Option<Duration>) -> bool {
        self.shared.close();
        !self.is_worker() && self.has_left(timeout)
    }

    /// Blocks until all workers have left and nothing is queued, for at most `timeout`. Returns whether that is so.
    pub(crate) fn has_left(&self, timeout: Option<Duration>) -> bool {
        self.shared.wait_for_leave(timeout)
    }

    /// Is the current thread running a job of this pool? Never blocks. [`in_worker`] asks the same for any pool.
    ///
    /// ```
    /// let pool = greenroom_pool::Pool::new(1);
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let same = pool.clone();
    /// pool.submit(move || sender.send(same.is_worker()).unwrap())?;
    /// assert_eq!(receiver.recv(), Ok(true));
    /// assert!(!pool.is_worker());
    /// # Ok::<(), greenroom_pool::Rejected>(())
    /// ```
    pub fn is_worker(&self) -> bool {
        self.id().is_worker()
    }

    /// What names this pool to those who hold no handle to it, and so don't keep it from retiring.
    ///
    /// ```
    /// let pool = greenroom_pool::Pool::new(1);
    /// assert_eq!(pool.id(), pool.clone().id());
    /// ```
    pub fn id(&self) -> PoolId {
        PoolId(Arc::as_ptr(&self.shared).addr())
    }

    /// The most threads it may have. Never blocks.
    ///
    /// ```
    /// assert_eq!(greenroom_pool::Pool::new(3).max_threads(), 3);
    /// ```
    pub fn max_threads(&self) -> usize {
        self.shared.max_threads()
    }

    /// Does who waits for this pool wait awake when that pays, as [`PoolBuilder::spin`] says? Never blocks.
    ///
    /// ```
    /// assert!(greenroom_pool::Pool::new(1).spins());
    /// ```
    pub fn spins(&self) -> bool {
        self.shared.spins()
    }

    /// What the pool is doing now. Never blocks.
    ///
    /// ```
    /// let pool = greenroom_pool::Pool::default();
    /// assert_eq!(pool.stats().max_threads, 10);
    /// ```
    pub fn stats(&self) -> PoolStats {
        self.shared.stats()
    }
}

impl Default for Pool {
    /// A pool of at most 10 threads.
    fn default() -> Pool {
        Pool::builder().build()
    }
}

impl Clone for Pool {
    fn clone(&self) -> Pool {
        self.shared.add_handle();
        Pool { shared: Arc::clone(&self.shared) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.drop_handle();
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
