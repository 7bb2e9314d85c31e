//! The measurement: rounds of a ticker beside hashes, each kind of round in turn.

use std::ops::Range;
use std::time::{Duration, Instant};

use greenroom::stall::{Gaps, TickGaps};
use greenroom::{hub, join_all, sleep, spawn};

use crate::cpu;
use crate::hash::{Hash, Run, WrongKey};
use crate::options::Options;

/// How a greenlet hashes.
#[derive(Clone, Copy)]
enum Way {
    Direct,
    Offloaded,
}

impl Way {
    fn run(self, hash: Hash) -> Result<Run, WrongKey> {
        match self {
            Way::Direct => hash.run(),
            Way::Offloaded => hub().threadpool().apply(Hash::run, (hash,)),
        }
    }
}

/// What one round showed.
pub(crate) struct Round {
    /// Between two ticks.
    pub(crate) gaps: Gaps,
    /// From the arrival of a request to its key; of the slowest, when there are several.
    pub(crate) request: Duration,
    /// CPU time of the whole process.
    pub(crate) cpu: Duration,
    /// When each hash ran, on the clock of `gaps.timeline`.
    pub(crate) hashes: Vec<Range<Duration>>,
}

/// All rounds of each kind.
pub(crate) struct Rounds {
    /// Hashes called straight on the hub.
    pub(crate) direct: Vec<Round>,
    /// Hashes handed to the hub's thread pool.
    pub(crate) offloaded: Vec<Round>,
}

impl Rounds {
    /// Measures direct, offloaded, direct … so that a slow spell of the machine meets both. Calls `done` after each pair.
    pub(crate) fn measure(options: &Options, hash: Hash, done: impl Fn()) -> Result<Rounds, WrongKey> {
        let mut rounds = Rounds { direct: vec![], offloaded: vec![] };
        for _ in 0..options.rounds() {
            rounds.direct.push(beside_ticker(Way::Direct, options, hash)?);
            rounds.offloaded.push(beside_ticker(Way::Offloaded, options, hash)?);
            done();
        }
        Ok(rounds)
    }

    /// The longest gap with no hash at all, of each round.
    pub(crate) fn idle(&self) -> impl Iterator<Item = Duration> {
        self.direct.iter().chain(&self.offloaded).map(|round| round.gaps.idle_floor)
    }
}

/// Hashes beside a ticker, with a few quiet intervals before and after it.
fn beside_ticker(way: Way, options: &Options, hash: Hash) -> Result<Round, WrongKey> {
    // Half an interval more than a whole number, so that the work begins between two ticks.
    let quiet = options.interval() * 13 / 2;
    let mut start = Instant::now();
    let mut request = Duration::ZERO;
    let mut runs = Ok(vec![]);

    let cpu_before = cpu::process_time();
    let gaps = TickGaps::measure(options.interval(), || {
        start = Instant::now();
        sleep(quiet);
        let arrival = Instant::now();
        runs = requests(way, options.jobs, hash);
        request = arrival.elapsed();
        sleep(quiet);
    });
    let cpu = cpu::process_time() - cpu_before;

    let hashes = runs?.iter().map(|run| run.start - start..run.end - start).collect();
    Ok(Round { gaps, request, cpu, hashes })
}

/// Hashes in `jobs` greenlets at once, and returns when all are done.
fn requests(way: Way, jobs: u32, hash: Hash) -> Result<Vec<Run>, WrongKey> {
    let greenlets: Vec<_> = (0..jobs).map(|_| spawn(move || way.run(hash))).collect();
    let ended = join_all(greenlets).into_iter();
    ended.map(|greenlet| greenlet.expect("hashing does not panic")).collect()
}
