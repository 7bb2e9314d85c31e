//! Parking an OS thread that has no hub: a pool worker, a plain thread.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use crate::wake::{Home, Settled, WaitCell};

thread_local! {
    /// Wait cells of this thread that nobody uses.
    static CELLS: RefCell<Vec<Arc<WaitCell>>> = const { RefCell::new(Vec::new()) };
}

/// A cell for a wait of this thread, used before or new.
pub(super) fn take_cell() -> Arc<WaitCell> {
    let used = CELLS.try_with(|cells| cells.borrow_mut().pop()).ok().flatten();
    used.unwrap_or_else(|| WaitCell::new(Home::Thread(std::thread::current())))
}

/// A wait is over; its cell may serve another. In a thread that is ending it is dropped.
pub(super) fn give_cell(cell: Arc<WaitCell>) {
    if cell.is_of_thread() {
        let _ = CELLS.try_with(|cells| cells.borrow_mut().push(cell));
    }
}

/// Parks the thread until the wait is woken or the deadline has passed; `Notified` if it was woken.
pub(super) fn park(cell: &WaitCell, epoch: u64, deadline: Option<Instant>) -> Settled {
    if cell.arm(epoch) {
        // `thread::park` may return for no reason, or for somebody else's unpark.
        while cell.is_parked(epoch) {
            match deadline {
                None => std::thread::park(),
                Some(deadline) => match deadline.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => std::thread::park_timeout(left),
                    _ => break,
                },
            }
        }
    }
    cell.settle(epoch)
}
