//! The comparison, drawn: the longest gap against the number of hashes, a line for each profile.

use crate::compare::Comparison;
use crate::drawing::chart::{Axis, BLUE, Chart, GREEN, Line, RED};
use crate::figures::{grouped, milliseconds};
use crate::options::Options;
use crate::profile::{AS_GEVENT, DEFAULT, PROFILES};

const PURPLE: &str = "#b0578a";
const ORANGE: &str = "#b87d00";
const SLATE: &str = "#5b6776";

pub(crate) fn draw(options: &Options, comparison: &Comparison) -> String {
    let lines: Vec<Line> = PROFILES.iter().map(|profile| line(profile.name, comparison)).collect();
    // The ticker's own interval belongs into the picture: nothing is shorter.
    let values = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let values = values.chain([options.interval_ms as f64]);
    let y = Axis::around("longest gap between two ticks", values, |ms| format!("{ms} ms"));
    let numbers = options.numbers_of_jobs().into_iter();
    let x = Axis {
        name: "hashes at once".to_owned(),
        marks: numbers.map(|jobs| (f64::from(jobs), jobs.to_string())).collect(),
    };
    let chart = Chart {
        title: "Password hashes beside a ticker: how long everyone else waits".to_owned(),
        subtitle: format!(
            "PBKDF2-HMAC-SHA256, {} iterations, offloaded; a ticker of {} ms; {} cores; the median of {} rounds.",
            grouped(options.iterations()),
            options.interval_ms,
            comparison.cores,
            options.rounds(),
        ),
        x,
        y,
        lines,
        note: None,
    };
    chart.draw()
}

fn line(name: &'static str, comparison: &Comparison) -> Line {
    let rows = comparison.rows.iter().filter(|row| row.profile.name == name);
    let points: Vec<_> = rows.map(|row| (f64::from(row.jobs), milliseconds(row.longest))).collect();
    let last = points.last().map_or(0.0, |point| point.1);
    let colour = match name {
        AS_GEVENT => RED,
        DEFAULT => BLUE,
        "slice" => ORANGE,
        "low priority" => PURPLE,
        "cores only" => SLATE,
        _ => GREEN,
    };
    Line { name: format!("{name}: {last:.1} ms"), colour, bold: matches!(name, AS_GEVENT | DEFAULT), points }
}
