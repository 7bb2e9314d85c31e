//! Jobs that borrow from their caller's frame: run, revoked, cancelled, and each against each.

#[path = "support/call.rs"]
mod call;
mod support;

use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use call::Call;
use greenroom_pool::lease::{Lease, Verdict};
use greenroom_pool::{Pool, Rejected};
use support::{hold, until};

#[test]
fn a_job_uses_what_its_caller_has_on_the_stack() {
    let pool = Pool::new(1);
    let mut lease = Lease::new();
    let numbers = vec![1, 2, 3];
    let call = Call::new(&numbers);
    // SAFETY: the call is waited for.
    unsafe { call.lend(&pool, &mut lease) }.unwrap();
    assert_eq!(call.wait(), Some(6));
    assert!(!lease.revoke());
}

#[test]
fn one_lease_serves_thousands_of_jobs() {
    let pool = Pool::new(3);
    let mut lease = Lease::new();
    for n in 0..20_000 {
        let numbers = [n, n, n];
        let call = Call::new(&numbers);
        // SAFETY: the call is waited for.
        unsafe { call.lend(&pool, &mut lease) }.unwrap();
        assert_eq!(call.wait(), Some(3 * n));
    }
    pool.join(None);
    assert_eq!(pool.stats().completed, 20_000);
}

#[test]
fn revoked_before_it_is_taken_it_never_runs_but_keeps_its_place() {
    let pool = Pool::builder().max_threads(1).queue_limit(1).build();
    let held = hold(&pool);
    let mut lease = Lease::new();
    let numbers = vec![1];
    let call = Call::new(&numbers);
    // SAFETY: the call is revoked.
    unsafe { call.lend(&pool, &mut lease) }.unwrap();
    assert!(lease.revoke());
    assert!(!lease.revoke());
    assert_eq!((pool.stats().queued, pool.submit(|| ())), (1, Err(Rejected::QueueFull)));
    held.release();
    assert!(pool.join(None));
    assert!(!call.is_settled());
    let stats = pool.stats();
    assert_eq!((stats.queued, stats.completed, stats.cancelled), (0, 1, 1));

    let again = Call::new(&numbers);
    // SAFETY: the call is waited for.
    unsafe { again.lend(&pool, &mut lease) }.unwrap();
    assert_eq!(again.wait(), Some(1));
}

#[test]
fn a_running_job_cannot_be_revoked() {
    static STATE: AtomicUsize = AtomicUsize::new(0);
    unsafe fn wait_for_two(_: *const (), _: Verdict) {
        STATE.store(1, SeqCst);
        while STATE.load(SeqCst) != 2 {
            thread::yield_now();
        }
        STATE.store(3, SeqCst);
    }
    let pool = Pool::new(1);
    let mut lease = Lease::new();
    // SAFETY: the job uses no frame.
    unsafe { pool.lend(&mut lease, null(), wait_for_two) }.unwrap();
    until("it runs", || STATE.load(SeqCst) == 1);
    assert!(!lease.revoke());
    drop(lease); // its job goes on
    STATE.store(2, SeqCst);
    pool.join(None);
    assert_eq!((STATE.load(SeqCst), pool.stats().completed), (3, 1));
}

#[test]
fn dropping_the_lease_revokes_what_is_queued() {
    let pool = Pool::new(0);
    let numbers = vec![1];
    let call = Call::new(&numbers);
    let mut lease = Lease::new();
    // SAFETY: the lease is dropped before the job can run.
    unsafe { call.lend(&pool, &mut lease) }.unwrap();
    drop(lease);
    pool.resize(1);
    pool.join(None);
    assert!(!call.is_settled());
}

#[test]
fn shutting_down_cancels_what_is_queued() {
    let pool = Pool::new(0);
    let numbers = vec![1];
    let calls: Vec<_> = (0..5).map(|_| Call::new(&numbers)).collect();
    let mut leases: Vec<_> = (0..5).map(|_| Lease::new()).collect();
    for (call, lease) in calls.iter().zip(&mut leases) {
        // SAFETY: each call is waited for or revoked.
        unsafe { call.lend(&pool, lease) }.unwrap();
    }
    assert!(leases[2].revoke());
    assert!(pool.shutdown(None));
    let settled: Vec<_> = calls.iter().map(Call::is_settled).collect();
    assert_eq!(settled, [true, true, false, true, true]);
    assert!(leases.iter_mut().all(|lease| !lease.revoke()));
    assert_eq!(calls[0].wait(), None);
    assert_eq!(pool.stats().cancelled, 5);
    // SAFETY: it is rejected.
    assert_eq!(unsafe { calls[2].lend(&pool, &mut leases[2]) }, Err(Rejected::ShutDown));
}

#[test]
fn without_handles_and_threads_a_lent_job_is_cancelled() {
    let pool = Pool::new(0);
    let call = Call::new(&[]);
    let mut lease = Lease::new();
    // SAFETY: the call is waited for.
    unsafe { call.lend(&pool, &mut lease) }.unwrap();
    drop(pool);
    assert_eq!(call.wait(), None);
}

#[test]
fn a_rejected_job_leaves_the_lease_as_it_was() {
    let pool = Pool::builder().max_threads(0).queue_limit(1).build();
    pool.submit(|| ()).unwrap();
    let call = Call::new(&[4]);
    let mut lease = Lease::new();
    for _ in 0..3 {
        // SAFETY: it is rejected.
        assert_eq!(unsafe { call.lend(&pool, &mut lease) }, Err(Rejected::QueueFull));
        assert!(!lease.revoke());
    }
    pool.resize(1);
    pool.join(None);
    // SAFETY: the call is waited for.
    unsafe { call.lend(&pool, &mut lease) }.unwrap();
    assert_eq!(call.wait(), Some(4));
}

#[test]
fn a_lease_with_a_queued_job_takes_no_other() {
    let pool = Pool::new(0);
    let call = Call::new(&[]);
    let mut lease = Lease::new();
    // SAFETY: the call is revoked below.
    unsafe { call.lend(&pool, &mut lease) }.unwrap();
    // SAFETY: as above.
    let second = catch_unwind(AssertUnwindSafe(|| unsafe { call.lend(&pool, &mut lease) }));
    let message = second.unwrap_err();
    assert!(message.downcast_ref::<&str>().unwrap().contains("still queued"));
    assert!(lease.revoke());
}

#[test]
fn a_lease_may_go_to_another_thread() {
    let pool = Pool::new(1);
    let mut lease = Lease::new();
    let call = Call::new(&[1, 2]);
    // SAFETY: the call is waited for.
    unsafe { call.lend(&pool, &mut lease) }.unwrap();
    assert_eq!(call.wait(), Some(3));
    thread::scope(|scope| {
        scope.spawn(|| {
            let call = Call::new(&[3, 4]);
            // SAFETY: the call is waited for.
            unsafe { call.lend(&pool, &mut lease) }.unwrap();
            assert_eq!(call.wait(), Some(7));
        });
    });
}

/// Owners revoke while workers take: exactly one of them has each job, and a revoked frame is never touched again.
#[test]
fn revoking_against_workers() {
    let pool = Pool::new(2);
    let stop = AtomicBool::new(false);
    let (ran, revoked) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for seed in 0..2_usize {
            let (pool, stop, ran, revoked) = (&pool, &stop, &ran, &revoked);
            scope.spawn(move || {
                let mut lease = Lease::new();
                let mut pause = seed;
                while !stop.load(SeqCst) {
                    pause = (pause * 7 + 3) % 1000;
                    let numbers = vec![pause as u64; 4];
                    let call = Box::new(Call::new(&numbers));
                    // SAFETY: the call is waited for unless it is revoked.
                    unsafe { call.lend(pool, &mut lease) }.unwrap();
                    for _ in 0..pause * 4 {
                        spin_loop();
                    }
                    if lease.revoke() {
                        assert!(!call.is_settled());
                        revoked.fetch_add(1, SeqCst);
                    } else {
                        assert_eq!(call.wait(), Some(pause as u64 * 4));
                        ran.fetch_add(1, SeqCst);
                    }
                }
            });
        }
        thread::sleep(Duration::from_millis(700));
        stop.store(true, SeqCst);
    });
    pool.join(None);
    let stats = pool.stats();
    assert_eq!((stats.completed, stats.cancelled), (ran.into_inner() as u64, revoked.into_inner() as u64));
}

/// Owners lend and revoke while the pool is shut down: each job is settled, revoked or rejected.
#[test]
fn lending_against_shutting_down() {
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(500) {
        let pool = Pool::new(2);
        thread::scope(|scope| {
            for owner in 0..2 {
                let pool = &pool;
                scope.spawn(move || {
                    let mut lease = Lease::new();
                    for n in owner.. {
                        let call = Call::new(&[1]);
                        // SAFETY: the call is waited for unless it is rejected or revoked.
                        if unsafe { call.lend(pool, &mut lease) }.is_err() {
                            return;
                        }
                        if n % 3 != 0 || !lease.revoke() {
                            call.wait();
                        }
                    }
                });
            }
            thread::sleep(Duration::from_micros(200));
            assert!(pool.shutdown(None));
        });
    }
}
