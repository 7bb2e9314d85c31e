//! Why something is parked, for reports.

use std::fmt;
use std::time::Duration;

use crate::GreenletId;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reason {
    /// A sleep of this length.
    Sleep(Duration),
    /// The end of a greenlet.
    Join(GreenletId),
    /// The end of all greenlets.
    HubJoin,
    /// The moment when nothing else is ready.
    Idle,
    /// A result that somebody else sets.
    AsyncResult,
    /// A job on the pool.
    PoolJob,
    /// Room in a pool's queue.
    PoolRoom,
    /// The end of all jobs of a pool.
    PoolJoin,
    /// The end of a pool.
    PoolShutdown,
    /// An event that somebody else sets.
    Event,
    /// A semaphore's permit.
    Semaphore,
    /// A mutex.
    Mutex,
    /// A read-write lock, to read.
    ReadLock,
    /// A read-write lock, to write.
    WriteLock,
    /// A re-entrant lock.
    RLock,
    /// A notification of a condition variable.
    Condvar,
    /// The others at a barrier.
    Barrier,
    /// A value that somebody else initializes.
    OnceCell,
    /// An item of a queue.
    QueueGet,
    /// Room in a queue, or somebody who takes the item.
    QueuePut,
    /// The last item of a queue to be done.
    QueueJoin,
    /// One more of so many objects to be ready.
    Any(usize),
    /// The end of all greenlets of a group.
    Group,
    /// The end of all greenlets of a scope.
    Scope,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Sleep(duration) => write!(f, "sleep {duration:?}"),
            Reason::Join(id) => write!(f, "join of greenlet {id}"),
            Reason::HubJoin => f.write_str("join of the hub"),
            Reason::Idle => f.write_str("idle"),
            Reason::AsyncResult => f.write_str("async result"),
            Reason::PoolJob => f.write_str("pool job"),
            Reason::PoolRoom => f.write_str("room in a pool's queue"),
            Reason::PoolJoin => f.write_str("join of a pool"),
            Reason::PoolShutdown => f.write_str("shutdown of a pool"),
            Reason::Event => f.write_str("event"),
            Reason::Semaphore => f.write_str("semaphore"),
            Reason::Mutex => f.write_str("mutex"),
            Reason::ReadLock => f.write_str("read lock"),
            Reason::WriteLock => f.write_str("write lock"),
            Reason::RLock => f.write_str("re-entrant lock"),
            Reason::Condvar => f.write_str("condition variable"),
            Reason::Barrier => f.write_str("barrier"),
            Reason::OnceCell => f.write_str("once cell"),
            Reason::QueueGet => f.write_str("get from a queue"),
            Reason::QueuePut => f.write_str("put to a queue"),
            Reason::Any(count) => write!(f, "any of {count} objects"),
            Reason::Group => f.write_str("end of a group's greenlets"),
            Reason::Scope => f.write_str("end of a scope's greenlets"),
            Reason::QueueJoin => f.write_str("join of a queue"),
        }
    }
}
