//! More threads, fewer threads, none.

mod support;

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use greenroom_pool::{Pool, PoolBuilder};
use support::{hold, hold_later, until};

#[test]
fn up_starts_threads_for_the_jobs_that_wait() {
    let pool = Pool::new(1);
    let _held = hold(&pool);
    let waiting: Vec<_> = (0..3).map(|_| hold_later(&pool)).collect();
    assert_eq!((pool.stats().threads, pool.stats().queued), (1, 3));
    pool.resize(3);
    assert_eq!(pool.stats().max_threads, 3);
    waiting[0].1.recv().unwrap();
    waiting[1].1.recv().unwrap();
    assert_eq!((pool.stats().threads, pool.stats().queued), (3, 1));
    pool.resize(10);
    waiting[2].1.recv().unwrap();
    assert_eq!((pool.stats().threads, pool.stats().queued), (4, 0)); // no more than are needed
}

#[test]
fn down_lets_idle_workers_go_at_once_and_busy_ones_after_their_job() {
    let pool = Pool::builder().max_threads(5).keep_alive(Duration::MAX).build();
    let mut held: Vec<_> = (0..5).map(|_| hold(&pool)).collect();
    held.drain(..2);
    until("two are idle", || pool.stats().idle == 2);
    pool.resize(2);
    until("the idle ones have left", || pool.stats().threads == 3);
    assert_eq!(pool.stats().running, 3);
    held.pop();
    until("a busy one has left", || pool.stats().threads == 2);
    drop(held);
    pool.join(None);
    assert_eq!((pool.stats().threads, pool.stats().idle), (2, 2));
}

#[test]
fn with_none_jobs_wait_until_there_is_one() {
    let pool = Pool::new(2);
    let held = hold(&pool);
    pool.resize(0);
    let (sender, receiver) = channel();
    pool.submit(move || sender.send(()).unwrap()).unwrap();
    held.release();
    until("the busy one has left", || pool.stats().threads == 0);
    assert!(receiver.try_recv().is_err());
    assert_eq!(pool.stats().queued, 1);
    assert!(!pool.join(Some(Duration::from_millis(5))));
    pool.resize(1);
    receiver.recv().unwrap();
    assert!(pool.join(None));
}

/// Once `resize(0)` has returned, no idle worker takes a job that is submitted then.
#[test]
fn down_comes_before_the_jobs_that_come_after_it() {
    for _ in 0..100 {
        let pool = Pool::new(6);
        drop((0..6).map(|_| hold(&pool)).collect::<Vec<_>>());
        pool.join(None);
        pool.resize(0);
        let before = pool.stats().completed;
        for _ in 0..3 {
            pool.submit(|| ()).unwrap();
        }
        until("all have left", || pool.stats().threads == 0);
        assert_eq!((pool.stats().queued, pool.stats().completed), (3, before));
        pool.resize(1);
        assert!(pool.join(None));
    }
}

#[test]
fn down_to_one_keeps_the_order_of_what_comes_after_it() {
    for _ in 0..50 {
        let pool = Pool::new(6);
        drop((0..6).map(|_| hold(&pool)).collect::<Vec<_>>());
        pool.join(None);
        pool.resize(1);
        let (sender, receiver) = channel();
        for n in 0..20 {
            let sender = sender.clone();
            pool.submit(move || sender.send(n).unwrap()).unwrap();
        }
        drop(sender);
        assert_eq!(receiver.iter().collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_beyond_the_limit_counts_as_the_limit() {
    let pool = Pool::new(1);
    pool.resize(usize::MAX);
    assert_eq!(pool.stats().max_threads, PoolBuilder::MAX_THREADS);
}

#[test]
fn a_pool_that_was_shut_down_stays_so() {
    let pool = Pool::new(1);
    assert!(pool.shutdown(None));
    pool.resize(5);
    assert_eq!(pool.stats().threads, 0);
    assert!(pool.submit(|| ()).is_err());
}

#[test]
fn resizing_to_and_fro_loses_no_job() {
    let pool = Pool::builder().max_threads(2).keep_alive(Duration::from_millis(1)).queue_limit(100_000).build();
    const JOBS: u64 = 20_000;
    thread::scope(|scope| {
        let submitter = scope.spawn(|| {
            for _ in 0..JOBS {
                pool.submit(|| ()).unwrap();
            }
        });
        let mut sizes = [0, 3, 1, 0, 5, 2].into_iter().cycle();
        while !submitter.is_finished() {
            pool.resize(sizes.next().unwrap());
            thread::yield_now();
        }
    });
    pool.resize(1);
    assert!(pool.join(None));
    assert_eq!(pool.stats().completed, JOBS);
}
