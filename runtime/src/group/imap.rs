//! Feeding a group from an iterator: a greenlet takes the items and spawns a member for each, no further ahead of the reader than
//! it may.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::rc::Rc;

use slab::Slab;

use super::Group;
use crate::greenlet::outcome::JoinError;
use crate::greenlet::unwind;
use crate::queue::Queue;
use crate::sync::Semaphore;
use crate::{Greenlet, spawn};

/// The results of [`Group::imap`], in order. `next` parks until the next one is there.
#[must_use = "an iterator does nothing until it is read"]
pub struct IMap<R> {
    feed: Feed<Greenlet<R>>,
    /// The next one, once it has been waited for.
    front: Option<Greenlet<R>>,
}

/// The results of [`Group::imap_unordered`], as they come. `next` parks until there is one.
#[must_use = "an iterator does nothing until it is read"]
pub struct IMapUnordered<R> {
    feed: Feed<Result<R, JoinError>>,
    /// Members that have not ended.
    members: Rc<Members>,
}

type Members = RefCell<Slab<Option<Greenlet<()>>>>;

/// The reader's end. `E`: what the feeder, or a member, puts in for each item.
struct Feed<E> {
    shared: Rc<Shared<E>>,
    feeder: Greenlet<()>,
}

struct Shared<E> {
    /// Closed when nothing will be put in any more.
    entries: Queue<E>,
    /// How many more items may be under way.
    ahead: Semaphore,
    /// The panic of the iterator.
    failure: Cell<Option<Box<dyn Any + Send>>>,
}

/// Held by whoever may still put something in.
struct Open<E>(Rc<Shared<E>>);

impl<E> Open<E> {
    fn put(&self, entry: E) {
        // It is closed only when nobody holds one of these; and unbounded, so this never parks.
        drop(self.0.entries.put(entry));
    }
}

impl<E> Drop for Open<E> {
    fn drop(&mut self) {
        self.0.entries.close();
    }
}

impl<E: 'static> Feed<E> {
    /// `start` starts a member for an item.
    #[track_caller]
    fn start<T: 'static>(
        group: &Group,
        items: impl IntoIterator<Item = T> + 'static,
        ahead: usize,
        start: impl Fn(T, &Rc<Open<E>>) + 'static,
    ) -> Feed<E> {
        assert!(ahead > 0, "imap with ahead = 0: no item could ever be under way; 1 takes one after the other");
        let (entries, ahead, failure) = (Queue::unbounded(), Semaphore::new(ahead), Cell::new(None));
        let shared = Rc::new(Shared { entries, ahead, failure });
        let open = Rc::new(Open(Rc::clone(&shared)));
        let feeder = spawn(move || {
            let shared = Rc::clone(&open.0);
            let fed = catch_unwind(AssertUnwindSafe(|| {
                let mut items = items.into_iter();
                loop {
                    let place = shared.ahead.acquire();
                    let Some(item) = items.next() else { break };
                    start(item, &open);
                    // The reader gives it back.
                    place.forget();
                }
            }));
            match fed {
                Err(payload) if unwind::is_ours(&*payload) => resume_unwind(payload),
                Err(payload) => shared.failure.set(Some(payload)),
                Ok(()) => {}
            }
        });
        feeder.belong_to(&group.inner.feeders);
        Feed { shared, feeder }
    }
}

impl<E> Feed<E> {
    fn next(&self) -> Option<E> {
        match self.shared.entries.get() {
            Ok(entry) => Some(entry),
            Err(_) => match self.shared.failure.take() {
                None => None,
                Some(payload) => resume_unwind(payload),
            },
        }
    }

    /// An entry has been read.
    fn advance(&self) {
        self.shared.ahead.release().expect("each entry took a place");
    }
}

impl<E> Drop for Feed<E> {
    fn drop(&mut self) {
        self.feeder.request_kill();
    }
}

impl<R: 'static> IMap<R> {
    #[track_caller]
    pub(super) fn start<F, T>(
        group: &Group,
        f: F,
        items: impl IntoIterator<Item = T> + 'static,
        ahead: usize,
    ) -> IMap<R>
    where
        F: Fn(T) -> R + 'static,
        T: 'static,
    {
        let (f, members, site) = (Rc::new(f), group.clone(), Location::caller());
        let feed = Feed::start(group, items, ahead, move |item, open: &Rc<Open<Greenlet<R>>>| {
            let f = Rc::clone(&f);
            open.put(members.spawn_at(site, move || f(item)));
        });
        IMap { feed, front: None }
    }
}

impl<R> Iterator for IMap<R> {
    type Item = Result<R, JoinError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.front.is_none() {
            self.front = Some(self.feed.next()?);
        }
        // A kill or timeout may come meanwhile: it stays the next one.
        self.front.iter().for_each(Greenlet::wait);
        let result = self.front.take()?.join();
        self.feed.advance();
        Some(result)
    }
}

impl<R> Drop for IMap<R> {
    fn drop(&mut self) {
        self.front.iter().for_each(Greenlet::request_kill);
        while let Ok(member) = self.feed.shared.entries.try_get() {
            member.request_kill();
        }
    }
}

impl<R: 'static> IMapUnordered<R> {
    #[track_caller]
    pub(super) fn start<F, T>(
        group: &Group,
        f: F,
        items: impl IntoIterator<Item = T> + 'static,
        ahead: usize,
    ) -> IMapUnordered<R>
    where
        F: Fn(T) -> R + 'static,
        T: 'static,
    {
        let members = Rc::new(Members::default());
        let (f, group_of_members, started) = (Rc::new(f), group.clone(), Rc::clone(&members));
        let site = Location::caller();
        let feed = Feed::start(group, items, ahead, move |item, open: &Rc<Open<Result<R, JoinError>>>| {
            let f = Rc::clone(&f);
            let place = started.borrow_mut().insert(None);
            let report = Report { open: Rc::clone(open), members: Rc::clone(&started), place, result: None };
            let member = group_of_members.spawn_at(site, move || report.run(|| f(item)));
            if let Some(entry) = started.borrow_mut().get_mut(place) {
                *entry = Some(member);
            }
        });
        IMapUnordered { feed, members }
    }
}

/// What became of a member, put in when that has ended, or can't begin.
struct Report<R> {
    open: Rc<Open<Result<R, JoinError>>>,
    members: Rc<Members>,
    place: usize,
    /// `None`: killed.
    result: Option<Result<R, JoinError>>,
}

impl<R> Report<R> {
    fn run(mut self, f: impl FnOnce() -> R) {
        self.result = Some(match catch_unwind(AssertUnwindSafe(f)) {
            Ok(value) => Ok(value),
            Err(payload) if unwind::is_ours(&*payload) => resume_unwind(payload),
            Err(payload) => Err(JoinError::panicked(payload)),
        });
    }
}

impl<R> Drop for Report<R> {
    fn drop(&mut self) {
        let handle = self.members.borrow_mut().remove(self.place);
        drop(handle);
        self.open.put(self.result.take().unwrap_or_else(|| Err(JoinError::killed())));
    }
}

impl<R> Iterator for IMapUnordered<R> {
    type Item = Result<R, JoinError>;

    fn next(&mut self) -> Option<Self::Item> {
        let result = self.feed.next()?;
        self.feed.advance();
        Some(result)
    }
}

impl<R> Drop for IMapUnordered<R> {
    fn drop(&mut self) {
        self.members.borrow().iter().flat_map(|(_, member)| member).for_each(Greenlet::request_kill);
    }
}

impl<R> fmt::Debug for IMap<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IMap").finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for IMapUnordered<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IMapUnordered").finish_non_exhaustive()
    }
}
