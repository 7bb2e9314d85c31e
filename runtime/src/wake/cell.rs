//! One wait's state, shared with whoever may wake it.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::thread::Thread;

use super::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use super::{Door, Ready, Tally};

/// Nobody has woken the wait and its owner runs.
const IDLE: u64 = 0;
/// Its owner is parked on it; whoever leaves this state must make the owner ready.
const PARKED: u64 = 1;
/// It has been woken.
const NOTIFIED: u64 = 2;
/// Its owner's own hub ended the park (a deadline, a kill): a wake that comes now goes to somebody else.
const KICKED: u64 = 3;

const STATE: u64 = 3;
const EPOCH: u64 = 4;

/// Who is made ready when the wait is woken.
pub(crate) enum Home {
    /// A greenlet, or main, of the hub behind this door; the cell's key says which.
    Hub(Arc<Door>),
    /// An OS thread that parks as such.
    Thread(Thread),
    /// One who waits for several; the cell's key is the number of this one.
    Tally(Arc<Tally>),
}

/// The memory of a wait. Reused for wait after wait of one hub or thread; the epoch in its word tells them apart.
pub(crate) struct WaitCell {
    /// Epoch in the upper bits, one of the four states in the lowest two.
    word: AtomicU64,
    /// The hub's key of the owner. Written by the owner before it hands out a waiter.
    key: AtomicUsize,
    /// The link of the inbox, which a cell can be in only between leaving `PARKED` and being taken out by its hub.
    pub(super) next: AtomicPtr<WaitCell>,
    /// Where the owner lives.
    home: Home,
}

/// What [`WaitCell::settle`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nobody touched the wait.
    Untouched,
    /// It was woken.
    Notified,
    /// Its own hub ended the park.
    Kicked,
}

impl WaitCell {
    pub(crate) fn new(home: Home) -> Arc<WaitCell> {
        Arc::new(WaitCell {
            word: AtomicU64::new(IDLE),
            key: AtomicUsize::new(0),
            next: AtomicPtr::new(std::ptr::null_mut()),
            home,
        })
    }

    /// The owner starts a new wait: every waiter of an earlier one is stale from here on. Returns the epoch.
    #[inline]
    pub(crate) fn begin(&self, key: usize) -> u64 {
        self.key.store(key, Ordering::Relaxed);
        let epoch = (self.word.load(Ordering::Relaxed) & !STATE).wrapping_add(EPOCH);
        // A late wake's compare-and-swap expects a word of the earlier epoch, so it comes before this store or fails.
        #[cfg(not(loom))]
        self.word.store(epoch | IDLE, Ordering::Release);
        // The model checker would let it come before and after at once, when it races with a plain store.
        #[cfg(loom)]
        self.word.swap(epoch | IDLE, Ordering::AcqRel);
        epoch
    }

    /// The hub's key of the owner.
    #[inline]
    pub(crate) fn key(&self) -> usize {
        self.key.load(Ordering::Relaxed)
    }

    /// The owner is about to park. False: it has been woken already, and must not.
    #[inline]
    pub(crate) fn arm(&self, epoch: u64) -> bool {
        self.word.compare_exchange(epoch | IDLE, epoch | PARKED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The owner's own hub ends the park. True: the caller, and nobody else, makes the owner ready.
    pub(crate) fn kick(&self, epoch: u64) -> bool {
        self.word.compare_exchange(epoch | PARKED, epoch | KICKED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// The owner takes note of what happened; the wait is idle again, and a later wake counts again.
    #[inline]
    pub(crate) fn settle(&self, epoch: u64) -> Settled {
        let word = self.word.load(Ordering::Acquire);
        let word = match word & STATE {
            // Nobody but the owner leaves this state, and who has woken it was seen by the load.
            NOTIFIED => {
                self.word.store(epoch | IDLE, Ordering::Release);
                word
            }
            _ => self.word.swap(epoch | IDLE, Ordering::AcqRel),
        };
        match word & STATE {
            NOTIFIED => Settled::Notified,
            KICKED => Settled::Kicked,
            _ => Settled::Untouched,
        }
    }

    /// Whether it belongs to the hub behind that door.
    pub(crate) fn is_home(&self, door: &Arc<Door>) -> bool {
        matches!(&self.home, Home::Hub(home) if Arc::ptr_eq(home, door))
    }

    /// Whether its owner parks as a thread.
    #[inline]
    pub(crate) fn is_of_thread(&self) -> bool {
        matches!(self.home, Home::Thread(_))
    }

    /// True while the owner is parked and nobody has woken it.
    pub(crate) fn is_parked(&self, epoch: u64) -> bool {
        self.word.load(Ordering::Acquire) == epoch | PARKED
    }

    #[inline]
    fn wake(self: &Arc<Self>, epoch: u64) -> bool {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            if word & !STATE != epoch || word & STATE == NOTIFIED {
                return false;
            }
            // A kicked cell stays so, but it is written all the same: the owner's swap in `settle` comes after that, and the
            // owner sees what was done before this wake; or it came before, and this fails, and wakes it.
            let after = if word & STATE == KICKED { word } else { epoch | NOTIFIED };
            match self.word.compare_exchange_weak(word, after, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        if word & STATE == PARKED {
            self.make_ready();
        }
        word & STATE != KICKED
    }

    /// Only for the one who moved the cell out of `PARKED`.
    #[inline]
    fn make_ready(self: &Arc<Self>) {
        match &self.home {
            Home::Thread(thread) => thread.unpark(),
            Home::Tally(tally) => tally.add(self.key()),
            Home::Hub(door) => {
                if !Ready::push_here(door, self.key()) {
                    door.deliver(Arc::clone(self));
                }
            }
        }
    }
}

/// For code that knows nothing of greenlets.
impl From<Waiter> for Waker {
    fn from(waiter: Waiter) -> Waker {
        struct Wakes(Waiter);

        impl Wake for Wakes {
            fn wake(self: Arc<Self>) {
                self.0.wake();
            }

            fn wake_by_ref(self: &Arc<Self>) {
                self.0.wake();
            }
        }

        Waker::from(Arc::new(Wakes(waiter)))
    }
}

/// The right to wake one wait, from any thread, at most once.
#[derive(Clone)]
pub(crate) struct Waiter {
    cell: Arc<WaitCell>,
    epoch: u64,
}

impl Waiter {
    #[inline]
    pub(crate) fn new(cell: &Arc<WaitCell>, epoch: u64) -> Waiter {
        Waiter { cell: Arc::clone(cell), epoch }
    }

    /// Wakes the wait. False: it is over, or something else ended it first, and what was meant for it is free for the
    /// next in line.
    #[inline]
    pub(crate) fn wake(&self) -> bool {
        self.cell.wake(self.epoch)
    }

    /// Whether nobody is left whom it could wake: the wait's hub has ended, and its greenlets with it. What is handed to
    /// it is lost.
    #[inline]
    pub(crate) fn is_lost(&self) -> bool {
        matches!(&self.cell.home, Home::Hub(door) if door.is_closed())
    }

    /// Whether this is a waiter of that wait.
    #[inline]
    pub(crate) fn is_of(&self, cell: &Arc<WaitCell>, epoch: u64) -> bool {
        self.epoch == epoch && Arc::ptr_eq(&self.cell, cell)
    }
}
