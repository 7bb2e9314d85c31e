//! Whether a job that has a thread may begin.

/// When a queued job begins, while the pool has fewer than `max_threads` jobs running.
///
/// ```
/// use greenroom_pool::{Admission, Pool};
///
/// let pool = Pool::builder().admission(Admission::Plain).build();
/// # drop(pool);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Admission {
    /// At once.
    Plain,
    /// When there is a core for it.
    ///
    /// Ten threads that compute on two cores finish no more than two do; they only make each job five times slower, and everybody
    /// else on the machine wait for longer. So while as many jobs run as there are cores the next one waits, and one idle
    /// worker looks once a millisecond, as long as something waits, at the CPU clocks of the threads that run: for each job whose
    /// clock stands still although no core is denied to it, since it sleeps or waits for a lock or a disk, one more begins. So jobs that block still run all at once,
    /// up to `max_threads`, a few milliseconds later.
    ///
    /// Jobs that compute for long don't hold up others for ever: one that has run for twice as long as recent jobs did, and for 100 ms at
    /// least and a second at most, doesn't count any more.
    ///
    /// Where a thread's CPU clock can't be read (kernels other than Linux) this is `Plain`.
    #[default]
    CpuAware,
}
