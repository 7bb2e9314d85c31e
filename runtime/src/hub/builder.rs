//! Settings of a hub: the builder's, else the environment's, else the defaults.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use greenroom_pool::PoolBuilder;

use super::{Hub, install, try_hub};

/// Settings for this thread's hub, to be made before its first use. What isn't set here is taken from the environment:
///
/// | variable | what | default |
/// |---|---|---|
/// | `GREENROOM_THREADS` | threads of the hub's pool | 10 |
/// | `GREENROOM_STACK_KIB` | address space of a greenlet's stack, KiB | 256 |
///
/// ```
/// let hub = greenroom::Hub::builder().threads(2).install()?;
/// assert!(greenroom::Hub::builder().install().is_err(), "one hub a thread");
/// # Ok::<(), greenroom::AlreadyRunning>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `install`"]
pub struct HubBuilder {
    stack_size: Option<usize>,
    threads: Option<usize>,
    slice: Option<Duration>,
}

impl HubBuilder {
    /// How many bytes of address space a greenlet's stack has, its guard page included. Memory is used only for the
    /// pages that are touched. Rounded up to a power of two of pages; 16 KiB at least.
    pub fn stack_size(mut self, bytes: usize) -> HubBuilder {
        self.stack_size = Some(bytes);
        self
    }

    /// How many threads the hub's [`ThreadPool`](crate::ThreadPool) has at most. With 0 every `apply` waits until
    /// [`set_max_threads`](crate::ThreadPool::set_max_threads) allows more, which the environment variable doesn't offer.
    pub fn threads(mut self, threads: usize) -> HubBuilder {
        self.threads = Some(threads);
        self
    }

    /// For how long the hub's thread may run at a time while others wait for its core, as the kernel's scheduler is asked; 0.1 ms
    /// if not set. A thread with a short slice is run sooner when it wakes up, so that greenlets are on time beside workers
    /// that keep all cores busy. Its share of the processor stays the same. Zero leaves the thread as it is.
    ///
    /// Needs Linux 6.12 and no privilege; elsewhere nothing happens. It is undone when the hub ends. Threads that the program starts
    /// from the hub's thread inherit the slice, as they inherit its priority; those of a pool don't.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let hub = greenroom::Hub::builder().slice(Duration::ZERO).install()?;
    /// # Ok::<(), greenroom::AlreadyRunning>(())
    /// ```
    pub fn slice(mut self, slice: Duration) -> HubBuilder {
        self.slice = Some(slice);
        self
    }

    /// How many threads the pool is to have.
    pub(crate) fn pool_size(&self) -> usize {
        self.config().threads
    }

    /// What is set here, else by the environment, else the default. Panics if the environment can't be read.
    fn config(&self) -> Config {
        let config = Config::from_environment().unwrap_or_else(|error| panic!("{error}"));
        Config {
            stack_size: self.stack_size.unwrap_or(config.stack_size),
            threads: self.threads.unwrap_or(config.threads),
            slice: self.slice.unwrap_or(config.slice),
        }
    }

    /// Makes this thread's hub.
    ///
    /// # Errors
    ///
    /// [`AlreadyRunning`] when the thread has one: [`hub()`](crate::hub()), [`spawn`](crate::spawn()) and every other
    /// call that needs a hub makes it.
    ///
    /// # Panics
    ///
    /// As [`hub()`](crate::hub()).
    pub fn install(self) -> Result<Hub, AlreadyRunning> {
        if try_hub().is_some() {
            return Err(AlreadyRunning(()));
        }
        Ok(install(self.config()))
    }
}

/// This thread has a hub already; its settings can't be changed.
#[derive(Debug)]
pub struct AlreadyRunning(());

impl fmt::Display for AlreadyRunning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "this thread has a hub already: install yours before the first spawn(), idle() or hub() on the thread",
        )
    }
}

impl Error for AlreadyRunning {}

/// The settings of a hub.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    /// Bytes of a stack, guard included.
    pub(crate) stack_size: usize,
    /// The pool's threads.
    pub(crate) threads: usize,
    /// The slice of the hub's thread; zero leaves it alone.
    pub(crate) slice: Duration,
}

/// The shortest that Linux grants.
const SLICE: Duration = Duration::from_micros(100);

impl Config {
    pub(super) fn from_environment() -> Result<Config, String> {
        Ok(Config {
            stack_size: variable("GREENROOM_STACK_KIB", 256, 16..=16 << 20)? * 1024,
            threads: variable("GREENROOM_THREADS", 10, 1..=PoolBuilder::MAX_THREADS)?,
            slice: SLICE,
        })
    }
}

fn variable(name: &str, default: usize, range: std::ops::RangeInclusive<usize>) -> Result<usize, String> {
    let Some(text) = std::env::var_os(name) else {
        return Ok(default);
    };
    let value = text.to_str().and_then(|text| text.trim().parse().ok()).filter(|value| range.contains(value));
    value.ok_or_else(|| {
        format!("{name} is {text:?}: it must be a whole number from {} to {}; or unset it", range.start(), range.end())
    })
}
