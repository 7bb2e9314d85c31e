//! How many workers and jobs there are in the whole process.
//!
//! Each of the two words below holds a count of what is there now (low half) and of what ever came (high half), so that
//! one step changes both and two equal readings mean that nothing came between them.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// What is there now, in the low half of a word.
const PRESENT: u64 = 1;
/// What ever came, in the high half of a word; it wraps without harm.
const ARRIVED: u64 = 1 << 32;

/// Worker threads. One is counted by itself, as its first act, and leaves the count as its last.
static WORKERS: AtomicU64 = AtomicU64::new(0);
/// Jobs queued or running. One is counted before any worker can see it, until all that follows from it is done.
static JOBS: AtomicU64 = AtomicU64::new(0);
/// Workers that don't sleep, with a job or without. One is counted from before its thread is started to its very end, except while it
/// sleeps: who wakes it has counted it before.
static AWAKE: AtomicU64 = AtomicU64::new(0);

/// The workers and jobs of all pools in this process: the answer of [`census()`].
///
/// Two censuses are equal only if no worker and no job came or went between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Census {
    /// Worker threads that exist now. A thread that is being started or is past its end may exist without being
    /// counted; none is counted that doesn't exist.
    pub workers: usize,
    /// Jobs that are queued or running in any pool, and workers that don't sleep.
    pub busy: usize,
    /// Workers that ever came, jobs that ever came, workers that were ever woken.
    arrivals: [u32; 3],
}

/// Counts the workers and jobs of all pools in this process. Never blocks.
///
/// It serves to prove that no worker can wake anybody. Take a census, count the threads of the process, take another
/// census. If both are equal, `busy` is 0 and the process has exactly `1 + workers` threads, then at the moment of
/// counting the threads were the caller and idle workers, nothing else:
///
/// * a worker is counted only while its thread exists, and the set of counted workers was the same throughout, so
///   the `1 + workers` threads are just these and the caller;
/// * a job is counted before any worker can see it and until its worker has woken whom it had to wake, and a worker is counted as
///   awake before it is woken and until it sleeps again, so each of these workers sleeps and has nothing to do;
/// * who isn't there can't submit a job, so only the caller can change any of that.
///
/// What was done before the second census has been done: look once more at whatever a job or thread may have left for
/// you before you conclude that nothing will come. If the proof fails it says nothing, for a worker that is just starting,
/// just looking for a job or just leaving makes it fail: try again a little later.
///
/// ```
/// use greenroom_pool::{Pool, census};
///
/// let pool = Pool::new(1);
/// let (go, gate) = std::sync::mpsc::channel::<()>();
/// pool.submit(move || gate.recv().unwrap())?;
/// assert!(census().busy >= 1);
/// go.send(()).unwrap();
/// # Ok::<(), greenroom_pool::Rejected>(())
/// ```
pub fn census() -> Census {
    let words = [&WORKERS, &JOBS, &AWAKE].map(|word| word.load(SeqCst));
    let [workers, jobs, awake] = words.map(|word| word as u32 as usize);
    Census { workers, busy: jobs + awake, arrivals: words.map(|word| (word >> 32) as u32) }
}

/// How many jobs are queued or running.
pub(crate) fn jobs() -> usize {
    JOBS.load(SeqCst) as u32 as usize
}

/// A worker is about to be started or woken, or gets up by itself.
pub(crate) fn awake_begins() {
    AWAKE.fetch_add(ARRIVED + PRESENT, SeqCst);
}

/// A worker is about to sleep, has ended, or could not be started.
pub(crate) fn awake_ends() {
    AWAKE.fetch_sub(PRESENT, SeqCst);
}

/// A job is about to be put where workers can see it.
pub(crate) fn busy_begins() {
    JOBS.fetch_add(ARRIVED + PRESENT, SeqCst);
}

/// That is done with, and so is all that follows from it.
pub(crate) fn busy_ends() {
    JOBS.fetch_sub(PRESENT, SeqCst);
}

/// Counts the current thread as a worker while it lives, and lets the count of those awake go, which its starter began.
pub(crate) struct Presence(());

impl Presence {
    pub(crate) fn begin() -> Presence {
        WORKERS.fetch_add(ARRIVED + PRESENT, SeqCst);
        Presence(())
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        awake_ends();
        WORKERS.fetch_sub(PRESENT, SeqCst);
    }
}
