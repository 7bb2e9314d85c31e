//! A group with a limit.

use std::error::Error;
use std::fmt;
use std::ops::Deref;
use std::panic::Location;
use std::rc::Rc;
use std::time::Duration;

use super::Group;
use crate::Greenlet;
use crate::sync::{Permit, Semaphore};

/// A [`Group`] of at most so many members: [`spawn`](Group::spawn), and all that spawns, parks while it is full, first come, first
/// served. It has all methods of a group; cloning gives the same pool.
///
/// ```
/// use greenroom::{group::Pool, yield_now};
///
/// let pool = Pool::new(2);
/// for _ in 0..5 {
///     pool.spawn(|| yield_now()); // the third parks until the first has ended
///     assert!(pool.len() <= 2);
/// }
/// pool.join(None);
/// ```
#[derive(Clone)]
pub struct Pool {
    group: Group,
    limit: usize,
}

impl Pool {
    /// A pool of at most `limit` members. With 0 every spawn parks.
    ///
    /// ```
    /// assert_eq!(greenroom::group::Pool::new(7).free_count(), 7);
    /// ```
    pub fn new(limit: usize) -> Pool {
        Pool { group: Group::with_slots(Some(Rc::new(Semaphore::new(limit)))), limit }
    }

    /// Starts a greenlet as a member, unless the pool is full. Doesn't park.
    ///
    /// # Errors
    ///
    /// [`Full`], with `f`.
    ///
    /// # Panics
    ///
    /// As [`spawn`](crate::spawn()).
    ///
    /// ```
    /// let pool = greenroom::group::Pool::new(1);
    /// let first = pool.try_spawn(|| 1).unwrap();
    /// let refused = pool.try_spawn(|| 2).unwrap_err();
    /// assert_eq!(first.join().unwrap(), 1);
    /// assert_eq!(pool.try_spawn(refused.into_inner()).unwrap().join().unwrap(), 2);
    /// ```
    #[track_caller]
    pub fn try_spawn<F, T>(&self, f: F) -> Result<Greenlet<T>, Full<F>>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        self.spawn_with(self.slots().try_acquire(), f)
    }

    /// Starts a greenlet as a member; parks while the pool is full, for at most `d`.
    ///
    /// # Errors
    ///
    /// [`Full`], with `f`, when the time is over.
    ///
    /// # Panics
    ///
    /// As [`spawn`](crate::spawn()).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let pool = greenroom::group::Pool::new(0);
    /// assert!(pool.spawn_timeout(Duration::from_millis(1), || 1).is_err());
    /// ```
    #[track_caller]
    pub fn spawn_timeout<F, T>(&self, d: Duration, f: F) -> Result<Greenlet<T>, Full<F>>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        self.group.have_hub();
        self.spawn_with(self.slots().acquire_timeout(d), f)
    }

    #[track_caller]
    fn spawn_with<F, T>(&self, slot: Option<Permit<'_>>, f: F) -> Result<Greenlet<T>, Full<F>>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        let Some(slot) = slot else { return Err(Full { f, limit: self.limit }) };
        let member = self.group.add(Location::caller(), f);
        slot.forget();
        Ok(member)
    }

    /// How many more members it may have now.
    pub fn free_count(&self) -> usize {
        self.slots().available_permits()
    }

    fn slots(&self) -> &Semaphore {
        self.group.inner.slots.as_ref().expect("a pool has a limit")
    }
}

/// A pool is a group.
impl Deref for Pool {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.group
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("len", &self.len()).field("limit", &self.limit).finish_non_exhaustive()
    }
}

/// The pool was full, at once or for all the time given; what was to run is in it.
///
/// ```
/// let full = greenroom::group::Pool::new(0).try_spawn(|| ()).unwrap_err();
/// assert_eq!(full.to_string(), "the pool has all of its 0 members: spawn waits for one to end");
/// ```
pub struct Full<F> {
    f: F,
    limit: usize,
}

impl<F> Full<F> {
    /// What was to run.
    pub fn into_inner(self) -> F {
        self.f
    }
}

impl<F> fmt::Debug for Full<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").field("limit", &self.limit).finish_non_exhaustive()
    }
}

impl<F> fmt::Display for Full<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the pool has all of its {} members: spawn waits for one to end", self.limit)
    }
}

impl<F> Error for Full<F> {}
