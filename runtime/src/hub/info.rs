//! Which greenlet a report is about.

use std::fmt;
use std::panic::Location;

use crate::GreenletId;
use crate::greenlet::core::Core;

/// Which greenlet it was, for [`Hub::on_error`](crate::Hub::on_error).
///
/// ```
/// greenroom::hub().on_error(|greenlet, _| {
///     println!("{greenlet} panicked"); // greenlet 1 "login" (spawned at src/main.rs:3:5) panicked
/// });
/// ```
#[derive(Clone, Debug)]
pub struct GreenletInfo {
    id: GreenletId,
    name: Option<Box<str>>,
    site: &'static Location<'static>,
}

impl GreenletInfo {
    pub(super) fn of(core: &Core) -> GreenletInfo {
        GreenletInfo { id: core.id(), name: core.note.name.clone(), site: core.note.site }
    }

    /// Its id.
    pub fn id(&self) -> GreenletId {
        self.id
    }

    /// The name its [`Builder`](crate::Builder) gave it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Where it was spawned.
    pub fn spawned_at(&self) -> &'static Location<'static> {
        self.site
    }
}

impl fmt::Display for GreenletInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "greenlet {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        write!(f, " (spawned at {})", self.site)
    }
}
