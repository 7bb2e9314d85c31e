//! Jobs for the items of an iterator, a bounded number ahead of their reader, who starts them.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use greenroom_pool::Pool;
use slab::Slab;

use super::ThreadPool;
use super::task::{WhenFull, start};
use crate::greenlet::{current, unwind};
use crate::park::{Wait, Watch, Watcher};
use crate::reason::Reason;
use crate::result::{AsyncResult, TaskError};
use crate::wake::Tally;

impl ThreadPool {
    /// Calls `f` with each of the items on the pool's threads, as far ahead of the reader as `ahead` says; the iterator gives the
    /// results in order. At most `ahead` items are taken from `items` and not yet read: `ahead` here, and then one before each
    /// that is read, on the reader's thread. So it needs no greenlet of its own, and works on a thread without a hub.
    ///
    /// This call doesn't park, unless `items` does; the iterator's `next` parks until the next result is there. It gives
    /// [`TaskError::Panicked`] in place of the result of an item that panicked, and goes on with the others after that; once the
    /// pool is shut down it gives [`TaskError::Cancelled`]. A panic of `items` reaches the reader after the results of the items
    /// before it. A timeout around `next` loses nothing. Dropping the iterator cancels what is still queued.
    ///
    /// Jobs beyond the pool's queue limit stand in line for it. On a worker of this same pool `next` calls `f` in place.
    ///
    /// # Panics
    ///
    /// If `ahead` is 0.
    ///
    /// ```
    /// let pool = greenroom::ThreadPool::new(2);
    /// let squares = pool.imap(|number: u64| number * number, 1.., 4);
    /// let first: Result<Vec<u64>, _> = squares.take(5).collect();
    /// assert_eq!(first.unwrap(), [1, 4, 9, 16, 25]);
    /// ```
    #[track_caller]
    pub fn imap<F, T, R>(&self, f: F, items: impl IntoIterator<Item = T, IntoIter: 'static>, ahead: usize) -> IMap<R>
    where
        F: Fn(T) -> R + Send + Sync + 'static,
        T: Send + 'static,
        R: Send + 'static,
    {
        let mut map = IMap { feed: Feed::new(&self.pool, f, items, ahead), results: VecDeque::new() };
        if !self.pool.is_worker() {
            map.feed_ahead();
        }
        map
    }

    /// The same, but the iterator gives the results as they come, errors among them.
    ///
    /// # Panics
    ///
    /// If `ahead` is 0.
    ///
    /// ```
    /// let pool = greenroom::ThreadPool::new(2);
    /// let mut found: Vec<usize> = pool.imap_unordered(str::len, ["a", "bcd", "ef"], 3).map(Result::unwrap).collect();
    /// found.sort();
    /// assert_eq!(found, [1, 2, 3]);
    /// ```
    #[track_caller]
    pub fn imap_unordered<F, T, R>(
        &self,
        f: F,
        items: impl IntoIterator<Item = T, IntoIter: 'static>,
        ahead: usize,
    ) -> IMapUnordered<R>
    where
        F: Fn(T) -> R + Send + Sync + 'static,
        T: Send + 'static,
        R: Send + 'static,
    {
        let feed = Feed::new(&self.pool, f, items, ahead);
        let mut map = IMapUnordered { feed, results: Slab::new(), tally: Tally::new() };
        if !self.pool.is_worker() {
            map.feed_ahead();
        }
        map
    }
}

/// The results of [`ThreadPool::imap`], in order. `next` parks until the next one is there. It stays on its thread, as the items
/// do.
#[must_use = "what it does not read ahead of you waits until it is read"]
pub struct IMap<R> {
    feed: Feed<R>,
    /// What is not read yet, in order.
    results: VecDeque<AsyncResult<R>>,
}

/// The results of [`ThreadPool::imap_unordered`], as they come. `next` parks until there is one. It stays on its thread, as the
/// items do.
#[must_use = "what it does not read ahead of you waits until it is read"]
pub struct IMapUnordered<R> {
    feed: Feed<R>,
    /// What is not read yet, by numbers; the watcher tells the tally when it is there.
    results: Slab<(AsyncResult<R>, Watcher)>,
    /// The numbers of those that are there.
    tally: Arc<Tally>,
}

/// Where the jobs come from.
struct Feed<R> {
    pool: Pool,
    /// Takes an item and starts its job; none when the items have come to an end.
    start: Option<Start<R>>,
    ahead: usize,
    /// The panic of the iterator.
    failure: Option<Box<dyn Any + Send>>,
}

type Start<R> = Box<dyn FnMut(&Pool) -> Option<AsyncResult<R>>>;

impl<R: Send + 'static> Feed<R> {
    #[track_caller]
    fn new<F, T>(pool: &Pool, f: F, items: impl IntoIterator<Item = T, IntoIter: 'static>, ahead: usize) -> Feed<R>
    where
        F: Fn(T) -> R + Send + Sync + 'static,
        T: Send + 'static,
    {
        assert!(ahead > 0, "imap with ahead = 0: no item could ever be under way; 1 takes one after the other");
        let (f, mut items) = (Arc::new(f), items.into_iter());
        let start = move |pool: &Pool| {
            let item = items.next()?;
            let f = Arc::clone(&f);
            Some(start(pool, move |item| f(item), (item,), WhenFull::StandInLine))
        };
        Feed { pool: pool.clone(), start: Some(Box::new(start)), ahead, failure: None }
    }
}

impl<R> Feed<R> {
    /// One more job, if there may be one beside the `unread` ones.
    fn next(&mut self, unread: usize) -> Option<AsyncResult<R>> {
        // In a worker of the pool it runs at once, so there it waits for its reader.
        let ahead = if self.pool.is_worker() { 1 } else { self.ahead };
        if unread >= ahead {
            return None;
        }
        let start = self.start.as_mut()?;
        match catch_unwind(AssertUnwindSafe(|| start(&self.pool))) {
            Ok(Some(result)) => return Some(result),
            Ok(None) => {}
            Err(payload) if unwind::is_ours(&*payload) => current::with(|core| unwind::resume(core, payload)),
            Err(payload) => self.failure = Some(payload),
        }
        self.start = None;
        None
    }

    /// Nothing is left to read.
    fn end<T>(&mut self) -> Option<T> {
        self.failure.take().map(|payload| resume_unwind(payload))
    }
}

impl<R> IMap<R> {
    fn feed_ahead(&mut self) {
        while let Some(result) = self.feed.next(self.results.len()) {
            self.results.push_back(result);
        }
    }
}

impl<R> Iterator for IMap<R> {
    type Item = Result<R, TaskError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.feed_ahead();
        match self.results.front() {
            // It stays where it is until it is there: a kill or timeout may come meanwhile.
            Some(first) => first.wait(),
            None => return self.feed.end(),
        }
        self.results.pop_front().map(AsyncResult::get)
    }
}

impl<R> Drop for IMap<R> {
    fn drop(&mut self) {
        for result in &self.results {
            result.cancel();
        }
    }
}

impl<R> IMapUnordered<R> {
    fn feed_ahead(&mut self) {
        while let Some(result) = self.feed.next(self.results.len()) {
            let place = self.results.vacant_entry();
            let watcher = Watcher::new(&self.tally, place.key());
            if result.watch(&watcher) {
                self.tally.add(place.key());
            }
            place.insert((result, watcher));
        }
    }
}

impl<R> Iterator for IMapUnordered<R> {
    type Item = Result<R, TaskError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.feed_ahead();
        if self.results.is_empty() {
            return self.feed.end();
        }
        let wait = Wait::new();
        let number = loop {
            match self.tally.next_or_wake(wait.waiter()) {
                Some(number) => break number,
                None => drop(wait.park(Reason::Any(self.results.len()), None)),
            }
        };
        Some(self.results.remove(number).0.get())
    }
}

impl<R> Drop for IMapUnordered<R> {
    fn drop(&mut self) {
        for (_, (result, _)) in &self.results {
            result.cancel();
        }
    }
}

impl<R> fmt::Debug for IMap<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IMap").field("unread", &self.results.len()).finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for IMapUnordered<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IMapUnordered").field("unread", &self.results.len()).finish_non_exhaustive()
    }
}
