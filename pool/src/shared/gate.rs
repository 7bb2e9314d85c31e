//! How many jobs may run at once, if that depends on the processor: see [`Admission`].

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::seat::Seat;
use crate::admission::Admission;
use crate::clock::Moment;
use crate::spin::cores;
use crate::sys::CpuClock;

/// How often the watcher looks.
pub(super) const TICK: Duration = Duration::from_millis(1);
/// A clock that advanced by less than one part in so many of a tick stood still.
const BLOCKED_SHARE: u32 = 16;
/// How long the oldest queued job waits at least before one more is let in, however short the jobs are.
const SHORTEST_PATIENCE: Duration = Duration::from_millis(5);
/// More would be longer than the longest.
const MOST_DOUBLINGS: u32 = 8;
/// How long at most.
const LONGEST_PATIENCE: Duration = Duration::from_secs(1);
/// How long a job takes as long as none has ended yet.
const UNKNOWN_PACE: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Debug)]
pub(super) struct Gate {
    /// How many jobs may run at once.
    width: AtomicUsize,
    /// How many of these were let in because the oldest queued one had waited for too long; until nothing waits.
    extra: AtomicUsize,
    /// How long recent jobs ran, in nanoseconds: each new one counts an eighth.
    pace: AtomicU64,
    /// Whether a worker watches.
    watched: AtomicBool,
    /// What the last watcher saw. Locked by the one that watches.
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    /// What the clocks of the busy seats said at the last tick.
    clocks: Vec<Reading>,
    /// The last time that a job began or one more was let in.
    moved: Moment,
}

#[derive(Debug)]
struct Reading {
    seat: Arc<Seat>,
    at: Moment,
    used: Duration,
}

impl Gate {
    pub(super) fn new(admission: Admission) -> Gate {
        let narrow = admission == Admission::CpuAware && CpuClock::of_this_thread().is_some();
        Gate {
            width: AtomicUsize::new(if narrow { cores() } else { usize::MAX }),
            extra: AtomicUsize::new(0),
            pace: AtomicU64::new(UNKNOWN_PACE.as_nanos() as u64),
            watched: AtomicBool::new(false),
            seen: Mutex::new(Seen { clocks: Vec::new(), moved: Moment::now() }),
        }
    }

    pub(super) fn width(&self) -> usize {
        self.width.load(SeqCst)
    }

    /// Whether it ever keeps a job waiting.
    pub(super) fn is_narrow(&self) -> bool {
        self.width.load(Relaxed) != usize::MAX
    }

    /// Whether a worker should watch, now that jobs are kept waiting.
    pub(super) fn wants_watcher(&self) -> bool {
        self.is_narrow() && !self.watched.load(SeqCst)
    }

    /// A job has run for so long.
    pub(super) fn note_run(&self, ran: Duration) {
        if self.is_narrow() {
            let ran = u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX);
            let pace = self.pace.load(Relaxed);
            self.pace.store(pace - pace / 8 + ran / 8, Relaxed);
        }
    }

    /// Nothing waits any more.
    pub(super) fn reset(&self) {
        if self.is_narrow() && self.width.load(Relaxed) != cores() {
            self.extra.store(0, SeqCst);
            self.width.store(cores(), SeqCst);
        }
    }

    /// The current worker watches from now on, unless another does.
    pub(super) fn watch(&self) -> Option<Watch<'_>> {
        let first = self.is_narrow() && !self.watched.swap(true, SeqCst);
        first.then(|| Watch(self))
    }

    /// How long the oldest waits before one more is let in. Those let in so far have not emptied the queue, so it may be
    /// jobs of the long kind that wait: each time it takes twice as long.
    fn patience(&self) -> Duration {
        let twice = Duration::from_nanos(self.pace.load(Relaxed)).saturating_mul(2);
        let doubled = u32::try_from(self.extra.load(SeqCst)).unwrap_or(u32::MAX).min(MOST_DOUBLINGS);
        twice.max(SHORTEST_PATIENCE).saturating_mul(1 << doubled).min(LONGEST_PATIENCE)
    }
}

/// The duty of one idle worker while jobs wait although there are threads.
pub(super) struct Watch<'a>(&'a Gate);

impl Watch<'_> {
    /// Looks at the clocks of the threads that do jobs, and lets in as many more as it finds blocked.
    pub(super) fn tick(&mut self, busy: Vec<Arc<Seat>>) {
        let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Moment::now();
        let mut clocks = Vec::with_capacity(busy.len());
        let mut blocked = 0;
        for seat in busy {
            seen.moved = seen.moved.max(seat.began());
            let Some(used) = seat.cpu_time() else { continue };
            let before = seen.clocks.iter().find(|before| Arc::ptr_eq(&before.seat, &seat));
            blocked += usize::from(before.is_some_and(|before| {
                let elapsed = now.since(before.at);
                let stood_still = used.saturating_sub(before.used) < elapsed / BLOCKED_SHARE;
                stood_still && now.since(seat.began()) >= elapsed / 2 && !seat.wants_core()
            }));
            clocks.push(Reading { seat, at: now, used });
        }
        let all = blocked == clocks.len();
        seen.clocks = clocks;
        if now.since(seen.moved) >= self.0.patience() {
            seen.moved = now;
            self.0.extra.fetch_add(1, SeqCst);
        }
        // If none of them needs a core, the next ones may well be of the same kind.
        let for_blocked = if all { 2 * blocked } else { blocked };
        self.0.width.store(cores() + self.0.extra.load(SeqCst) + for_blocked, SeqCst);
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.watched.store(false, SeqCst);
    }
}
