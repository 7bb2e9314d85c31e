//! Measuring how long a hub was stalled: the longest gap between two ticks.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::spawn::spawn;
use crate::time::{sleep, yield_now};

/// Ticks of the idle floor.
const IDLE_TICKS: usize = 10;

/// A ticker greenlet that sleeps and notes when it wakes: whatever stalls its hub shows as a gap.
///
/// ```
/// use std::time::{Duration, Instant};
/// use greenroom::stall::TickGaps;
///
/// let gaps = TickGaps::measure(Duration::from_millis(1), || {
///     let end = Instant::now() + Duration::from_millis(20);
///     while Instant::now() < end {} // stalls the hub
/// });
/// assert!(gaps.max >= Duration::from_millis(20));
/// ```
#[derive(Debug)]
pub struct TickGaps(());

/// The gaps between the ticks of a [`TickGaps::measure`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Gaps {
    /// The longest: how long the hub was stalled, plus the interval at most.
    pub max: Duration,
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The 99.9th percentile.
    pub p999: Duration,
    /// How many ticks there were. It hides a stall, whose ticks are merely fewer: don't judge by it.
    pub ticks: usize,
    /// The longest gap of ten ticks before, with no work: what this machine does by itself.
    pub idle_floor: Duration,
    /// All gaps, in nanoseconds, to three significant digits.
    pub histogram: Histogram<u64>,
    /// When each tick was, from the start of the work.
    pub timeline: Vec<Duration>,
    /// When the work was done, from its start.
    pub work: Duration,
}

impl TickGaps {
    /// Runs `work` in the calling greenlet (or on main) beside a ticker that sleeps `interval` between ticks. A gap counts
    /// from tick to tick; the first from the start of the work, and the one that is open when the work ends until the next
    /// tick. Parks; makes the thread's hub if there is none. If `work` panics or is killed, so is the ticker.
    ///
    /// Takes ten intervals longer than the work, for the idle floor.
    ///
    /// # Panics
    ///
    /// When `interval` is zero.
    ///
    /// ```
    /// use std::time::Duration;
    /// use greenroom::stall::TickGaps;
    ///
    /// let gaps = TickGaps::measure(Duration::from_millis(1), || greenroom::sleep(Duration::from_millis(20)));
    /// assert!(gaps.ticks > 1 && gaps.p50 <= gaps.max);
    /// ```
    pub fn measure<R>(interval: Duration, work: impl FnOnce() -> R) -> Gaps {
        assert!(!interval.is_zero(), "the interval of TickGaps::measure is zero: the ticker would never sleep");
        let idle_floor = longest(&Ticker::run(interval, || sleep(interval.saturating_mul(IDLE_TICKS as u32))).0);
        let (timeline, work) = Ticker::run(interval, work);
        let mut histogram = Histogram::new(3).expect("three significant digits are allowed");
        for gap in gaps(&timeline) {
            histogram
                .record(u64::try_from(gap.as_nanos()).unwrap_or(u64::MAX))
                .expect("a histogram without bounds grows to hold any value");
        }
        let at = |quantile| Duration::from_nanos(histogram.value_at_quantile(quantile));
        let max = longest(&timeline);
        // The histogram rounds up; a percentile is never more than the longest.
        let (p50, p99, p999) = (at(0.5).min(max), at(0.99).min(max), at(0.999).min(max));
        Gaps { max, p50, p99, p999, ticks: timeline.len(), idle_floor, histogram, timeline, work }
    }
}

fn gaps(timeline: &[Duration]) -> impl Iterator<Item = Duration> {
    let before = std::iter::once(Duration::ZERO).chain(timeline.iter().copied());
    timeline.iter().zip(before).map(|(tick, before)| tick.saturating_sub(before))
}

fn longest(timeline: &[Duration]) -> Duration {
    gaps(timeline).max().unwrap_or_default()
}

struct Ticker;

impl Ticker {
    /// Runs `work` beside a ticker. Returns when each tick was and when the work was done, from its start.
    fn run<R>(interval: Duration, work: impl FnOnce() -> R) -> (Vec<Duration>, Duration) {
        let start = Rc::new(Cell::new(Instant::now()));
        let ticks = Rc::new(RefCell::new(Vec::new()));
        let is_done = Rc::new(Cell::new(false));
        let greenlet = spawn({
            let (start, ticks, is_done) = (Rc::clone(&start), Rc::clone(&ticks), Rc::clone(&is_done));
            move || {
                loop {
                    sleep(interval);
                    ticks.borrow_mut().push(start.get().elapsed());
                    if is_done.get() {
                        return;
                    }
                }
            }
        });
        let _ticker = KillOnDrop(&greenlet);
        // The ticker is asleep when the work starts.
        yield_now();
        start.set(Instant::now());
        drop(work());
        let done = start.get().elapsed();
        is_done.set(true);
        greenlet.wait();
        (ticks.take(), done)
    }
}

/// The ticker doesn't outlive a measurement that unwinds.
struct KillOnDrop<'a>(&'a crate::Greenlet<()>);

impl Drop for KillOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request_kill();
    }
}
