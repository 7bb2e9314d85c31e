//! The hub as other threads see it.

use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::sync::Arc;

use crate::greenlet::unwind;
use crate::hub::Hub;
use crate::result::{AsyncResult, TaskError, promise};
use crate::wake::{Call, Door};

/// A hub's cross-thread door: any thread may hold it, for as long as it likes.
///
/// ```
/// fn assert_send<T: Send + Sync + Clone>(_: &T) {}
/// assert_send(&greenroom::hub().handle());
/// ```
#[derive(Clone)]
pub struct HubHandle {
    door: Arc<Door>,
}

impl Hub {
    /// What other threads may hold to reach this hub.
    ///
    /// ```
    /// let handle = greenroom::hub().handle();
    /// let thread = std::thread::spawn(move || handle.spawn(|| 6 * 7));
    /// # // The thread ends at once; the result is there when this hub has run the greenlet.
    /// let result = thread.join().unwrap();
    /// assert_eq!(result.get().unwrap(), 42);
    /// ```
    pub fn handle(&self) -> HubHandle {
        HubHandle { door: self.inner().door() }
    }
}

impl HubHandle {
    /// Whether both are of one hub.
    pub(crate) fn is_same(&self, other: &HubHandle) -> bool {
        Arc::ptr_eq(&self.door, &other.door)
    }

    /// Runs `f` as a greenlet of the hub. Returns at once; the result tells what came of it, on any thread.
    ///
    /// A panic of `f` is in the result ([`TaskError::Panicked`]). If the hub has ended or ends before `f` is done, or the
    /// greenlet is killed, the result is [`TaskError::Abandoned`]. [`AsyncResult::cancel`] works until `f` begins.
    ///
    /// The hub runs greenlets while its thread's main greenlet is parked: in `join`, `sleep`, `get` … A thread that is to serve others
    /// waits, for instance, for an [`Event`](crate::sync::Event) that tells it to stop; [`Hubs`](crate::Hubs) are such threads.
    ///
    /// ```
    /// let hub = greenroom::hub();
    /// let handle = hub.handle();
    /// let worker = std::thread::spawn(move || handle.spawn(|| "run on the first thread").get().unwrap());
    /// greenroom::spawn(|| greenroom::sleep(std::time::Duration::from_millis(50)));
    /// hub.join(None);
    /// assert_eq!(worker.join().unwrap(), "run on the first thread");
    /// ```
    #[track_caller]
    pub fn spawn<F, T>(&self, f: F) -> AsyncResult<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (promise, result) = promise();
        let (site, abandoner) = (Location::caller(), promise.abandoner());
        let body = move || {
            if !promise.begin() {
                return;
            }
            match catch_unwind(AssertUnwindSafe(f)) {
                Ok(value) => promise.set(value),
                Err(payload) if unwind::is_ours(&*payload) => std::panic::resume_unwind(payload),
                Err(payload) => promise.fail(TaskError::Panicked(payload)),
            }
        };
        // A hub that has ended drops the call, and with it the promise: the result is abandoned.
        let _ = self.door.send(Call { body: Box::new(body), result: abandoner, site });
        result
    }
}

impl fmt::Debug for HubHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HubHandle").finish_non_exhaustive()
    }
}
