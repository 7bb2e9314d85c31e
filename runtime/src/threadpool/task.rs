//! A job on the heap, for a caller that doesn't wait for it. README.md beside this file argues why nothing of it is used after
//! its end.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};

use greenroom_pool::lease::{Lease, Verdict};
use greenroom_pool::{Pool, PoolId, Rejected};

use super::{Call, ThreadPool, discard, shielded};
use crate::greenlet::{current, unwind};
use crate::park::Wait;
use crate::reason::Reason;
use crate::result::{self, AsyncResult, Promise, TaskError, promise};
use crate::wake::Waiter;

impl ThreadPool {
    /// Queues `f` for one of the pool's threads and returns at once; the result tells what came of it, on any thread. `args` is a
    /// tuple of 0 to 8 arguments.
    ///
    /// While the pool's queue is at its limit, the calling greenlet parks, first come first served; on main the hub runs meanwhile;
    /// a thread without a hub blocks. A kill or timeout that comes meanwhile takes the job back, unless it has just begun. On a
    /// worker of this same pool a full queue means that `f` is called in place, for the worker might wait for itself.
    ///
    /// A panic of `f` is in the result ([`TaskError::Panicked`]), and the worker lives on. If the pool is shut down before `f`
    /// begins, the result is [`TaskError::Cancelled`]. [`AsyncResult::cancel`] takes the job back until `f` begins: what it
    /// captured is dropped at once, and the pool counts it as cancelled when it comes by it. Dropping the result detaches the
    /// job: it still runs.
    ///
    /// A job that waits for another of its own pool without a limit ([`get`](AsyncResult::get), [`wait`](AsyncResult::wait)) runs
    /// it itself, unless a thread has begun it: so jobs that wait for jobs behind them in the queue can't deadlock. The pool counts
    /// what is taken back like that as cancelled.
    ///
    /// ```
    /// let pool = greenroom::ThreadPool::new(2);
    /// let sum = pool.spawn(|a: u32, b: u32| a + b, (1, 2));
    /// let length = pool.spawn(|text: String| text.len(), (String::from("owned"),));
    /// assert_eq!((sum.get().unwrap(), length.get().unwrap()), (3, 5));
    /// ```
    ///
    /// It outlives the call, so it can't borrow; [`apply`](ThreadPool::apply) can:
    ///
    /// ```compile_fail
    /// let text = String::from("on this stack");
    /// greenroom::ThreadPool::new(1).spawn(str::len, (&text[..],));
    /// ```
    pub fn spawn<F, A>(&self, f: F, args: A) -> AsyncResult<F::Output>
    where
        F: Call<A> + Send + 'static,
        A: Send + 'static,
        F::Output: Send + 'static,
    {
        start(&self.pool, f, args, WhenFull::Park)
    }
}

/// What to do when the pool's queue is at its limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenFull {
    /// The caller parks.
    Park,
    /// The job stands in line, and the caller goes on.
    StandInLine,
}

/// Starts a job.
pub(super) fn start<F, A>(pool: &Pool, f: F, args: A, when_full: WhenFull) -> AsyncResult<F::Output>
where
    F: Call<A> + Send + 'static,
    A: Send + 'static,
    F::Output: Send + 'static,
{
    let in_worker = pool.is_worker();
    let (task, result) = Task::new(f, args, pool.id());
    if in_worker && when_full == WhenFull::StandInLine {
        // Who waits for it may be the worker that the line waits for.
        task.run_here();
        return result;
    }
    let mut place = None;
    let lend = || match when_full {
        WhenFull::Park if in_worker => task.lend(pool),
        WhenFull::Park => task.lend_in_line(pool, || place.insert(Place::new()).waker()),
        WhenFull::StandInLine => task.lend_in_line(pool, || Waker::noop().clone()),
    };
    // If the kernel gives the pool no thread, it runs jobs in here, perhaps somebody else's: what is meant for this greenlet must
    // not unwind them.
    match current::with(|core| core.undisturbed(lend)) {
        Ok(()) => {}
        Err(Rejected::QueueFull) => task.run_here(),
        Err(Rejected::ShutDown) => task.take().into_iter().for_each(Job::cancel),
    }
    match place {
        None => result,
        Some(place) => place.wait(result),
    }
}

/// A job's home, as long as the queue may point to it.
struct Task<F: Call<A>, A> {
    /// Taken out by whoever claims it through the lease: a worker, or the one who cancels it.
    job: Mutex<Option<Job<F, A>>>,
    /// By which it is revoked. Put here when it has been lent, before anybody can ask to cancel it.
    lease: Mutex<Lease>,
    /// Where it is queued. Not a handle: those keep a pool from retiring.
    pool: PoolId,
}

struct Job<F: Call<A>, A> {
    f: F,
    args: A,
    promise: Promise<F::Output>,
    /// Keeps the task in place until the job is taken out.
    task: Arc<Task<F, A>>,
}

impl<F, A> Task<F, A>
where
    F: Call<A> + Send + 'static,
    A: Send + 'static,
    F::Output: Send + 'static,
{
    fn new(f: F, args: A, pool: PoolId) -> (Arc<Self>, AsyncResult<F::Output>) {
        let (promise, result) = promise();
        let task = Arc::new(Task { job: Mutex::new(None), lease: Mutex::new(Lease::new()), pool });
        promise.brought_by(Arc::clone(&task) as Arc<dyn result::Job>);
        *lock(&task.job) = Some(Job { f, args, promise, task: Arc::clone(&task) });
        (task, result)
    }

    fn take(&self) -> Option<Job<F, A>> {
        lock(&self.job).take()
    }

    /// Runs it on this thread, whose kills and timeouts don't concern it.
    fn run_here(&self) {
        let run = || self.take().into_iter().for_each(Job::run);
        current::with(|core| core.undisturbed(run));
    }

    fn lend(&self, pool: &Pool) -> Result<(), Rejected> {
        // Nothing of this thread holds the lease's lock while it is lent: it may be done with before that returns.
        let mut lease = Lease::new();
        // SAFETY: `execute` matches the task's type and doesn't unwind. The job in the task keeps it in place until it is taken
        // out, which only `execute` does, or who revokes the lease, or whom the pool refuses. It owns all it needs, and is `Send`.
        let lent = unsafe { pool.lend(&mut lease, self.address(), execute::<F, A>) };
        *lock(&self.lease) = lease;
        lent
    }

    /// The same, in line if the queue is full; what `left` gives is woken when it has left that.
    fn lend_in_line(&self, pool: &Pool, left: impl FnOnce() -> Waker) -> Result<(), Rejected> {
        let mut lease = Lease::new();
        // SAFETY: as in `lend`.
        let lent = unsafe { pool.lend_in_line_and_wake(&mut lease, self.address(), execute::<F, A>, left) };
        *lock(&self.lease) = lease;
        lent
    }

    fn address(&self) -> *const () {
        std::ptr::from_ref(self).cast()
    }
}

/// The worker's side.
///
/// # Safety
///
/// `task` is a lent `Task<F, A>`, and this is the one call for it.
unsafe fn execute<F, A>(task: *const (), verdict: Verdict)
where
    F: Call<A> + Send + 'static,
    A: Send + 'static,
    F::Output: Send + 'static,
{
    // SAFETY: the claim gave this call the job, which is still in the task and keeps it in place.
    let job = unsafe { &*task.cast::<Task<F, A>>() }.take();
    match verdict {
        Verdict::Run => job.into_iter().for_each(Job::run),
        Verdict::Cancel => job.into_iter().for_each(Job::cancel),
    }
}

impl<F: Call<A>, A> Job<F, A> {
    /// Doesn't unwind.
    fn run(self) {
        let Job { f, args, promise, task } = self;
        promise.begin();
        let ran = catch_unwind(AssertUnwindSafe(|| f.call(args)));
        // If nobody wants the result any more, it is dropped in here.
        shielded(|| match ran {
            Ok(value) => promise.set(value),
            Err(payload) => promise.fail(TaskError::Panicked(payload)),
        });
        drop(task);
    }

    /// Doesn't unwind.
    fn cancel(self) {
        let Job { f, args, promise, task } = self;
        promise.fail(TaskError::Cancelled);
        discard(f);
        discard(args);
        drop(task);
    }
}

impl<F, A> result::Job for Task<F, A>
where
    F: Call<A> + Send + 'static,
    A: Send + 'static,
    F::Output: Send + 'static,
{
    fn cancel(&self) -> bool {
        let revoked = lock(&self.lease).revoke();
        if revoked {
            self.take().into_iter().for_each(Job::cancel);
        }
        revoked
    }

    fn waited_for(&self) {
        if self.pool.is_worker() && lock(&self.lease).revoke() {
            self.run_here();
        }
    }
}

/// A place in line for room in the queue, where the caller waits.
struct Place {
    wait: Wait,
    left: Arc<Left>,
}

/// What is woken when the job is in the queue, or has been cancelled.
struct Left {
    is_so: AtomicBool,
    waiter: Waiter,
}

impl Place {
    fn new() -> Place {
        let wait = Wait::new();
        let left = Arc::new(Left { is_so: AtomicBool::new(false), waiter: wait.waiter() });
        Place { wait, left }
    }

    fn waker(&self) -> Waker {
        Arc::clone(&self.left).into()
    }

    /// Parks until the job has left the line. A kill or timeout cancels it and unwinds.
    fn wait<T>(self, result: AsyncResult<T>) -> AsyncResult<T> {
        while !self.left.is_so.load(SeqCst) {
            if let Err(interrupt) = self.wait.park_until_interrupt(Reason::PoolRoom, None) {
                result.cancel();
                discard(result);
                current::with(|core| unwind::raise(core, interrupt));
            }
        }
        result
    }
}

impl Wake for Left {
    fn wake(self: Arc<Self>) {
        self.is_so.store(true, SeqCst);
        self.waiter.wake();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
