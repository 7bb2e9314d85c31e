//! Pens: the few shapes a picture needs, as SVG text.

use std::fmt::{self, Display, Write};

/// For what is said in words, for what is said beside it, and for what only guides the eye.
pub(crate) const INK: &str = "#1f2933";
pub(crate) const PALE: &str = "#6b7683";
pub(crate) const RULE: &str = "#d5dae0";

/// A picture under way.
pub(crate) struct Svg {
    width: f64,
    height: f64,
    shapes: String,
}

/// Where a text stands relative to its position.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The look of a text.
#[derive(Clone, Copy)]
pub(crate) struct Font {
    pub(crate) size: u32,
    pub(crate) bold: bool,
    pub(crate) colour: &'static str,
}

impl Font {
    pub(crate) fn plain(colour: &'static str) -> Font {
        Font { size: 14, bold: false, colour }
    }
}

impl Svg {
    pub(crate) fn new(width: f64, height: f64) -> Svg {
        let mut svg = Svg { width, height, shapes: String::new() };
        svg.rectangle((0.0, 0.0), (width, height), "#ffffff", 1.0);
        svg
    }

    /// Top left corner and size.
    pub(crate) fn rectangle(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str, opacity: f64) {
        self.shape(format_args!(
            r#"<rect x="{x:.2}" y="{y:.2}" width="{width:.2}" height="{height:.2}" fill="{fill}" fill-opacity="{opacity}"/>"#
        ));
    }

    pub(crate) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str, width: f64) {
        self.shape(format_args!(
            r#"<line x1="{x1:.2}" y1="{y1:.2}" x2="{x2:.2}" y2="{y2:.2}" stroke="{colour}" stroke-width="{width}"/>"#
        ));
    }

    /// Lines from each point to the next.
    pub(crate) fn polyline(&mut self, points: &[(f64, f64)], colour: &str, width: f64) {
        let points: String = points.iter().map(|(x, y)| format!("{x:.2},{y:.2} ")).collect();
        let points = points.trim_end();
        self.shape(format_args!(
            r#"<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>"#
        ));
    }

    pub(crate) fn dot(&mut self, (x, y): (f64, f64), radius: f64, colour: &str) {
        self.shape(format_args!(r#"<circle cx="{x:.2}" cy="{y:.2}" r="{radius}" fill="{colour}"/>"#));
    }

    /// The position is that of the baseline. The text must contain none of `<>&`.
    pub(crate) fn text(&mut self, (x, y): (f64, f64), anchor: Anchor, font: Font, text: impl Display) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if font.bold { 600 } else { 400 };
        let Font { size, colour, .. } = font;
        self.shape(format_args!(
            r#"<text x="{x:.2}" y="{y:.2}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}" fill="{colour}">{text}</text>"#
        ));
    }

    fn shape(&mut self, shape: fmt::Arguments<'_>) {
        writeln!(self.shapes, "{shape}").expect("writing to a String does not fail");
    }
}

impl Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Svg { width, height, shapes } = self;
        let font = "system-ui, Helvetica, Arial, DejaVu Sans, sans-serif";
        writeln!(
            f,
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="{font}">"#
        )?;
        writeln!(f, "{shapes}</svg>")
    }
}
