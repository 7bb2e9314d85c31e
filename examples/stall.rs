//! The stall: what one password hash does to everyone else on an event loop, and how to undo it.
//!
//! ```console
//! cargo run --release --example stall
//! cargo run --release --example stall -- --jobs 10 --interval-ms 1 --svg stall.svg
//! cargo run --release --example stall -- --compare --interval-ms 1 --svg compare.svg
//! ```
//!
//! A ticker greenlet sleeps 5 ms at a time. Beside it another greenlet hashes a password: straight
//! on the hub in one round, through `hub().threadpool().apply` in the next. What counts is the
//! longest gap between two ticks, never the number of ticks: those before and after the hash would
//! hide the stall.
//!
//! `--compare` offloads only, and compares the settings that a hub and its pool can have.
//!
//! `options` is the command line, `hash` the work, `rounds` the measurement, `parallel` the probe
//! for what is worth offloading, `figures` what rounds come to, `report` the words and `picture` the
//! drawing. Of the comparison, `profile` are the settings, `compare` the measurement,
//! `compare_report` the words and `compare_chart` the drawing.

#![allow(clippy::print_stderr)]

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use greenroom::hub;
use indicatif::{ProgressBar, ProgressStyle};

mod command_line;
#[path = "stall/compare.rs"]
mod compare;
#[path = "stall/compare_chart.rs"]
mod compare_chart;
#[path = "stall/compare_report.rs"]
mod compare_report;
#[path = "stall/cpu.rs"]
mod cpu;
mod drawing;
#[path = "stall/figures.rs"]
mod figures;
#[path = "stall/hash.rs"]
mod hash;
#[path = "stall/options.rs"]
mod options;
#[path = "stall/parallel.rs"]
mod parallel;
#[path = "stall/picture.rs"]
mod picture;
#[path = "stall/profile.rs"]
mod profile;
#[path = "stall/report.rs"]
mod report;
#[path = "stall/rounds.rs"]
mod rounds;

use compare::Comparison;
use compare_report::CompareReport;
use drawing::PictureFile;
use hash::Hash;
use options::Options;
use parallel::Speedups;
use report::Report;
use rounds::Rounds;

fn main() -> ExitCode {
    let options = match command_line::parse::<Options>() {
        Ok(options) => options,
        Err(code) => return code,
    };
    let done = if options.compare { compare(&options) } else { run(&options) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => command_line::fail(&*error),
    }
}

fn run(options: &Options) -> Result<(), Box<dyn Error>> {
    // First, what can fail: a path that can't be written, a hash that gives the wrong key.
    let picture = options.svg.as_deref().map(PictureFile::open).transpose()?;
    let hash = Hash::checked(options.iterations())?;

    let progress = progress_bar("rounds", options.rounds());
    let rounds = Rounds::measure(options, hash, || progress.inc(1))?;
    progress.set_message("probe for parallelism");
    let speedups = Speedups::probe(options.threads, hash);
    progress.finish_and_clear();

    if let Some(file) = picture {
        file.write(&picture::draw(options, &rounds))?;
    }
    let report = Report::new(options, &rounds, &speedups);
    if options.json {
        writeln!(io::stdout(), "{}", report.json())?;
    } else {
        write!(io::stdout(), "{report}")?;
    }
    Ok(())
}

fn compare(options: &Options) -> Result<(), Box<dyn Error>> {
    let picture = options.svg.as_deref().map(PictureFile::open).transpose()?;
    let hash = Hash::checked(options.iterations())?;
    // Each profile has a thread of its own, which would inherit the slice of this thread's hub.
    hub().shutdown();

    let progress = progress_bar("measurements", Comparison::steps(options));
    let comparison = Comparison::measure(options, hash, || progress.inc(1))?;
    progress.finish_and_clear();

    if let Some(file) = picture {
        file.write(&compare_chart::draw(options, &comparison))?;
    }
    let report = CompareReport { options, comparison: &comparison };
    if options.json {
        for row in report.json() {
            writeln!(io::stdout(), "{row}")?;
        }
    } else {
        write!(io::stdout(), "{report}")?;
    }
    Ok(())
}

/// On standard error, and only if that is a terminal.
fn progress_bar(of: &str, steps: u32) -> ProgressBar {
    let style = ProgressStyle::with_template(&format!("{{bar:30}} {{pos}}/{{len}} {of} {{msg}}"));
    ProgressBar::new(steps.into()).with_style(style.expect("the template is well formed"))
}
