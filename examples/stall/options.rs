//! The command line of `stall`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, value_parser};

use crate::hash::ITERATIONS;

const ROUNDS: u32 = 10;

/// For `--quick`: a hash that still takes six to ten intervals, so that its stall can't be overlooked.
const QUICK_ITERATIONS: u32 = 200_000;
const QUICK_ROUNDS: u32 = 3;

const COMPARE_ROUNDS: u32 = 5;
/// Ten of them, on two cores, take longer than ten intervals.
const QUICK_COMPARE_ITERATIONS: u32 = 100_000;

const AFTER_HELP: &str = "\
A ticker greenlet sleeps a few milliseconds at a time; beside it a password is hashed, straight on
the hub and through the hub's thread pool in turn. The pool has 10 threads, or GREENROOM_THREADS.

--compare offloads only, and changes what the hub and its pool are to the machine. It takes a minute or two.

Exit codes: 0, and 2 for a bad value.";

/// Shows what one password hash does to everyone else on an event loop, and how to undo it
#[derive(Parser)]
#[command(name = "stall", after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Iterations of PBKDF2-HMAC-SHA256 in one hash [default: 600000, with --quick fewer]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    iterations: Option<u32>,

    /// How long the ticker sleeps between two ticks. With --compare, 1 shows most
    #[arg(long, value_name = "MS", default_value_t = 5)]
    #[arg(value_parser = value_parser!(u64).range(1..=10_000))]
    pub(crate) interval_ms: u64,

    /// Hashes at once, each in a greenlet [default: 1; with --compare 1, 4, 10 and 40, with --quick too 1 and 10]
    ///
    /// From one for each core on they keep the machine busy; those beyond the pool's threads wait for one of them.
    #[arg(long, value_name = "K", value_parser = value_parser!(u32).range(1..=10_000))]
    jobs: Option<u32>,

    /// Compare settings of the hub and its pool, from those of gevent to all there is, beside 1 hash and more
    #[arg(long)]
    pub(crate) compare: bool,

    /// Threads of the probe that tells what runs in parallel
    #[arg(long, value_name = "N", default_value_t = 4)]
    #[arg(value_parser = value_parser!(u16).range(1..=1_000), conflicts_with = "compare")]
    pub(crate) threads: u16,

    /// Rounds of each kind, interleaved [default: 10, with --compare 5, with --quick 3]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,

    /// Draw the ticks of both kinds, on one time axis, into this file; with --compare the longest gaps
    #[arg(long, value_name = "PATH")]
    pub(crate) svg: Option<PathBuf>,

    /// Print one JSON object instead of text; with --compare one a line for each setting and number of hashes
    #[arg(long)]
    pub(crate) json: bool,

    /// A few seconds in all: few rounds, few iterations
    #[arg(long)]
    quick: bool,
}

impl Options {
    pub(crate) fn iterations(&self) -> u32 {
        let default = match (self.quick, self.compare) {
            (false, _) => ITERATIONS,
            (true, false) => QUICK_ITERATIONS,
            (true, true) => QUICK_COMPARE_ITERATIONS,
        };
        self.iterations.unwrap_or(default)
    }

    pub(crate) fn rounds(&self) -> u32 {
        let default = match (self.quick, self.compare) {
            (false, false) => ROUNDS,
            (false, true) => COMPARE_ROUNDS,
            (true, _) => QUICK_ROUNDS,
        };
        self.rounds.unwrap_or(default)
    }

    pub(crate) fn interval(&self) -> Duration {
        Duration::from_millis(self.interval_ms)
    }

    pub(crate) fn jobs(&self) -> u32 {
        self.jobs.unwrap_or(1)
    }

    /// The numbers of hashes to compare settings at.
    pub(crate) fn numbers_of_jobs(&self) -> Vec<u32> {
        match self.jobs {
            Some(jobs) => vec![jobs],
            None if self.quick => vec![1, 10],
            None => vec![1, 4, 10, 40],
        }
    }
}
