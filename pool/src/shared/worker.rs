//! The threads of a pool: how one is started, what it does, and who does it when the system refuses a thread.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::{io, ptr, thread};

use super::gate::{TICK, Watch};
use super::sleepers::Bed;
use super::{Shared, Word};
use crate::census;
use crate::spin::Role;
use crate::sys::be_worker;

/// Starts a thread that runs the body, or says why the system doesn't allow it.
pub(crate) type Starter = fn(thread::Builder, Body) -> io::Result<()>;
/// What such a thread does.
pub(super) type Body = Box<dyn FnOnce() + Send>;

/// The shortest time that a worker waits for a job before it leaves.
const SHORTEST_PATIENCE: Duration = Duration::from_millis(1);

/// The starter of every pool outside this crate's own tests.
pub(crate) fn os_thread(builder: thread::Builder, body: Body) -> io::Result<()> {
    builder.spawn(body).map(drop)
}

thread_local! {
    /// The pools whose jobs this thread is performing, innermost last.
    static SERVING: RefCell<Vec<*const Shared>> = const { RefCell::new(Vec::new()) };
}

/// Is the current thread a worker of this pool, or of any?
pub(crate) fn current_is_worker(of: Option<*const Shared>) -> bool {
    let found = SERVING.try_with(|pools| match of {
        Some(pool) => pools.borrow().iter().any(|&serving| ptr::eq(serving, pool)),
        None => !pools.borrow().is_empty(),
    });
    found.unwrap_or(false) // this thread is past its end
}

/// Makes the current thread a worker of a pool while it lives.
pub(super) struct Serving {
    pool: *const Shared,
    /// False on a thread past its end, whose thread-locals are gone.
    entered: bool,
}

impl Serving {
    pub(super) fn begin(pool: &Shared) -> Serving {
        Serving { pool, entered: SERVING.try_with(|pools| pools.borrow_mut().push(pool)).is_ok() }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.entered {
            // Not always the last one: what runs jobs may be a coroutine that gave way to another in the middle.
            let _ = SERVING.try_with(|pools| {
                let mut pools = pools.borrow_mut();
                let place = pools.iter().rposition(|&serving| ptr::eq(serving, self.pool));
                place.map(|place| pools.remove(place))
            });
        }
    }
}

impl Shared {
    /// Starts the thread of a worker that the word already counts as idle. If the system refuses, the remaining workers
    /// have to do; if there are none, the current thread stands in.
    pub(super) fn start_worker(self: &Arc<Self>) {
        if self.try_start().is_err() && !self.yield_seat() {
            self.stand_in();
        }
    }

    fn try_start(self: &Arc<Self>) -> io::Result<()> {
        let number = self.threads_named.fetch_add(1, Relaxed) + 1;
        let builder = thread::Builder::new().name(format!("{}-{number}", self.name));
        let shared = Arc::clone(self);
        let body = move || {
            let _counted_to_the_very_end = census::Presence::begin();
            be_worker(shared.priority, shared.niceness);
            work(shared);
        };
        census::awake_begins();
        (self.starter)(builder, Box::new(body)).inspect_err(|_| census::awake_ends())
    }

    /// The current thread does a worker's part until nothing is queued, another worker is there to do it, or the system
    /// grants a thread after all.
    #[cold]
    fn stand_in(self: &Arc<Self>) {
        let _serving = Serving::begin(self);
        let seat = self.seats.take();
        loop {
            // Whatever the gate says: nobody else would do it.
            if let Some(job) = self.claim(&seat.seat, usize::MAX) {
                self.perform(&seat.seat, job, false);
            }
            if self.leave(true) || self.yield_seat() || self.try_start().is_ok() {
                return;
            }
        }
    }

    /// An idle worker leaves if it isn't needed. True if it has left.
    fn leave(&self, tired: bool) -> bool {
        // A look at the word is enough as a rule; the step itself decides.
        if !tired && self.state.load().surplus() == 0 {
            return false;
        }
        self.after_leaving(self.state.leave(tired))
    }

    /// An idle worker leaves unless queued jobs would have no worker left. True if it has left.
    fn yield_seat(&self) -> bool {
        self.after_leaving(self.state.yield_seat())
    }

    /// Passes on to the next idle worker what made this one leave.
    fn after_leaving(&self, left: Option<Word>) -> bool {
        let Some(after) = left else { return false };
        self.sleepers.wake_up_to(after.surplus());
        self.ring_if_quiet();
        true
    }

    /// Looks at the gate while jobs wait at it.
    fn watch(&self, mut watch: Watch<'_>) {
        let kept_waiting =
            |word: Word| word.queued() > 0 && word.admitted(self.gate.width()) == 0 && word.surplus() == 0;
        while kept_waiting(self.state.load()) {
            thread::sleep(TICK);
            watch.tick(&self.seats);
        }
    }
}

/// The life of a worker.
fn work(shared: Arc<Shared>) {
    let _serving = Serving::begin(&shared);
    let seat = shared.seats.take();
    let bed = Bed::new();
    let patience = shared.keep_alive.max(SHORTEST_PATIENCE);
    let mut search = Search { shared: &shared, on: false };
    while !shared.leave(false) {
        if let Some(job) = shared.claim(&seat.seat, shared.gate.width()) {
            search.end();
            shared.perform(&seat.seat, job, true);
            continue;
        }
        if let Some(watch) = shared.is_wanted().then(|| shared.gate.watch()).flatten() {
            search.end();
            shared.watch(watch);
            shared.restaff();
            continue;
        }
        search.begin();
        if shared.spin.as_ref().is_some_and(|spin| spin.until(Role::Worker, || shared.is_wanted())) {
            continue;
        }
        search.end();
        shared.sleepers.enter(&bed);
        if shared.is_wanted() {
            search.on = !shared.sleepers.stay_up(&bed);
            continue;
        }
        search.on = shared.sleepers.sleep(&bed, patience);
        if !search.on && shared.leave(true) {
            break;
        }
    }
}

/// Whether a worker is relied on to look for a job.
struct Search<'a> {
    shared: &'a Shared,
    on: bool,
}

impl Search<'_> {
    fn begin(&mut self) {
        if !self.on {
            self.on = true;
            self.shared.sleepers.search_begins();
        }
    }

    /// If there is more to do than it has found, another one searches.
    fn end(&mut self) {
        if self.on {
            self.on = false;
            self.shared.sleepers.search_ends();
            self.shared.rouse();
        }
    }
}

impl Drop for Search<'_> {
    fn drop(&mut self) {
        self.end();
    }
}
