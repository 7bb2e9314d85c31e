//! Jobs, and the threads that run them.

mod support;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use greenroom_pool::{Pool, PoolStats, Rejected, in_worker};
use support::{DropCount, hold, hold_later, until};

fn counts(stats: PoolStats) -> (usize, usize, usize, usize, u64) {
    (stats.threads, stats.idle, stats.queued, stats.running, stats.completed)
}

#[test]
fn three_jobs_on_one_thread_run_in_order_and_stats_tell_the_truth() {
    let pool = Pool::new(1);
    assert_eq!(counts(pool.stats()), (0, 0, 0, 0, 0));
    let (first, begun) = hold_later(&pool);
    begun.recv().unwrap();
    let (second, second_begun) = hold_later(&pool);
    let (third, third_begun) = hold_later(&pool);
    assert_eq!(counts(pool.stats()), (1, 0, 2, 1, 0));
    first.release();
    second_begun.recv().unwrap();
    assert_eq!(counts(pool.stats()), (1, 0, 1, 1, 1));
    assert!(third_begun.try_recv().is_err());
    second.release();
    third_begun.recv().unwrap();
    assert_eq!(counts(pool.stats()), (1, 0, 0, 1, 2));
    third.release();
    assert!(pool.join(None));
    assert_eq!(counts(pool.stats()), (1, 1, 0, 0, 3));
}

#[test]
fn many_jobs_on_one_thread_keep_their_order() {
    let pool = Pool::new(1);
    let (sender, receiver) = channel();
    for n in 0..2000 {
        let sender = sender.clone();
        pool.submit(move || sender.send(n).unwrap()).unwrap();
    }
    drop(sender);
    assert_eq!(receiver.iter().collect::<Vec<_>>(), (0..2000).collect::<Vec<_>>());
}

#[test]
fn a_thread_is_started_only_when_no_worker_is_idle() {
    let pool = Pool::new(4);
    for _ in 0..20 {
        pool.submit(|| ()).unwrap();
        pool.join(None);
    }
    assert_eq!(pool.stats().threads, 1);
    let held: Vec<_> = (0..4).map(|_| hold(&pool)).collect();
    assert_eq!(pool.stats().threads, 4);
    pool.submit(|| ()).unwrap();
    assert_eq!(counts(pool.stats()), (4, 0, 1, 4, 20));
    drop(held);
}

#[test]
fn jobs_run_side_by_side() {
    let pool = Pool::new(3);
    let together = Arc::new(Barrier::new(4));
    for _ in 0..3 {
        let together = together.clone();
        let job = move || {
            together.wait();
        };
        pool.submit(job).unwrap();
    }
    together.wait();
}

#[test]
fn a_panic_ends_the_job_alone() {
    struct Grenade;
    impl Drop for Grenade {
        fn drop(&mut self) {
            resume_unwind(Box::new("its payload panics as well"));
        }
    }
    let pool = Pool::new(1);
    let thread_of = |pool: &Pool| {
        let (sender, receiver) = channel();
        pool.submit(move || sender.send(thread::current().id()).unwrap()).unwrap();
        receiver.recv().unwrap()
    };
    let before = thread_of(&pool);
    pool.submit(|| resume_unwind(Box::new("a panic"))).unwrap();
    pool.submit(|| resume_unwind(Box::new(Grenade))).unwrap();
    assert_eq!(thread_of(&pool), before);
    pool.join(None);
    assert_eq!(counts(pool.stats()), (1, 1, 0, 0, 4));
}

#[test]
fn threads_are_named_and_numbered() {
    let pool = Pool::builder().name("oak").max_threads(3).build();
    let together = Arc::new(Barrier::new(3));
    let (sender, receiver) = channel();
    for _ in 0..3 {
        let (together, sender) = (together.clone(), sender.clone());
        let job = move || {
            sender.send(thread::current().name().map(String::from)).unwrap();
            together.wait();
        };
        pool.submit(job).unwrap();
    }
    let names: HashSet<_> = receiver.iter().take(3).flatten().collect();
    assert_eq!(names, ["oak-1", "oak-2", "oak-3"].map(String::from).into());
}

#[test]
fn idle_workers_leave_and_the_next_job_starts_one_again() {
    let pool = Pool::builder().keep_alive(Duration::from_millis(5)).max_threads(2).build();
    for round in 1..=5 {
        let held = (hold(&pool), hold(&pool));
        assert_eq!(pool.stats().threads, 2);
        drop(held);
        until("all have left", || pool.stats().threads == 0);
        assert_eq!(counts(pool.stats()), (0, 0, 0, 0, round * 2));
    }
}

#[test]
fn leaving_and_submitting_at_the_same_time_loses_nothing() {
    let pool = Pool::builder().keep_alive(Duration::from_millis(1)).max_threads(2).build();
    for n in 0..300 {
        let (sender, receiver) = channel();
        pool.submit(move || sender.send(n).unwrap()).unwrap();
        assert_eq!(receiver.recv_timeout(Duration::from_secs(30)), Ok(n));
        thread::sleep(Duration::from_micros(1000 + n % 20 * 20));
    }
}

#[test]
fn a_full_queue_rejects_and_drops_the_job() {
    let pool = Pool::builder().max_threads(1).queue_limit(2).build();
    let held = hold(&pool);
    let dropped = DropCount::new();
    for _ in 0..2 {
        let job = dropped.clone();
        pool.submit(move || drop(job)).unwrap();
    }
    let job = dropped.clone();
    assert_eq!(pool.submit(move || drop(job)), Err(Rejected::QueueFull));
    assert_eq!((dropped.get(), pool.stats().queued), (1, 2));
    held.release();
    pool.join(None);
    assert_eq!((dropped.get(), pool.stats().completed, pool.stats().cancelled), (3, 3, 0));
}

#[test]
fn a_job_knows_that_it_runs_on_a_worker_and_of_which_pool() {
    let (pool, other) = (Pool::new(1), Pool::new(1));
    assert!(!in_worker() && !pool.is_worker());
    let (sender, receiver) = channel();
    let (here, there) = (pool.clone(), other.clone());
    pool.submit(move || sender.send((in_worker(), here.is_worker(), there.is_worker())).unwrap()).unwrap();
    assert_eq!(receiver.recv(), Ok((true, true, false)));
}

#[test]
fn a_job_may_submit_to_its_own_pool() {
    let pool = Pool::new(1);
    let (sender, receiver) = channel();
    let same = pool.clone();
    pool.submit(move || same.submit(move || sender.send(1).unwrap()).unwrap()).unwrap();
    assert_eq!(receiver.recv(), Ok(1));
}

#[test]
fn a_job_that_waits_for_its_own_pool_is_told_that_it_cannot() {
    let pool = Pool::new(2);
    let (sender, receiver) = channel();
    let same = pool.clone();
    pool.submit(move || sender.send(same.join(None)).unwrap()).unwrap();
    assert_eq!(receiver.recv(), Ok(false));
    assert!(pool.join(None));
}

#[test]
fn join_waits_up_to_its_limit() {
    let pool = Pool::new(1);
    assert!(pool.join(Some(Duration::ZERO)));
    let held = hold(&pool);
    pool.submit(|| ()).unwrap();
    assert!(!pool.join(Some(Duration::ZERO)));
    assert!(!pool.join(Some(Duration::from_millis(20))));
    let joiners: Vec<_> = [None, Some(Duration::MAX), Some(Duration::from_secs(60))]
        .into_iter()
        .map(|limit| {
            let pool = pool.clone();
            thread::spawn(move || pool.join(limit))
        })
        .collect();
    held.release();
    for joiner in joiners {
        assert!(joiner.join().unwrap());
    }
}

#[test]
fn without_handles_the_workers_finish_what_is_queued_and_leave() {
    let pool = Pool::new(2);
    let ran = Arc::new(AtomicUsize::new(0));
    let (sender, gone) = channel::<()>();
    let held = (hold(&pool), hold(&pool));
    for _ in 0..100 {
        let (ran, alive) = (ran.clone(), sender.clone());
        pool.submit(move || {
            ran.fetch_add(1, SeqCst);
            drop(alive);
        })
        .unwrap();
    }
    drop((pool, sender));
    drop(held);
    assert!(gone.recv().is_err());
    assert_eq!(ran.load(SeqCst), 100);
}

#[test]
fn the_last_handle_may_go_inside_a_job() {
    let pool = Pool::new(1);
    let (sender, receiver) = channel();
    let last = pool.clone();
    pool.submit(move || {
        drop(last);
        sender.send(()).unwrap();
    })
    .unwrap();
    drop(pool);
    receiver.recv().unwrap();
}

#[test]
fn without_handles_and_threads_what_is_queued_is_dropped() {
    let dropped = DropCount::new();
    let pool = Pool::new(0);
    for _ in 0..3 {
        let job = dropped.clone();
        pool.submit(move || drop(job)).unwrap();
    }
    drop(pool);
    assert_eq!(dropped.get(), 3);
}

#[test]
fn what_a_job_owns_is_dropped_once() {
    let dropped = DropCount::new();
    let pool = Pool::new(2);
    for n in 0..100 {
        let job = dropped.clone();
        pool.submit(move || {
            if n % 7 == 0 {
                resume_unwind(Box::new(job))
            }
        })
        .unwrap();
    }
    pool.join(None);
    assert_eq!(dropped.get(), 100);
}

#[test]
fn options_that_make_no_sense_panic() {
    assert!(catch_unwind(|| Pool::builder().queue_limit(0)).is_err());
    assert!(catch_unwind(|| Pool::builder().name("a\0b")).is_err());
}

#[test]
fn a_pool_goes_anywhere() {
    fn check<T: Send + Sync + std::panic::UnwindSafe + std::panic::RefUnwindSafe>() {}
    check::<Pool>();
    assert!(catch_unwind(AssertUnwindSafe(Pool::default)).is_ok());
}
