//! The command line of `offload_cost`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, value_parser};

const ROUNDS: u32 = 7;
const QUICK_ROUNDS: u32 = 3;

/// From the shortest job to the longest, in microseconds.
const POWERS: [u64; 6] = [1, 10, 100, 1_000, 10_000, 100_000];

const AFTER_HELP: &str = "\
Jobs of 1 µs to 100 ms are computed straight on the hub and through the hub's thread pool in turn: one
right after the other (hot), and each after a pause in which the threads fall asleep (cold).

Exit codes: 0, and 2 for a bad value.";

/// Tells how long a job must be for offloading to pay on this machine
#[derive(Parser)]
#[command(name = "offload_cost", after_help = AFTER_HELP)]
pub(crate) struct Options {
    /// Rounds over all lengths, of which the median counts [default: 7, with --quick 3]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=100_000))]
    rounds: Option<u32>,

    /// Draw round trips and gaps against the length of a job into this file
    #[arg(long, value_name = "PATH")]
    pub(crate) svg: Option<PathBuf>,

    /// Print one JSON object a line instead of text: one for each length, and the break-even
    #[arg(long)]
    pub(crate) json: bool,

    /// A few seconds in all: few lengths, few rounds
    #[arg(long)]
    quick: bool,
}

impl Options {
    pub(crate) fn rounds(&self) -> u32 {
        let default = if self.quick { QUICK_ROUNDS } else { ROUNDS };
        self.rounds.unwrap_or(default)
    }

    /// How long jobs are, ascending.
    pub(crate) fn lengths(&self) -> Vec<Duration> {
        let (last, powers) = POWERS.split_last().expect("there are some");
        let between = if self.quick { &[1][..] } else { &[1, 2, 5] };
        let lengths = powers.iter().flat_map(|power| between.iter().map(move |factor| power * factor));
        lengths.chain([*last]).map(Duration::from_micros).collect()
    }
}
