//! The stall: what one password hash does to everyone else on an event loop, and how to undo it.
//!
//! ```console
//! cargo run --release --example stall
//! cargo run --release --example stall -- --jobs 10 --interval-ms 1 --svg stall.svg
//! ```
//!
//! A ticker greenlet sleeps 5 ms at a time. Beside it another greenlet hashes a password: straight
//! on the hub in one round, through `hub().threadpool().apply` in the next. What counts is the
//! longest gap between two ticks, never the number of ticks: those before and after the hash would
//! hide the stall.
//!
//! `options` is the command line, `hash` the work, `rounds` the measurement, `parallel` the probe
//! for what is worth offloading, `report` the words and `picture` the drawing (with `svg`'s pens).

#![allow(clippy::print_stderr)]

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};

mod command_line;
#[path = "stall/cpu.rs"]
mod cpu;
#[path = "stall/hash.rs"]
mod hash;
#[path = "stall/options.rs"]
mod options;
#[path = "stall/parallel.rs"]
mod parallel;
#[path = "stall/picture.rs"]
mod picture;
#[path = "stall/report.rs"]
mod report;
#[path = "stall/rounds.rs"]
mod rounds;
#[path = "stall/svg.rs"]
mod svg;

use hash::Hash;
use options::Options;
use parallel::Speedups;
use picture::Picture;
use report::Report;
use rounds::Rounds;

fn main() -> ExitCode {
    let options = match command_line::parse::<Options>() {
        Ok(options) => options,
        Err(code) => return code,
    };
    match run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => command_line::fail(&*error),
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    // First, what can fail: a path that can't be written, a hash that gives the wrong key.
    let picture = options.svg.as_deref().map(Picture::open).transpose()?;
    let hash = Hash::checked(options.iterations())?;

    let progress = progress_bar(options.rounds());
    let rounds = Rounds::measure(options, hash, || progress.inc(1))?;
    progress.set_message("probe for parallelism");
    let speedups = Speedups::probe(options.threads, hash);
    progress.finish_and_clear();

    if let Some(picture) = picture {
        picture.draw(options, &rounds)?;
    }
    let report = Report::new(options, &rounds, &speedups);
    if options.json {
        writeln!(io::stdout(), "{}", report.json())?;
    } else {
        write!(io::stdout(), "{report}")?;
    }
    Ok(())
}

/// On standard error, and only if that is a terminal.
fn progress_bar(rounds: u32) -> ProgressBar {
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} rounds {msg}");
    ProgressBar::new(rounds.into()).with_style(style.expect("the template is well formed"))
}
