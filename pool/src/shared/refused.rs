//! Tests with a system that refuses threads, which the public API can't ask for.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use std::{io, thread};

use super::worker::Body;
use super::{Starter, os_thread};
use crate::builder::PoolBuilder;
use crate::lease::{Lease, Verdict};
use crate::pool::{Pool, in_worker};

fn pool(max_threads: usize, starter: Starter) -> Pool {
    PoolBuilder { starter, ..Pool::builder() }.max_threads(max_threads).build()
}

fn refuse(_: thread::Builder, _: Body) -> io::Result<()> {
    Err(io::ErrorKind::WouldBlock.into())
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "still not so: {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn without_any_worker_the_submitter_runs_the_job() {
    let pool = pool(3, refuse);
    for n in 1..=50 {
        let (sender, receiver) = channel();
        let same = pool.clone();
        let here = thread::current().id();
        pool.submit(move || {
            sender.send((thread::current().id() == here, in_worker(), same.is_worker(), same.join(None))).unwrap();
        })
        .unwrap();
        assert_eq!(receiver.try_recv(), Ok((true, true, true, false)));
        let stats = pool.stats();
        assert_eq!((stats.threads, stats.idle, stats.queued, stats.running, stats.completed), (0, 0, 0, 0, n));
    }
    assert!(!in_worker());
    assert!(pool.join(None) && pool.shutdown(None));
}

#[test]
fn a_lent_job_is_done_when_lend_returns() {
    unsafe fn count(frame: *const (), _: Verdict) {
        // SAFETY: the frame is the counter below, which outlives the calls.
        unsafe { &*frame.cast::<AtomicUsize>() }.fetch_add(1, SeqCst);
    }
    let pool = pool(1, refuse);
    let calls = AtomicUsize::new(0);
    let mut lease = Lease::new();
    for n in 1..=3 {
        // SAFETY: the counter outlives the pool's use of it; `count` doesn't unwind.
        unsafe { pool.lend(&mut lease, (&raw const calls).cast(), count) }.unwrap();
        assert!(!lease.revoke());
        assert_eq!(calls.load(SeqCst), n);
    }
}

#[test]
fn who_resizes_stands_in_too() {
    let pool = pool(0, refuse);
    let (sender, receiver) = channel();
    for n in 0..5 {
        let sender = sender.clone();
        pool.submit(move || sender.send(n).unwrap()).unwrap();
    }
    pool.resize(3);
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    assert_eq!(pool.stats().threads, 0);
}

#[test]
fn a_job_that_submits_while_its_thread_stands_in_is_followed_by_that_job() {
    let pool = pool(2, refuse);
    let (sender, receiver) = channel();
    let same = pool.clone();
    pool.submit(move || {
        let after = sender.clone();
        same.submit(move || after.send("then").unwrap()).unwrap();
        sender.send("first").unwrap();
    })
    .unwrap();
    assert_eq!(receiver.try_iter().collect::<Vec<_>>(), ["first", "then"]);
}

#[test]
fn a_panic_does_not_reach_who_stands_in() {
    let pool = pool(1, refuse);
    pool.submit(|| std::panic::resume_unwind(Box::new("in the job"))).unwrap();
    assert_eq!(pool.stats().completed, 1);
}

#[test]
fn with_a_worker_alive_the_job_waits_for_it() {
    static STARTED: AtomicUsize = AtomicUsize::new(0);
    fn only_one(builder: thread::Builder, body: Body) -> io::Result<()> {
        if STARTED.fetch_add(1, SeqCst) == 0 { os_thread(builder, body) } else { refuse(builder, body) }
    }
    let pool = pool(3, only_one);
    let (release, released) = channel::<()>();
    pool.submit(move || released.recv().unwrap()).unwrap();
    until("it runs", || pool.stats().running == 1);
    let (sender, receiver) = channel();
    let here = thread::current().id();
    for _ in 0..4 {
        let sender = sender.clone();
        pool.submit(move || sender.send(thread::current().id() == here).unwrap()).unwrap();
    }
    assert_eq!((pool.stats().threads, pool.stats().queued), (1, 4));
    release.send(()).unwrap();
    assert_eq!(receiver.iter().take(4).collect::<Vec<_>>(), [false; 4]);
    assert_eq!(STARTED.load(SeqCst), 5); // each job tried again
}

#[test]
fn a_refusal_is_forgotten_when_the_system_grants_a_thread() {
    static GRANT: AtomicBool = AtomicBool::new(false);
    fn if_granted(builder: thread::Builder, body: Body) -> io::Result<()> {
        if GRANT.load(SeqCst) { os_thread(builder, body) } else { refuse(builder, body) }
    }
    let pool = pool(2, if_granted);
    let thread_of = |pool: &Pool| {
        let (sender, receiver) = channel();
        pool.submit(move || sender.send(thread::current().id()).unwrap()).unwrap();
        receiver.recv().unwrap()
    };
    assert_eq!(thread_of(&pool), thread::current().id());
    GRANT.store(true, SeqCst);
    assert_ne!(thread_of(&pool), thread::current().id());
    pool.join(None);
    assert_eq!(pool.stats().threads, 1);
}

/// Who stands in hands over as soon as a thread can be had.
#[test]
fn standing_in_ends_with_the_first_thread() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    fn third_time(builder: thread::Builder, body: Body) -> io::Result<()> {
        if CALLS.fetch_add(1, SeqCst) < 2 { refuse(builder, body) } else { os_thread(builder, body) }
    }
    let pool = pool(0, third_time);
    let (sender, receiver) = channel();
    for _ in 0..4 {
        let sender = sender.clone();
        pool.submit(move || sender.send(thread::current().id()).unwrap()).unwrap();
    }
    pool.resize(1);
    let here = thread::current().id();
    let ran_here: Vec<_> = receiver.iter().take(4).map(|id| id == here).collect();
    assert_eq!(ran_here, [true, true, false, false]);
}

/// Several submitters, a system that refuses most threads, workers that leave at once: nothing is lost or stuck.
#[test]
fn refusing_against_leaving_loses_no_job() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    fn now_and_then(builder: thread::Builder, body: Body) -> io::Result<()> {
        if CALLS.fetch_add(1, SeqCst).is_multiple_of(5) { os_thread(builder, body) } else { refuse(builder, body) }
    }
    let options = PoolBuilder { starter: now_and_then, ..Pool::builder() };
    let pool = options.max_threads(2).keep_alive(Duration::from_millis(1)).build();
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for n in 0..400 {
                    let (sender, receiver) = channel();
                    pool.submit(move || sender.send(n).unwrap()).unwrap();
                    assert_eq!(receiver.recv_timeout(Duration::from_secs(30)), Ok(n));
                    if n % 10 == 0 {
                        thread::sleep(Duration::from_micros(1000 + n as u64));
                    }
                }
            });
        }
    });
    assert!(pool.join(None));
    assert_eq!(pool.stats().completed, 1200);
    until("all have left", || pool.stats().threads == 0);
}

#[test]
fn shutting_down_ends_the_standing_in() {
    let pool = pool(0, refuse);
    for _ in 0..3 {
        let same = pool.clone();
        pool.submit(move || assert!(!same.shutdown(None))).unwrap();
    }
    pool.resize(1);
    let stats = pool.stats();
    assert_eq!((stats.threads, stats.queued, stats.completed, stats.cancelled), (0, 0, 1, 2));
}
