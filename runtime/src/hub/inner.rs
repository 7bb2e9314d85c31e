//! What a hub is made of.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crossbeam_channel::Receiver;
use greenroom_pool::{Pool, Spin};
use slab::Slab;

use super::GreenletInfo;
use super::asleep;
use super::builder::Config;
use crate::GreenletId;
use crate::greenlet::body::Task;
use crate::greenlet::core::{Core, MAIN};
use crate::greenlet::outcome::{JoinError, panic_message};
use crate::greenlet::{current, unwind};
use crate::reactor::Reactor;
use crate::stack::{self, AltStack, StackPool};
use crate::sys::ShortSlice;
use crate::timer::Timers;
use crate::wake::{Call, Door, Home, Ready, WaitCell, WaitList};

/// What `on_error` was given.
pub(super) type OnError = Rc<dyn Fn(&GreenletInfo, &(dyn std::any::Any + Send))>;

/// See the module.
pub(crate) struct Inner {
    pub(super) config: Config,
    /// The id of the next greenlet.
    next_id: Cell<u64>,
    /// How many greenlets were spawned.
    pub(super) spawned: Cell<u64>,
    /// The thread's own core.
    pub(super) main: Rc<Core>,
    /// What stands for the loop itself while it runs: a core that can neither park nor yield.
    pub(super) scheduler: Core,
    /// Greenlets that haven't ended. `MAIN`'s place is taken by `None`.
    pub(super) table: RefCell<Slab<Option<Rc<dyn Task>>>>,
    /// Greenlets that can run, main among them.
    pub(super) ready: Ready,
    /// How many more resumes until the loop looks at what came from outside.
    pub(super) turn_left: Cell<usize>,
    /// The deadline of each parked or delayed greenlet that has one, by its place in the table.
    pub(super) timers: RefCell<Timers>,
    /// Where the hub sleeps.
    pub(super) reactor: RefCell<Reactor>,
    /// The cross-thread side.
    pub(super) door: Arc<Door>,
    /// Closures sent by other threads; `None` after the shutdown.
    pub(super) calls: RefCell<Option<Receiver<Call>>>,
    /// Memory for greenlets.
    pub(super) stacks: StackPool,
    /// Keys of greenlets whose first stack was refused while others hold some: one starts each time one is given back.
    pub(super) starved: RefCell<VecDeque<usize>>,
    /// Wait cells that nobody uses.
    cells: RefCell<Vec<Arc<WaitCell>>>,
    /// Who waits until nothing else is ready.
    pub(super) idlers: RefCell<WaitList>,
    /// Who waits for all greenlets, or all others, to end; woken whenever one ends and at most `rest` are left.
    pub(super) leavers: RefCell<WaitList>,
    /// The most that any of the leavers doesn't wait for.
    pub(super) rest: Cell<usize>,
    /// How many jobs are out that greenlets of this hub wait for, of pools for which one may wait awake.
    pub(crate) jobs_out: Cell<usize>,
    /// Whether it pays to wait awake for these.
    pub(super) spin: Spin,
    /// The pool, once it was asked for.
    pool: RefCell<Option<Pool>>,
    /// Where the hub stands.
    pub(super) stage: Cell<Stage>,
    /// How many greenlets are parked in the middle of unwinding.
    pub(super) mid_unwind: Cell<usize>,
    /// How often a greenlet was resumed.
    pub(super) resumes: Cell<u64>,
    /// How often the hub slept.
    pub(super) sleeps: Cell<u64>,
    /// The slice that last called `checkpoint`, by the number of resumes, and when it first did.
    pub(super) slice: Cell<(u64, Option<Instant>)>,
    /// It waits for others by profession, so it never reports that it would do so for ever.
    pub(super) is_attendant: Cell<bool>,
    /// Whether the log line about foreign threads is out.
    pub(super) told_foreign: Cell<bool>,
    /// What to do with unseen panics.
    on_error: RefCell<OnError>,
    /// The thread's slice, until the hub ends.
    short_slice: RefCell<Option<ShortSlice>>,
    /// The signal stack for the overflow line, if the thread had none.
    alt_stack: RefCell<Option<AltStack>>,
}

/// See [`Inner::stage`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Running,
    /// Greenlets are being killed; only links may still be spawned.
    ShuttingDown,
    /// Nothing can be spawned any more.
    Ended,
}

impl Inner {
    /// Makes the hub of this thread.
    pub(super) fn new(config: Config) -> Rc<Inner> {
        let (reactor, bell) = Reactor::new().unwrap_or_else(|error| {
            panic!("the kernel refused the hub's poll: {error}; is the process out of descriptors?")
        });
        stack::install();
        let (send, calls) = crossbeam_channel::unbounded();
        let door = Door::new(send, bell);
        asleep::register(&door);
        let inner = Rc::new(Inner {
            config,
            next_id: Cell::new(take_ids()),
            spawned: Cell::new(0),
            main: current::of_thread().expect("this thread is ending: it can't get a hub any more"),
            scheduler: Core::of_scheduler(),
            table: RefCell::new(empty_table()),
            ready: Ready::new(Arc::clone(&door)),
            turn_left: Cell::new(0),
            timers: RefCell::new(Timers::new()),
            reactor: RefCell::new(reactor),
            door,
            calls: RefCell::new(Some(calls)),
            stacks: StackPool::new(config.stack_size),
            starved: RefCell::new(VecDeque::new()),
            cells: RefCell::new(Vec::new()),
            idlers: RefCell::new(WaitList::new()),
            leavers: RefCell::new(WaitList::new()),
            rest: Cell::new(0),
            jobs_out: Cell::new(0),
            spin: Spin::new(),
            pool: RefCell::new(None),
            stage: Cell::new(Stage::Running),
            mid_unwind: Cell::new(0),
            resumes: Cell::new(0),
            sleeps: Cell::new(0),
            slice: Cell::new((0, None)),
            is_attendant: Cell::new(false),
            told_foreign: Cell::new(false),
            on_error: RefCell::new(Rc::new(log_unseen)),
            short_slice: RefCell::new(if config.slice.is_zero() { None } else { ShortSlice::take(config.slice) }),
            alt_stack: RefCell::new(AltStack::ensure()),
        });
        // SAFETY: the queue lies in the `Rc`, which doesn't move it and which `OWNER` holds until `end` has withdrawn it.
        unsafe { inner.ready.install() };
        inner
    }

    /// The thread ends: suspended greenlets are leaked (their thread-locals are going), and wakes for them are dropped.
    pub(super) fn end(&self) {
        self.ready.withdraw();
        self.stage.set(Stage::Ended);
        let left = self.table.replace(empty_table());
        let calls = left.iter().filter_map(|(_, task)| task.as_ref()?.core().call.take());
        calls.for_each(|call| call.abandon());
        std::mem::forget(left);
        self.door.close();
        asleep::withdraw(&self.door);
        drop(self.alt_stack.take());
        self.give_slice_back();
        self.refuse_calls();
    }

    /// The thread gets the slice that it had before the hub.
    pub(crate) fn give_slice_back(&self) {
        if let Some(slice) = self.short_slice.take() {
            slice.restore();
        }
    }

    pub(crate) fn door(&self) -> Arc<Door> {
        Arc::clone(&self.door)
    }

    /// It is one of several that wait for what others ask of them: a wait of its main is no deadlock.
    pub(crate) fn attend(&self) {
        self.is_attendant.set(true);
    }

    /// Why nothing can be spawned, if so.
    pub(crate) fn refuses_spawn(&self) -> Option<&'static str> {
        match self.stage.get() {
            Stage::Running => None,
            Stage::ShuttingDown => Some("this thread's hub is shutting down: nothing can be spawned on it any more"),
            Stage::Ended => Some("this thread's hub has been shut down: nothing can be spawned on it any more"),
        }
    }

    /// An id for a new greenlet.
    pub(crate) fn next_id(&self) -> GreenletId {
        self.spawned.set(self.spawned.get() + 1);
        let id = self.next_id.get();
        let next = id + 1;
        self.next_id.set(if next.is_multiple_of(IDS) { take_ids() } else { next });
        GreenletId(id)
    }

    /// How many greenlets have not ended; main doesn't count.
    pub(crate) fn live(&self) -> usize {
        self.table.borrow().len() - 1
    }

    /// The hub moves towards its end, never back. Closures of other threads are refused from the first step on.
    pub(crate) fn set_stage(&self, stage: Stage) {
        self.stage.set(self.stage.get().max(stage));
        self.refuse_calls();
    }

    /// Drops the closures that other threads have sent, and with the receiver those they send from now on.
    fn refuse_calls(&self) {
        let calls = self.calls.take();
        for call in calls.iter().flat_map(|calls| calls.try_iter()) {
            if let Err(payload) = unwind::drop_caught(call.body) {
                let site = call.site;
                let why = panic_message(&*payload);
                log::error!("a closure sent from {site} to a hub that ends panicked when it was dropped: {why}");
                unwind::drop_payload(payload);
            }
        }
    }

    /// Who waits until at most `rest` greenlets have not ended.
    pub(crate) fn leavers(&self, rest: usize) -> &RefCell<WaitList> {
        self.rest.set(self.rest.get().max(rest));
        &self.leavers
    }

    /// Who waits until nothing else is ready.
    pub(crate) fn idlers(&self) -> &RefCell<WaitList> {
        &self.idlers
    }

    /// Whether the code of `core`, which runs, is unwinding.
    #[inline]
    pub(crate) fn is_unwinding(&self, core: &Core) -> bool {
        unwind::is_unwinding(core, self.mid_unwind.get())
    }

    /// `core` can run, and does so after everyone who could before.
    #[inline]
    pub(crate) fn make_ready(&self, core: &Core) {
        self.ready.push(core.key());
    }

    /// Ends the park of `core`, which is about to begin, at `deadline`.
    #[inline]
    pub(crate) fn arm(&self, deadline: Instant, core: &Core) {
        self.timers.borrow_mut().arm(deadline, core.place.get());
    }

    /// The park of `core` is over.
    #[inline]
    pub(crate) fn disarm(&self, core: &Core) {
        self.timers.borrow_mut().disarm(core.place.get());
    }

    /// When the slice that runs began, as far as `checkpoint` knows: `now` if it asks for the first time.
    #[inline]
    pub(crate) fn slice_start(&self, now: Instant) -> Instant {
        let resumes = self.resumes.get();
        match self.slice.get() {
            (slice, Some(start)) if slice == resumes => start,
            _ => {
                self.slice.set((resumes, Some(now)));
                now
            }
        }
    }

    /// Main doesn't count as resumed; its next slice begins at its next checkpoint all the same.
    pub(crate) fn new_slice(&self) {
        self.slice.set((0, None));
    }

    pub(crate) fn stacks(&self) -> &StackPool {
        &self.stacks
    }

    /// The hub's pool, made on first use.
    pub(crate) fn pool(&self) -> Pool {
        self.pool.borrow_mut().get_or_insert_with(|| Pool::new(self.config.threads)).clone()
    }

    pub(crate) fn set_pool(&self, pool: Pool) {
        let before = self.pool.borrow_mut().replace(pool);
        drop(before);
    }

    /// Whether it has been shut down.
    pub(crate) fn has_ended(&self) -> bool {
        self.stage.get() == Stage::Ended
    }

    /// A cell for a wait of this hub, used before or new.
    #[inline]
    pub(crate) fn take_cell(&self) -> Arc<WaitCell> {
        let used = self.cells.borrow_mut().pop();
        used.unwrap_or_else(|| WaitCell::new(Home::Hub(self.door())))
    }

    /// A wait is over; its cell may serve another.
    #[inline]
    pub(crate) fn give_cell(&self, cell: Arc<WaitCell>) {
        if cell.is_home(&self.door) {
            self.cells.borrow_mut().push(cell);
        }
    }

    pub(super) fn set_on_error(&self, f: OnError) {
        let before = self.on_error.replace(f);
        drop(before);
    }

    /// A panic that nobody can ask for any more: on the stack of the greenlet or of the one who dropped its handle. Doesn't unwind,
    /// whatever the handler, the logger, and the destructors of what they leave behind do.
    pub(crate) fn report_unseen(core: &Core, error: JoinError) {
        if error.is_killed() {
            return;
        }
        let payload = error.into_panic();
        let told = std::panic::catch_unwind(AssertUnwindSafe(|| {
            let info = GreenletInfo::of(core);
            match super::with_current(|hub| hub.map(|hub| Rc::clone(&hub.on_error.borrow()))) {
                None => log_unseen(&info, &*payload),
                Some(handler) => handler(&info, &*payload),
            }
        }));
        if let Err(second) = told {
            // A kill or timeout that ended the handler comes back at the next park of whoever runs here.
            if !unwind::is_ours(&*second) {
                let why = AssertUnwindSafe(panic_message(&*second));
                let logged = std::panic::catch_unwind(|| log::error!("the on_error handler panicked: {}", *why));
                logged.unwrap_or_else(unwind::drop_payload);
            }
            unwind::drop_payload(second);
        }
        unwind::drop_payload(payload);
    }
}

/// How many ids a hub takes at a time, less one: 0 is main's.
const IDS: u64 = 1 << 12;

/// The first of so many that nobody else has.
fn take_ids() -> u64 {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    TAKEN.fetch_add(IDS, Ordering::Relaxed) + 1
}

/// A table of greenlets with none but main in it.
fn empty_table() -> Slab<Option<Rc<dyn Task>>> {
    let mut table = Slab::new();
    assert_eq!(table.insert(None), MAIN);
    table
}

fn log_unseen(info: &GreenletInfo, payload: &(dyn std::any::Any + Send)) {
    log::error!("{info} panicked: {}", panic_message(payload));
}
