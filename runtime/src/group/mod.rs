//! Greenlets that belong together: counted, waited for and killed as one, and with a limit on how many.
//!
//! ```
//! use greenroom::group::Pool;
//!
//! let pool = Pool::new(3); // at most three at a time
//! let squares = pool.map(|number: u32| number * number, 1..=5);
//! assert_eq!(squares, [1, 4, 9, 16, 25]);
//! ```

// How the files share the work:
//
// * this file: `Group`.
// * `pool`: `Pool`, a group with a limit.
// * `imap`: feeding a group from an iterator.

mod imap;
mod pool;

use std::fmt;
use std::marker::PhantomData;
use std::panic::{Location, resume_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

pub use imap::{IMap, IMapUnordered};
pub use pool::{Full, Pool};

use crate::Greenlet;
use crate::greenlet::outcome::JoinError;
use crate::greenlet::roster::Roster;
use crate::greenlet::{current, unwind};
use crate::hub;
use crate::park::{Enlisted, Wait};
use crate::reason::Reason;
use crate::spawn::{kill_here, spawn_at};
use crate::sync::Semaphore;
use crate::threadpool::Call;

/// Greenlets that belong together. A greenlet is a member from its spawn to its end; the group knows nothing of it afterwards.
/// Cloning gives the same group. Dropping it changes nothing for its members.
///
/// ```
/// use greenroom::{group::Group, sleep};
/// use std::time::Duration;
///
/// let group = Group::new();
/// for milliseconds in 1..=3 {
///     group.spawn(move || sleep(Duration::from_millis(milliseconds)));
/// }
/// assert_eq!(group.len(), 3);
/// assert!(group.join(None));
/// assert!(group.is_empty());
/// ```
#[derive(Clone)]
pub struct Group {
    inner: Rc<Inner>,
    /// States what the `Rc` implies: it stays on its thread.
    not_send: PhantomData<*mut ()>,
}

struct Inner {
    members: Rc<Roster>,
    /// Greenlets that spawn members from an iterator.
    feeders: Rc<Roster>,
    /// One for each that may still become a member, if there is a limit.
    slots: Option<Rc<Semaphore>>,
    /// How many are killing it: who is spawned meanwhile is killed before it begins.
    killers: std::cell::Cell<usize>,
}

impl Group {
    /// A group without members.
    pub fn new() -> Group {
        Group::with_slots(None)
    }

    fn with_slots(slots: Option<Rc<Semaphore>>) -> Group {
        let members = Roster::new(
            0,
            slots
                .clone()
                .map(|slots| -> Box<dyn Fn()> { Box::new(move || slots.release().expect("each member took a slot")) }),
        );
        let inner = Inner { members, feeders: Roster::new(0, None), slots, killers: std::cell::Cell::new(0) };
        Group { inner: Rc::new(inner), not_send: PhantomData }
    }

    /// Starts a greenlet as a member; as [`spawn`](crate::spawn()). In a [`Pool`] that is full it parks until a member has
    /// ended, else it doesn't.
    ///
    /// # Panics
    ///
    /// As [`spawn`](crate::spawn()). And in a [`Pool`], on main, with "this would block forever", when no member can ever end.
    ///
    /// ```
    /// let group = greenroom::group::Group::new();
    /// let member = group.spawn(|| 7);
    /// assert_eq!(member.join().unwrap(), 7);
    /// ```
    #[track_caller]
    pub fn spawn<F, T>(&self, f: F) -> Greenlet<T>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        self.spawn_at(Location::caller(), f)
    }

    fn spawn_at<F, T>(&self, site: &'static Location<'static>, f: F) -> Greenlet<T>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        self.have_hub();
        let slot = self.inner.slots.as_ref().map(|slots| slots.acquire());
        let member = self.add(site, f);
        slot.into_iter().for_each(|slot| slot.forget());
        member
    }

    /// Who waits for a slot waits as main of the hub on which the member will run, so that a wait for ever is reported.
    fn have_hub(&self) {
        crate::hub();
    }

    /// For one who has a slot, and keeps it if this panics.
    fn add<F, T>(&self, site: &'static Location<'static>, f: F) -> Greenlet<T>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        let member = spawn_at(site, f);
        member.belong_to(&self.inner.members);
        if self.inner.killers.get() > 0 {
            member.request_kill();
        }
        member
    }

    /// How many members have not ended.
    pub fn len(&self) -> usize {
        self.inner.members.len()
    }

    /// Whether all members have ended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits until all members have ended, for at most `timeout`; returns whether they have. `None` has no limit. Parks, unless
    /// the group is empty.
    ///
    /// # Panics
    ///
    /// As [`Greenlet::join`]; a member that waits for its own group is such a case.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let group = greenroom::group::Group::new();
    /// group.spawn(|| greenroom::sleep(Duration::from_secs(3600)));
    /// assert!(!group.join(Some(Duration::from_millis(1))));
    /// ```
    pub fn join(&self, timeout: Option<Duration>) -> bool {
        until(&self.inner.members, 0, timeout.and_then(|timeout| Instant::now().checked_add(timeout)))
    }

    /// Kills all members, stops whatever feeds it (`imap`, `imap_unordered`), and waits until none is left. Greenlets that are
    /// spawned in it meanwhile, by those that are dying, die before they begin. Afterwards it can be used again. If the caller is
    /// a member, the others die first, then it unwinds.
    ///
    /// Parks.
    ///
    /// # Panics
    ///
    /// As [`Greenlet::join`].
    ///
    /// ```
    /// let group = greenroom::group::Group::new();
    /// let member = group.spawn(|| greenroom::sleep(std::time::Duration::MAX));
    /// group.kill();
    /// assert!(member.join().unwrap_err().is_killed());
    /// ```
    pub fn kill(&self) {
        let _killing = Killing::begin(self);
        let rosters = [&self.inner.feeders, &self.inner.members];
        current::with(|me| {
            hub::with_current(|hub| {
                if let Some(hub) = hub {
                    rosters.into_iter().for_each(|roster| hub.kill_members(roster, me));
                }
            });
            for roster in rosters {
                until(roster, usize::from(roster.has(me)), None);
            }
            if rosters.into_iter().any(|roster| roster.has(me)) {
                hub::with_current(|hub| hub.into_iter().for_each(|hub| hub.request_kill(me)));
                kill_here(me);
            }
        });
    }

    /// Runs `f` in a member and returns what it returns; parks until then. `args` is a tuple of 0 to 8 arguments. Called by a member
    /// of this same group, it calls `f` in place, so that a full [`Pool`] can't wait for itself.
    ///
    /// If the caller is killed or times out meanwhile, the member is killed.
    ///
    /// # Panics
    ///
    /// With the payload of `f`'s panic; when the member is killed; and as [`spawn`](Group::spawn).
    ///
    /// ```
    /// let pool = greenroom::group::Pool::new(1);
    /// assert_eq!(pool.apply(|a: u32, b: u32| a + b, (1, 2)), 3);
    /// ```
    #[track_caller]
    pub fn apply<F, A>(&self, f: F, args: A) -> F::Output
    where
        F: Call<A> + 'static,
        A: 'static,
        F::Output: 'static,
    {
        if current::with(|me| self.inner.members.has(me)) {
            return f.call(args);
        }
        let mut started = Started(vec![self.spawn(move || f.call(args))]);
        match started.join_first() {
            Ok(value) => value,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(_) => panic!("Group::apply: the greenlet that ran the function was killed"),
        }
    }

    /// Calls `f` with each item, each in a member of its own, and returns the results in the order of the items. Parks until all are
    /// there.
    ///
    /// If one panics, if the caller is killed or times out, the members that this call has started are killed.
    ///
    /// # Panics
    ///
    /// With the payload of the first panic, in the order of the items; when a member is killed by somebody else; and as
    /// [`spawn`](Group::spawn).
    ///
    /// ```
    /// let group = greenroom::group::Group::new();
    /// assert_eq!(group.map(|word: &str| word.len(), ["green", "room"]), [5, 4]);
    /// ```
    #[track_caller]
    pub fn map<F, T, R>(&self, f: F, items: impl IntoIterator<Item = T>) -> Vec<R>
    where
        F: Fn(T) -> R + 'static,
        T: 'static,
        R: 'static,
    {
        let (f, site) = (Rc::new(f), Location::caller());
        let mut started = Started(Vec::new());
        for item in items {
            let f = Rc::clone(&f);
            started.0.push(self.spawn_at(site, move || f(item)));
        }
        let all = started.0.len();
        started.0.reverse();
        let mut results = Vec::with_capacity(all);
        while results.len() < all {
            match started.join_first() {
                Ok(result) => results.push(result),
                Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
                Err(_) => panic!("Group::map: the greenlet for item {} was killed", results.len()),
            }
        }
        results
    }

    /// Calls `f` with each item, each in a member of its own, and gives the results in the order of the items as the iterator is
    /// read. A greenlet takes the items, at most `ahead` of which are under way or done and not yet read: memory is
    /// bounded however many there are. So of a [`Pool`] of `n` no more than `ahead` members are busy: `ahead` should be `n` at
    /// least. Doesn't park; the iterator's `next` does.
    ///
    /// `f` and the items may not borrow, since members may outlive the call. For what borrows there is [`scope`](crate::scope()),
    /// with a [`Semaphore`] to limit how many are at it.
    ///
    /// A result is an error when `f` panicked or its member was killed; those after it come all the same. A panic of `items`
    /// comes out of `next`, after the results before it. Dropping the iterator kills the members that it has started, and takes no
    /// more items.
    ///
    /// # Panics
    ///
    /// When `ahead` is 0.
    ///
    /// ```
    /// let group = greenroom::group::Group::new();
    /// let squares = group.imap(|number: u64| number * number, 0.., 10);
    /// let few: Vec<_> = squares.map(Result::unwrap).take_while(|square| *square < 20).collect();
    /// assert_eq!(few, [0, 1, 4, 9, 16]);
    /// ```
    #[track_caller]
    pub fn imap<F, T, R>(&self, f: F, items: impl IntoIterator<Item = T> + 'static, ahead: usize) -> IMap<R>
    where
        F: Fn(T) -> R + 'static,
        T: 'static,
        R: 'static,
    {
        IMap::start(self, f, items, ahead)
    }

    /// The same, but gives the results as they come.
    ///
    /// ```
    /// use greenroom::{group::Group, sleep};
    /// use std::time::Duration;
    ///
    /// let nap = |milliseconds| {
    ///     sleep(Duration::from_millis(milliseconds));
    ///     milliseconds
    /// };
    /// let naps = Group::new().imap_unordered(nap, [30, 1, 15], 3);
    /// assert_eq!(naps.map(Result::unwrap).collect::<Vec<_>>(), [1, 15, 30]);
    /// ```
    ///
    /// # Panics
    ///
    /// When `ahead` is 0.
    #[track_caller]
    pub fn imap_unordered<F, T, R>(
        &self,
        f: F,
        items: impl IntoIterator<Item = T> + 'static,
        ahead: usize,
    ) -> IMapUnordered<R>
    where
        F: Fn(T) -> R + 'static,
        T: 'static,
        R: 'static,
    {
        IMapUnordered::start(self, f, items, ahead)
    }
}

impl Default for Group {
    fn default() -> Group {
        Group::new()
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// Waits until at most `rest` (0 or 1) are left. Returns whether it came to that.
fn until(roster: &Rc<Roster>, rest: usize, deadline: Option<Instant>) -> bool {
    let wait = Wait::new();
    while roster.len() > rest {
        let _enlisted = Enlisted::new(&roster.waiters, &wait);
        if wait.park(Reason::Group, deadline).timed_out() && deadline.is_some() {
            return roster.len() <= rest;
        }
    }
    true
}

/// While it exists, who is spawned in the group dies at once.
struct Killing<'a>(&'a Inner);

impl<'a> Killing<'a> {
    fn begin(group: &'a Group) -> Killing<'a> {
        group.inner.killers.set(group.inner.killers.get() + 1);
        Killing(&group.inner)
    }
}

impl Drop for Killing<'_> {
    fn drop(&mut self) {
        self.0.killers.set(self.0.killers.get() - 1);
    }
}

/// Members whose results one waits for, the next one last; those that are left are killed with it.
struct Started<T>(Vec<Greenlet<T>>);

impl<T> Started<T> {
    fn join_first(&mut self) -> Result<T, JoinError> {
        // It stays in the list while it may have to be killed.
        self.0.last().expect("one is left").wait();
        self.0.pop().expect("one is left").join()
    }
}

impl<T> Drop for Started<T> {
    fn drop(&mut self) {
        self.0.iter().for_each(Greenlet::request_kill);
        // The caller unwinds already: a value whose destructor panics would abort.
        for handle in self.0.drain(..) {
            if let Err(payload) = unwind::drop_caught(handle) {
                current::with(|core| hub::Inner::report_unseen(core, JoinError::panicked(payload)));
            }
        }
    }
}
