//! A lock that its owner may take again.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::owner::{self, NOBODY};
use super::permits::Permits;
use crate::reason::Reason;

/// A re-entrant lock, owned by a greenlet, by main, or by a thread without a hub: the owner may lock it again, everybody else
/// parks until the owner has dropped all of its guards. Another greenlet of the same thread is somebody else.
///
/// Its guard gives `&T`, since there may be several; put a `Cell` or `RefCell` inside to change the value.
///
/// ```
/// use std::cell::Cell;
/// use greenroom::sync::RLock;
///
/// static COUNT: RLock<Cell<u32>> = RLock::new(Cell::new(0));
///
/// let outer = COUNT.lock();
/// let inner = COUNT.lock();
/// inner.set(outer.get() + 1);
/// assert_eq!(outer.get(), 1);
///
/// // Another greenlet can't have it.
/// assert!(greenroom::spawn(|| COUNT.try_lock().is_none()).join().unwrap());
/// ```
pub struct RLock<T: ?Sized> {
    /// One permit: the right to the value.
    permits: Permits,
    /// Who has the permit, written by the owner alone. So nobody ever reads its own number here but the owner.
    owner: AtomicU64,
    /// How many guards there are; read and written by the owner alone.
    depth: AtomicUsize,
    value: T,
}

// SAFETY: `&T` is given to the one owner alone, which is code of one thread, and its guards stay there; by the permit, the
// owner's accesses come after those of the owner before. So `&T` is used by one thread at a time, which is what `T: Send`
// allows.
unsafe impl<T: ?Sized + Send> Sync for RLock<T> {}

impl<T> RLock<T> {
    /// One that is free.
    ///
    /// ```
    /// static LOG: greenroom::sync::RLock<()> = greenroom::sync::RLock::new(());
    /// let _guard = LOG.lock();
    /// ```
    pub const fn new(value: T) -> RLock<T> {
        RLock { permits: Permits::new(1, 1), owner: AtomicU64::new(NOBODY), depth: AtomicUsize::new(0), value }
    }

    /// The value.
    ///
    /// ```
    /// assert_eq!(greenroom::sync::RLock::new(1).into_inner(), 1);
    /// ```
    pub fn into_inner(self) -> T {
        self.value
    }
}

impl<T: ?Sized> RLock<T> {
    /// Locks it; parks while somebody else owns it.
    ///
    /// # Panics
    ///
    /// With "this would block forever", on main, when nothing can ever unlock it. If the owner has `usize::MAX` guards.
    ///
    /// ```
    /// let lock = greenroom::sync::RLock::new(1);
    /// assert_eq!(*lock.lock() + *lock.lock(), 2);
    /// ```
    pub fn lock(&self) -> RLockGuard<'_, T> {
        let me = owner::current();
        if !self.is_mine(me) {
            self.permits.acquire(1, Reason::RLock, None);
        }
        self.enter(me)
    }

    /// Locks it unless somebody else owns it. Doesn't park.
    ///
    /// ```
    /// let lock = greenroom::sync::RLock::new(1);
    /// let _guard = lock.lock();
    /// assert!(lock.try_lock().is_some());
    /// assert!(std::thread::scope(|scope| scope.spawn(|| lock.try_lock().is_none()).join().unwrap()));
    /// ```
    pub fn try_lock(&self) -> Option<RLockGuard<'_, T>> {
        let me = owner::current();
        (self.is_mine(me) || self.permits.try_acquire(1)).then(|| self.enter(me))
    }

    /// Locks it; parks while somebody else owns it, for at most `d`. `None`: it wasn't free in time.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let lock = greenroom::sync::RLock::new(1);
    /// let _guard = lock.lock();
    /// let timed_out = || lock.lock_timeout(Duration::from_millis(1)).is_none();
    /// assert!(std::thread::scope(|scope| scope.spawn(timed_out).join().unwrap()));
    /// ```
    pub fn lock_timeout(&self, d: Duration) -> Option<RLockGuard<'_, T>> {
        let me = owner::current();
        (self.is_mine(me) || self.permits.acquire(1, Reason::RLock, Some(d))).then(|| self.enter(me))
    }

    /// The value, without locking: `&mut self` proves that nobody else has it.
    ///
    /// ```
    /// let mut lock = greenroom::sync::RLock::new(1);
    /// *lock.get_mut() += 1;
    /// assert_eq!(lock.into_inner(), 2);
    /// ```
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    fn is_mine(&self, me: u64) -> bool {
        self.owner.load(Ordering::Relaxed) == me
    }

    /// Only for the one who has the permit.
    fn enter(&self, me: u64) -> RLockGuard<'_, T> {
        let Some(depth) = self.depth.load(Ordering::Relaxed).checked_add(1) else {
            panic!("a re-entrant lock was locked {} times by one owner", usize::MAX);
        };
        self.depth.store(depth, Ordering::Relaxed);
        self.owner.store(me, Ordering::Relaxed);
        RLockGuard { lock: self, stays: PhantomData }
    }
}

impl<T: Default> Default for RLock<T> {
    fn default() -> RLock<T> {
        RLock::new(T::default())
    }
}

impl<T> From<T> for RLock<T> {
    fn from(value: T) -> RLock<T> {
        RLock::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.try_lock() {
            Some(guard) => f.debug_struct("RLock").field("value", &&*guard).finish(),
            None => f.debug_struct("RLock").field("value", &format_args!("<locked>")).finish(),
        }
    }
}

/// One of its owner's rights to a [`RLock`]'s value, until it is dropped. It stays on its thread, so nobody else can release it:
///
/// ```compile_fail,E0277
/// let lock = greenroom::sync::RLock::new(1);
/// let guard = lock.lock();
/// std::thread::scope(|scope| scope.spawn(move || drop(guard)).join().unwrap());
/// ```
#[must_use = "the lock is released at once if the guard is dropped"]
pub struct RLockGuard<'a, T: ?Sized> {
    lock: &'a RLock<T>,
    /// Neither `Send`, since the lock is its thread's, nor `Sync`, unless `T` is.
    stays: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives `&T` and nothing else.
unsafe impl<T: ?Sized + Sync> Sync for RLockGuard<'_, T> {}

impl<T: ?Sized> Deref for RLockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.lock.value
    }
}

impl<T: ?Sized> Drop for RLockGuard<'_, T> {
    fn drop(&mut self) {
        let depth = self.lock.depth.load(Ordering::Relaxed) - 1;
        self.lock.depth.store(depth, Ordering::Relaxed);
        if depth == 0 {
            self.lock.owner.store(NOBODY, Ordering::Relaxed);
            self.lock.permits.release(1);
        }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RLockGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for RLockGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
