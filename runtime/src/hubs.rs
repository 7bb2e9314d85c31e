//! Several hubs, on threads of their own.

use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::greenlet::outcome::panic_message;
use crate::hub::{Hub, HubBuilder, try_hub};
use crate::result::{AsyncResult, Promise, promise};
use crate::send::HubHandle;
use crate::sync::Event;
use crate::threadpool::ThreadPool;

/// Several hubs, each on a thread of its own, with one shared [`ThreadPool`]: how a program uses more than one core for its
/// greenlets. Each greenlet stays on the hub that it was spawned on; queues, events and locks work across them.
///
/// Dropping it kills the greenlets and doesn't wait for the threads; [`stop`](Hubs::stop) does.
///
/// ```
/// use greenroom::{Hub, Hubs, queue::Queue};
///
/// let hubs = Hubs::start(2, Hub::builder())?;
/// let squares = Queue::unbounded();
/// for number in 0..10 {
///     let squares = squares.clone();
///     hubs.spawn(move || squares.put(number * number).unwrap());
/// }
/// let sum: i32 = (0..10).map(|_| squares.get().unwrap()).sum();
/// assert_eq!(sum, 285);
/// assert!(hubs.stop(None));
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Hubs {
    hubs: Vec<Attended>,
    /// Set when they are to end.
    stop: Arc<Stop>,
    pool: ThreadPool,
    /// Who is next in turn.
    next: AtomicUsize,
}

struct Attended {
    handle: HubHandle,
    thread: JoinHandle<()>,
    /// Whether its greenlets have ended by themselves, once it has ended.
    ended: AsyncResult<bool>,
}

#[derive(Default)]
struct Stop {
    event: Event,
    /// Until when greenlets may end by themselves; set before the event.
    deadline: OnceLock<Option<Instant>>,
}

impl Hubs {
    /// Starts `count` hubs with these settings; their `threads` are those of the one pool that they share. The threads are
    /// called `greenroom-hub-0` and so on.
    ///
    /// Parks until all of them are there.
    ///
    /// # Errors
    ///
    /// When the kernel refuses a thread, or a hub its poll. Those that were started are stopped then.
    ///
    /// # Panics
    ///
    /// As [`hub()`](crate::hub()), when a `GREENROOM_…` variable can't be read.
    ///
    /// ```
    /// let hubs = greenroom::Hubs::start(3, greenroom::Hub::builder().threads(4))?;
    /// assert_eq!((hubs.handles().count(), hubs.threadpool().max_threads()), (3, 4));
    /// hubs.stop(None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn start(count: usize, settings: HubBuilder) -> io::Result<Hubs> {
        let pool = ThreadPool::new(settings.pool_size());
        let mut hubs = Hubs { hubs: Vec::new(), stop: Arc::default(), pool, next: AtomicUsize::new(0) };
        let no_room = |_| io::Error::new(io::ErrorKind::OutOfMemory, format!("no memory for {count} hubs"));
        hubs.hubs.try_reserve_exact(count).map_err(no_room)?;
        for number in 0..count {
            match hubs.start_one(number, settings.clone()) {
                Ok(hub) => hubs.hubs.push(hub),
                Err(error) => {
                    hubs.stop(Some(Duration::ZERO));
                    return Err(error);
                }
            }
        }
        Ok(hubs)
    }

    fn start_one(&self, number: usize, settings: HubBuilder) -> io::Result<Attended> {
        let (started, begins) = promise();
        let (ends, ended) = promise();
        let (stop, pool) = (Arc::clone(&self.stop), self.pool.clone());
        let thread =
            thread::Builder::new().name(format!("greenroom-hub-{number}")).spawn(move || {
                match catch_unwind(AssertUnwindSafe(|| settings.install())) {
                    Ok(Ok(hub)) => {
                        hub.set_threadpool(pool);
                        hub.inner().attend();
                        started.set(Ok(hub.handle()));
                        attend(&hub, &stop, ends);
                    }
                    Ok(Err(error)) => started.set(Err(error.to_string())),
                    Err(payload) => started.set(Err(panic_message(&*payload).to_owned())),
                }
            })?;
        match begins.get() {
            Ok(Ok(handle)) => Ok(Attended { handle, thread, ended }),
            Ok(Err(why)) => Err(io::Error::other(why)),
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    }

    /// Runs `f` as a greenlet of one of the hubs, each in turn; see [`HubHandle::spawn`].
    ///
    /// ```
    /// let hubs = greenroom::Hubs::start(1, greenroom::Hub::builder())?;
    /// assert_eq!(hubs.spawn(|| 6 * 7).get().unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    ///
    /// Without hubs: they were started with `count` 0.
    #[track_caller]
    pub fn spawn<F, T>(&self, f: F) -> AsyncResult<T>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        assert!(!self.hubs.is_empty(), "Hubs::spawn with no hub: they were started with a count of 0");
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % self.hubs.len();
        self.hubs[turn].handle.spawn(f)
    }

    /// The hubs, in their order.
    pub fn handles(&self) -> impl ExactSizeIterator<Item = &HubHandle> {
        self.hubs.iter().map(|hub| &hub.handle)
    }

    /// The pool that they share.
    pub fn threadpool(&self) -> ThreadPool {
        self.pool.clone()
    }

    /// Ends them: waits for their greenlets to end by themselves, for at most `timeout`, kills those that are left, and waits
    /// until all threads are gone. Returns whether all greenlets ended by themselves. Closures that others send
    /// meanwhile still run, until the kill. The pool is left as it is.
    ///
    /// Parks. Called from a greenlet of one of these hubs it doesn't wait, and returns false.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let hubs = greenroom::Hubs::start(2, greenroom::Hub::builder())?;
    /// hubs.spawn(|| greenroom::sleep(Duration::MAX));
    /// assert!(!hubs.stop(Some(Duration::from_millis(5))));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stop(mut self, timeout: Option<Duration>) -> bool {
        self.stop.begin(timeout);
        let here = try_hub().map(|hub| hub.handle());
        if here.is_some_and(|here| self.hubs.iter().any(|hub| hub.handle.is_same(&here))) {
            return false;
        }
        let mut by_themselves = true;
        for hub in self.hubs.drain(..) {
            by_themselves &= hub.ended.get().unwrap_or(false);
            // It has nothing left to do but to go; what its thread-locals do at that is theirs.
            let _ = hub.thread.join();
        }
        by_themselves
    }
}

impl Drop for Hubs {
    fn drop(&mut self) {
        self.stop.begin(Some(Duration::ZERO));
    }
}

impl Stop {
    /// The first one counts.
    fn begin(&self, timeout: Option<Duration>) {
        self.deadline.get_or_init(|| timeout.and_then(|timeout| Instant::now().checked_add(timeout)));
        self.event.set();
    }
}

/// The life of a hub's main.
fn attend(hub: &Hub, stop: &Stop, ends: Promise<bool>) {
    stop.event.wait();
    let deadline = stop.deadline.get().copied().flatten();
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let by_themselves = hub.join(left);
    hub.shutdown();
    ends.set(by_themselves);
}

impl fmt::Debug for Hubs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hubs").field("count", &self.hubs.len()).finish_non_exhaustive()
    }
}
