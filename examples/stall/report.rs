//! The figures of all rounds, as a table with what it means, and as JSON.

use std::fmt;
use std::thread;
use std::time::Duration;

use greenroom::hub;
use greenroom::probe::{Speedup, Verdict};
use greenroom::stall::Gaps;
use serde_json::{Value, json};

use crate::figures::{cell, count, grouped, median, median_and_worst, milliseconds, percentile_of_all};
use crate::options::Options;
use crate::parallel::Speedups;
use crate::rounds::{Round, Rounds};

/// Everything that is printed at the end.
pub(crate) struct Report<'a> {
    options: &'a Options,
    speedups: &'a Speedups,
    cores: usize,
    pool_threads: usize,
    /// Of the longest gaps with no hash at all: median and worst.
    idle: [Duration; 2],
    direct: Figures,
    offloaded: Figures,
}

/// Of all rounds of one kind.
struct Figures {
    /// The median of the rounds' longest gaps.
    longest: Duration,
    /// The worst of them.
    worst: Duration,
    /// Of the gaps of all rounds together.
    p50: Duration,
    p99: Duration,
    /// Medians.
    request: Duration,
    cpu: Duration,
}

impl Figures {
    fn of(rounds: &[Round]) -> Figures {
        let [longest, worst] = median_and_worst(rounds.iter().map(|round| round.gaps.max));
        let gaps: Vec<&Gaps> = rounds.iter().map(|round| &round.gaps).collect();
        Figures {
            longest,
            worst,
            p50: percentile_of_all(&gaps, 0.5),
            p99: percentile_of_all(&gaps, 0.99),
            request: median(rounds.iter().map(|round| round.request).collect()),
            cpu: median(rounds.iter().map(|round| round.cpu).collect()),
        }
    }
}

impl Report<'_> {
    pub(crate) fn new<'a>(options: &'a Options, rounds: &Rounds, speedups: &'a Speedups) -> Report<'a> {
        Report {
            options,
            speedups,
            cores: thread::available_parallelism().map_or(1, usize::from),
            pool_threads: hub().threadpool().max_threads(),
            idle: median_and_worst(rounds.idle()),
            direct: Figures::of(&rounds.direct),
            offloaded: Figures::of(&rounds.offloaded),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let Report { options, speedups, idle, direct, offloaded, .. } = self;
        json!({
            "direct_max_ms": milliseconds(direct.longest),
            "direct_worst_ms": milliseconds(direct.worst),
            "direct_p99_ms": milliseconds(direct.p99),
            "direct_p50_ms": milliseconds(direct.p50),
            "offloaded_max_ms": milliseconds(offloaded.longest),
            "offloaded_worst_ms": milliseconds(offloaded.worst),
            "offloaded_p99_ms": milliseconds(offloaded.p99),
            "offloaded_p50_ms": milliseconds(offloaded.p50),
            "idle_max_ms": milliseconds(idle[0]),
            "idle_worst_ms": milliseconds(idle[1]),
            "ratio": direct.longest.div_duration_f64(offloaded.longest),
            "request_direct_ms": milliseconds(direct.request),
            "request_offloaded_ms": milliseconds(offloaded.request),
            "cpu_direct_ms": milliseconds(direct.cpu),
            "cpu_offloaded_ms": milliseconds(offloaded.cpu),
            "cpu_ratio": direct.cpu.div_duration_f64(offloaded.cpu),
            "speedup_pbkdf2": speedups.pbkdf2.ratio,
            "speedup_locked": speedups.locked.ratio,
            "speedup_threads": options.threads,
            "cores": self.cores,
            "pool_threads": self.pool_threads,
            "interval_ms": options.interval_ms,
            "iterations": options.iterations(),
            "jobs": options.jobs(),
            "rounds": options.rounds(),
        })
    }

    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { options, cores, pool_threads, .. } = self;
        if options.jobs() > 1 {
            write!(f, "{} at once of ", options.jobs())?;
        }
        writeln!(
            f,
            "PBKDF2-HMAC-SHA256, {} iterations, every key checked, beside a {} ms ticker;",
            grouped(options.iterations()),
            options.interval_ms,
        )?;
        writeln!(
            f,
            "{} of each kind in turn, {}, {}{}.",
            count(options.rounds() as usize, "round", "rounds"),
            count(*cores, "core", "cores"),
            count(*pool_threads, "pool thread", "pool threads"),
            if cfg!(debug_assertions) { ", dev profile: use --release" } else { "" },
        )
    }

    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { idle, direct, offloaded, .. } = self;
        let ratio = |of: fn(&Figures) -> Duration| format!("{:.2}x", of(direct).div_duration_f64(of(offloaded)));
        writeln!(f, "{:<20}{:>18}{:>19}", "", "longest gap", "all gaps")?;
        row(f, "milliseconds", ["median", "worst", "p50", "p99", "request", "CPU"])?;
        let [idle, idle_worst] = idle.map(cell);
        row(f, "no hash", [&idle, &idle_worst, "", "", "", ""])?;
        row(f, "on the hub", direct.cells())?;
        row(f, "offloaded", offloaded.cells())?;
        row(
            f,
            "hub / offloaded",
            [
                ratio(|it| it.longest),
                ratio(|it| it.worst),
                ratio(|it| it.p50),
                ratio(|it| it.p99),
                ratio(|it| it.request),
                ratio(|it| it.cpu),
            ],
        )?;
        row(f, "gevent, on the hub", ["64", "", "", "", "", ""])?;
        row(f, "gevent, offloaded", ["6", "", "", "", "", ""])?;
        writeln!(f, "(gevent 25.9.1 on CPython 3.11, another machine: one hash of 600,000 iterations)")?;
        if self.options.jobs() > 1 {
            writeln!(f, "(request: the slowest of {})", self.options.jobs())?;
        }
        if self.options.jobs() as usize > self.pool_threads {
            let (jobs, threads) = (self.options.jobs(), count(self.pool_threads, "thread", "threads"));
            writeln!(f, "({jobs} hashes, a pool of {threads}: offloaded, the others wait for one of them)")?;
        }
        Ok(())
    }

    fn probe(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { options: Options { threads, .. }, speedups, cores, .. } = self;
        writeln!(f, "What is worth offloading? Each run {threads} times, then on {threads} threads at once:")?;
        let mut line = |name, speedup: &Speedup| {
            let verdict = match speedup.verdict {
                _ if *cores == 1 || *threads == 1 => "can't be told from one core or one thread",
                _ if speedup.sequential < Duration::from_millis(10) => "too short to tell: take more iterations",
                Verdict::Parallel => "runs in parallel: worth it",
                Verdict::Contended => "runs in parallel in part",
                Verdict::Serial => "takes turns: no faster on threads",
            };
            writeln!(f, "{name:<30}{:>5.2}x  {verdict}", speedup.ratio)
        };
        line("PBKDF2", &speedups.pbkdf2)?;
        line("loop that holds one lock", &speedups.locked)
    }

    fn meaning(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { options, idle, direct, offloaded, .. } = self;
        let (work, request) = match options.jobs() {
            1 => ("the hash".to_owned(), "request"),
            jobs => (format!("{jobs} hashes"), "slowest request"),
        };
        let ms = |duration| format!("{:.1} ms", milliseconds(duration));
        if direct.longest <= options.interval() * 2 || offloaded.longest >= direct.longest {
            return writeln!(
                f,
                "In the median round others waited up to {} beside {work} on the hub, and up to {} beside {work}\n\
                 offloaded: so short a stall, offloading doesn't help.",
                ms(direct.longest),
                ms(offloaded.longest),
            );
        }
        let more_or_less = if offloaded.request < direct.request { "less" } else { "more" };
        writeln!(
            f,
            "In the median round, called straight on the hub, {work} kept everybody else waiting for up to {}.\n\
             Offloaded, nobody waited longer than {}; with no hash at all that is {}. The {request} took\n\
             {} {more_or_less}, and the CPU time is {:.2} times what it was: what offloading saves is everyone\n\
             else's waiting.",
            ms(direct.longest),
            ms(offloaded.longest),
            ms(idle[0]),
            ms(direct.request.abs_diff(offloaded.request)),
            offloaded.cpu.div_duration_f64(direct.cpu),
        )
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        writeln!(f)?;
        self.table(f)?;
        writeln!(f)?;
        self.probe(f)?;
        writeln!(f)?;
        self.meaning(f)?;
        writeln!(f)?;
        match &self.options.svg {
            Some(path) => writeln!(f, "Drawn into {}.", path.display()),
            None => writeln!(f, "--svg stall.svg draws it."),
        }
    }
}

/// One line of the table.
fn row<T: AsRef<str>>(f: &mut fmt::Formatter<'_>, name: &str, cells: [T; 6]) -> fmt::Result {
    let [longest, worst, p50, p99, request, cpu] = cells.each_ref().map(AsRef::as_ref);
    let line = format!("{name:<20}{longest:>9}{worst:>9}{p50:>10}{p99:>9}{request:>10}{cpu:>9}");
    writeln!(f, "{}", line.trim_end())
}

impl Figures {
    /// In milliseconds, in the order of the table's columns.
    fn cells(&self) -> [String; 6] {
        let Figures { longest, worst, p50, p99, request, cpu } = *self;
        [longest, worst, p50, p99, request, cpu].map(cell)
    }
}
