//! What several rounds come to, and how figures are written.

use std::time::Duration;

use greenroom::stall::Gaps;

pub(crate) fn median_and_worst(durations: impl Iterator<Item = Duration>) -> [Duration; 2] {
    let durations: Vec<_> = durations.collect();
    let worst = durations.iter().max().copied().unwrap_or_default();
    [median(durations), worst]
}

/// The middle one, or the mean of the middle two.
pub(crate) fn median(mut durations: Vec<Duration>) -> Duration {
    durations.sort_unstable();
    let upper = durations[durations.len() / 2];
    let lower = durations[(durations.len() - 1) / 2];
    (lower + upper) / 2
}

/// Of the gaps of all rounds together.
pub(crate) fn percentile_of_all(rounds: &[&Gaps], quantile: f64) -> Duration {
    let (first, rest) = rounds.split_first().expect("there is at least one round");
    let mut all = first.histogram.clone();
    for gaps in rest {
        all.add(&gaps.histogram).expect("the histograms are made alike");
    }
    let worst = rounds.iter().map(|gaps| gaps.max).max().unwrap_or_default();
    // The histogram rounds up.
    Duration::from_nanos(all.value_at_quantile(quantile)).min(worst)
}

/// Of a table.
pub(crate) fn cell(duration: Duration) -> String {
    format!("{:.1}", milliseconds(duration))
}

pub(crate) fn milliseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e6
}

/// "1 hash", "2 hashes".
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// "600,000".
pub(crate) fn grouped(number: u32) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
