//! How many jobs may run at once, if that depends on the processor: see [`Admission`].

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::seat::{Seat, Seats};
use crate::admission::Admission;
use crate::clock::Moment;
use crate::spin::cores;
use crate::sys::CpuClock;

/// How often the watcher looks.
pub(super) const TICK: Duration = Duration::from_millis(1);
/// A clock that advanced by less than one part in so many of a tick stood still.
const BLOCKED_SHARE: u32 = 16;
/// A job that has run for longer is old, even if recent jobs ran for a shorter time.
const YOUNGEST_OLD: Duration = Duration::from_millis(100);
/// A job that has run for longer is old, even if recent jobs ran for a longer time.
const OLDEST_YOUNG: Duration = Duration::from_secs(1);
/// How long a job takes as long as none has ended yet.
const UNKNOWN_PACE: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Debug)]
pub(super) struct Gate {
    /// How many jobs may run at once.
    width: AtomicUsize,
    /// How long recent jobs ran, in nanoseconds: each new one counts an eighth.
    pace: AtomicU64,
    /// Whether a worker watches.
    watched: AtomicBool,
    /// Locked by the one that watches.
    readings: Mutex<Readings>,
}

/// What the clocks of the busy seats said. Both lists are kept, so that a look allocates nothing.
#[derive(Debug, Default)]
struct Readings {
    last: Vec<Reading>,
    /// Empty between looks.
    new: Vec<Reading>,
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
            pace: AtomicU64::new(UNKNOWN_PACE.as_nanos() as u64),
            watched: AtomicBool::new(false),
            readings: Mutex::default(),
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
            self.width.store(cores(), SeqCst);
        }
    }

    /// The current worker watches from now on, unless another does.
    pub(super) fn watch(&self) -> Option<Watch<'_>> {
        let first = self.is_narrow() && !self.watched.swap(true, SeqCst);
        first.then(|| Watch(self))
    }

    /// How long a job runs before it counts as old.
    fn old_age(&self) -> Duration {
        let twice = Duration::from_nanos(self.pace.load(Relaxed)).saturating_mul(2);
        twice.clamp(YOUNGEST_OLD, OLDEST_YOUNG)
    }
}

/// The duty of one idle worker while jobs wait although there are threads.
pub(super) struct Watch<'a>(&'a Gate);

impl Watch<'_> {
    /// Looks at the clocks of the threads that do jobs, and lets in as many more as it finds blocked or old.
    pub(super) fn tick(&mut self, seats: &Seats) {
        let mut readings = self.0.readings.lock().unwrap_or_else(PoisonError::into_inner);
        let Readings { last, new } = &mut *readings;
        let old_age = self.0.old_age();
        let (mut blocked, mut old) = (0, 0);
        seats.each_busy(|seat| {
            let now = Moment::now();
            let age = now.since(seat.began());
            let Some(used) = seat.cpu_time() else { return };
            let before = last.iter().find(|before| Arc::ptr_eq(&before.seat, seat));
            let is_blocked = before.is_some_and(|before| {
                let elapsed = now.since(before.at);
                let stood_still = used.saturating_sub(before.used) < elapsed / BLOCKED_SHARE;
                stood_still && age >= elapsed / 2 && !seat.wants_core()
            });
            blocked += usize::from(is_blocked);
            old += usize::from(!is_blocked && age > old_age);
            new.push(Reading { seat: Arc::clone(seat), at: now, used });
        });
        // If none of them needs a core, the next ones may well be of the same kind.
        let for_blocked = if blocked == new.len() { 2 * blocked } else { blocked };
        mem::swap(last, new);
        new.clear();
        self.0.width.store(cores() + for_blocked + old, SeqCst);
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.watched.store(false, SeqCst);
    }
}
