//! What the handles and the workers of a pool share.
//!
//! `word` holds the numbers and their transitions, this file the way of a job from the one who submits it to the one who
//! performs it, `worker` the threads, `wakers` those who wait for the pool. README.md argues why no job is lost and no worker
//! sleeps on.

mod gate;
mod line;
#[cfg(test)]
mod protocol;
#[cfg(test)]
mod refused;
mod seat;
mod sleepers;
mod wakers;
mod word;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence};
use std::task::Waker;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};

use gate::Gate;
use line::Line;
use seat::{Record, Seat, Seats};
use sleepers::Sleepers;
pub(crate) use wakers::Wakers;
use word::State;
pub(crate) use word::{QUEUE_LIMIT, THREADS_LIMIT, Word};
use worker::Serving;
pub(crate) use worker::{Starter, current_is_worker, os_thread};

use crate::builder::PoolBuilder;
use crate::census;
use crate::clock::Moment;
use crate::error::Rejected;
use crate::job::JobRef;
use crate::lease::Verdict;
use crate::priority::Priority;
use crate::spin::Spin;
use crate::stats::PoolStats;
use crate::sys::niceness;

/// What travels through the queue.
#[derive(Debug)]
struct Queued {
    job: JobRef,
    since: Moment,
}

/// The state of a pool.
#[derive(Debug)]
pub(crate) struct Shared {
    state: State,
    /// Has room for as many jobs as may be queued.
    sender: Sender<Queued>,
    /// Holds at least as many as the word counts.
    receiver: Receiver<Queued>,
    /// Jobs that wait for room in the queue.
    line: Line,
    /// Workers without a job.
    sleepers: Sleepers,
    /// Whether it pays for an idle worker to wait awake; `None` if it must not.
    spin: Option<Spin>,
    /// How many jobs may run at once.
    gate: Gate,
    /// What became of jobs.
    seats: Seats,
    /// How many threads are cancelling jobs.
    cancelling: AtomicUsize,
    /// Those who wait until nothing is queued or running, or all workers are gone.
    pub(crate) quiet: Wakers,
    /// Handles that exist. The last one to go retires the pool.
    handles: AtomicUsize,
    /// Threads that were ever tried to start, to number them.
    threads_named: AtomicU64,
    /// How long a worker waits for a job before it leaves.
    keep_alive: Duration,
    /// What threads are named, before the number.
    name: String,
    /// What threads are to the kernel.
    priority: Priority,
    /// How nice the thread was that made the pool.
    niceness: i32,
    /// How a thread is started.
    starter: Starter,
}

impl Shared {
    /// A pool with one handle.
    pub(crate) fn new(options: PoolBuilder) -> Shared {
        let (sender, receiver) = crossbeam_channel::bounded(options.queue_limit);
        Shared {
            state: State::new(options.max_threads),
            sender,
            receiver,
            line: Line::default(),
            sleepers: Sleepers::default(),
            spin: options.spin.then(Spin::new),
            gate: Gate::new(options.admission),
            seats: Seats::default(),
            cancelling: AtomicUsize::new(0),
            quiet: Wakers::default(),
            handles: AtomicUsize::new(1),
            threads_named: AtomicU64::new(0),
            keep_alive: options.keep_alive,
            name: options.name,
            priority: options.priority,
            niceness: niceness(),
            starter: options.starter,
        }
    }

    /// Puts a job into the queue and sees to it that there is a worker for it; or gives it back.
    pub(crate) fn enqueue(self: &Arc<Self>, job: JobRef) -> Result<(), (JobRef, Rejected)> {
        if self.state.load().is_closed() {
            return Err((job, Rejected::ShutDown));
        }
        census::busy_begins();
        if let Err(job) = self.send(job) {
            census::busy_ends();
            return Err((job, Rejected::QueueFull));
        }
        self.count();
        Ok(())
    }

    /// The same, but if the queue is full the job stands in line for it, and what `left` gives is woken when it has left that.
    pub(crate) fn enqueue_in_line(
        self: &Arc<Self>,
        job: JobRef,
        left: impl FnOnce() -> Option<Waker>,
    ) -> Result<(), (JobRef, Rejected)> {
        let job = if self.line.len() > 0 {
            job
        } else {
            match self.enqueue(job) {
                Err((job, Rejected::QueueFull)) => job,
                other => return other,
            }
        };
        if self.state.load().is_closed() {
            return Err((job, Rejected::ShutDown));
        }
        let left = left();
        census::busy_begins();
        self.line.push(job, left, |revoked| self.cancel(revoked));
        self.admit();
        Ok(())
    }

    /// Lets jobs from the line into the queue as far as there is room. In a closed pool they are cancelled.
    fn admit(self: &Arc<Self>) {
        // Push to the line, then look for room; make room, then look at the line: one of the two sees the other.
        fence(SeqCst);
        while self.line.len() > 0 {
            let closed = self.state.load().is_closed();
            let _cancelling = closed.then(|| Cancelling::begin(self));
            match self.line.pop(|job| if closed { Ok(Some(job)) } else { self.send(job).map(|()| None) }) {
                None => return,
                Some(None) => self.count(),
                Some(Some(job)) => self.cancel(job),
            }
        }
    }

    fn send(&self, job: JobRef) -> Result<(), JobRef> {
        let queued = Queued { job, since: Moment::now() };
        self.sender.try_send(queued).map_err(|full| full.into_inner().job)
    }

    /// Counts a job that has been sent, and sees to it that there is a worker for it. In a closed pool it is cancelled instead:
    /// it or another one, which makes no difference.
    fn count(self: &Arc<Self>) {
        match self.state.submit(self.gate.width()) {
            Ok(true) => self.start_worker(),
            Ok(false) => self.rouse(),
            Err(()) => self.cancel_queued(1),
        }
    }

    /// Wakes an idle worker if there is anything for it to do.
    fn rouse(&self) {
        while self.is_wanted() && self.sleepers.wake_searcher() {}
    }

    /// Whether there is anything to do for an idle worker: a job, to watch, or to leave.
    fn is_wanted(&self) -> bool {
        let word = self.state.load();
        let kept_waiting = || word.queued() > 0 && word.max() > 0 && self.gate.wants_watcher();
        word.surplus() > 0 || word.admitted(self.gate.width()) > 0 || kept_waiting()
    }

    /// An idle worker claims a job, if there is one for it, and takes it out of the queue.
    fn claim(self: &Arc<Self>, seat: &Seat, width: usize) -> Option<Queued> {
        if self.state.load().admitted(width) == 0 {
            return None;
        }
        seat.receives(true);
        let claimed = self.state.claim(width);
        let job = claimed.map(|after| self.receive(after));
        seat.receives(false);
        if claimed.is_some_and(|after| after.idle() == 0) && self.gate.is_narrow() {
            self.restaff(); // somebody has to watch
        }
        job
    }

    /// Takes out the job that has been claimed.
    fn receive(&self, after: Word) -> Queued {
        if after.queued() == 0 {
            self.gate.reset();
        }
        // If it was the last job of a pool without handles, the others can go.
        self.sleepers.wake_up_to(after.surplus());
        self.take_out()
    }

    fn take_out(&self) -> Queued {
        self.receiver.try_recv().expect("a job is sent before it is counted")
    }

    /// Starts and wakes the workers for the jobs that may begin.
    fn restaff(self: &Arc<Self>) {
        for _ in 0..self.state.staff(self.gate.width()) {
            self.start_worker();
        }
        self.rouse();
    }

    /// A worker performs a job, and as many more as it can claim, if it wants `more`.
    fn perform(self: &Arc<Self>, seat: &Seat, mut next: Queued, more: bool) {
        let mut began = Moment::now();
        loop {
            let Queued { job, since } = next;
            self.admit();
            seat.begins(began);
            let outcome = job.finish(Verdict::Run);
            let ended = Moment::now();
            let ran = ended.since(began);
            seat.ends(outcome, began.since(since), ran);
            self.gate.note_run(ran);
            seat.receives(true);
            let (after, again) = self.state.done(if more { self.gate.width() } else { 0 });
            let claimed = again.then(|| self.receive(after));
            seat.receives(false);
            if claimed.is_none() {
                self.ring_if_quiet();
            }
            census::busy_ends();
            match claimed {
                Some(claimed) => next = claimed,
                None => return,
            }
            began = ended;
        }
    }

    /// A job that will not run is settled.
    fn cancel(&self, job: JobRef) {
        job.finish(Verdict::Cancel);
        self.seats.cancelled();
        census::busy_ends();
    }

    /// Takes so many jobs, which nobody counts any more, out of the queue of a closed pool and cancels them.
    fn cancel_queued(&self, count: usize) {
        let _cancelling = Cancelling::begin(self);
        // Who has claimed a job before gets the one that was the first then.
        self.seats.wait_for_receivers();
        for _ in 0..count {
            self.cancel(self.take_out().job);
        }
    }

    /// Changes the number of threads wanted, starts those that queued jobs call for, and sends away idle ones that are too
    /// many.
    pub(crate) fn resize(self: &Arc<Self>, max: usize) {
        let (after, started) = self.state.resize(max, self.gate.width());
        self.sleepers.wake_up_to(after.surplus());
        for _ in 0..started {
            self.start_worker();
        }
        self.rouse();
    }

    /// Refuses further jobs, cancels those queued and sends the idle workers away.
    pub(crate) fn close(self: &Arc<Self>) {
        let cancelling = Cancelling::begin(self);
        self.state.close();
        self.cancel_queued(self.state.clear());
        self.admit();
        drop(cancelling);
        self.sleepers.wake_up_to(usize::MAX);
    }

    /// Another handle exists.
    pub(crate) fn add_handle(&self) {
        self.handles.fetch_add(1, Relaxed);
    }

    /// A handle is gone. After the last one workers finish what is queued and leave; without threads to do so it is cancelled.
    pub(crate) fn drop_handle(self: &Arc<Self>) {
        if self.handles.fetch_sub(1, SeqCst) > 1 {
            return;
        }
        let after = self.state.retire();
        if after.max() == 0 {
            self.close();
        } else {
            self.sleepers.wake_up_to(after.surplus());
        }
    }

    /// Blocks until nothing is queued or running, for at most `timeout`. Returns whether it is so.
    pub(crate) fn join(&self, timeout: Option<Duration>) -> bool {
        self.wait(timeout, || self.is_quiet())
    }

    /// Blocks until the workers of a closed pool have left, for at most `timeout`. Returns whether they have.
    pub(crate) fn wait_for_leave(&self, timeout: Option<Duration>) -> bool {
        self.wait(timeout, || self.is_quiet() && self.state.load().threads() == 0)
    }

    fn wait(&self, timeout: Option<Duration>, done: impl Fn() -> bool) -> bool {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.quiet.wait(deadline, done)
    }

    /// Is nothing queued or running?
    pub(crate) fn is_quiet(&self) -> bool {
        // In this order: who cancels says so before the word ceases to count its jobs.
        self.state.load().is_quiet() && self.cancelling.load(SeqCst) == 0
    }

    pub(crate) fn max_threads(&self) -> usize {
        self.state.load().max()
    }

    pub(crate) fn spins(&self) -> bool {
        self.spin.is_some()
    }

    pub(crate) fn stats(&self) -> PoolStats {
        let word = self.state.load();
        let Record { completed, cancelled, waits, runs } = self.seats.sum();
        PoolStats {
            threads: word.threads(),
            idle: word.idle(),
            queued: word.queued() + self.line.len(),
            running: word.running(),
            completed,
            cancelled,
            max_threads: word.max(),
            waits,
            runs,
        }
    }

    fn ring_if_quiet(&self) {
        if self.is_quiet() {
            self.quiet.wake_all();
        }
    }
}

/// The current thread cancels jobs: nothing is quiet until it has done so.
struct Cancelling<'a> {
    shared: &'a Shared,
    /// A job that is cancelled may call the pool.
    _serving: Serving,
}

impl Cancelling<'_> {
    fn begin(shared: &Shared) -> Cancelling<'_> {
        shared.cancelling.fetch_add(1, SeqCst);
        Cancelling { shared, _serving: Serving::begin(shared) }
    }
}

impl Drop for Cancelling<'_> {
    fn drop(&mut self) {
        self.shared.cancelling.fetch_sub(1, SeqCst);
        self.shared.ring_if_quiet();
    }
}
