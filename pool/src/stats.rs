//! What a pool is doing.

use std::fmt;
use std::time::Duration;

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
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PoolStats {
    /// Worker threads, those just starting included.
    pub threads: usize,
    /// Worker threads without a job, those just starting included.
    pub idle: usize,
    /// Jobs that no worker has taken yet, in the queue or in line for it. A revoked [`Lease`](crate::lease::Lease) counts until a worker comes by it.
    pub queued: usize,
    /// Jobs taken and not yet done with. A job's own effects can be seen, and it can count as completed, a moment before it ceases to
    /// count here.
    pub running: usize,
    /// Jobs that have run, whether they returned or panicked.
    pub completed: u64,
    /// Jobs that never ran: still queued at shutdown, or revoked. Rejected ones don't count.
    pub cancelled: u64,
    /// The most threads this pool may have.
    pub max_threads: usize,
    /// How long the jobs that ran had waited for a worker.
    pub waits: Histogram,
    /// How long they ran.
    pub runs: Histogram,
}

/// How long something took, time after time: two significant digits, from 64 nanoseconds to an hour.
///
/// ```
/// use std::time::Duration;
///
/// let pool = greenroom_pool::Pool::new(1);
/// pool.submit(|| std::thread::sleep(Duration::from_millis(5))).unwrap();
/// pool.join(None);
/// let runs = pool.stats().runs;
/// assert_eq!(runs.count(), 1);
/// assert!(runs.quantile(0.5) >= Duration::from_millis(4));
/// assert!(runs.max() >= runs.mean());
/// ```
#[derive(Clone, PartialEq)]
pub struct Histogram(hdrhistogram::Histogram<u32>);

/// What is shorter counts as this.
const SHORTEST: u64 = 64;
/// What is longer counts as this.
const LONGEST: u64 = 3_600_000_000_000;

impl Histogram {
    pub(crate) fn record(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn add(&mut self, other: &Histogram) {
        self.0.add(&other.0).expect("all histograms have the same bounds");
    }

    /// How many times were recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// Their mean; zero if there are none.
    pub fn mean(&self) -> Duration {
        Duration::from_nanos(self.0.mean() as u64)
    }

    /// The longest; zero if there is none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.0.max())
    }

    /// The time that the share `q` of them, between 0 and 1, does not exceed: 0.5 gives the median. Zero if there are none.
    pub fn quantile(&self, q: f64) -> Duration {
        Duration::from_nanos(self.0.value_at_quantile(q))
    }
}

impl Default for Histogram {
    fn default() -> Histogram {
        let histogram = hdrhistogram::Histogram::new_with_bounds(SHORTEST, LONGEST, 2);
        Histogram(histogram.expect("these bounds are in order"))
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("p50", &self.quantile(0.5))
            .field("p99", &self.quantile(0.99))
            .field("max", &self.max())
            .finish()
    }
}
