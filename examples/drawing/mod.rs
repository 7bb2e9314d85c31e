//! Pictures as SVG.
//!
//! * `file`: where a picture goes, looked at before there is one.
//! * `svg`: pens.
//! * `chart`: lines on logarithmic axes.

pub(crate) mod chart;
mod file;
pub(crate) mod svg;

pub(crate) use file::PictureFile;
