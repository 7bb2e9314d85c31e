//! The census of the process. One test in a process of its own, for it counts all pools and all threads.

mod support;

use std::time::Duration;

use greenroom_pool::lease::{Lease, Verdict};
use greenroom_pool::{Pool, census};
use support::{hold, until};

unsafe fn nothing(_: *const (), _: Verdict) {}

fn counts() -> (usize, usize) {
    (census().workers, census().busy)
}

#[test]
fn workers_and_jobs_are_counted_across_pools() {
    assert_eq!(counts(), (0, 0));
    let pool = Pool::builder().max_threads(2).keep_alive(Duration::MAX).build();
    let other = Pool::builder().max_threads(1).keep_alive(Duration::MAX).build();
    let held = (hold(&pool), hold(&other));
    assert_eq!(counts(), (2, 4)); // two jobs, and two workers that don't sleep
    other.submit(|| ()).unwrap();
    assert_eq!(counts(), (2, 5)); // queued ones count
    drop(held);
    until("all jobs are done with", || census().busy == 0);
    assert_eq!(counts(), (2, 0));

    let quiet = census();
    assert_eq!(quiet, census());
    pool.submit(|| ()).unwrap();
    until("that job is done with as well", || census().busy == 0);
    assert_eq!(census().workers, 2);
    assert_ne!(quiet, census()); // the counts are the same, yet something has happened

    let mut lease = Lease::new();
    let none = Pool::new(0);
    // SAFETY: the job uses no frame.
    unsafe { none.lend(&mut lease, std::ptr::null(), nothing) }.unwrap();
    assert!(lease.revoke());
    assert_eq!(census().busy, 1); // a worker has yet to come by
    none.shutdown(None);
    assert_eq!(census().busy, 0);
    assert!(none.submit(|| ()).is_err());
    assert_eq!(census().busy, 0); // a rejected one never counts

    // With everything idle, the threads of this process are the workers, the harness's and this one.
    #[cfg(target_os = "linux")]
    {
        let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
        let (before, with_workers, after) = (census(), threads(), census());
        assert_eq!(before, after);
        pool.shutdown(None);
        other.shutdown(None);
        until("the workers are gone", || census().workers == 0 && threads() == with_workers - 2);
    }
}
