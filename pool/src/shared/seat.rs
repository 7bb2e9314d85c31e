//! What each worker notes about the jobs it does, so that no two of them write to one place.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::clock::Moment;
use crate::job::Outcome;
use crate::stats::Histogram;
use crate::sys::CpuClock;

/// The seats of a pool.
#[derive(Debug, Default)]
pub(super) struct Seats {
    taken: Mutex<Vec<Arc<Seat>>>,
    /// What those noted who are gone, and what happened at no seat.
    rest: Mutex<Record>,
}

/// One thread that does jobs.
#[derive(Debug)]
pub(super) struct Seat {
    record: Mutex<Record>,
    /// Whether its thread may have claimed a job and not yet taken it out of the queue.
    receiving: AtomicBool,
    busy: AtomicBool,
    /// When its last job began; 0 before the first.
    began: AtomicU64,
    clock: Option<CpuClock>,
}

/// What became of jobs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) completed: u64,
    pub(crate) cancelled: u64,
    pub(crate) waits: Histogram,
    pub(crate) runs: Histogram,
}

/// A seat that is taken, given up when dropped.
pub(super) struct Taken<'a> {
    seats: &'a Seats,
    pub(super) seat: Arc<Seat>,
}

impl Seats {
    /// For the current thread.
    pub(super) fn take(&self) -> Taken<'_> {
        let seat = Arc::new(Seat {
            record: Mutex::default(),
            receiving: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            began: AtomicU64::new(0),
            clock: CpuClock::of_this_thread(),
        });
        lock(&self.taken).push(Arc::clone(&seat));
        Taken { seats: self, seat }
    }

    /// A job was cancelled.
    pub(super) fn cancelled(&self) {
        lock(&self.rest).cancelled += 1;
    }

    /// Waits until whoever has claimed a job has it. Only in a closed pool, where nobody claims another.
    pub(super) fn wait_for_receivers(&self) {
        let receiving = || lock(&self.taken).iter().any(|seat| seat.receiving.load(SeqCst));
        while receiving() {
            thread::yield_now(); // it is a matter of nanoseconds, unless the kernel has taken its core away
        }
    }

    /// Calls `look` with each that does a job.
    pub(super) fn each_busy(&self, look: impl FnMut(&Arc<Seat>)) {
        lock(&self.taken).iter().filter(|seat| seat.busy.load(Relaxed)).for_each(look);
    }

    /// All that was noted so far.
    pub(super) fn sum(&self) -> Record {
        let taken = lock(&self.taken);
        let mut sum = lock(&self.rest).clone();
        taken.iter().for_each(|seat| sum.add(&lock(&seat.record)));
        sum
    }
}

impl Seat {
    /// Whether its thread may claim a job now, or has claimed one that it hasn't taken out of the queue.
    pub(super) fn receives(&self, receiving: bool) {
        self.receiving.store(receiving, SeqCst);
    }

    pub(super) fn begins(&self, now: Moment) {
        self.began.store(now.nanos(), Relaxed);
        self.busy.store(true, Relaxed);
    }

    pub(super) fn ends(&self, outcome: Outcome, waited: Duration, ran: Duration) {
        self.busy.store(false, Relaxed);
        let mut record = lock(&self.record);
        match outcome {
            Outcome::Ran => {
                record.completed += 1;
                record.waits.record(waited);
                record.runs.record(ran);
            }
            Outcome::NeverRan => record.cancelled += 1,
        }
    }

    /// When its last job began.
    pub(super) fn began(&self) -> Moment {
        Moment::from_nanos(self.began.load(Relaxed))
    }

    /// Whether its thread runs or would if it had a core. No if that can't be told.
    pub(super) fn wants_core(&self) -> bool {
        self.clock.as_ref().is_some_and(CpuClock::wants_core)
    }

    /// How much CPU time its thread has used. None if that can't be told.
    pub(super) fn cpu_time(&self) -> Option<Duration> {
        self.clock.as_ref()?.read()
    }
}

impl Record {
    fn add(&mut self, other: &Record) {
        self.completed += other.completed;
        self.cancelled += other.cancelled;
        self.waits.add(&other.waits);
        self.runs.add(&other.runs);
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut taken = lock(&self.seats.taken);
        taken.retain(|seat| !Arc::ptr_eq(seat, &self.seat));
        lock(&self.seats.rest).add(&lock(&self.seat.record));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
