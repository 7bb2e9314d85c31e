//! The figures, drawn: round trips and gaps against the length of a job.

use crate::drawing::chart::{Axis, BLUE, Chart, GREEN, Line, RED};
use crate::measure::Cost;
use crate::report::{Report, length};

const PURPLE: &str = "#b0578a";

pub(crate) fn draw(report: &Report<'_>) -> String {
    let line = |name: &str, colour, bold, figure: fn(&Cost) -> f64| Line {
        name: name.to_owned(),
        colour,
        bold,
        points: report.costs.iter().map(|cost| (cost.job, figure(cost))).collect(),
    };
    let lines = vec![
        line("round trip, cold", PURPLE, false, |cost| cost.cold),
        line("round trip, hot", BLUE, true, |cost| cost.hot),
        line("inline: trip and gap", RED, true, |cost| cost.gap_inline),
        line("gap, offloaded", GREEN, true, |cost| cost.gap_offloaded),
    ];
    let values: Vec<f64> = lines.iter().flat_map(|line| line.points.iter().map(|point| point.1)).collect();
    let chart = Chart {
        title: "Offloading a job: what its caller pays, and what everyone else is spared".to_owned(),
        subtitle: format!(
            "Round trip: how long the caller waits. Gap: how long another greenlet does. {} cores, the median of {} rounds.",
            report.cores, report.rounds,
        ),
        x: Axis::around("length of the job", report.costs.iter().map(|cost| cost.job), length),
        y: Axis::around("time", values.into_iter(), length),
        lines,
        note: report.break_even.hot.map(|job| (job, format!("pays from {} on, hot", length(job)))),
    };
    chart.draw()
}
