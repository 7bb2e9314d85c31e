//! The threads of a pool: how one is started, what it does, and who does it when the system refuses a thread.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use std::{io, ptr, thread};

use super::Shared;
use crate::census;

/// Starts a thread that runs the body, or says why the system doesn't allow it.
pub(crate) type Starter = fn(thread::Builder, Body) -> io::Result<()>;
/// What such a thread does.
pub(super) type Body = Box<dyn FnOnce() + Send>;

/// The shortest wait for a message. The word may count a job whose submitter hasn't pushed it yet; who waited for it
/// without any patience would spin.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

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
        (self.starter)(
            builder,
            Box::new(move || {
                let _counted_to_the_very_end = census::Presence::begin();
                work(shared);
            }),
        )
    }

    /// The current thread does a worker's part until nothing is queued, another worker is there to do it, or the system
    /// grants a thread after all.
    #[cold]
    fn stand_in(self: &Arc<Self>) {
        let _serving = Serving::begin(self);
        loop {
            // Nothing to receive means that a submitter has counted its job and not pushed it yet.
            if let Ok(message) = self.receiver.recv_timeout(SHORTEST_WAIT) {
                self.receive(message);
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
    fn after_leaving(&self, left: Option<super::Word>) -> bool {
        let Some(after) = left else { return false };
        census::busy_begins(); // it may wake somebody
        self.ensure_looks(after.idle().min(after.surplus()).min(1));
        self.ring_if_quiet(after);
        census::busy_ends();
        true
    }
}

/// The life of a worker.
fn work(shared: Arc<Shared>) {
    let _serving = Serving::begin(&shared);
    let patience = shared.keep_alive.max(SHORTEST_WAIT);
    while !shared.leave(false) {
        match shared.receiver.recv_timeout(patience) {
            Ok(message) => shared.receive(message),
            Err(_) => {
                if shared.leave(true) {
                    return;
                }
            }
        }
    }
}
