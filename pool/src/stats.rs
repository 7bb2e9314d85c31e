//! What a pool is doing.

/// What a pool was doing at one moment: the answer of [`Pool::stats`](crate::Pool::stats).
///
/// All but `completed`, `cancelled` and jobs in line are read at once, so they fit together: `threads == idle + running`, always.
///
/// ```
/// let pool = greenroom_pool::Pool::new(2);
/// pool.submit(|| ()).unwrap();
/// pool.join(None);
/// let stats = pool.stats();
/// assert_eq!((stats.queued, stats.running, stats.completed), (0, 0, 1));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Worker threads, those just starting included.
    pub threads: usize,
    /// Worker threads without a job, those just starting included.
    pub idle: usize,
    /// Jobs that no worker has taken yet, in the queue or in line for it. A revoked [`Lease`](crate::lease::Lease) counts until a worker comes by it.
    pub queued: usize,
    /// Jobs taken and not yet done with. A job's own effects can be seen a moment before it ceases to count here.
    pub running: usize,
    /// Jobs that have run, whether they returned or panicked.
    pub completed: u64,
    /// Jobs that never ran: still queued at shutdown, or revoked. Rejected ones don't count.
    pub cancelled: u64,
    /// The most threads this pool may have.
    pub max_threads: usize,
}
