//! Where a picture goes.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// A file that can be written, before there is anything to draw.
pub(crate) struct PictureFile<'a> {
    path: &'a Path,
    file: File,
}

impl PictureFile<'_> {
    /// Leaves what the file holds until there is a picture to replace it.
    pub(crate) fn open(path: &Path) -> Result<PictureFile<'_>, String> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|error| format!("--svg {path:?}: {error}"))?;
        Ok(PictureFile { path, file })
    }

    pub(crate) fn write(mut self, picture: &str) -> Result<(), String> {
        let written = self.file.set_len(0).and_then(|()| self.file.write_all(picture.as_bytes()));
        written.map_err(|error| format!("--svg {:?}: {error}", self.path))
    }
}
