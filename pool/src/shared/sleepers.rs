//! Where idle workers sleep, and who wakes them. The last to fall asleep is the first to be woken: its caches are warm, and those
//! that aren't needed find their rest and leave. README.md argues why none sleeps on.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crate::census;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    /// The length of the list; written under its lock.
    asleep: AtomicUsize,
    list: Mutex<Vec<Arc<Bed>>>,
    /// How many workers are awake without a job because they were woken or because they spin: each of them looks for a job, so
    /// nobody has to be woken for one.
    searching: AtomicUsize,
}

/// What a worker sleeps in.
#[derive(Debug)]
pub(super) struct Bed {
    thread: Thread,
    woken: AtomicBool,
}

impl Bed {
    /// For the current thread.
    pub(super) fn new() -> Arc<Bed> {
        Arc::new(Bed { thread: thread::current(), woken: AtomicBool::new(false) })
    }
}

impl Sleepers {
    /// The worker of this bed can be woken from now on. It must look for a job once more before it sleeps.
    pub(super) fn enter(&self, bed: &Arc<Bed>) {
        let mut list = self.lock();
        bed.woken.store(false, SeqCst);
        list.push(Arc::clone(bed));
        self.asleep.store(list.len(), SeqCst);
    }

    /// It won't sleep. False: somebody has woken it.
    pub(super) fn stay_up(&self, bed: &Arc<Bed>) -> bool {
        let removed = self.remove(bed, || ());
        if !removed {
            census::awake_ends(); // who has woken it has counted it once more
        }
        removed
    }

    fn remove(&self, bed: &Arc<Bed>, before: impl FnOnce()) -> bool {
        let mut list = self.lock();
        let place = list.iter().rposition(|other| Arc::ptr_eq(other, bed));
        if let Some(place) = place {
            before();
            list.remove(place);
            self.asleep.store(list.len(), SeqCst);
        }
        place.is_some()
    }

    /// Sleeps until woken, for at most so long. Returns whether it was woken; then it is searching.
    pub(super) fn sleep(&self, bed: &Arc<Bed>, patience: Duration) -> bool {
        let deadline = Instant::now().checked_add(patience);
        census::awake_ends();
        while !bed.woken.load(SeqCst) {
            match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                None => thread::park(),
                Some(left) if left.is_zero() => return !self.remove(bed, census::awake_begins),
                Some(left) => thread::park_timeout(left),
            }
        }
        true
    }

    /// Wakes one, unless another searches already. True if one seemed to sleep but didn't any more: then try again.
    pub(super) fn wake_searcher(&self) -> bool {
        if self.asleep.load(SeqCst) == 0 || self.searching.compare_exchange(0, 1, SeqCst, SeqCst).is_err() {
            return false;
        }
        let woken = self.wake();
        if !woken {
            self.searching.fetch_sub(1, SeqCst);
        }
        !woken
    }

    /// Wakes so many, or all if there are fewer.
    pub(super) fn wake_up_to(&self, count: usize) {
        for _ in 0..count {
            if self.asleep.load(SeqCst) == 0 {
                return;
            }
            self.searching.fetch_add(1, SeqCst);
            if !self.wake() {
                self.searching.fetch_sub(1, SeqCst);
                return;
            }
        }
    }

    /// The caller has counted it as searching.
    fn wake(&self) -> bool {
        let mut list = self.lock();
        if !list.is_empty() {
            census::awake_begins();
        }
        let bed = list.pop();
        self.asleep.store(list.len(), SeqCst);
        drop(list);
        if let Some(bed) = &bed {
            bed.woken.store(true, SeqCst);
            bed.thread.unpark();
        }
        bed.is_some()
    }

    /// A worker that was not woken searches.
    pub(super) fn search_begins(&self) {
        self.searching.fetch_add(1, SeqCst);
    }

    /// A worker has found something or gives up. It must see to it afterwards that nothing is left that it was relied on for.
    pub(super) fn search_ends(&self) {
        self.searching.fetch_sub(1, SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Bed>>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
