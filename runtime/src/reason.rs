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
    /// Room in the pool's queue.
    PoolRoom,
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
            Reason::PoolRoom => f.write_str("room in the pool's queue"),
        }
    }
}
