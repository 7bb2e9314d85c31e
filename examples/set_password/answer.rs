//! What a command found out, and how it is told: as lines, or as one JSON object.

use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::INTERVAL;

/// What the rest of the program noticed of the hashing.
pub(crate) struct Beside {
    /// How many hashes there were.
    pub(crate) jobs: usize,
    /// From the first hand-over to the last result.
    pub(crate) took: Duration,
    /// The longest that the ticker had to wait, its own sleep included.
    pub(crate) longest_gap: Duration,
}

/// What a command found out: one value for each input, in their order.
pub(crate) enum Answer {
    Made(Vec<String>, Beside),
    Verified(Vec<bool>, Beside),
    NeedsUpdate(Vec<bool>),
}

impl Answer {
    /// Whether a password was wrong.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Answer::Verified(verified, _) if verified.contains(&false))
    }

    fn lines(&self) -> Vec<&str> {
        let say = |answers: &[bool], yes, no| answers.iter().map(|&answer| if answer { yes } else { no }).collect();
        match self {
            Answer::Made(encoded, _) => encoded.iter().map(String::as_str).collect(),
            Answer::Verified(verified, _) => say(verified, "correct", "wrong"),
            Answer::NeedsUpdate(needs_update) => say(needs_update, "needs update", "up to date"),
        }
    }

    /// The name of the values in JSON, and the values.
    fn member(&self) -> (&'static str, Value) {
        match self {
            Answer::Made(encoded, _) => ("encoded", json!(encoded)),
            Answer::Verified(verified, _) => ("correct", json!(verified)),
            Answer::NeedsUpdate(needs_update) => ("needs_update", json!(needs_update)),
        }
    }

    fn beside(&self) -> Option<&Beside> {
        match self {
            Answer::Made(_, beside) | Answer::Verified(_, beside) => Some(beside),
            Answer::NeedsUpdate(_) => None,
        }
    }
}

pub(crate) fn print(answer: &Answer) -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in answer.lines() {
        writeln!(out, "{line}")?;
    }
    if let Some(Beside { jobs, took, longest_gap }) = answer.beside() {
        _ = writeln!(
            io::stderr(),
            "({jobs} hashed in {:.0} ms; a {} ms ticker beside it waited {:.1} ms at most)",
            milliseconds(*took),
            INTERVAL.as_millis(),
            milliseconds(*longest_gap)
        );
    }
    Ok(())
}

pub(crate) fn print_json(answers: &[Answer]) -> io::Result<()> {
    let members = answers.iter().map(Answer::member);
    let mut object: Map<_, _> = members.map(|(name, value)| (name.to_owned(), value)).collect();
    let beside = answers.iter().filter_map(Answer::beside);
    if let Some(longest_gap) = beside.map(|beside| beside.longest_gap).max() {
        object.insert("interval_ms".to_owned(), json!(milliseconds(INTERVAL)));
        object.insert("longest_gap_ms".to_owned(), json!(milliseconds(longest_gap)));
    }
    writeln!(io::stdout(), "{}", Value::Object(object))
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}
