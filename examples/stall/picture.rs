//! The picture: one direct and one offloaded round on one time axis.
//!
//! Each lane has a row for the hub, where every tick is a mark, and the offloaded one a row for
//! each worker thread in use. A bar is a hash; the longest gap between two ticks is shaded.

use std::iter;
use std::ops::Range;
use std::time::Duration;

use crate::drawing::svg::{Anchor, Font, INK, PALE, RULE, Svg};
use crate::figures::grouped;
use crate::options::Options;
use crate::rounds::{Round, Rounds};

// Told apart by everyone, colour-blind or not, and in grey: two of Okabe and Ito's, and a slate.
const TICK: &str = "#0072b2";
const FROZEN: &str = "#d55e00";
const HASH: &str = "#5b6776";

const WIDTH: f64 = 960.0;
/// Where time is drawn; row names stand to the left of it.
const PLOT: Range<f64> = 136.0..932.0;
const TOP: f64 = 92.0;
const ROW: f64 = 40.0;
/// Above the first row of a lane: its title, then the label of its longest gap.
const LANE_HEAD: f64 = 58.0;
const LANE_FOOT: f64 = 26.0;
/// Below the last lane: the numbers of the time axis.
const FOOT: f64 = 30.0;

/// The round whose longest gap is the middle one.
fn median_round(rounds: &[Round]) -> &Round {
    let mut by_gap: Vec<_> = rounds.iter().collect();
    by_gap.sort_by_key(|round| round.gaps.max);
    by_gap[by_gap.len() / 2]
}

/// One kind of round: a hub, and the threads beside it.
struct Lane<'a> {
    title: &'static str,
    ticks: &'a [Duration],
    on_hub: Vec<Range<Duration>>,
    /// The hashes of each worker thread.
    on_workers: Vec<Vec<Range<Duration>>>,
}

impl Lane<'_> {
    fn longest_gap(&self) -> Range<Duration> {
        let before = iter::once(&Duration::ZERO).chain(self.ticks);
        let gaps = before.zip(self.ticks).map(|(&before, &tick)| before..tick);
        gaps.max_by_key(|gap| gap.end - gap.start).unwrap_or_default()
    }

    fn end(&self) -> Duration {
        let hashes = self.on_hub.iter().chain(self.on_workers.iter().flatten());
        let ends = hashes.map(|hash| hash.end).chain(self.ticks.last().copied());
        ends.max().unwrap_or_default()
    }

    fn worker_row(&self) -> f64 {
        (4.0 * ROW / self.on_workers.len() as f64).min(ROW)
    }

    fn height(&self) -> f64 {
        let workers = self.on_workers.len() as f64 * self.worker_row();
        LANE_HEAD + ROW + workers + LANE_FOOT
    }
}

/// Puts hashes that overlap into different rows, which is what the threads did.
fn rows(hashes: &[Range<Duration>]) -> Vec<Vec<Range<Duration>>> {
    let mut rows: Vec<Vec<Range<Duration>>> = vec![];
    let mut sorted = hashes.to_vec();
    sorted.sort_by_key(|hash| hash.start);
    for hash in sorted {
        let free = rows.iter_mut().find(|row| row.last().is_none_or(|last| last.end <= hash.start));
        match free {
            Some(row) => row.push(hash),
            None => rows.push(vec![hash]),
        }
    }
    rows
}

pub(crate) fn draw(options: &Options, rounds: &Rounds) -> String {
    let (direct, offloaded) = (median_round(&rounds.direct), median_round(&rounds.offloaded));
    let lanes = [
        Lane {
            title: "Called straight on the hub",
            ticks: &direct.gaps.timeline,
            on_hub: direct.hashes.clone(),
            on_workers: vec![],
        },
        Lane {
            title: "Offloaded: hub().threadpool().apply",
            ticks: &offloaded.gaps.timeline,
            on_hub: vec![],
            on_workers: rows(&offloaded.hashes),
        },
    ];
    let end = lanes.iter().map(Lane::end).max().unwrap_or_default();
    let height = TOP + lanes.iter().map(Lane::height).sum::<f64>() + FOOT;
    let mut canvas = Canvas { svg: Svg::new(WIDTH, height), end, interval: options.interval() };

    canvas.head(options);
    let mut top = TOP;
    for lane in &lanes {
        canvas.lane(lane, top);
        top += lane.height();
    }
    canvas.numbers(top);
    canvas.svg.to_string()
}

/// A picture with a time axis.
struct Canvas {
    svg: Svg,
    end: Duration,
    interval: Duration,
}

impl Canvas {
    fn x(&self, time: Duration) -> f64 {
        PLOT.start + (PLOT.end - PLOT.start) * time.div_duration_f64(self.end)
    }

    fn head(&mut self, options: &Options) {
        let title = match options.jobs() {
            1 => "One password hash, and what everyone else notices".to_owned(),
            jobs => format!("{jobs} password hashes at once, and what everyone else notices"),
        };
        self.svg.text((28.0, 40.0), Anchor::Start, Font { size: 22, bold: true, colour: INK }, title);
        let interval = options.interval_ms;
        let iterations = grouped(options.iterations());
        self.svg.text(
            (28.0, 66.0),
            Anchor::Start,
            Font::plain(PALE),
            format_args!("PBKDF2-HMAC-SHA256, {iterations} iterations. Each blue mark is a tick: a greenlet that sleeps {interval} ms has run again."),
        );
    }

    /// Where the axis has a rule and a number.
    fn round_times(&self) -> impl Iterator<Item = Duration> + use<> {
        let (step, end) = (round_step(self.end), self.end);
        (0..).map(move |index| step * index).take_while(move |&time| time <= end)
    }

    fn rules(&mut self, rows: Range<f64>) {
        for time in self.round_times() {
            let x = self.x(time);
            self.svg.line((x, rows.start), (x, rows.end), RULE, 1.0);
        }
    }

    fn numbers(&mut self, y: f64) {
        for time in self.round_times() {
            let number = format!("{} ms", time.as_secs_f64() * 1e3);
            self.svg.text((self.x(time), y), Anchor::Middle, Font::plain(PALE), number);
        }
    }

    fn lane(&mut self, lane: &Lane<'_>, top: f64) {
        self.svg.text((28.0, top + 24.0), Anchor::Start, Font { size: 16, bold: true, colour: INK }, lane.title);

        let hub = top + LANE_HEAD;
        let bottom = top + lane.height() - LANE_FOOT;
        self.rules(hub..bottom + 8.0);
        self.longest_gap(&lane.longest_gap(), hub..hub + ROW);

        self.row("hub", hub, ROW, &lane.on_hub);
        // Thin enough to stay apart, however many there are.
        let apart = self.x(self.interval) - self.x(Duration::ZERO);
        let thick = (apart * 0.4).min(2.0);
        for &tick in lane.ticks {
            let x = self.x(tick);
            self.svg.line((x, hub + 5.0), (x, hub + ROW - 5.0), TICK, thick);
        }
        for (index, hashes) in lane.on_workers.iter().enumerate() {
            let name = match (index, lane.on_workers.len()) {
                (0, 1) => "worker thread",
                (0, _) => "worker threads",
                _ => "",
            };
            let height = lane.worker_row();
            self.row(name, hub + ROW + height * index as f64, height, hashes);
        }
    }

    /// A base line, and hashes on it.
    fn row(&mut self, name: &str, top: f64, height: f64, hashes: &[Range<Duration>]) {
        let middle = top + height / 2.0;
        self.svg.text((PLOT.start - 14.0, middle + 5.0), Anchor::End, Font::plain(INK), name);
        self.svg.line((PLOT.start, middle), (PLOT.end, middle), RULE, 1.5);
        for hash in hashes {
            // A hair shorter, so that one ends visibly before the next.
            let (left, right) = (self.x(hash.start) + 0.5, self.x(hash.end) - 0.5);
            let thick = (height * 0.6).max(4.0);
            self.svg.rectangle((left, middle - thick / 2.0), ((right - left).max(0.5), thick), HASH, 1.0);
            let label = format!("hash {}", milliseconds(hash.end - hash.start));
            if thick >= 18.0 && right - left > text_width(&label) + 12.0 {
                let white = Font { size: 14, bold: false, colour: "#ffffff" };
                self.svg.text(((left + right) / 2.0, middle + 5.0), Anchor::Middle, white, label);
            }
        }
    }

    /// Shaded across a row, and named above it.
    fn longest_gap(&mut self, gap: &Range<Duration>, row: Range<f64>) {
        let (left, right) = (self.x(gap.start), self.x(gap.end));
        let length = gap.end - gap.start;
        let (colour, label) = if length > self.interval * 2 {
            (FROZEN, format!("{} without a tick", milliseconds(length)))
        } else {
            (TICK, format!("longest gap {}", milliseconds(length)))
        };
        self.svg.rectangle((left, row.start), (right - left, row.end - row.start), colour, 0.18);
        self.svg.line((left, row.start), (right, row.start), colour, 3.0);
        let half = text_width(&label) / 2.0;
        let middle = ((left + right) / 2.0).clamp(PLOT.start + half, PLOT.end - half);
        let font = Font { size: 15, bold: true, colour };
        self.svg.text((middle, row.start - 8.0), Anchor::Middle, font, label);
    }
}

/// About as wide as the text is at the sizes used here.
fn text_width(text: &str) -> f64 {
    text.chars().count() as f64 * 8.5
}

/// Whole from 10 ms up, where a tenth says nothing.
fn milliseconds(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1e3;
    let digits = if milliseconds < 10.0 { 1 } else { 0 };
    format!("{milliseconds:.digits$} ms")
}

/// 1, 2 or 5 times a power of ten of microseconds, so that at most ten steps reach `end`.
fn round_step(end: Duration) -> Duration {
    let powers = (0..).map(|exponent| Duration::from_micros(1) * 10_u32.pow(exponent));
    let mut steps = powers.flat_map(|power| [power, power * 2, power * 5]);
    steps.find(|&step| step * 10 >= end).unwrap_or(end)
}
