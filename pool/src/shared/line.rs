//! Jobs that wait for room in the queue, first come first served.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use crate::job::{JobRef, shield};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The length of the list; written under its lock, read by those who only want to know whether there is anybody.
    len: AtomicUsize,
    list: Mutex<List>,
}

#[derive(Debug, Default)]
struct List {
    jobs: VecDeque<Standing>,
    /// The length at which revoked jobs are looked for: so there are never much more of them than of others.
    full: usize,
}

#[derive(Debug)]
struct Standing {
    job: JobRef,
    /// Woken when the job has left the line, unless it is revoked.
    left: Option<Waker>,
}

/// The least length at which revoked jobs are looked for.
const LEAST_FULL: usize = 64;

impl Line {
    pub(super) fn len(&self) -> usize {
        self.len.load(SeqCst)
    }

    /// Puts a job at the end; `left` is woken when it isn't in line any more. The caller must look again afterwards whether
    /// there is room. Revoked ones may go to `free`, which has nothing to do but that.
    pub(super) fn push(&self, job: JobRef, left: Option<Waker>, mut free: impl FnMut(JobRef)) {
        let mut list = self.lock();
        list.jobs.push_back(Standing { job, left });
        let mut revoked = VecDeque::new();
        if list.jobs.len() >= list.full.max(LEAST_FULL) {
            let all = list.jobs.drain(..);
            let (out, stay) = all.partition::<VecDeque<_>, _>(|standing| standing.job.is_revoked());
            list.full = 2 * stay.len();
            list.jobs = stay;
            revoked = out;
        }
        self.len.store(list.jobs.len(), SeqCst);
        drop(list); // a waker's destructor is foreign code
        revoked.into_iter().for_each(|standing| free(standing.job));
    }

    /// Lets `go` have the first before anybody else can take the next. If it gives it back, the first stays where it was.
    pub(super) fn pop<R>(&self, go: impl FnOnce(JobRef) -> Result<R, JobRef>) -> Option<R> {
        let mut list = self.lock();
        let Standing { job, left } = list.jobs.pop_front()?;
        match go(job) {
            Ok(gone) => {
                self.len.store(list.jobs.len(), SeqCst);
                drop(list);
                left.into_iter().for_each(|waker| shield(|| waker.wake()));
                Some(gone)
            }
            Err(job) => {
                list.jobs.push_front(Standing { job, left });
                None
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
