//! A lock around a value.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::permits::Permits;
use crate::reason::Reason;

/// `std::sync::Mutex` for greenlets and threads alike: whoever waits parks, first come, first served, and nothing is poisoned.
/// Its guard may be held across a park.
///
/// It is not re-entrant: the greenlet that holds it and locks it again waits for itself. See [`RLock`](super::RLock).
///
/// ```
/// use std::sync::Arc;
/// use greenroom::sync::Mutex;
///
/// let count = Arc::new(Mutex::new(0));
/// let thread = std::thread::spawn({
///     let count = Arc::clone(&count);
///     move || *count.lock() += 1
/// });
/// let greenlet = greenroom::spawn({
///     let count = Arc::clone(&count);
///     move || {
///         let mut count = count.lock();
///         greenroom::yield_now();
///         *count += 1;
///     }
/// });
/// greenlet.join().unwrap();
/// thread.join().unwrap();
/// assert_eq!(*count.lock(), 2);
/// ```
pub struct Mutex<T: ?Sized> {
    /// One permit: the right to the value.
    permits: Permits,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through `&mut self`, or by the one who holds the permit: so by one at a time, perhaps on
// another thread each time, which is what `T: Send` allows.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// One that is free.
    ///
    /// ```
    /// static NAMES: greenroom::sync::Mutex<Vec<&str>> = greenroom::sync::Mutex::new(Vec::new());
    /// NAMES.lock().push("Ada");
    /// ```
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { permits: Permits::new(1, 1), value: UnsafeCell::new(value) }
    }

    /// The value.
    ///
    /// ```
    /// assert_eq!(greenroom::sync::Mutex::new(1).into_inner(), 1);
    /// ```
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Locks it; parks until it is free. Gives the guard itself: there is no poisoning to `unwrap`.
    ///
    /// # Panics
    ///
    /// With "this would block forever", on main, when nothing can ever unlock it.
    ///
    /// ```
    /// let mutex = greenroom::sync::Mutex::new(1);
    /// *mutex.lock() += 1;
    /// assert_eq!(*mutex.lock(), 2);
    /// ```
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.permits.acquire(1, Reason::Mutex, None);
        self.guard()
    }

    /// Locks it if it is free. Doesn't park.
    ///
    /// ```
    /// let mutex = greenroom::sync::Mutex::new(1);
    /// let guard = mutex.try_lock();
    /// assert!(guard.is_some());
    /// assert!(mutex.try_lock().is_none());
    /// ```
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.permits.try_acquire(1).then(|| self.guard())
    }

    /// Locks it; parks until it is free, for at most `d`. `None`: it wasn't in time.
    ///
    /// ```
    /// let mutex = greenroom::sync::Mutex::new(1);
    /// let _guard = mutex.lock();
    /// assert!(mutex.lock_timeout(std::time::Duration::from_millis(1)).is_none());
    /// ```
    pub fn lock_timeout(&self, d: Duration) -> Option<MutexGuard<'_, T>> {
        self.permits.acquire(1, Reason::Mutex, Some(d)).then(|| self.guard())
    }

    /// The value, without locking: `&mut self` proves that nobody else has it.
    ///
    /// ```
    /// let mut mutex = greenroom::sync::Mutex::new(1);
    /// *mutex.get_mut() += 1;
    /// assert_eq!(mutex.into_inner(), 2);
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Only for the one who has just taken the permit.
    fn guard(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, stays: PhantomData }
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Mutex<T> {
        Mutex::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Mutex<T> {
        Mutex::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_struct("Mutex").field("value", &&*guard).finish(),
            None => f.debug_struct("Mutex").field("value", &format_args!("<locked>")).finish(),
        }
    }
}

/// The right to a [`Mutex`]'s value, until it is dropped. It stays on its thread:
///
/// ```compile_fail,E0277
/// let mutex = greenroom::sync::Mutex::new(1);
/// let guard = mutex.lock();
/// std::thread::scope(|scope| scope.spawn(move || drop(guard)).join().unwrap());
/// ```
#[must_use = "the mutex is unlocked at once if the guard is dropped"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// Not `Send`, as std's.
    stays: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives `&T` and nothing else.
unsafe impl<T: ?Sized + Sync> Sync for MutexGuard<'_, T> {}

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    /// What it is a guard of.
    pub(super) fn mutex(&self) -> &'a Mutex<T> {
        self.mutex
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard has the only permit, and is borrowed for as long as the reference lives.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` makes the reference the only one.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.mutex.permits.release(1);
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
