//! The comparison: every profile beside every number of hashes, each in turn.

use std::thread;
use std::time::Duration;

use greenroom::hub;
use greenroom::stall::Gaps;

use crate::figures::{median, median_and_worst, percentile_of_all};
use crate::hash::{Hash, WrongKey};
use crate::options::Options;
use crate::profile::{PROFILES, Profile};
use crate::rounds::{Round, Way, at_once, beside_ticker};

/// What was measured, in the order of the numbers of hashes, then of the profiles.
pub(crate) struct Comparison {
    pub(crate) rows: Vec<Row>,
    /// One hash with the machine to itself.
    pub(crate) alone: Duration,
    /// The longest gaps with no hash at all: median and worst.
    pub(crate) idle: [Duration; 2],
    pub(crate) cores: usize,
    /// Of a pool.
    pub(crate) threads: usize,
}

/// One profile beside one number of hashes, over all rounds.
pub(crate) struct Row {
    pub(crate) profile: &'static Profile,
    pub(crate) jobs: u32,
    /// The median of the rounds' longest gaps.
    pub(crate) longest: Duration,
    /// The worst of them.
    pub(crate) worst: Duration,
    /// Of the gaps of all rounds together.
    pub(crate) p999: Duration,
    pub(crate) p50: Duration,
    /// Until all hashes are done; the median.
    pub(crate) done: Duration,
    /// The mean of a hash, from its request to its key; the median.
    pub(crate) latency: Duration,
}

impl Comparison {
    /// How many measurements it takes.
    pub(crate) fn steps(options: &Options) -> u32 {
        options.rounds() * options.numbers_of_jobs().len() as u32 * PROFILES.len() as u32
    }

    /// Calls `done` after each measurement. The calling thread must have no hub.
    pub(crate) fn measure(options: &Options, hash: Hash, done: impl Fn()) -> Result<Comparison, WrongKey> {
        let numbers = options.numbers_of_jobs();
        let cells = numbers.iter().flat_map(|&jobs| PROFILES.iter().map(move |profile| (profile, jobs)));
        let mut cells: Vec<(&Profile, u32, Vec<Round>)> =
            cells.map(|(profile, jobs)| (profile, jobs, vec![])).collect();
        let mut alone = vec![];
        for _ in 0..options.rounds() {
            let run = hash.run()?;
            alone.push(run.end - run.start);
            for (profile, jobs, rounds) in &mut cells {
                rounds.push(profile.run(|| {
                    warm_up(*jobs, hash)?;
                    beside_ticker(Way::Offloaded, options.interval(), *jobs, hash)
                })?);
                done();
            }
        }
        let idle = cells.iter().flat_map(|(.., rounds)| rounds.iter().map(|round| round.gaps.idle_floor));
        let idle = median_and_worst(idle);
        let rows = cells.into_iter().map(|(profile, jobs, rounds)| Row::of(profile, jobs, &rounds)).collect();
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = PROFILES[0].run(|| hub().threadpool().max_threads());
        Ok(Comparison { rows, alone: median(alone), idle, cores, threads })
    }
}

impl Row {
    fn of(profile: &'static Profile, jobs: u32, rounds: &[Round]) -> Row {
        let [longest, worst] = median_and_worst(rounds.iter().map(|round| round.gaps.max));
        let gaps: Vec<&Gaps> = rounds.iter().map(|round| &round.gaps).collect();
        Row {
            profile,
            jobs,
            longest,
            worst,
            p999: percentile_of_all(&gaps, 0.999),
            p50: percentile_of_all(&gaps, 0.5),
            done: median(rounds.iter().map(|round| round.request).collect()),
            latency: median(rounds.iter().map(|round| round.mean_request).collect()),
        }
    }
}

/// Starts the threads of this thread's pool, and shows it what kind of jobs will come.
fn warm_up(jobs: u32, hash: Hash) -> Result<(), WrongKey> {
    let threads = u32::try_from(hub().threadpool().max_threads()).unwrap_or(u32::MAX);
    at_once(Way::Offloaded, jobs.min(threads), hash).map(drop)
}
