//! A number of permits that never grows.

use std::fmt;
use std::time::Duration;

use super::permits::Permits;
use super::semaphore::{Permit, ReleaseError, release};
use crate::park::{Watch, Watcher};

/// A [`Semaphore`](super::Semaphore) that never has more permits than it began with: to release too often is an error.
///
/// ```
/// let semaphore = greenroom::sync::BoundedSemaphore::new(1);
/// semaphore.acquire().forget();
/// assert!(semaphore.release().is_ok());
/// assert!(semaphore.release().is_err());
/// ```
pub struct BoundedSemaphore {
    permits: Permits,
}

impl BoundedSemaphore {
    /// One with that many permits, now and at most.
    ///
    /// ```
    /// static DOWNLOADS: greenroom::sync::BoundedSemaphore = greenroom::sync::BoundedSemaphore::new(4);
    /// assert_eq!(DOWNLOADS.available_permits(), 4);
    /// ```
    pub const fn new(permits: usize) -> BoundedSemaphore {
        BoundedSemaphore { permits: Permits::new(permits, permits) }
    }

    /// Takes a permit; parks until there is one. It is given back when the guard is dropped.
    ///
    /// # Panics
    ///
    /// With "this would block forever", on main, when nothing can ever release one.
    ///
    /// ```
    /// let semaphore = greenroom::sync::BoundedSemaphore::new(1);
    /// let _permit = semaphore.acquire();
    /// assert_eq!(semaphore.available_permits(), 0);
    /// ```
    pub fn acquire(&self) -> Permit<'_> {
        Permit::acquire(&self.permits)
    }

    /// Takes a permit if there is one. Doesn't park.
    ///
    /// ```
    /// assert!(greenroom::sync::BoundedSemaphore::new(0).try_acquire().is_none());
    /// ```
    pub fn try_acquire(&self) -> Option<Permit<'_>> {
        Permit::try_acquire(&self.permits)
    }

    /// Takes a permit; parks until there is one, for at most `d`. `None`: there was none in time.
    ///
    /// ```
    /// let semaphore = greenroom::sync::BoundedSemaphore::new(0);
    /// assert!(semaphore.acquire_timeout(std::time::Duration::from_millis(1)).is_none());
    /// ```
    pub fn acquire_timeout(&self, d: Duration) -> Option<Permit<'_>> {
        Permit::acquire_timeout(&self.permits, d)
    }

    /// Gives back a permit whose guard was [forgotten](Permit::forget). Doesn't park.
    ///
    /// # Errors
    ///
    /// [`ReleaseError`] when all permits are there; nothing has changed then.
    ///
    /// ```
    /// assert!(greenroom::sync::BoundedSemaphore::new(1).release().is_err());
    /// ```
    pub fn release(&self) -> Result<(), ReleaseError> {
        release(&self.permits)
    }

    /// How many permits nobody has. With other threads about it is old news at once. Doesn't park.
    ///
    /// ```
    /// assert_eq!(greenroom::sync::BoundedSemaphore::new(3).available_permits(), 3);
    /// ```
    pub fn available_permits(&self) -> usize {
        self.permits.free()
    }
}

impl Watch for BoundedSemaphore {
    fn watch(&self, watcher: &Watcher) -> bool {
        self.permits.watch(watcher)
    }

    fn unwatch(&self, watcher: &Watcher) {
        self.permits.unwatch(watcher);
    }
}

impl fmt::Debug for BoundedSemaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (permits, bound) = (self.available_permits(), self.permits.limit());
        f.debug_struct("BoundedSemaphore").field("available_permits", &permits).field("bound", &bound).finish()
    }
}
