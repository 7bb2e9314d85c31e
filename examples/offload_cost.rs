//! How long must a job be for offloading to pay on this machine?
//!
//! ```console
//! cargo run --release --example offload_cost
//! cargo run --release --example offload_cost -- --svg offload_cost.svg
//! ```
//!
//! A job that is called straight on the hub keeps everybody else on it waiting. Handed to the pool it
//! doesn't, but its caller waits for longer: another thread has to take it, and to tell that it is
//! done. Both are measured here for jobs from 1 µs to 100 ms.
//!
//! `options` is the command line, `work` a job of known length, `measure` the measurement, `pays`
//! the verdict, `report` the words and `picture` the drawing.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use indicatif::{ProgressBar, ProgressStyle};

mod command_line;
mod drawing;
#[path = "offload_cost/measure.rs"]
mod measure;
#[path = "offload_cost/options.rs"]
mod options;
#[path = "offload_cost/pays.rs"]
mod pays;
#[path = "offload_cost/picture.rs"]
mod picture;
#[path = "offload_cost/report.rs"]
mod report;
#[path = "offload_cost/work.rs"]
mod work;

use drawing::PictureFile;
use options::Options;
use report::Report;
use work::Pace;

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
    // First, what can fail.
    let picture = options.svg.as_deref().map(PictureFile::open).transpose()?;

    let lengths = options.lengths();
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} measurements")?;
    let progress = ProgressBar::new(u64::from(options.rounds()) * lengths.len() as u64).with_style(style);
    let costs = measure::measure(&lengths, options.rounds(), &Pace::calibrated(), || progress.inc(1));
    progress.finish_and_clear();

    let report = Report::new(options, &costs);
    if let Some(file) = picture {
        file.write(&picture::draw(&report))?;
    }
    if options.json {
        for object in report.json() {
            writeln!(io::stdout(), "{object}")?;
        }
    } else {
        write!(io::stdout(), "{report}")?;
    }
    Ok(())
}
