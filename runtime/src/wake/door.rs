//! A hub's cross-thread side.

use std::panic::Location;
use std::sync::Arc;

use crossbeam_channel::Sender;

use super::atomic::{AtomicBool, AtomicU8, Ordering};
use super::inbox::Inbox;
use super::{Bell, WaitCell};

/// What another thread asks the hub to run as a greenlet.
pub(crate) struct Call {
    pub(crate) body: Box<dyn FnOnce() + Send>,
    /// What is to come of it.
    pub(crate) result: Arc<dyn Abandon>,
    /// Where it was asked.
    pub(crate) site: &'static Location<'static>,
}

/// A result that nobody will set any more.
pub(crate) trait Abandon: Send + Sync {
    fn abandon(&self);
}

/// The hub runs, and looks at its inbox before it sleeps.
const AWAKE: u8 = 0;
/// The hub has announced its sleep: whoever brings something must ring.
const ASLEEP: u8 = 1;

/// Shared by a hub and everyone who may wake it. It outlives its hub.
pub(crate) struct Door {
    /// Woken cells.
    inbox: Inbox,
    /// Closures; the hub holds the receiver, and a send fails once the hub has ended.
    calls: Sender<Call>,
    /// Set after a closure was sent, cleared before the closures are taken.
    has_calls: AtomicBool,
    /// `AWAKE` or `ASLEEP`. Only the hub writes `ASLEEP`.
    state: AtomicU8,
    /// Set for good when the hub ends; whoever delivers after that empties the inbox again.
    closed: AtomicBool,
    /// Rung at most once a sleep.
    bell: Bell,
}

impl Door {
    pub(crate) fn new(calls: Sender<Call>, bell: Bell) -> Arc<Door> {
        Arc::new(Door {
            inbox: Inbox::new(),
            calls,
            has_calls: AtomicBool::new(false),
            state: AtomicU8::new(AWAKE),
            closed: AtomicBool::new(false),
            bell,
        })
    }

    /// Any thread: leaves a woken cell for the hub.
    pub(super) fn deliver(&self, cell: Arc<WaitCell>) {
        self.inbox.push(cell);
        self.knock();
        if self.closed.load(Ordering::SeqCst) {
            drop(self.inbox.take());
        }
    }

    /// Any thread: asks the hub to run a closure. Gives it back when the hub has ended.
    pub(crate) fn send(&self, call: Call) -> Result<(), Call> {
        self.calls.send(call).map_err(|refused| refused.0)?;
        self.has_calls.store(true, Ordering::SeqCst);
        self.knock();
        Ok(())
    }

    fn knock(&self) {
        if self.state.swap(AWAKE, Ordering::SeqCst) == ASLEEP {
            self.bell.ring();
        }
    }

    /// The hub's thread: the keys of all that has been woken, oldest first.
    pub(crate) fn collect(&self) -> impl Iterator<Item = usize> {
        self.inbox.take().map(|cell| cell.key())
    }

    /// The hub's thread: whether closures were sent since it was last asked.
    pub(crate) fn take_calls(&self) -> bool {
        self.has_calls.load(Ordering::Relaxed) && self.has_calls.swap(false, Ordering::SeqCst)
    }

    /// The hub's thread: whether neither `collect` nor `take_calls` would find something.
    #[inline]
    pub(crate) fn is_quiet(&self) -> bool {
        self.inbox.is_empty() && !self.has_calls.load(Ordering::SeqCst)
    }

    /// The hub's thread: from here on whoever brings something rings. The hub must look once more before it sleeps.
    pub(crate) fn announce_sleep(&self) {
        self.state.swap(ASLEEP, Ordering::SeqCst);
    }

    /// The hub's thread: no ringing needed any more.
    pub(crate) fn awake(&self) {
        self.state.store(AWAKE, Ordering::SeqCst);
    }

    #[cfg(all(test, loom))]
    pub(super) fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Whether the hub has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// The hub has ended: what is delivered from here on is dropped.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        drop(self.inbox.take());
    }
}
