//! How much of a busy machine the workers of a pool get.

/// What the threads of a pool are to the kernel's scheduler, next to the thread that made it. Takes effect on Linux; it needs no
/// privilege, and where the kernel refuses, the threads run at the priority that they had.
///
/// Only threads that the pool has started are touched. A thread that stands in for one that the system refuses (see
/// [`Pool`](crate::Pool)) keeps its own.
///
/// ```
/// use greenroom_pool::{Pool, Priority};
///
/// let pool = Pool::builder().priority(Priority::Low).build();
/// # drop(pool);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Priority {
    /// As the thread that starts them, which is the one that submits a job, or a worker.
    Same,
    /// 10 steps nicer. A thread that wakes up beside them gets its core sooner. Beside unrelated work of normal priority
    /// that wants all cores, they get about a tenth of them: four hashes took 1.5 s beside two busy processes on two cores, where they took
    /// 0.3 s at the same priority and 0.15 s without that work. Take `Same` if your pool shares its machine so, and a late hash
    /// is worse than a late tick.
    #[default]
    Low,
    /// `SCHED_IDLE`: what wakes up beside them gets its core at once, and they get only what nobody else wants. Beside unrelated
    /// work that wants all cores, they nearly stand still, some hundred times slower: an offer for machines that are theirs.
    Idle,
}
