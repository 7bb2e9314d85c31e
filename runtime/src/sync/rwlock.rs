//! A lock for many readers or one writer.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::permits::Permits;
use crate::reason::Reason;

/// What a writer needs: as many permits as there may be readers.
const ALL: usize = isize::MAX as usize;

/// `std::sync::RwLock` for greenlets and threads alike: whoever waits parks, and nothing is poisoned. Its guards may be held
/// across a park.
///
/// First come, first served, among readers and writers together: a reader that comes after a waiting writer waits too, so
/// readers can't starve writers. So one that holds it to read and reads again can wait for itself.
///
/// ```
/// use greenroom::sync::RwLock;
///
/// let lock = RwLock::new(1);
/// {
///     let (first, second) = (lock.read(), lock.read());
///     assert_eq!(*first + *second, 2);
/// }
/// *lock.write() += 1;
/// assert_eq!(*lock.read(), 2);
/// ```
pub struct RwLock<T: ?Sized> {
    /// `ALL` of them: a reader has one, a writer all.
    permits: Permits,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through `&mut self`, by one writer alone (`T: Send`), or by readers, on several threads at
// once (`T: Sync`).
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    /// One that is free.
    ///
    /// ```
    /// static LIMIT: greenroom::sync::RwLock<u32> = greenroom::sync::RwLock::new(10);
    /// assert_eq!(*LIMIT.read(), 10);
    /// ```
    pub const fn new(value: T) -> RwLock<T> {
        RwLock { permits: Permits::new(ALL, ALL), value: UnsafeCell::new(value) }
    }

    /// The value.
    ///
    /// ```
    /// assert_eq!(greenroom::sync::RwLock::new(1).into_inner(), 1);
    /// ```
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Locks it to read; parks while a writer has it or waits for it.
    ///
    /// # Panics
    ///
    /// With "this would block forever", on main, when nothing can ever unlock it.
    ///
    /// ```
    /// let lock = greenroom::sync::RwLock::new(1);
    /// assert_eq!(*lock.read(), 1);
    /// ```
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.permits.acquire(1, Reason::ReadLock, None);
        self.reader()
    }

    /// Locks it to read if no writer has it or waits for it. Doesn't park.
    ///
    /// ```
    /// let lock = greenroom::sync::RwLock::new(1);
    /// let _writer = lock.write();
    /// assert!(lock.try_read().is_none());
    /// ```
    pub fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.permits.try_acquire(1).then(|| self.reader())
    }

    /// Locks it to read, as [`read`](RwLock::read), waiting at most `d`. `None`: it couldn't in time.
    ///
    /// ```
    /// let lock = greenroom::sync::RwLock::new(1);
    /// let _writer = lock.write();
    /// assert!(lock.read_timeout(std::time::Duration::from_millis(1)).is_none());
    /// ```
    pub fn read_timeout(&self, d: Duration) -> Option<RwLockReadGuard<'_, T>> {
        self.permits.acquire(1, Reason::ReadLock, Some(d)).then(|| self.reader())
    }

    /// Locks it to write; parks while anybody has it or waits for it.
    ///
    /// # Panics
    ///
    /// With "this would block forever", on main, when nothing can ever unlock it.
    ///
    /// ```
    /// let lock = greenroom::sync::RwLock::new(1);
    /// *lock.write() = 2;
    /// assert_eq!(*lock.read(), 2);
    /// ```
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.permits.acquire(ALL, Reason::WriteLock, None);
        self.writer()
    }

    /// Locks it to write if nobody has it. Doesn't park.
    ///
    /// ```
    /// let lock = greenroom::sync::RwLock::new(1);
    /// let _reader = lock.read();
    /// assert!(lock.try_write().is_none());
    /// ```
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.permits.try_acquire(ALL).then(|| self.writer())
    }

    /// Locks it to write, waiting at most `d`. `None`: it couldn't in time.
    ///
    /// ```
    /// let lock = greenroom::sync::RwLock::new(1);
    /// let _reader = lock.read();
    /// assert!(lock.write_timeout(std::time::Duration::from_millis(1)).is_none());
    /// ```
    pub fn write_timeout(&self, d: Duration) -> Option<RwLockWriteGuard<'_, T>> {
        self.permits.acquire(ALL, Reason::WriteLock, Some(d)).then(|| self.writer())
    }

    /// The value, without locking: `&mut self` proves that nobody else has it.
    ///
    /// ```
    /// let mut lock = greenroom::sync::RwLock::new(1);
    /// *lock.get_mut() += 1;
    /// assert_eq!(lock.into_inner(), 2);
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Only for the one who has just taken a permit.
    fn reader(&self) -> RwLockReadGuard<'_, T> {
        RwLockReadGuard { lock: self, stays: PhantomData }
    }

    /// Only for the one who has just taken all permits.
    fn writer(&self) -> RwLockWriteGuard<'_, T> {
        RwLockWriteGuard { lock: self, stays: PhantomData }
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> RwLock<T> {
        RwLock::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> RwLock<T> {
        RwLock::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_read() {
            Some(guard) => f.debug_struct("RwLock").field("value", &&*guard).finish(),
            None => f.debug_struct("RwLock").field("value", &format_args!("<locked>")).finish(),
        }
    }
}

/// The right to read a [`RwLock`]'s value, until it is dropped. It stays on its thread:
///
/// ```compile_fail,E0277
/// let lock = greenroom::sync::RwLock::new(1);
/// let guard = lock.read();
/// std::thread::scope(|scope| scope.spawn(move || drop(guard)).join().unwrap());
/// ```
#[must_use = "the lock is released at once if the guard is dropped"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    /// Not `Send`, as std's.
    stays: PhantomData<*const ()>,
}

/// The right to a [`RwLock`]'s value, until it is dropped. It stays on its thread:
///
/// ```compile_fail,E0277
/// let lock = greenroom::sync::RwLock::new(1);
/// let guard = lock.write();
/// std::thread::scope(|scope| scope.spawn(move || drop(guard)).join().unwrap());
/// ```
#[must_use = "the lock is released at once if the guard is dropped"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    /// Not `Send`, as std's.
    stays: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives `&T` and nothing else.
unsafe impl<T: ?Sized + Sync> Sync for RwLockReadGuard<'_, T> {}
// SAFETY: a shared guard gives `&T` and nothing else.
unsafe impl<T: ?Sized + Sync> Sync for RwLockWriteGuard<'_, T> {}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard has a permit, so no writer has all of them while it is borrowed.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the guard has all permits, and is borrowed for as long as the reference lives.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and `&mut self` makes the reference the only one.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.permits.release(1);
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.permits.release(ALL);
    }
}

macro_rules! shown_as_the_value {
    ($($guard:ident: $trait:ident),*) => { $(
        impl<T: ?Sized + fmt::$trait> fmt::$trait for $guard<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                (**self).fmt(f)
            }
        }
    )* };
}

shown_as_the_value! { RwLockReadGuard: Debug, RwLockReadGuard: Display, RwLockWriteGuard: Debug, RwLockWriteGuard: Display }
