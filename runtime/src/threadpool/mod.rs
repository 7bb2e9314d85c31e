//! The pool of OS threads as greenlets see it: a call parks the caller alone.
//!
//! | call | for |
//! |---|---|
//! | [`apply`](ThreadPool::apply), [`run`](ThreadPool::run), [`try_apply`](ThreadPool::try_apply) | one job that the caller waits for; it may borrow |
//! | [`map`](ThreadPool::map) | many of them, results in order; may borrow |
//! | [`spawn`](ThreadPool::spawn) | a job that nobody waits for yet; owns what it uses |
//! | [`imap`](ThreadPool::imap), [`imap_unordered`](ThreadPool::imap_unordered) | many of those, read one by one, a bounded number ahead |
//! | [`offload`] | shared code: the hub's pool where there is a hub, else a plain call |
//!
//! # Lanes
//!
//! A pool serves its jobs first come, first served, so ten slow jobs on ten threads hold up whatever comes after them. What must
//! not wait for them gets a pool of its own, a *lane*: it costs nothing until its first job, and its threads leave when they
//! idle.
//!
//! ```
//! use std::time::Duration;
//! use greenroom::{ThreadPool, hub, spawn, yield_now};
//!
//! let lookups = ThreadPool::builder().max_threads(2).name("lookup").build();
//!
//! // The hub's pool is full of slow jobs ...
//! let pool = hub().threadpool();
//! let (open, gate) = std::sync::mpsc::channel::<()>();
//! let gate = std::sync::Mutex::new(gate);
//! let slow = spawn(move || pool.map(|_| drop(gate.lock().unwrap().recv()), 0..100));
//! yield_now();
//!
//! // ... and a look-up still takes no longer than it takes.
//! let port = lookups.apply(|text: &str| text.parse::<u16>().unwrap(), ("8080",));
//! assert_eq!(port, 8080);
//! assert!(!slow.is_finished());
//! # drop(open);
//! # slow.join().unwrap();
//! ```

// How the files share the work:
//
// * this file: `ThreadPool`, and `apply` with its kin.
// * `builder`: its options.
// * `call`: functions of several arguments, called with a tuple.
// * `apply`: a job on the caller's own stack. README.md beside it argues why that is sound.
// * `map`: many jobs of one caller, who waits for them.
// * `task`: a job on the heap, for `spawn`.
// * `imap`: many of those, a bounded number ahead of their reader.
// * `ending`: waiting for the jobs, or for the end of the pool; more or fewer threads.
// * `offload`: the call that is right everywhere.

mod apply;
mod builder;
mod call;
mod ending;
mod imap;
mod map;
mod offload;
mod task;

use std::any::Any;
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use greenroom_pool::{Pool, PoolStats};

pub use builder::ThreadPoolBuilder;
pub use call::Call;
pub use imap::{IMap, IMapUnordered};
pub use offload::offload;

use crate::greenlet::outcome::{JoinError, panic_message};
use crate::greenlet::{current, unwind};
use crate::hub::{Hub, Inner};

/// A pool of OS threads for work that would stall a hub. Cloning gives the same pool; any thread may use it. When the last
/// handle is dropped, what is queued is still done, and the threads leave.
///
/// All jobs of a pool wait in one queue; the [module](crate::threadpool#lanes) tells how to keep quick ones apart from slow ones.
///
/// ```
/// let pool = greenroom::ThreadPool::new(2);
/// let data = vec![1, 2, 3];
/// let sum = pool.apply(|data: &[i32]| data.iter().sum::<i32>(), (&data[..],)); // borrows from here
/// assert_eq!(sum, 6);
/// ```
#[derive(Clone, Debug)]
pub struct ThreadPool {
    pool: Pool,
}

impl ThreadPool {
    /// A pool of at most `max_threads` threads; each is started when a job finds none idle, and leaves after five idle
    /// seconds. A pool of 0 only queues.
    /// More than 16,383 count as 16,383.
    ///
    /// ```
    /// assert_eq!(greenroom::ThreadPool::new(3).max_threads(), 3);
    /// ```
    pub fn new(max_threads: usize) -> ThreadPool {
        ThreadPool { pool: Pool::new(max_threads) }
    }

    /// Runs `f` on one of the pool's threads and returns what it returns. Parks the calling greenlet alone until then;
    /// on main the hub runs meanwhile; on a thread without a hub it blocks that thread. On a worker of this same pool `f`
    /// is called in place, so that jobs which use their own pool can't deadlock. `args` is a tuple of 0 to 8 arguments.
    ///
    /// `f` and its arguments may borrow from the caller, and nothing is allocated: the job lives in the frame of this
    /// call. A kill or timeout that comes while the job is queued takes it back and unwinds at once; while it runs, it
    /// is waited for first, and its result is dropped. While the queue is full, the caller parks until there is room.
    ///
    /// If the kernel refuses the pool its only thread, `f` runs on the calling thread and stalls its hub.
    ///
    /// # Panics
    ///
    /// With the payload of `f`'s panic (the worker lives on), and when the pool has been shut down:
    /// [`try_apply`](ThreadPool::try_apply) gives errors instead.
    ///
    /// ```
    /// let pool = greenroom::hub().threadpool();
    /// assert_eq!(pool.apply(str::len, ("twelve bytes",)), 12);
    /// assert_eq!(pool.apply(|a: u32, b: u32, c: u32| a * b + c, (2, 3, 4)), 10);
    /// ```
    ///
    /// What isn't `Send` can't cross:
    ///
    /// ```compile_fail
    /// let shared = std::rc::Rc::new(1);
    /// greenroom::hub().threadpool().apply(|| *shared, ());
    /// ```
    ///
    /// A result can't borrow what dies with the call:
    ///
    /// ```compile_fail
    /// let pool = greenroom::hub().threadpool();
    /// let longest: &str = {
    ///     let text = String::from("short-lived");
    ///     pool.apply(str::trim, (&text[..],))
    /// };
    /// println!("{longest}");
    /// ```
    pub fn apply<F, A>(&self, f: F, args: A) -> F::Output
    where
        F: Call<A> + Send,
        A: Send,
        F::Output: Send,
    {
        if self.pool.is_worker() {
            return f.call(args);
        }
        match apply::run(&self.pool, f, args, apply::WhenFull::Park) {
            Ok(value) => value,
            Err(ApplyError::Panicked(payload)) => resume_unwind(payload),
            Err(error) => panic!("apply: {error}"),
        }
    }

    /// [`apply`](ThreadPool::apply) without arguments.
    ///
    /// ```
    /// let name = String::from("greenroom");
    /// let upper = greenroom::hub().threadpool().run(|| name.to_uppercase());
    /// assert_eq!(upper, "GREENROOM");
    /// ```
    pub fn run<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        self.apply(f, ())
    }

    /// As [`apply`](ThreadPool::apply), with errors in place of panics, and without waiting for room in the queue.
    ///
    /// # Errors
    ///
    /// [`ApplyError::Panicked`] with the payload of `f`'s panic, [`ApplyError::ShutDown`] when the pool has been shut
    /// down before `f` began, [`ApplyError::QueueFull`] when its queue is at its limit.
    ///
    /// ```
    /// use greenroom::{ApplyError, ThreadPool};
    ///
    /// let pool = ThreadPool::new(1);
    /// assert_eq!(pool.try_apply(|| 1, ()).unwrap(), 1);
    /// let error = pool.try_apply(|| std::panic::resume_unwind(Box::new("no")), ()).unwrap_err();
    /// assert!(matches!(error, ApplyError::Panicked(_)));
    /// ```
    pub fn try_apply<F, A>(&self, f: F, args: A) -> Result<F::Output, ApplyError>
    where
        F: Call<A> + Send,
        A: Send,
        F::Output: Send,
    {
        if self.pool.is_worker() {
            return catch_unwind(AssertUnwindSafe(|| f.call(args))).map_err(|payload| {
                // A timeout around this call goes on to where it belongs.
                if unwind::is_ours(&*payload) {
                    current::with(|core| unwind::resume(core, payload))
                } else {
                    ApplyError::Panicked(payload)
                }
            });
        }
        apply::run(&self.pool, f, args, apply::WhenFull::Refuse)
    }

    /// How many threads it has at most.
    pub fn max_threads(&self) -> usize {
        self.pool.max_threads()
    }

    /// What the pool is doing and has done. A job that `apply` has returned from may count as running for a moment longer.
    ///
    /// ```
    /// let pool = greenroom::ThreadPool::new(1);
    /// pool.run(|| ());
    /// assert_eq!(pool.stats().threads, 1);
    /// ```
    pub fn stats(&self) -> PoolStats {
        self.pool.stats()
    }
}

/// A pool made with [`greenroom_pool`]'s builder, under another view.
///
/// ```
/// let pool = greenroom_pool::Pool::builder().max_threads(2).name("images").build();
/// let images = greenroom::ThreadPool::from(pool);
/// assert_eq!(images.run(|| std::thread::current().name().unwrap().to_owned()), "images-1");
/// ```
impl From<Pool> for ThreadPool {
    fn from(pool: Pool) -> ThreadPool {
        ThreadPool { pool }
    }
}

impl Hub {
    /// This hub's pool: 10 threads unless the builder or `GREENROOM_THREADS` says otherwise. It is made on first use and
    /// starts no thread before the first job.
    ///
    /// ```
    /// assert_eq!(greenroom::hub().threadpool().max_threads(), 10);
    /// ```
    pub fn threadpool(&self) -> ThreadPool {
        self.inner().pool().into()
    }

    /// Gives the hub another pool, for instance one that several hubs share. Jobs that are under way stay where they are.
    ///
    /// ```
    /// let shared = greenroom::ThreadPool::new(4);
    /// greenroom::hub().set_threadpool(shared.clone());
    /// assert_eq!(greenroom::hub().threadpool().max_threads(), 4);
    /// ```
    pub fn set_threadpool(&self, pool: ThreadPool) {
        self.inner().set_pool(pool.pool);
    }
}

/// Why `try_apply` has no value.
#[derive(Debug)]
#[non_exhaustive]
pub enum ApplyError {
    /// The function panicked, with this payload.
    Panicked(Box<dyn Any + Send>),
    /// The pool has been shut down; the function did not run.
    ShutDown,
    /// The pool's queue is at its limit; the function did not run.
    QueueFull,
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplyError::Panicked(payload) => write!(f, "the job panicked: {}", panic_message(&**payload)),
            ApplyError::ShutDown => f.write_str("the pool has been shut down; the job did not run"),
            ApplyError::QueueFull => {
                f.write_str("the pool's queue is full; the job did not run: use apply to wait for room")
            }
        }
    }
}

impl Error for ApplyError {}

/// Drops what nobody wants any more; see [`shielded`].
fn discard<T>(value: T) {
    shielded(|| drop(value));
}

/// Calls `f`, in which neither a kill nor a timeout is raised. What it panics with is told as the panic of one whom nobody joins:
/// for destructors that run where nothing may unwind.
fn shielded(f: impl FnOnce()) {
    current::with(|core| {
        if let Err(payload) = core.undisturbed(|| catch_unwind(AssertUnwindSafe(f))) {
            Inner::report_unseen(core, JoinError::panicked(payload));
        }
    });
}
