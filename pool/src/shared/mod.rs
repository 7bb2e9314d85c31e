//! What the handles and the workers of a pool share.
//!
//! `word` holds the numbers and their transitions, this file the way of a job from the one who submits it to the one who
//! performs it, `worker` the threads, `wakers` those who wait for the pool. README.md argues why no job is lost and no worker
//! sleeps on.

mod line;
#[cfg(test)]
mod refused;
mod wakers;
mod word;
mod worker;

use std::mem::size_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, fence};
use std::task::Waker;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};

use line::Line;
pub(crate) use wakers::Wakers;
use word::State;
pub(crate) use word::{QUEUE_LIMIT, THREADS_LIMIT, Word};
use worker::Serving;
pub(crate) use worker::{Starter, current_is_worker, os_thread};

use crate::builder::PoolBuilder;
use crate::census;
use crate::error::Rejected;
use crate::job::{JobRef, Outcome};
use crate::lease::Verdict;
use crate::stats::PoolStats;

/// What travels through the queue: a job, or nothing but the wish that a worker look at the word again (a *look*).
type Message = Option<JobRef>;
const _: () = assert!(size_of::<Message>() == 8 || size_of::<usize>() != 8);

/// How many looks may be in the queue at once. Beyond them each worker that leaves sends the next.
const LOOKS_LIMIT: usize = 256;

/// The state of a pool.
#[derive(Debug)]
pub(crate) struct Shared {
    state: State,
    /// Has room for `limit` jobs and `LOOKS_LIMIT` looks, so sending never blocks.
    sender: Sender<Message>,
    /// Each worker receives from this one.
    receiver: Receiver<Message>,
    /// At least as many as there are looks in the queue; a receiver takes its look off before it looks.
    looks: AtomicUsize,
    /// Jobs that wait for room in the queue.
    line: Line,
    /// Those who wait until nothing is queued or running, or all workers are gone.
    pub(crate) quiet: Wakers,
    /// Jobs that ran.
    completed: AtomicU64,
    /// Jobs that left the queue without running.
    cancelled: AtomicU64,
    /// Handles that exist. The last one to go retires the pool.
    handles: AtomicUsize,
    /// Threads that were ever tried to start, to number them.
    threads_named: AtomicU64,
    /// The most jobs that may be queued.
    limit: usize,
    /// How long a worker waits for a job before it leaves.
    keep_alive: Duration,
    /// What threads are named, before the number.
    name: String,
    /// How a thread is started.
    starter: Starter,
}

impl Shared {
    /// A pool with one handle.
    pub(crate) fn new(options: PoolBuilder) -> Shared {
        let (sender, receiver) = crossbeam_channel::bounded(options.queue_limit + LOOKS_LIMIT);
        Shared {
            state: State::new(options.max_threads),
            sender,
            receiver,
            looks: AtomicUsize::new(0),
            line: Line::default(),
            quiet: Wakers::default(),
            completed: AtomicU64::new(0),
            cancelled: AtomicU64::new(0),
            handles: AtomicUsize::new(1),
            threads_named: AtomicU64::new(0),
            limit: options.queue_limit,
            keep_alive: options.keep_alive,
            name: options.name,
            starter: options.starter,
        }
    }

    /// Puts a job into the queue and sees to it that there is a worker for it; or gives it back.
    pub(crate) fn enqueue(self: &Arc<Self>, job: JobRef) -> Result<(), (JobRef, Rejected)> {
        census::busy_begins();
        let must_start = match self.state.submit(self.limit) {
            Ok(must_start) => must_start,
            Err(reason) => {
                census::busy_ends();
                return Err((job, reason));
            }
        };
        self.send(Some(job));
        self.after_sending(must_start);
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
        self.line.push(job, left, |revoked| {
            self.conclude(revoked, Verdict::Cancel);
            census::busy_ends();
        });
        self.admit();
        Ok(())
    }

    /// Lets jobs from the line into the queue as far as there is room. In a closed pool they are cancelled.
    fn admit(self: &Arc<Self>) {
        while self.line.len() > 0 {
            let may_go = || match self.state.submit(self.limit) {
                Ok(must_start) => Some(Ok(must_start)),
                Err(Rejected::ShutDown) => Some(Err(())),
                Err(Rejected::QueueFull) => None,
            };
            let go = |job, admitted: Result<bool, ()>| match admitted {
                Ok(must_start) => {
                    self.send(Some(job));
                    Ok(must_start)
                }
                Err(()) => Err(job),
            };
            match self.line.pop(may_go, go) {
                None => return,
                Some(Ok(must_start)) => self.after_sending(must_start),
                Some(Err(job)) => {
                    let _serving = Serving::begin(self); // a job that is cancelled may call the pool
                    self.conclude(job, Verdict::Cancel);
                    census::busy_ends();
                }
            }
        }
    }

    fn after_sending(self: &Arc<Self>, must_start: bool) {
        // Push, then look again: who closed the pool meanwhile may have emptied the queue before the push.
        fence(SeqCst);
        if self.state.load().is_closed() {
            self.cancel_queued();
        }
        if must_start {
            self.start_worker();
        }
    }

    /// An idle worker takes note of what it has received.
    fn receive(self: &Arc<Self>, message: Message) {
        match message {
            Some(job) => self.perform(job),
            None => {
                self.looks.fetch_sub(1, SeqCst);
            }
        }
    }

    /// An idle worker takes a job, performs it, and is idle again.
    fn perform(self: &Arc<Self>, job: JobRef) {
        let before = self.state.take();
        self.admit();
        self.conclude(job, if before.is_closed() { Verdict::Cancel } else { Verdict::Run });
        self.ring_if_quiet(self.state.done());
        census::busy_ends();
    }

    fn conclude(&self, job: JobRef, verdict: Verdict) {
        let counter = match job.finish(verdict) {
            Outcome::Ran => &self.completed,
            Outcome::NeverRan => &self.cancelled,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Changes the number of threads wanted, starts those that queued jobs call for, and sends away idle ones that are too
    /// many.
    pub(crate) fn resize(self: &Arc<Self>, max: usize) {
        let (after, started) = self.state.resize(max);
        self.ensure_looks(after.idle().min(after.surplus()));
        for _ in 0..started {
            self.start_worker();
        }
    }

    /// Refuses further jobs, cancels those queued and sends the idle workers away.
    pub(crate) fn close(self: &Arc<Self>) {
        self.state.close();
        fence(SeqCst);
        self.cancel_queued();
        self.admit();
    }

    /// Of a closed pool: cancels what is queued, and sends the idle workers away (again: their looks were in the queue).
    fn cancel_queued(&self) {
        let _serving = Serving::begin(self); // a job that is cancelled may call the pool
        while let Ok(message) = self.receiver.try_recv() {
            let Some(job) = message else {
                self.looks.fetch_sub(1, SeqCst);
                continue;
            };
            self.conclude(job, Verdict::Cancel);
            self.ring_if_quiet(self.state.cancelled());
            census::busy_ends();
        }
        self.ensure_looks(self.state.load().idle());
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
            self.ensure_looks(after.idle());
        }
    }

    /// Blocks until the word is as wanted, for at most `timeout`. Returns whether it is.
    pub(crate) fn wait(&self, timeout: Option<Duration>, wanted: impl Fn(Word) -> bool) -> bool {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        self.quiet.wait(deadline, || wanted(self.state.load()))
    }

    /// Is nothing queued or running?
    pub(crate) fn is_quiet(&self) -> bool {
        self.state.load().is_quiet()
    }

    pub(crate) fn stats(&self) -> PoolStats {
        let word = self.state.load();
        PoolStats {
            threads: word.threads(),
            idle: word.idle(),
            queued: word.queued() + self.line.len(),
            running: word.threads() - word.idle(),
            completed: self.completed.load(Relaxed),
            cancelled: self.cancelled.load(Relaxed),
            max_threads: word.max(),
        }
    }

    fn ring_if_quiet(&self, after: Word) {
        if after.is_quiet() {
            self.quiet.wake_all();
        }
    }

    /// Sees to it that at least `wanted` looks are in the queue, as far as there may be so many.
    fn ensure_looks(&self, wanted: usize) {
        let wanted = wanted.min(LOOKS_LIMIT);
        let raise = |looks| (looks < wanted).then_some(wanted);
        if let Ok(before) = self.looks.fetch_update(SeqCst, SeqCst, raise) {
            for _ in before..wanted {
                self.send(None);
            }
        }
    }

    fn send(&self, message: Message) {
        self.sender.send(message).expect("a pool holds the receiver of its queue");
    }
}
