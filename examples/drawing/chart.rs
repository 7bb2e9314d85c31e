//! Lines on logarithmic axes, each with its name at its end, so that no legend is needed.

use std::ops::Range;

use super::svg::{Anchor, Font, INK, PALE, RULE, Svg};

// Told apart by everyone, colour-blind or not: Okabe and Ito's.
pub(crate) const BLUE: &str = "#0072b2";
pub(crate) const RED: &str = "#d55e00";
pub(crate) const GREEN: &str = "#009e73";

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 580.0;
/// Where the lines are; the numbers of the axes stand to the left and below, the lines' names to the right.
const ACROSS: Range<f64> = 96.0..720.0;
const DOWN: Range<f64> = 116.0..510.0;
/// From one name to the next, at least.
const NAME_HEIGHT: f64 = 19.0;
/// More marks than this, and of those between the ends only the powers of ten are left.
const MOST_MARKS: usize = 10;

/// A picture of several lines.
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line>,
    /// A place on the x axis that deserves a word.
    pub(crate) note: Option<(f64, String)>,
}

/// A line through points above zero; others are left out.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) colour: &'static str,
    /// Drawn thicker than the others.
    pub(crate) bold: bool,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Reaches from its first mark to its last.
pub(crate) struct Axis {
    pub(crate) name: String,
    /// Where it has a rule and a number; in order, above zero, and not empty.
    pub(crate) marks: Vec<(f64, String)>,
}

impl Axis {
    /// One that holds all values, with marks at 1, 2 and 5 times powers of ten.
    pub(crate) fn around(name: &str, values: impl Iterator<Item = f64>, mark: impl Fn(f64) -> String) -> Axis {
        let values: Vec<f64> = values.filter(|&value| value > 0.0).collect();
        let lowest = values.iter().copied().fold(f64::MAX, f64::min).clamp(1e-9, 1e9);
        let highest = values.iter().copied().fold(lowest, f64::max);
        let mut marks = steps(lowest, highest);
        if let [first, .., last] = marks[..]
            && marks.len() > MOST_MARKS
        {
            marks.retain(|&at| at == first || at == last || at.log10().fract() == 0.0);
        }
        Axis { name: name.to_owned(), marks: marks.into_iter().map(|at| (at, mark(at))).collect() }
    }

    /// From 0 at the first mark to 1 at the last.
    fn place(&self, value: f64) -> f64 {
        let [first, last] = [0, self.marks.len() - 1].map(|index| self.marks[index].0.ln());
        if first == last { 0.5 } else { (value.ln() - first) / (last - first) }
    }
}

/// 1, 2 and 5 times powers of ten: from the last that is not above `lowest` to the first that is not below `highest`.
/// At least two.
fn steps(lowest: f64, highest: f64) -> Vec<f64> {
    let powers = (-9..=12).map(|exponent| 10.0_f64.powi(exponent));
    let steps: Vec<f64> = powers.flat_map(|power| [power, 2.0 * power, 5.0 * power]).collect();
    let first = steps.iter().rposition(|&step| step <= lowest).unwrap_or(0);
    let last = steps.iter().position(|&step| step >= highest).unwrap_or(steps.len() - 1);
    steps[first..=last.max(first + 1)].to_vec()
}

impl Chart {
    pub(crate) fn draw(&self) -> String {
        let mut svg = Svg::new(WIDTH, HEIGHT);
        svg.text((28.0, 40.0), Anchor::Start, Font { size: 22, bold: true, colour: INK }, &self.title);
        svg.text((28.0, 66.0), Anchor::Start, Font::plain(PALE), &self.subtitle);
        self.axes(&mut svg);
        self.note(&mut svg);
        // Those that matter most on top.
        for bold in [false, true] {
            for line in self.lines.iter().filter(|line| line.bold == bold) {
                self.line(&mut svg, line);
            }
        }
        self.names(&mut svg);
        svg.to_string()
    }

    fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let across = ACROSS.start + self.x.place(x) * (ACROSS.end - ACROSS.start);
        let down = DOWN.end - self.y.place(y) * (DOWN.end - DOWN.start);
        (across, down)
    }

    fn axes(&self, svg: &mut Svg) {
        let corner = (self.x.marks[0].0, self.y.marks[0].0);
        svg.text((28.0, DOWN.start - 20.0), Anchor::Start, Font::plain(INK), &self.y.name);
        for (value, number) in &self.y.marks {
            let (_, y) = self.at((corner.0, *value));
            svg.line((ACROSS.start, y), (ACROSS.end, y), RULE, 1.0);
            svg.text((ACROSS.start - 10.0, y + 5.0), Anchor::End, Font::plain(PALE), number);
        }
        for (value, number) in &self.x.marks {
            let (x, _) = self.at((*value, corner.1));
            svg.line((x, DOWN.end), (x, DOWN.end + 6.0), PALE, 1.0);
            svg.text((x, DOWN.end + 23.0), Anchor::Middle, Font::plain(PALE), number);
        }
        let middle = (ACROSS.start + ACROSS.end) / 2.0;
        svg.text((middle, DOWN.end + 50.0), Anchor::Middle, Font::plain(INK), &self.x.name);
    }

    fn note(&self, svg: &mut Svg) {
        let Some((value, words)) = &self.note else { return };
        let (x, _) = self.at((*value, self.y.marks[0].0));
        svg.line((x, DOWN.start), (x, DOWN.end), PALE, 1.0);
        svg.text((x + 8.0, DOWN.start + 14.0), Anchor::Start, Font::plain(INK), words);
    }

    fn visible(&self, line: &Line) -> Vec<(f64, f64)> {
        line.points.iter().filter(|point| point.0 > 0.0 && point.1 > 0.0).map(|&point| self.at(point)).collect()
    }

    fn line(&self, svg: &mut Svg, line: &Line) {
        let points = self.visible(line);
        let (width, radius) = if line.bold { (3.5, 5.0) } else { (2.0, 3.5) };
        svg.polyline(&points, line.colour, width);
        for point in points {
            svg.dot(point, radius, line.colour);
        }
    }

    /// Each beside its line's last point, or as near to it as the other names allow.
    fn names(&self, svg: &mut Svg) {
        let ends = self.lines.iter().filter_map(|line| Some((self.visible(line).last().copied()?, line)));
        let mut ends: Vec<_> = ends.collect();
        ends.sort_by(|a, b| a.0.1.total_cmp(&b.0.1));
        let heights = apart(ends.iter().map(|end| end.0.1).collect());
        for (((x, y), line), height) in ends.into_iter().zip(heights) {
            let beside = x.max(ACROSS.end) + 26.0;
            svg.line((x + 7.0, y), (beside - 5.0, height), line.colour, 1.0);
            let font = Font { size: 15, bold: line.bold, colour: line.colour };
            svg.text((beside, height + 5.0), Anchor::Start, font, &line.name);
        }
    }
}

/// Moves ascending heights so far down, and where the picture ends up again, that names fit there.
fn apart(mut heights: Vec<f64>) -> Vec<f64> {
    for index in 1..heights.len() {
        heights[index] = heights[index].max(heights[index - 1] + NAME_HEIGHT);
    }
    let mut lowest = DOWN.end;
    for height in heights.iter_mut().rev() {
        *height = height.min(lowest);
        lowest = *height - NAME_HEIGHT;
    }
    heights
}
