//! What the hub and the waits know of a greenlet, whatever it returns. The main greenlet of a hub and a plain thread
//! have one as well, so that `timeout` and `park` are one piece of code everywhere.

use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::ptr;
use std::sync::Arc;
use std::time::Instant;

use super::GreenletId;
use super::fiber::Fiber;
use super::locals::Locals;
use super::outcome::Outcome;
use super::roster::Membership;
use crate::reason::Reason;
use crate::stack::{Bounds, Note};
use crate::wake::{Abandon, WaitCell, WaitList};

/// The place of main in its hub's table.
pub(crate) const MAIN: usize = 0;

/// The place of the core that stands for the loop; in no table.
const SCHEDULER: usize = usize::MAX;

/// A link: what to do when the greenlet ends.
pub(crate) type Link = Box<dyn FnOnce(&Outcome)>;

/// See the module.
pub(crate) struct Core {
    /// Id, name, spawn site and stack bounds; what the overflow handler may read.
    pub(crate) note: Note,
    /// The stack size asked for, if not the hub's.
    pub(crate) stack_size: Option<usize>,
    /// The coroutine; unused for main and threads.
    pub(crate) fiber: Fiber,
    /// Its place in the hub's table; `MAIN` for main and threads.
    pub(crate) place: Cell<usize>,
    /// Where it stands with its hub.
    pub(crate) phase: Cell<Phase>,
    /// The wait it is parked on; `Some` exactly between switching out and being resumed.
    pub(crate) parked: Cell<Option<Parked>>,
    /// A kill is pending until the greenlet ends, however often its body swallows it.
    pub(crate) killed: Cell<bool>,
    /// Trusted only while another greenlet of the thread is parked in the middle of unwinding: whether this one is.
    pub(crate) unwinding: Cell<bool>,
    /// Timeouts that the code is inside of, outermost first.
    pub(crate) scopes: RefCell<Vec<Scope>>,
    /// How many of them, the outermost, don't count: a job of somebody else's runs here.
    hidden_scopes: Cell<usize>,
    /// The id of the timeout entered last; 0 before the first.
    last_scope: Cell<u64>,
    /// The result of the call that it runs for another thread: abandoned when the hub ends before.
    pub(crate) call: RefCell<Option<Arc<dyn Abandon>>>,
    /// Its place among those that it belongs to, until it ends.
    pub(crate) membership: Cell<Option<Membership>>,
    /// The values that belong to it.
    pub(crate) locals: Locals,
    /// Who waits for the end, in order.
    pub(crate) joiners: RefCell<WaitList>,
    /// What to run after the end, in order.
    pub(crate) links: RefCell<Vec<Link>>,
    /// It runs a link: a kill doesn't keep its body from beginning, so that links run in a shutdown too.
    pub(crate) is_link: Cell<bool>,
    /// Whether somebody holds the handle, and so could still ask for the outcome.
    pub(crate) watched: Cell<bool>,
}

/// See [`Core::phase`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Waits for its start time.
    Delayed,
    /// In the ready queue, running, or parked.
    Live,
    /// Its body is over; what it left is being dropped, which no kill cuts short.
    Ending,
    /// Its body has ended; with what.
    Done(Outcome),
}

/// See [`Core::parked`].
#[derive(Clone, Copy)]
pub(crate) struct Parked {
    /// The wait's cell, which the parked frame holds.
    cell: *const WaitCell,
    /// Its epoch.
    epoch: u64,
    /// For reports.
    pub(crate) reason: Reason,
    /// False: a kill has to wait for the wake.
    pub(crate) interruptible: bool,
}

/// See [`Core::scopes`].
#[derive(Clone, Copy)]
pub(crate) struct Scope {
    /// When it expires.
    pub(crate) deadline: Instant,
    /// Unique within the greenlet, so within everything its payload can reach.
    pub(crate) id: u64,
    /// It was entered by a destructor that runs because the greenlet unwinds: the one kind of timeout that may be
    /// raised in the middle of unwinding, since it is caught before the destructor ends.
    pub(crate) in_destructor: bool,
    /// It has been raised.
    pub(crate) raised: bool,
}

impl Parked {
    /// # Safety
    ///
    /// The cell must stay alive for as long as this stands in a core.
    pub(crate) unsafe fn new(cell: &WaitCell, epoch: u64, reason: Reason, interruptible: bool) -> Parked {
        Parked { cell, epoch, reason, interruptible }
    }

    /// Ends the park. True: the caller, and nobody else, makes the owner ready.
    pub(crate) fn kick(&self) -> bool {
        // SAFETY: `new`'s caller keeps the cell alive.
        unsafe { &*self.cell }.kick(self.epoch)
    }
}

impl Scope {
    /// Whether it may be raised in code that is unwinding or not. In the middle of unwinding once only: the second
    /// time it could meet a destructor that runs because of the first.
    fn may_raise(&self, unwinding: bool) -> bool {
        !unwinding || (self.in_destructor && !self.raised)
    }
}

impl Core {
    #[inline(always)]
    pub(crate) fn new(
        id: GreenletId,
        name: Option<Box<str>>,
        site: &'static Location<'static>,
        stack_size: Option<usize>,
    ) -> Core {
        Core {
            note: Note { bounds: Cell::new(Bounds::default()), id: id.0, name, site },
            stack_size,
            fiber: Fiber::new(),
            place: Cell::new(MAIN),
            phase: Cell::new(Phase::Live),
            parked: Cell::new(None),
            killed: Cell::new(false),
            unwinding: Cell::new(false),
            scopes: RefCell::new(Vec::new()),
            hidden_scopes: Cell::new(0),
            last_scope: Cell::new(0),
            call: RefCell::new(None),
            membership: Cell::new(None),
            locals: Locals::new(),
            joiners: RefCell::new(WaitList::new()),
            links: RefCell::new(Vec::new()),
            is_link: Cell::new(false),
            watched: Cell::new(true),
        }
    }

    /// For a thread: its main greenlet if it gets a hub.
    #[track_caller]
    pub(crate) fn of_thread() -> Core {
        Core::new(GreenletId(0), None, Location::caller(), None)
    }

    /// For the hub's loop.
    #[track_caller]
    pub(crate) fn of_scheduler() -> Core {
        let core = Core::of_thread();
        core.place.set(SCHEDULER);
        core
    }

    /// By which the ready queue knows it: its address, so that a switch looks nothing up.
    #[inline]
    pub(crate) fn key(&self) -> usize {
        ptr::from_ref(self).expose_provenance()
    }

    /// The greenlet, or main, with that key.
    ///
    /// # Safety
    ///
    /// It must not have ended.
    #[inline]
    pub(crate) unsafe fn of_key<'a>(key: usize) -> &'a Core {
        // SAFETY: `key` gave it out, and the caller knows that it lives.
        unsafe { &*ptr::with_exposed_provenance(key) }
    }

    pub(crate) fn id(&self) -> GreenletId {
        GreenletId(self.note.id)
    }

    pub(crate) fn is_main(&self) -> bool {
        self.place.get() == MAIN
    }

    /// Whether its next park unwinds.
    #[inline]
    pub(crate) fn is_kill_due(&self) -> bool {
        self.killed.get() && self.phase.get() == Phase::Live
    }

    /// Neither main nor the loop.
    #[inline]
    pub(crate) fn is_greenlet(&self) -> bool {
        !matches!(self.place.get(), MAIN | SCHEDULER)
    }

    pub(crate) fn is_scheduler(&self) -> bool {
        self.place.get() == SCHEDULER
    }

    pub(crate) fn is_done(&self) -> bool {
        matches!(self.phase.get(), Phase::Done(_))
    }

    /// How many greenlets can't end before this one.
    pub(crate) fn behind(&self) -> usize {
        let membership = self.membership.take();
        let behind = membership.as_ref().map_or(0, |membership| membership.roster.behind);
        self.membership.set(membership);
        behind
    }

    /// Enters a timeout; returns its id.
    pub(crate) fn push_scope(&self, deadline: Instant, in_destructor: bool) -> u64 {
        let id = self.last_scope.get() + 1;
        self.last_scope.set(id);
        self.scopes.borrow_mut().push(Scope { deadline, id, in_destructor, raised: false });
        id
    }

    /// Leaves the timeout `id`, and those inside of it.
    pub(crate) fn pop_scope(&self, id: u64) {
        let mut scopes = self.scopes.borrow_mut();
        while scopes.pop().is_some_and(|scope| scope.id != id) {}
    }

    /// Calls `f`, in which the timeouts around it don't count. `f` doesn't unwind.
    pub(crate) fn hide_scopes<R>(&self, f: impl FnOnce() -> R) -> R {
        let outer = self.hidden_scopes.replace(self.scopes.borrow().len());
        let result = f();
        self.hidden_scopes.set(outer);
        result
    }

    /// Calls `f`, in which neither a kill nor the timeouts around it are raised. `f` doesn't unwind.
    pub(crate) fn undisturbed<R>(&self, f: impl FnOnce() -> R) -> R {
        let phase = self.phase.replace(Phase::Ending);
        let result = self.hide_scopes(f);
        self.phase.set(phase);
        result
    }

    /// Whether there is anything that its next park could have to raise.
    #[inline]
    pub(crate) fn may_be_interrupted(&self) -> bool {
        self.killed.get() || self.has_scopes()
    }

    /// Whether it is inside of a timeout.
    #[inline]
    pub(crate) fn has_scopes(&self) -> bool {
        !self.scopes.borrow().is_empty()
    }

    /// When the first of its timeouts expires that could be raised.
    #[inline]
    pub(crate) fn next_scope(&self, unwinding: bool) -> Option<Instant> {
        let scopes = self.scopes.borrow();
        scopes
            .iter()
            .skip(self.hidden_scopes.get())
            .filter(|scope| scope.may_raise(unwinding))
            .map(|scope| scope.deadline)
            .min()
    }

    /// The outermost timeout that has expired at `now` and can be raised. It counts as raised.
    pub(crate) fn take_expired(&self, now: Instant, unwinding: bool) -> Option<u64> {
        let mut scopes = self.scopes.borrow_mut();
        let mut seen = scopes.iter_mut().skip(self.hidden_scopes.get());
        let scope = seen.find(|scope| scope.deadline <= now && scope.may_raise(unwinding))?;
        scope.raised = true;
        Some(scope.id)
    }
}
