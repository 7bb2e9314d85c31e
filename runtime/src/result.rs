//! Results that cross threads.

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::greenlet::outcome::panic_message;
use crate::park::{Wait, Watch, Watcher};
use crate::reason::Reason;
use crate::wake::{Abandon, WaitList};

/// A result that somebody sets and somebody waits for, each on any thread, with or without a hub.
///
/// A [`Promise`] that is dropped unset resolves the result as [`TaskError::Abandoned`].
///
/// ```
/// let (promise, result) = greenroom::promise();
/// std::thread::spawn(move || promise.set("from another thread"));
/// assert_eq!(result.get().unwrap(), "from another thread");
/// ```
pub fn promise<T>() -> (Promise<T>, AsyncResult<T>) {
    let state = State { stage: Stage::Pending(None), waiters: WaitList::new() };
    let shared = Arc::new(Shared { state: Mutex::new(state) });
    (Promise { shared: Arc::clone(&shared) }, AsyncResult { shared })
}

/// Why there is no value.
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskError {
    /// What was to bring it panicked, with this payload.
    Panicked(Box<dyn Any + Send>),
    /// It was cancelled before it began.
    Cancelled,
    /// Its [`Promise`] was dropped unset: killed, or its hub has ended.
    Abandoned,
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskError::Panicked(payload) => write!(f, "the task panicked: {}", panic_message(&**payload)),
            TaskError::Cancelled => f.write_str("the task was cancelled before it began"),
            TaskError::Abandoned => f.write_str("the promise was dropped without a value"),
        }
    }
}

impl Error for TaskError {}

struct Shared<T> {
    /// Locked for moments only, never while code of the user runs.
    state: Mutex<State<T>>,
}

struct State<T> {
    stage: Stage<T>,
    /// Who waits, in order; empty once it is done.
    waiters: WaitList,
}

enum Stage<T> {
    /// Nobody works on it yet: it can be cancelled, through the job if there is one.
    Pending(Option<Arc<dyn Job>>),
    /// Somebody does.
    Begun,
    Done(Result<T, TaskError>),
    Taken,
}

impl<T> Stage<T> {
    fn is_open(&self) -> bool {
        matches!(self, Stage::Pending(_) | Stage::Begun)
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resolves it if it is still open, and wakes everybody. The first one counts; what comes later is dropped, after
    /// the lock.
    fn settle(&self, mut state: MutexGuard<'_, State<T>>, result: Result<T, TaskError>) {
        if !state.stage.is_open() {
            drop(state);
            return;
        }
        let before = mem::replace(&mut state.stage, Stage::Done(result));
        let mut waiters = mem::replace(&mut state.waiters, WaitList::new());
        drop(state);
        drop(before);
        waiters.wake_all();
    }
}

/// What would bring a result, as long as it has not begun.
pub(crate) trait Job: Send + Sync {
    /// Takes it back for good and resolves its result as cancelled. False: it has begun, or somebody else was first.
    fn cancel(&self) -> bool;

    /// Somebody is about to wait for it without a limit. If that is a worker of its own pool, for which it might wait, it is run here.
    fn waited_for(&self);
}

impl<T: Send> Abandon for Shared<T> {
    fn abandon(&self) {
        self.settle(self.lock(), Err(TaskError::Abandoned));
    }
}

/// The right to set a result, once. Dropping it unset resolves the result as [`TaskError::Abandoned`].
///
/// ```
/// let (promise, result) = greenroom::promise::<i32>();
/// drop(promise);
/// assert!(matches!(result.get(), Err(greenroom::TaskError::Abandoned)));
/// ```
pub struct Promise<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Promise<T> {
    /// Sets the result and wakes all who wait for it. If it was cancelled, the value is dropped. Doesn't park.
    ///
    /// ```
    /// let (promise, result) = greenroom::promise();
    /// promise.set(1);
    /// assert_eq!(result.get().unwrap(), 1);
    /// ```
    pub fn set(self, value: T) {
        self.shared.settle(self.shared.lock(), Ok(value));
    }

    /// By which a hub that ends abandons it, if its greenlet can't.
    pub(crate) fn abandoner(&self) -> Arc<dyn Abandon>
    where
        T: Send + 'static,
    {
        Arc::clone(&self.shared) as Arc<dyn Abandon>
    }

    pub(crate) fn fail(self, error: TaskError) {
        self.shared.settle(self.shared.lock(), Err(error));
    }

    /// This is what brings it: it is to be cancelled through it alone, until it begins. For one that has not begun.
    pub(crate) fn brought_by(&self, job: Arc<dyn Job>) {
        self.shared.lock().stage = Stage::Pending(Some(job));
    }

    /// Work on it begins, so that it can't be cancelled any more. False: it has been.
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.shared.lock();
        let pending = matches!(state.stage, Stage::Pending(_));
        let before = pending.then(|| mem::replace(&mut state.stage, Stage::Begun));
        drop(state);
        drop(before);
        pending
    }
}

impl<T> Drop for Promise<T> {
    fn drop(&mut self) {
        self.shared.settle(self.shared.lock(), Err(TaskError::Abandoned));
    }
}

impl<T> fmt::Debug for Promise<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Promise").finish_non_exhaustive()
    }
}

/// A result that will come: from [`promise`], [`ThreadPool::spawn`](crate::ThreadPool::spawn) or
/// [`HubHandle::spawn`](crate::HubHandle::spawn). Any thread may wait for it: a greenlet parks, main runs its hub meanwhile, a
/// thread without a hub blocks and gets none. Dropping it cancels nothing.
///
/// ```
/// let handle = greenroom::hub().handle();
/// let result = handle.spawn(|| 2 + 2);
/// assert_eq!(result.get().unwrap(), 4);
/// ```
pub struct AsyncResult<T> {
    shared: Arc<Shared<T>>,
}

impl<T> AsyncResult<T> {
    /// Waits for the result and takes it. Parks unless it is there.
    ///
    /// # Errors
    ///
    /// [`TaskError`] says why there is no value.
    ///
    /// # Panics
    ///
    /// With "this would block forever", on main, when nothing can ever set it.
    ///
    /// ```
    /// let (promise, result) = greenroom::promise();
    /// greenroom::spawn(|| promise.set("value"));
    /// assert_eq!(result.get().unwrap(), "value");
    /// ```
    pub fn get(self) -> Result<T, TaskError> {
        self.wait_until(None);
        self.take()
    }

    /// The same, waiting at most `d`. `Err(self)`: it isn't there yet. Zero time looks only.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let (promise, result) = greenroom::promise();
    /// let result = result.get_timeout(Duration::from_millis(1)).unwrap_err();
    /// promise.set(1);
    /// assert_eq!(result.get_timeout(Duration::ZERO).unwrap().unwrap(), 1);
    /// ```
    pub fn get_timeout(self, d: Duration) -> Result<Result<T, TaskError>, Self> {
        if self.wait_timeout(d) { Ok(self.take()) } else { Err(self) }
    }

    /// Waits for the result and leaves it. Parks unless it is there. Panics as [`get`](AsyncResult::get).
    ///
    /// ```
    /// let (promise, result) = greenroom::promise();
    /// promise.set(1);
    /// result.wait();
    /// assert!(result.is_ready());
    /// ```
    pub fn wait(&self) {
        self.wait_until(None);
    }

    /// Waits for at most `d`; returns whether it is there. Zero time looks only.
    ///
    /// ```
    /// let (_promise, result) = greenroom::promise::<()>();
    /// assert!(!result.wait_timeout(std::time::Duration::from_millis(1)));
    /// ```
    pub fn wait_timeout(&self, d: Duration) -> bool {
        self.is_ready() || self.wait_until(Some(d))
    }

    /// Whether it is there: a value, or the reason for none. Doesn't park.
    pub fn is_ready(&self) -> bool {
        !self.shared.lock().stage.is_open()
    }

    /// Cancels what would bring the result, if it has not begun: it resolves as [`TaskError::Cancelled`] at once. Returns
    /// whether it was in time. A [`promise`] never begins: it can be cancelled until it is set. Doesn't park.
    ///
    /// What a job of a pool has captured is dropped here, at once; a destructor of it that panics is reported as a panic nobody
    /// sees.
    ///
    /// ```
    /// let (promise, result) = greenroom::promise();
    /// assert!(result.cancel());
    /// promise.set("too late");
    /// assert!(matches!(result.get(), Err(greenroom::TaskError::Cancelled)));
    /// ```
    pub fn cancel(&self) -> bool {
        let state = self.shared.lock();
        match &state.stage {
            Stage::Pending(None) => {
                self.shared.settle(state, Err(TaskError::Cancelled));
                true
            }
            Stage::Pending(Some(job)) => {
                let job = Arc::clone(job);
                drop(state);
                job.cancel()
            }
            _ => false,
        }
    }

    fn wait_until(&self, timeout: Option<Duration>) -> bool {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        if timeout.is_none() && greenroom_pool::in_worker() {
            self.job().into_iter().for_each(|job| job.waited_for());
        }
        let wait = Wait::new();
        let place = {
            let mut state = self.shared.lock();
            if !state.stage.is_open() {
                return true;
            }
            state.waiters.push(wait.waiter())
        };
        let _place = Place { shared: &self.shared, place, wait: &wait };
        while !self.is_ready() {
            if wait.park(Reason::AsyncResult, deadline).timed_out() {
                return self.is_ready();
            }
        }
        true
    }

    /// What brings it, if that has not begun.
    fn job(&self) -> Option<Arc<dyn Job>> {
        match &self.shared.lock().stage {
            Stage::Pending(job) => job.clone(),
            _ => None,
        }
    }

    fn take(&self) -> Result<T, TaskError> {
        match mem::replace(&mut self.shared.lock().stage, Stage::Taken) {
            Stage::Done(result) => result,
            _ => unreachable!("a result is taken once, after it is there"),
        }
    }
}

impl<T> Watch for AsyncResult<T> {
    fn watch(&self, watcher: &Watcher) -> bool {
        let mut state = self.shared.lock();
        let open = state.stage.is_open();
        if open {
            watcher.enter(&mut state.waiters, ());
        }
        !open
    }

    fn unwatch(&self, watcher: &Watcher) {
        watcher.leave(&mut self.shared.lock().waiters);
    }
}

impl<T> fmt::Debug for AsyncResult<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncResult").field("ready", &self.is_ready()).finish()
    }
}

/// A place among the waiters, given up on every path.
struct Place<'a, T> {
    shared: &'a Shared<T>,
    place: usize,
    wait: &'a Wait,
}

impl<T> Drop for Place<'_, T> {
    fn drop(&mut self) {
        self.wait.leave(&mut self.shared.lock().waiters, self.place);
    }
}
