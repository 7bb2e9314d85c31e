//! Does this work run in parallel at all?
//!
//! Work pays off on a pool only if several threads can do it at the same time. Hashing, compression and image work can;
//! work that holds one lock throughout can't, however many threads it gets. The probe finds out by trying.

use std::panic::resume_unwind;
use std::sync::{Barrier, OnceLock};
use std::time::{Duration, Instant};
use std::{fmt, thread};

/// From this share of the possible gain on, work counts as parallel.
const PARALLEL_FROM: f64 = 0.6;
/// Below this share of the possible gain, work counts as serial.
const SERIAL_BELOW: f64 = 0.2;

/// What [`parallel_speedup`] measured.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Speedup {
    /// The work, `threads` times in sequence on the calling thread.
    pub sequential: Duration,
    /// The work, once on each of `threads` threads at the same time, until the last was done.
    pub parallel: Duration,
    /// `sequential / parallel`: how many times faster it went side by side.
    pub ratio: f64,
    /// What the ratio says, measured by what is possible here.
    pub verdict: Verdict,
    /// Cores this process may use, as [`available_parallelism`](thread::available_parallelism) tells; 1 if it can't.
    pub cores: usize,
    /// How many threads did the work.
    pub threads: usize,
}

/// What a [`Speedup`] says about the work.
///
/// `n` threads on `c` cores can be faster by the factor `p = min(n, c)` at best. The verdict is about the share of that gain
/// that was reached, `(ratio - 1) / (p - 1)`. If `p` is 1 there is nothing to gain, and the verdict is `Serial`
/// whatever the work: only a machine with more cores, or more threads, can tell.
///
/// ```
/// use greenroom_pool::probe::Verdict;
///
/// assert_eq!(Verdict::Serial.to_string(), "serial: more threads don't make it faster");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// At least 60 % of the possible gain: the work runs in parallel.
    Parallel,
    /// From 20 % to 60 %: the threads get in each other's way, by a lock, by memory, or because the cores are busy otherwise.
    Contended,
    /// Less than 20 %: the threads wait for each other.
    Serial,
}

impl Verdict {
    /// The verdict on `threads` threads that were faster by `ratio` on `cores` cores.
    fn on(ratio: f64, threads: usize, cores: usize) -> Verdict {
        let possible = threads.min(cores) as f64;
        let share = if possible > 1.0 { (ratio - 1.0) / (possible - 1.0) } else { 0.0 };
        if share >= PARALLEL_FROM {
            Verdict::Parallel
        } else if share >= SERIAL_BELOW {
            Verdict::Contended
        } else {
            Verdict::Serial
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Parallel => "parallel: it runs on several cores at once",
            Verdict::Contended => "contended: more threads make it faster, but less than they could",
            Verdict::Serial => "serial: more threads don't make it faster",
        })
    }
}

impl fmt::Display for Speedup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.2}x with {} threads on {} cores ({:.1?} in sequence, {:.1?} at once), {}",
            self.ratio, self.threads, self.cores, self.sequential, self.parallel, self.verdict
        )
    }
}

/// Runs `work` so many times in sequence, then once on each of so many OS threads at the same time, and compares.
///
/// Blocks for as long as that takes. The threads are fresh ones, of no pool; the clock starts when all of them are ready. A
/// single measurement is as steady as the machine is: let the work take some ten milliseconds at least, and measure
/// again if other programs were busy.
///
/// # Panics
/// If `threads` is 0, or if the system refuses one of the threads. A panic in `work` comes back to the caller, after the
/// other threads have ended.
///
/// ```
/// use greenroom_pool::probe::parallel_speedup;
/// use std::hint::black_box;
///
/// let speedup = parallel_speedup(2, || {
///     black_box((0..100_000_u64).fold(0, |sum, n| sum ^ black_box(n)));
/// });
/// println!("{speedup}");
/// assert_eq!(speedup.threads, 2);
/// ```
pub fn parallel_speedup(threads: usize, work: impl Fn() + Sync) -> Speedup {
    assert!(threads > 0, "a speedup needs at least 1 thread to measure");
    let start = Instant::now();
    for _ in 0..threads {
        work();
    }
    let sequential = start.elapsed();
    let parallel = time_at_once(threads, &work);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    // A clock too coarse for the work must not divide by zero.
    let ratio = sequential.as_secs_f64() / parallel.max(Duration::from_nanos(1)).as_secs_f64();
    Speedup { sequential, parallel, ratio, verdict: Verdict::on(ratio, threads, cores), cores, threads }
}

/// How long it takes so many threads to do the work once each, all at once.
fn time_at_once(threads: usize, work: &(impl Fn() + Sync)) -> Duration {
    // Whether to work at all: known when all threads, or not all, have been started.
    let go = OnceLock::new();
    let ready = Barrier::new(threads + 1);
    thread::scope(|scope| {
        let body = || {
            if *go.wait() {
                ready.wait();
                work();
            }
        };
        let mut started = Vec::with_capacity(threads);
        for _ in 0..threads {
            match thread::Builder::new().spawn_scoped(scope, body) {
                Ok(thread) => started.push(thread),
                Err(refusal) => {
                    let _ = go.set(false);
                    let number = started.len() + 1;
                    panic!("the system refuses thread {number} of {threads} for the probe: {refusal}; ask for fewer");
                }
            }
        }
        let _ = go.set(true);
        ready.wait();
        let start = Instant::now();
        let outcomes: Vec<_> = started.into_iter().map(|thread| thread.join()).collect();
        let taken = start.elapsed();
        for outcome in outcomes {
            outcome.unwrap_or_else(|payload| resume_unwind(payload));
        }
        taken
    })
}

#[cfg(test)]
mod tests {
    use super::Verdict::{self, *};

    #[test]
    fn the_verdict_is_relative_to_what_is_possible() {
        assert_eq!(Verdict::on(3.0, 4, 4), Parallel);
        assert_eq!(Verdict::on(1.9, 4, 2), Parallel);
        assert_eq!(Verdict::on(1.9, 4, 8), Contended);
        assert_eq!(Verdict::on(1.3, 2, 8), Contended);
        assert_eq!(Verdict::on(1.0, 4, 4), Serial);
        assert_eq!(Verdict::on(0.5, 4, 4), Serial);
    }

    #[test]
    fn one_core_or_one_thread_tells_nothing() {
        assert_eq!(Verdict::on(1.0, 4, 1), Serial);
        assert_eq!(Verdict::on(5.0, 1, 4), Serial);
    }
}
