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
pub(crate) enum Way {
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
    /// The mean of the requests.
    pub(crate) mean_request: Duration,
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
            rounds.direct.push(beside_ticker(Way::Direct, options.interval(), options.jobs(), hash)?);
            rounds.offloaded.push(beside_ticker(Way::Offloaded, options.interval(), options.jobs(), hash)?);
            done();
        }
        Ok(rounds)
    }

    /// The longest gap with no hash at all, of each round.
    pub(crate) fn idle(&self) -> impl Iterator<Item = Duration> {
        self.direct.iter().chain(&self.offloaded).map(|round| round.gaps.idle_floor)
    }
}

/// Hashes so many times at once beside a ticker, with a few quiet intervals before and after it.
pub(crate) fn beside_ticker(way: Way, interval: Duration, jobs: u32, hash: Hash) -> Result<Round, WrongKey> {
    // Half an interval more than a whole number, so that the work begins between two ticks.
    let quiet = interval * 13 / 2;
    let mut start = Instant::now();
    let mut request = Duration::ZERO;
    let mut requests = Ok(vec![]);

    let cpu_before = cpu::process_time();
    let gaps = TickGaps::measure(interval, || {
        start = Instant::now();
        sleep(quiet);
        let arrival = Instant::now();
        requests = at_once(way, jobs, hash);
        request = arrival.elapsed();
        sleep(quiet);
    });
    let cpu = cpu::process_time() - cpu_before;

    let requests = requests?;
    let mean_request = requests.iter().map(|request| request.took).sum::<Duration>() / jobs;
    let hashes = requests.iter().map(|request| request.run.start - start..request.run.end - start).collect();
    Ok(Round { gaps, request, mean_request, cpu, hashes })
}

/// What one greenlet asked for and got.
pub(crate) struct Request {
    run: Run,
    /// From its arrival to its key.
    took: Duration,
}

/// Hashes in `jobs` greenlets at once, and returns when all are done.
pub(crate) fn at_once(way: Way, jobs: u32, hash: Hash) -> Result<Vec<Request>, WrongKey> {
    let arrival = Instant::now();
    let request = move || way.run(hash).map(|run| Request { run, took: arrival.elapsed() });
    let ended = join_all((0..jobs).map(|_| spawn(request))).into_iter();
    ended.map(|greenlet| greenlet.expect("hashing does not panic")).collect()
}
