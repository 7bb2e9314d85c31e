//! Which hubs of the process sleep with nothing of their own to wake them: no deadline, no greenlet that could run.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::wake::Door;

/// One that sleeps now, in the low half of the word.
const PRESENT: u64 = 1;
/// One that ever did, in the high half; it wraps without harm.
const ARRIVED: u64 = 1 << 32;

static ASLEEP: AtomicU64 = AtomicU64::new(0);
/// Of the sleep in which the last deadlock was found.
static REPORTED: AtomicU64 = AtomicU64::new(0);
/// Of all hubs. Locked for moments, when a hub begins, ends, or looks for a deadlock.
static DOORS: Mutex<Vec<Weak<Door>>> = Mutex::new(Vec::new());

/// How many sleep. Two are equal only if no hub fell asleep or woke between them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Sleepers(u64);

impl Sleepers {
    pub(super) fn now() -> Sleepers {
        Sleepers(ASLEEP.load(SeqCst))
    }

    pub(super) fn count(self) -> usize {
        self.0 as u32 as usize
    }

    /// Whether nobody has reported a deadlock of this sleep yet; from now on somebody has.
    pub(super) fn is_first_report(self) -> bool {
        let sleep = (self.0 >> 32) + 1;
        REPORTED.swap(sleep, SeqCst) != sleep
    }
}

/// This hub sleeps until this is dropped.
pub(super) struct Asleep(());

impl Asleep {
    pub(super) fn begin() -> Asleep {
        ASLEEP.fetch_add(ARRIVED + PRESENT, SeqCst);
        Asleep(())
    }
}

impl Drop for Asleep {
    fn drop(&mut self) {
        ASLEEP.fetch_sub(PRESENT, SeqCst);
    }
}

/// A hub begins.
pub(super) fn register(door: &Arc<Door>) {
    doors().push(Arc::downgrade(door));
}

/// A hub ends.
pub(super) fn withdraw(door: &Arc<Door>) {
    doors().retain(|other| !std::ptr::eq(other.as_ptr(), Arc::as_ptr(door)));
}

/// Whether nothing lies at the door of any hub.
pub(super) fn are_doors_quiet() -> bool {
    doors().iter().filter_map(Weak::upgrade).all(|door| door.is_quiet())
}

fn doors() -> MutexGuard<'static, Vec<Weak<Door>>> {
    DOORS.lock().unwrap_or_else(PoisonError::into_inner)
}
