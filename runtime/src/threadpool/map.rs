//! Many jobs of one caller, who waits for them: they borrow from its frame, as that of `apply` does. README.md beside this file
//! argues why that is sound.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_pool::lease::{Lease, Verdict};
use greenroom_pool::{Pool, Rejected};

use super::{ApplyError, ThreadPool, discard};
use crate::greenlet::current;
use crate::greenlet::unwind::{self, Interrupt};
use crate::park::Wait;
use crate::reason::Reason;
use crate::wake::Tally;

type Payload = Box<dyn Any + Send>;

impl ThreadPool {
    /// Calls `f` with each of the items on the pool's threads and returns the results, in order. Parks the calling greenlet alone
    /// until then; on main the hub runs meanwhile; a thread without a hub blocks. On a worker of this same pool it is a plain loop
    /// in place.
    ///
    /// `f`, the items and the results may borrow from the caller. The items are taken one by one by the caller, at most two for
    /// each thread of the pool ahead, so that others get their turn at the pool, and an iterator without end only fills the memory
    /// with results. A kill or timeout takes back what is queued, waits for what runs, and unwinds.
    ///
    /// # Panics
    ///
    /// With the payload of `f`'s panic, or of the iterator's: no more items are taken then, those queued are taken back and those
    /// that run are waited for; of several panics the one at the lowest position counts. When the pool is shut down, as
    /// [`apply`](ThreadPool::apply) does.
    ///
    /// ```
    /// let words = ["green", "room"];
    /// let suffix = String::from("!");
    /// let pool = greenroom::ThreadPool::new(2);
    /// assert_eq!(pool.map(|word| format!("{word}{suffix}"), &words), ["green!", "room!"]);
    /// ```
    ///
    /// What isn't `Send` can't cross:
    ///
    /// ```compile_fail
    /// greenroom::ThreadPool::new(2).map(|shared| *shared, [std::rc::Rc::new(1)]);
    /// ```
    pub fn map<F, T, R>(&self, f: F, items: impl IntoIterator<Item = T>) -> Vec<R>
    where
        F: Fn(T) -> R + Sync,
        T: Send,
        R: Send,
    {
        let mut items = items.into_iter();
        if self.pool.is_worker() {
            return items.map(f).collect();
        }
        let mut results = Vec::new();
        let mut window = Window { pool: &self.pool, f: &f, tally: Tally::new(), places: Vec::new(), free: Vec::new() };
        let worked = window.work(&mut items, &mut results);
        let Err(end) = worked.map_err(|end| window.wind_down(end)) else {
            drop(window);
            return results.into_iter().map(|result| result.expect("each position was worked on")).collect();
        };
        drop(window);
        // Before the caller unwinds: a destructor that panics in the middle of that would abort.
        discard(results);
        discard(items);
        discard(f);
        end.raise()
    }
}

/// Why there will be no more results.
enum End {
    /// A kill or timeout of the caller.
    Interrupted(Interrupt),
    /// The iterator's panic, or a kill or timeout that unwinds out of it.
    Iterator(Payload),
    /// The panic of the item at this position.
    Panicked(usize, Payload),
    /// The pool has been shut down.
    ShutDown,
}

impl End {
    fn raise(self) -> ! {
        match self {
            End::Interrupted(interrupt) => current::with(|core| unwind::raise(core, interrupt)),
            End::Iterator(payload) => current::with(|core| unwind::resume(core, payload)),
            End::Panicked(_, payload) => resume_unwind(payload),
            End::ShutDown => panic!("map: {}", ApplyError::ShutDown),
        }
    }

    /// What counts if this was noticed first, and an item at `position` has panicked as well.
    fn or_panicked(self, position: usize, payload: Payload) -> End {
        match self {
            End::Panicked(first, other) if position < first => {
                unwind::drop_payload(other);
                End::Panicked(position, payload)
            }
            End::ShutDown => End::Panicked(position, payload),
            end => {
                unwind::drop_payload(payload);
                end
            }
        }
    }
}

/// The jobs that are out. It doesn't end before they do.
struct Window<'a, F, T, R> {
    pool: &'a Pool,
    f: &'a F,
    /// Tells which places are done.
    tally: Arc<Tally>,
    places: Vec<Place<'a, F, T, R>>,
    /// Those of them with no job out.
    free: Vec<usize>,
}

/// Through which one job after the other is lent.
struct Place<'a, F, T, R> {
    /// Lent to the pool, and the worker's from the claim until the tally has its number.
    slot: Arc<Slot<'a, F, T, R>>,
    lease: Lease,
    /// Of the item that is out, or was last.
    position: usize,
    is_out: bool,
}

/// What the worker gets.
struct Slot<'a, F, T, R> {
    f: &'a F,
    tally: Arc<Tally>,
    number: usize,
    stage: Mutex<Stage<T, R>>,
}

enum Stage<T, R> {
    Empty,
    Item(T),
    Value(R),
    Panicked(Payload),
    /// The pool shut down before a worker took the job.
    Cancelled(T),
}

impl<F, T, R> Slot<'_, F, T, R> {
    fn replace(&self, stage: Stage<T, R>) -> Stage<T, R> {
        std::mem::replace(&mut *self.stage.lock().unwrap_or_else(PoisonError::into_inner), stage)
    }
}

impl<F, T, R> Window<'_, F, T, R>
where
    F: Fn(T) -> R + Sync,
    T: Send,
    R: Send,
{
    /// Feeds the pool with items and puts their results where they belong.
    fn work(&mut self, items: &mut impl Iterator<Item = T>, results: &mut Vec<Option<R>>) -> Result<(), End> {
        let wait = Wait::new();
        let mut is_fed = false;
        loop {
            let done = match self.tally.next() {
                Some(number) => number,
                None if !is_fed && self.out() < self.width() => {
                    match catch_unwind(AssertUnwindSafe(|| items.next())).map_err(End::Iterator)? {
                        Some(item) => {
                            self.lend(results.len(), item)?;
                            results.push(None);
                        }
                        None => is_fed = true,
                    }
                    continue;
                }
                None if self.out() == 0 => return Ok(()),
                None => self.next(&wait)?,
            };
            let (position, stage) = self.take_back(done);
            match stage {
                Stage::Value(value) => results[position] = Some(value),
                Stage::Panicked(payload) => return Err(End::Panicked(position, payload)),
                Stage::Cancelled(item) => {
                    discard(item);
                    return Err(End::ShutDown);
                }
                Stage::Empty | Stage::Item(_) => unreachable!("a job that is done has a result"),
            }
        }
    }

    /// How many may be out at a time: while a thread works on one, the next waits for it.
    fn width(&self) -> usize {
        (2 * self.pool.max_threads()).max(1)
    }

    fn out(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Lends the pool a job for an item.
    fn lend(&mut self, position: usize, item: T) -> Result<(), End> {
        let number = self.free.pop().unwrap_or_else(|| {
            let number = self.places.len();
            let (tally, stage) = (Arc::clone(&self.tally), Mutex::new(Stage::Empty));
            let slot = Arc::new(Slot { f: self.f, tally, number, stage });
            self.places.push(Place { slot, lease: Lease::new(), position, is_out: false });
            number
        });
        let place = &mut self.places[number];
        place.slot.replace(Stage::Item(item));
        place.position = position;
        let frame = Arc::as_ptr(&place.slot).cast();
        // SAFETY: `execute` matches the slot's type and doesn't unwind. The slot, and what it borrows, stays until it has come back
        // through the tally or has been revoked: whoever has this window waits for one of the two, and if it unwinds, the window's
        // destructor does. `F` is `Sync`, `T` and `R` are `Send`, so the worker may use, make and drop them.
        let lend = || unsafe { self.pool.lend_in_line(&mut place.lease, frame, execute::<F, T, R>) };
        // It may run jobs in here: what is meant for this greenlet must not unwind them.
        match current::with(|core| core.undisturbed(lend)) {
            Ok(()) => {
                place.is_out = true;
                Ok(())
            }
            Err(Rejected::ShutDown | Rejected::QueueFull) => {
                self.free.push(number);
                Err(End::ShutDown)
            }
        }
    }

    /// Waits for the next that is done.
    fn next(&self, wait: &Wait) -> Result<usize, End> {
        loop {
            if let Some(number) = self.tally.next_or_wake(wait.waiter()) {
                return Ok(number);
            }
            let _ = wait.park_until_interrupt(Reason::PoolJob, None).map_err(End::Interrupted)?;
        }
    }

    /// Takes back what is queued, waits for what runs, and returns what counts in the end.
    fn wind_down(&mut self, mut end: End) -> End {
        self.revoke();
        let wait = Wait::new();
        while self.out() > 0 {
            let Some(number) = self.tally.next_or_wake(wait.waiter()) else {
                wait.park_shielded(Reason::PoolJob);
                continue;
            };
            let (position, stage) = self.take_back(number);
            match stage {
                Stage::Panicked(payload) => end = end.or_panicked(position, payload),
                other => discard(other),
            }
        }
        // Items that were taken back.
        self.places.iter().for_each(|place| discard(place.slot.replace(Stage::Empty)));
        end
    }
}

impl<F, T, R> Window<'_, F, T, R> {
    /// One that is done is the caller's again. Its position, and what came of it.
    fn take_back(&mut self, number: usize) -> (usize, Stage<T, R>) {
        let place = &mut self.places[number];
        place.is_out = false;
        self.free.push(number);
        (place.position, place.slot.replace(Stage::Empty))
    }

    /// Takes back what no worker has taken.
    fn revoke(&mut self) {
        for (number, place) in self.places.iter_mut().enumerate() {
            if place.is_out && place.lease.revoke() {
                place.is_out = false;
                self.free.push(number);
            }
        }
    }
}

impl<F, T, R> Drop for Window<'_, F, T, R> {
    fn drop(&mut self) {
        self.revoke();
        // Only a panic in `work` that isn't the iterator's comes this way with jobs out, as a park in a place where none is
        // allowed: the thread waits, since nothing that is lent must die before the workers are through.
        while self.places.len() > self.free.len() {
            match self.tally.next() {
                Some(number) => discard(self.take_back(number)),
                None => std::thread::yield_now(),
            }
        }
    }
}

/// The worker's side.
///
/// # Safety
///
/// `slot` is a lent `Slot<F, T, R>`, and this is the one call for it.
unsafe fn execute<F: Fn(T) -> R, T, R>(slot: *const (), verdict: Verdict) {
    // SAFETY: the claim made the slot this thread's until the tally gets its number, after which it isn't used.
    let slot = unsafe { &*slot.cast::<Slot<'_, F, T, R>>() };
    let (tally, number) = (Arc::clone(&slot.tally), slot.number);
    let stage = match (verdict, slot.replace(Stage::Empty)) {
        (Verdict::Run, Stage::Item(item)) => match catch_unwind(AssertUnwindSafe(|| (slot.f)(item))) {
            Ok(value) => Stage::Value(value),
            Err(payload) => Stage::Panicked(payload),
        },
        (Verdict::Cancel, Stage::Item(item)) => Stage::Cancelled(item),
        (_, stage) => stage,
    };
    slot.replace(stage);
    tally.add(number);
}
