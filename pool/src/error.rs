//! Why a pool didn't take a job.

use std::{error, fmt};

/// Why a pool did not take a job. The job has not run and never will; a closure has been dropped.
///
/// ```
/// use greenroom_pool::{Pool, Rejected};
///
/// let pool = Pool::builder().max_threads(0).queue_limit(1).build();
/// pool.submit(|| ())?;
/// assert_eq!(pool.submit(|| ()), Err(Rejected::QueueFull));
///
/// pool.shutdown(None);
/// assert_eq!(pool.submit(|| ()), Err(Rejected::ShutDown));
/// # Ok::<(), Rejected>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rejected {
    /// As many jobs wait as the queue may hold.
    QueueFull,
    /// The pool has been shut down. It takes no jobs any more.
    ShutDown,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rejected::QueueFull => {
                "the pool's queue is full; try again when it has room, or raise its queue_limit or max_threads"
            }
            Rejected::ShutDown => "the pool has been shut down; make a new one for further jobs",
        })
    }
}

impl error::Error for Rejected {}
