//! The comparison as a table with what it means, and as JSON.

use std::fmt;

use serde_json::{Value, json};

use crate::compare::{Comparison, Row};
use crate::figures::{cell, count, grouped, milliseconds};
use crate::options::Options;
use crate::profile::{AS_GEVENT, DEFAULT, PROFILES};

/// What is printed at the end of a comparison.
pub(crate) struct CompareReport<'a> {
    pub(crate) options: &'a Options,
    pub(crate) comparison: &'a Comparison,
}

impl CompareReport<'_> {
    /// An object for each row.
    pub(crate) fn json(&self) -> impl Iterator<Item = Value> {
        let CompareReport { options, comparison } = self;
        comparison.rows.iter().map(|row| {
            json!({
                "profile": row.profile.name,
                "jobs": row.jobs,
                "longest_ms": milliseconds(row.longest),
                "worst_ms": milliseconds(row.worst),
                "p999_ms": milliseconds(row.p999),
                "p50_ms": milliseconds(row.p50),
                "done_ms": milliseconds(row.done),
                "mean_latency_ms": milliseconds(row.latency),
                "rounds": options.rounds(),
                "cores": comparison.cores,
                "interval_ms": options.interval_ms,
                "iterations": options.iterations(),
            })
        })
    }

    fn head(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CompareReport { options, comparison } = self;
        writeln!(
            f,
            "PBKDF2-HMAC-SHA256, {} iterations, every key checked, all offloaded, beside a {} ms ticker;\n\
             {} of each kind in turn, {}, {} in a pool{}.\n\
             One hash alone takes {} ms. With no hash at all the longest gap is {} ms, {} at worst.",
            grouped(options.iterations()),
            options.interval_ms,
            count(options.rounds() as usize, "round", "rounds"),
            count(comparison.cores, "core", "cores"),
            count(comparison.threads, "thread", "threads"),
            if cfg!(debug_assertions) { "; dev profile: use --release" } else { "" },
            cell(comparison.alone),
            cell(comparison.idle[0]),
            cell(comparison.idle[1]),
        )
    }

    fn table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<20}{:>18}{:>18}{:>20}", "", "longest gap", "all gaps", "hashes")?;
        line(f, "milliseconds", ["median", "worst", "p50", "p99.9", "all done", "mean"])?;
        for group in self.comparison.rows.chunk_by(|a, b| a.jobs == b.jobs) {
            writeln!(f, "{}", count(group[0].jobs as usize, "hash", "hashes at once"))?;
            for row in group {
                let Row { longest, worst, p50, p999, done, latency, .. } = *row;
                line(f, &format!("  {}", row.profile.name), [longest, worst, p50, p999, done, latency].map(cell))?;
            }
        }
        writeln!(f, "(mean: of a hash, from its request to its key)")
    }

    /// What the names stand for.
    fn profiles(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        PROFILES.iter().try_for_each(|profile| writeln!(f, "{:<16}{}", profile.name, profile.about))
    }

    /// Of the largest number of hashes.
    fn meaning(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = &self.comparison.rows;
        let last = rows.last().expect("there is at least one number of hashes");
        let find = |name| rows.iter().find(|row| row.jobs == last.jobs && row.profile.name == name);
        let (Some(gevent), Some(default)) = (find(AS_GEVENT), find(DEFAULT)) else {
            unreachable!("every profile has a row for every number of hashes")
        };
        writeln!(
            f,
            "Beside {}, with the settings that a hub has by default, others waited up to {} ms in the\n\
             median round; as gevent, {} ms. All were done after {} ms; as gevent, after {} ms.",
            count(last.jobs as usize, "hash", "hashes"),
            cell(default.longest),
            cell(gevent.longest),
            cell(default.done),
            cell(gevent.done),
        )
    }
}

impl fmt::Display for CompareReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.head(f)?;
        writeln!(f)?;
        self.table(f)?;
        writeln!(f)?;
        self.profiles(f)?;
        writeln!(f)?;
        self.meaning(f)?;
        writeln!(f)?;
        match &self.options.svg {
            Some(path) => writeln!(f, "Drawn into {}.", path.display()),
            None => writeln!(f, "--svg compare.svg draws it; --interval-ms 1 shows most."),
        }
    }
}

/// One of the table.
fn line<T: AsRef<str>>(f: &mut fmt::Formatter<'_>, name: &str, cells: [T; 6]) -> fmt::Result {
    let [longest, worst, p50, p999, done, mean] = cells.each_ref().map(AsRef::as_ref);
    writeln!(f, "{name:<20}{longest:>9}{worst:>9}{p50:>9}{p999:>9}{done:>11}{mean:>9}")
}
