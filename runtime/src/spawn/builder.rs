//! A greenlet with a name, a stack size, and a refusal that isn't a panic.

use std::io;
use std::panic::Location;

use super::{Greenlet, start};

/// Settings of one greenlet.
///
/// ```
/// let login = greenroom::Builder::new().name("login").stack_size(1 << 20).spawn(|| "welcome")?;
/// assert_eq!(login.name(), Some("login"));
/// assert_eq!(login.join().unwrap(), "welcome");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `spawn`"]
pub struct Builder {
    name: Option<String>,
    stack_size: Option<usize>,
}

impl Builder {
    /// No name, the hub's stack size.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// A name for reports; names need not be unique.
    pub fn name(mut self, name: impl Into<String>) -> Builder {
        self.name = Some(name.into());
        self
    }

    /// How many bytes of address space the stack has, guard page included; rounded up to a power of two of pages, 16 KiB
    /// at least. Memory is used only for the pages that are touched.
    pub fn stack_size(mut self, bytes: usize) -> Builder {
        self.stack_size = Some(bytes);
        self
    }

    /// Starts the greenlet as [`spawn`](crate::spawn()) does.
    ///
    /// # Errors
    ///
    /// When the hub is shutting down or has been shut down, and when the stack size is more than half of the address
    /// space (`InvalidInput`).
    ///
    /// # Panics
    ///
    /// As [`hub()`](crate::hub()), if it has to make one.
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> io::Result<Greenlet<T>>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        if let Some(bytes) = self.stack_size.filter(|&bytes| bytes > isize::MAX as usize / 2) {
            let text = format!("a stack of {bytes} bytes is more than half of the address space");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let name = self.name.map(String::into_boxed_str);
        start(name, self.stack_size, Location::caller(), None, f).map_err(io::Error::other)
    }
}
