//! The word: all the numbers of a pool that must agree, in one atomic.
//!
//! ```text
//! bit  63      62       48..62   34..48   20..34  0..20
//!      closed  retired  max      threads  idle    queued
//! ```
//!
//! Each transition is one read-modify-write, so each sees the others whole. README.md says what they keep true.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The most threads a pool can have.
pub(crate) const THREADS_LIMIT: usize = (1 << 14) - 1;
/// The most jobs a queue can hold.
pub(crate) const QUEUE_LIMIT: usize = (1 << 20) - 1;

const QUEUED: u64 = 1;
const IDLE: u64 = 1 << 20;
const THREAD: u64 = 1 << 34;
const MAX: u64 = 1 << 48;
const RETIRED: u64 = 1 << 62;
const CLOSED: u64 = 1 << 63;

/// One value of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(u64);

impl Word {
    fn new(max: usize) -> Word {
        Word(max as u64 * MAX)
    }

    fn field(self, unit: u64, limit: usize) -> usize {
        (self.0 / unit) as usize & limit
    }

    /// Jobs that no worker has taken yet.
    pub(crate) fn queued(self) -> usize {
        self.field(QUEUED, QUEUE_LIMIT)
    }

    /// Workers without a job, those just starting included.
    pub(crate) fn idle(self) -> usize {
        self.field(IDLE, THREADS_LIMIT)
    }

    /// Workers, those just starting included.
    pub(crate) fn threads(self) -> usize {
        self.field(THREAD, THREADS_LIMIT)
    }

    /// The most workers wanted.
    pub(crate) fn max(self) -> usize {
        self.field(MAX, THREADS_LIMIT)
    }

    /// Was the pool shut down?
    pub(crate) fn is_closed(self) -> bool {
        self.0 & CLOSED != 0
    }

    /// Are all handles to the pool gone?
    fn is_retired(self) -> bool {
        self.0 & RETIRED != 0
    }

    /// Is nothing queued or running?
    pub(crate) fn is_quiet(self) -> bool {
        self.queued() == 0 && self.threads() == self.idle()
    }

    /// How many workers there are beyond what is wanted.
    pub(crate) fn surplus(self) -> usize {
        let wanted = if self.is_closed() || self.is_retired() && self.queued() == 0 { 0 } else { self.max() };
        self.threads().saturating_sub(wanted)
    }

    /// Workers with a job.
    pub(crate) fn running(self) -> usize {
        self.threads() - self.idle()
    }

    /// How many of the queued jobs may be taken while at most `width` may run.
    pub(crate) fn admitted(self, width: usize) -> usize {
        if self.is_closed() { 0 } else { self.queued().min(width.saturating_sub(self.running())) }
    }

    /// How many workers must be started so that each job that may be taken has an idle one, as far as `max` allows. While
    /// there are queued jobs and none of them may be taken, one idle worker watches.
    fn missing(self, width: usize) -> usize {
        let wanted = self.admitted(width).max(usize::from(self.queued() > 0)).saturating_sub(self.idle());
        if self.is_closed() { 0 } else { wanted.min(self.max().saturating_sub(self.threads())) }
    }

    /// One more job, and a worker for it if none is idle. True if that worker has to be started. None if the pool is closed.
    fn submit(self, width: usize) -> Option<(Word, bool)> {
        if self.is_closed() {
            return None;
        }
        let (word, started) = Word(self.0 + QUEUED).staffed(width, 1);
        Some((word, started > 0))
    }

    /// An idle worker takes a job, if it may.
    fn claim(self, width: usize) -> Option<Word> {
        (self.surplus() == 0 && self.admitted(width) > 0).then(|| Word(self.0 - QUEUED - IDLE))
    }

    /// A worker has done its job. Either it takes the next, or it is idle.
    fn done(self, width: usize) -> Word {
        let idle = Word(self.0 + IDLE);
        idle.claim(width).unwrap_or(idle)
    }

    /// With missing workers counted as idle, `most` at most, and how many these are.
    fn staffed(self, width: usize, most: usize) -> (Word, usize) {
        let started = self.missing(width).min(most);
        (Word(self.0 + started as u64 * (THREAD + IDLE)), started)
    }

    /// With another `max`, and as many workers more as have to be started for it.
    fn resize(self, max: usize, width: usize) -> (Word, usize) {
        Word(self.0 - self.max() as u64 * MAX + max as u64 * MAX).staffed(width, THREADS_LIMIT)
    }

    /// Without one idle worker, if it isn't needed: there are too many, or nothing is queued and it is `tired` of waiting.
    fn leave(self, tired: bool) -> Option<Word> {
        let may_leave = self.surplus() > 0 || tired && self.queued() == 0;
        may_leave.then(|| self.less_one_idle())
    }

    /// Without one idle worker, unless queued jobs would have no worker left.
    fn yield_seat(self) -> Option<Word> {
        let needed = self.threads() == 1 && self.queued() > 0 && self.surplus() == 0;
        (!needed).then(|| self.less_one_idle())
    }

    fn less_one_idle(self) -> Word {
        Word(self.0 - THREAD - IDLE)
    }
}

/// The word of a pool. On cache lines of its own, for everybody writes to it.
#[repr(align(128))]
#[derive(Debug)]
pub(crate) struct State(AtomicU64);

impl State {
    pub(crate) fn new(max: usize) -> State {
        State(AtomicU64::new(Word::new(max).0))
    }

    pub(crate) fn load(&self) -> Word {
        Word(self.0.load(SeqCst))
    }

    /// Counts a job that has been sent as queued. True if a worker was counted for it and must be started. `Err`: the pool is
    /// closed, and the job isn't counted.
    pub(crate) fn submit(&self, width: usize) -> Result<bool, ()> {
        self.change(|word| word.submit(width).ok_or(()))
    }

    /// An idle worker takes a job, if it may. Returns the word after, if it has.
    pub(crate) fn claim(&self, width: usize) -> Option<Word> {
        self.change(|word| word.claim(width).map(|word| (word, word)).ok_or(())).ok()
    }

    /// A worker has done its job. Returns the word after, and whether it has taken the next.
    pub(crate) fn done(&self, width: usize) -> (Word, bool) {
        let step = |word: Word| {
            let after = word.done(width);
            Ok::<_, Infallible>((after, (after, after.idle() == word.idle())))
        };
        self.change(step).unwrap_or_else(|never| match never {})
    }

    /// Takes all queued jobs out of the count, to cancel them. Returns how many these are.
    pub(crate) fn clear(&self) -> usize {
        Word(self.0.fetch_and(!(QUEUED * QUEUE_LIMIT as u64), SeqCst)).queued()
    }

    /// An idle worker leaves if it isn't needed. Returns the word after, if it left.
    pub(crate) fn leave(&self, tired: bool) -> Option<Word> {
        self.change(|word| word.leave(tired).map(|word| (word, word)).ok_or(())).ok()
    }

    /// An idle worker leaves unless queued jobs would have no worker left. Returns the word after, if it left.
    pub(crate) fn yield_seat(&self) -> Option<Word> {
        self.change(|word| word.yield_seat().map(|word| (word, word)).ok_or(())).ok()
    }

    /// Changes `max`. Returns the word after and how many workers were counted and must be started.
    pub(crate) fn resize(&self, max: usize, width: usize) -> (Word, usize) {
        self.restaff(|word| word.resize(max, width))
    }

    /// Counts the workers that are missing. Returns how many must be started.
    pub(crate) fn staff(&self, width: usize) -> usize {
        self.restaff(|word| word.staffed(width, THREADS_LIMIT)).1
    }

    fn restaff(&self, step: impl Fn(Word) -> (Word, usize)) -> (Word, usize) {
        let step = |word| {
            let (word, started) = step(word);
            Ok::<_, Infallible>((word, (word, started)))
        };
        self.change(step).unwrap_or_else(|never| match never {})
    }

    /// Marks the pool as shut down.
    pub(crate) fn close(&self) {
        self.0.fetch_or(CLOSED, SeqCst);
    }

    /// Marks the pool as left by all its handles. Returns the word after.
    pub(crate) fn retire(&self) -> Word {
        Word(self.0.fetch_or(RETIRED, SeqCst) | RETIRED)
    }

    /// Replaces the word by what `step` makes of it, unless it refuses.
    fn change<T, E>(&self, step: impl Fn(Word) -> Result<(Word, T), E>) -> Result<T, E> {
        let mut old = self.0.load(SeqCst);
        loop {
            let (new, answer) = step(Word(old))?;
            match self.0.compare_exchange_weak(old, new.0, SeqCst, SeqCst) {
                Ok(_) => return Ok(answer),
                Err(now) => old = now,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever happens in whatever order, a queued job that may run has a worker that will come for it, and one that
        /// may not has one that watches.
        #[test]
        fn no_queued_job_is_left_alone(
            steps in proptest::collection::vec((0..8_u8, 0..5_usize), 1..200),
            width in prop_oneof![Just(usize::MAX), 1..4_usize],
        ) {
            let state = State::new(2);
            for (step, n) in steps {
                let word = state.load();
                match step {
                    0..=2 if word.queued() < 6 => drop(state.submit(width)),
                    3 if word.idle() > 0 => {
                        let claimed = state.claim(width);
                        prop_assert!(claimed.is_none_or(|after| after.running() <= width && after.running() == word.running() + 1));
                        if claimed.is_some_and(|after| after.idle() == 0) {
                            state.staff(width);
                        }
                    }
                    4 if word.running() > 0 => {
                        let (after, again) = state.done(width);
                        prop_assert_eq!(after.running(), word.running() - usize::from(!again));
                        prop_assert_eq!(after.queued(), word.queued() - usize::from(again));
                    }
                    5 if word.idle() > 0 => drop(state.leave(n > 2)),
                    6 => drop(state.resize(n, width)),
                    7 if word.idle() > 0 => drop(state.yield_seat()),
                    _ => {}
                }
                let word = state.load();
                prop_assert!(word.idle() <= word.threads());
                prop_assert!(word.queued() <= 6);
                prop_assert!(word.queued() == 0 || word.max() == 0 || word.threads() > 0, "{word:?}");
                if word.threads() == 0 {
                    prop_assert_eq!(word.idle(), 0);
                }
            }
        }
    }

    #[test]
    fn the_fields_hold_their_limits_side_by_side() {
        let state = State::new(THREADS_LIMIT);
        for _ in 0..THREADS_LIMIT + 10 {
            state.submit(usize::MAX).unwrap();
        }
        let word = state.load();
        let counts = (word.max(), word.threads(), word.idle(), word.queued());
        assert_eq!(counts, (THREADS_LIMIT, THREADS_LIMIT, THREADS_LIMIT, THREADS_LIMIT + 10));
        assert!(!word.is_closed());
    }
}
