//! A number of permits.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use super::permits::Permits;
use crate::park::{Watch, Watcher};
use crate::reason::Reason;

/// A number of permits that are taken and given back, on any thread; first come, first served.
///
/// ```
/// use std::rc::Rc;
/// use greenroom::sync::Semaphore;
///
/// // At most two at a time.
/// let semaphore = Rc::new(Semaphore::new(2));
/// let all: Vec<_> = (0..10)
///     .map(|_| {
///         let semaphore = Rc::clone(&semaphore);
///         greenroom::spawn(move || {
///             let _permit = semaphore.acquire();
///             greenroom::yield_now();
///         })
///     })
///     .collect();
/// greenroom::join_all(all);
/// assert_eq!(semaphore.available_permits(), 2);
/// ```
pub struct Semaphore {
    permits: Permits,
}

impl Semaphore {
    /// One with that many permits.
    ///
    /// ```
    /// static DOWNLOADS: greenroom::sync::Semaphore = greenroom::sync::Semaphore::new(4);
    /// assert_eq!(DOWNLOADS.available_permits(), 4);
    /// ```
    pub const fn new(permits: usize) -> Semaphore {
        Semaphore { permits: Permits::new(permits, usize::MAX) }
    }

    /// Takes a permit; parks until there is one. It is given back when the guard is dropped.
    ///
    /// # Panics
    ///
    /// With "this would block forever", on main, when nothing can ever release one.
    ///
    /// ```
    /// let semaphore = greenroom::sync::Semaphore::new(1);
    /// let permit = semaphore.acquire();
    /// assert_eq!(semaphore.available_permits(), 0);
    /// drop(permit);
    /// assert_eq!(semaphore.available_permits(), 1);
    /// ```
    pub fn acquire(&self) -> Permit<'_> {
        Permit::acquire(&self.permits)
    }

    /// Takes a permit if there is one. Doesn't park.
    ///
    /// ```
    /// let semaphore = greenroom::sync::Semaphore::new(1);
    /// let permit = semaphore.try_acquire();
    /// assert!(permit.is_some());
    /// assert!(semaphore.try_acquire().is_none());
    /// ```
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        Permit::try_acquire(&self.permits)
    }

    /// Takes a permit; parks until there is one, for at most `d`. `None`: there was none in time.
    ///
    /// ```
    /// let semaphore = greenroom::sync::Semaphore::new(0);
    /// assert!(semaphore.acquire_timeout(std::time::Duration::from_millis(1)).is_none());
    /// ```
    pub fn acquire_timeout(&self, d: Duration) -> Option<Permit<'_>> {
        Permit::acquire_timeout(&self.permits, d)
    }

    /// Adds a permit, or gives one back whose guard was [forgotten](Permit::forget). Doesn't park.
    ///
    /// # Errors
    ///
    /// [`ReleaseError`] at `usize::MAX` permits; nothing has changed then.
    ///
    /// ```
    /// let semaphore = greenroom::sync::Semaphore::new(0);
    /// semaphore.release().unwrap();
    /// assert!(semaphore.try_acquire().is_some());
    ///
    /// assert!(greenroom::sync::Semaphore::new(usize::MAX).release().is_err());
    /// ```
    pub fn release(&self) -> Result<(), ReleaseError> {
        release(&self.permits)
    }

    /// How many permits nobody has. With other threads about it is old news at once. Doesn't park.
    ///
    /// ```
    /// assert_eq!(greenroom::sync::Semaphore::new(3).available_permits(), 3);
    /// ```
    pub fn available_permits(&self) -> usize {
        self.permits.free()
    }
}

impl Watch for Semaphore {
    fn watch(&self, watcher: &Watcher) -> bool {
        self.permits.watch(watcher)
    }

    fn unwatch(&self, watcher: &Watcher) {
        self.permits.unwatch(watcher);
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore").field("available_permits", &self.available_permits()).finish()
    }
}

pub(super) fn release(permits: &Permits) -> Result<(), ReleaseError> {
    if permits.release(1) { Ok(()) } else { Err(ReleaseError { limit: permits.limit() }) }
}

/// A permit of a [`Semaphore`] or [`BoundedSemaphore`](super::BoundedSemaphore), given back when it is dropped. It may move to
/// another thread. If so many were released meanwhile that it would be one too many, it vanishes.
///
/// ```
/// let semaphore = greenroom::sync::Semaphore::new(1);
/// let permit = semaphore.acquire();
/// std::thread::scope(|scope| scope.spawn(move || drop(permit)).join().unwrap());
/// assert_eq!(semaphore.available_permits(), 1);
/// ```
#[must_use = "a permit that is dropped is given back at once"]
pub struct Permit<'a> {
    permits: &'a Permits,
}

impl<'a> Permit<'a> {
    pub(super) fn acquire(permits: &'a Permits) -> Permit<'a> {
        permits.acquire(1, Reason::Semaphore, None);
        Permit { permits }
    }

    pub(super) fn try_acquire(permits: &'a Permits) -> Option<Permit<'a>> {
        permits.try_acquire(1).then(|| Permit { permits })
    }

    pub(super) fn acquire_timeout(permits: &'a Permits, d: Duration) -> Option<Permit<'a>> {
        permits.acquire(1, Reason::Semaphore, Some(d)).then(|| Permit { permits })
    }

    /// Keeps the permit for good, or until somebody calls the semaphore's `release`.
    ///
    /// ```
    /// let semaphore = greenroom::sync::Semaphore::new(1);
    /// semaphore.acquire().forget();
    /// assert_eq!(semaphore.available_permits(), 0);
    /// semaphore.release().unwrap();
    /// ```
    pub fn forget(self) {
        std::mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        // One too many vanishes.
        self.permits.release(1);
    }
}

impl fmt::Debug for Permit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Permit").finish_non_exhaustive()
    }
}

/// A semaphore was released although it had all permits that it may have.
///
/// ```
/// let error = greenroom::sync::BoundedSemaphore::new(2).release().unwrap_err();
/// assert_eq!(error.to_string(), "released too often: the semaphore has all of its 2 permits; release only what was acquired");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseError {
    limit: usize,
}

impl fmt::Display for ReleaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = self.limit;
        write!(f, "released too often: the semaphore has all of its {limit} permits; release only what was acquired")
    }
}

impl Error for ReleaseError {}
