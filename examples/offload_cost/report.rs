//! The figures as a table with what they mean, and as JSON.

use std::fmt;
use std::thread;

use serde_json::{Value, json};

use crate::measure::{Cost, PAUSE};
use crate::options::Options;
use crate::pays::BreakEven;

/// Everything that is printed at the end.
pub(crate) struct Report<'a> {
    options: &'a Options,
    pub(crate) costs: &'a [Cost],
    pub(crate) break_even: BreakEven,
    pub(crate) cores: usize,
    pub(crate) rounds: u32,
}

/// Up to here, in microseconds, the overhead is larger than what a job's own length varies by.
const SHORT: f64 = 100.0;

impl Report<'_> {
    pub(crate) fn new<'a>(options: &'a Options, costs: &'a [Cost]) -> Report<'a> {
        Report {
            options,
            costs,
            break_even: BreakEven::of(costs),
            cores: thread::available_parallelism().map_or(1, usize::from),
            rounds: options.rounds(),
        }
    }

    /// An object for each length, and one for the break-even.
    pub(crate) fn json(&self) -> impl Iterator<Item = Value> {
        let Report { costs, ref break_even, cores, rounds, .. } = *self;
        let of_length = move |cost: &Cost| {
            json!({
                "job_us": cost.job,
                "inline_us": cost.inline,
                "hot_us": cost.hot,
                "cold_us": cost.cold,
                "overhead_hot_us": cost.overhead_hot,
                "overhead_cold_us": cost.overhead_cold,
                "gap_inline_us": cost.gap_inline,
                "gap_offloaded_us": cost.gap_offloaded,
                "rounds": rounds,
                "cores": cores,
            })
        };
        let last = json!({
            "break_even_us": break_even.hot,
            "break_even_cold_us": break_even.cold,
            "rounds": rounds,
            "cores": cores,
        });
        costs.iter().map(of_length).chain([last])
    }

    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { cores, rounds, .. } = self;
        writeln!(
            f,
            "Jobs that compute, called on the hub (inline) and offloaded to its pool, in turn;\n\
             the median of {rounds} {}, {cores} {}{}.\n\
             hot: one job right after the other. cold: after a pause of {} ms, so that the threads sleep.\n\
             gap: how long another greenlet waits that could run when the job comes.",
            if *rounds == 1 { "round" } else { "rounds" },
            if *cores == 1 { "core" } else { "cores" },
            if cfg!(debug_assertions) { ", dev profile: use --release" } else { "" },
            PAUSE.as_millis(),
        )
    }

    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<14}{:>30}{:>20}{:>20}", "", "round trip", "overhead", "gap")?;
        let names = ["inline", "hot", "cold", "hot", "cold", "inline", "offloaded"];
        line(f, "microseconds", names.map(str::to_owned))?;
        for cost in self.costs {
            let Cost { inline, hot, cold, overhead_hot, overhead_cold, gap_inline, gap_offloaded, .. } = *cost;
            let cells = [inline, hot, cold, overhead_hot, overhead_cold, gap_inline, gap_offloaded];
            line(f, &length(cost.job), cells.map(cell))?;
        }
        Ok(())
    }

    fn meaning(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { costs, break_even, .. } = self;
        writeln!(
            f,
            "Offloading pays when it spares another greenlet more waiting than it adds to the job: when the gap\n\
             inline, less the gap offloaded, is larger than the overhead. Of the lengths measured that is so"
        )?;
        let from = |from: Option<f64>| match from {
            Some(job) => format!("from {} on", length(job)),
            None => "for none".to_owned(),
        };
        writeln!(f, "  hot   {}\n  cold  {}", from(break_even.hot), from(break_even.cold))?;
        let short: Vec<_> = costs.iter().filter(|cost| cost.job <= SHORT).collect();
        let (Some(first), Some(last)) = (short.first(), short.last()) else { return Ok(()) };
        writeln!(
            f,
            "The overhead is {} µs hot and {} µs cold for a job of {}, {} µs and {} µs for one of {};\n\
             of much longer ones it drowns in how much they vary themselves.",
            cell(first.overhead_hot),
            cell(first.overhead_cold),
            length(first.job),
            cell(last.overhead_hot),
            cell(last.overhead_cold),
            length(last.job),
        )
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        writeln!(f)?;
        self.table(f)?;
        writeln!(f)?;
        self.meaning(f)?;
        writeln!(f)?;
        match &self.options.svg {
            Some(path) => writeln!(f, "Drawn into {}.", path.display()),
            None => writeln!(f, "--svg offload_cost.svg draws it."),
        }
    }
}

/// One of the table.
fn line(f: &mut fmt::Formatter<'_>, name: &str, cells: [String; 7]) -> fmt::Result {
    let [inline, hot, cold, overhead_hot, overhead_cold, gap_inline, gap_offloaded] = cells;
    write!(f, "{name:<14}{inline:>10}{hot:>10}{cold:>10}")?;
    writeln!(f, "{overhead_hot:>10}{overhead_cold:>10}{gap_inline:>10}{gap_offloaded:>10}")
}

/// Whole from 1,000 µs up, where a tenth says nothing.
fn cell(microseconds: f64) -> String {
    let digits = if microseconds.abs() < 1_000.0 { 1 } else { 0 };
    format!("{microseconds:.digits$}")
}

/// "5 µs", "20 ms".
pub(crate) fn length(microseconds: f64) -> String {
    if microseconds < 1_000.0 { format!("{microseconds} µs") } else { format!("{} ms", microseconds / 1_000.0) }
}
