//! Points in time that fit into a word, and so into the queue.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Nanoseconds since somebody first asked, and one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment(u64);

impl Moment {
    pub(crate) fn now() -> Moment {
        static START: OnceLock<Instant> = OnceLock::new();
        let elapsed = START.get_or_init(Instant::now).elapsed();
        Moment(1 + u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX - 1)) // for 584 years
    }

    pub(crate) fn from_nanos(nanos: u64) -> Moment {
        Moment(nanos)
    }

    pub(crate) fn nanos(self) -> u64 {
        self.0
    }

    /// The time from an earlier point to this one; none from a later one.
    pub(crate) fn since(self, earlier: Moment) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}
