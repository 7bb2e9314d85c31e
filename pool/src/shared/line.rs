//! Jobs that wait for room in the queue, first come first served.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::job::JobRef;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The length of the list; written under its lock, read by those who only want to know whether there is anybody.
    len: AtomicUsize,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    jobs: VecDeque<JobRef>,
    /// The length at which revoked jobs are looked for: so there are never much more of them than of others.
    full: usize,
}

/// The least length at which revoked jobs are looked for.
const LEAST_FULL: usize = 64;

impl Line {
    pub(super) fn len(&self) -> usize {
        self.len.load(SeqCst)
    }

    /// Puts a job at the end. The caller must look again afterwards whether there is room. Revoked ones may go to `free`, which
    /// has nothing to do but that.
    pub(super) fn push(&self, job: JobRef, mut free: impl FnMut(JobRef)) {
        let mut list = self.lock();
        list.jobs.push_back(job);
        if list.jobs.len() >= list.full.max(LEAST_FULL) {
            let (revoked, left) = list.jobs.drain(..).partition::<VecDeque<_>, _>(JobRef::is_revoked);
            list.full = 2 * left.len();
            list.jobs = left;
            revoked.into_iter().for_each(&mut free);
        }
        self.len.store(list.jobs.len(), SeqCst);
    }

    /// Lets `go` have the first before anybody else can take the next. If it gives it back, the first stays where it was.
    pub(super) fn pop<R>(&self, go: impl FnOnce(JobRef) -> Result<R, JobRef>) -> Option<R> {
        let mut list = self.lock();
        let first = list.jobs.pop_front()?;
        let gone = go(first).map_err(|first| list.jobs.push_front(first)).ok();
        self.len.store(list.jobs.len(), SeqCst);
        gone
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
