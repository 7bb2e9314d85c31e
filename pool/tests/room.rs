//! Waiting for room in the queue, and for quiet.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Wake, Waker};
use std::thread::{self, Thread};

use greenroom_pool::{Pool, Registration, Rejected};
use support::{hold, hold_later, until};

/// Counts its wakes.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

fn wait_for_room(pool: &Pool) -> (Registration, Arc<Bell>) {
    let bell = Arc::new(Bell::default());
    (pool.on_room(bell.clone().into()), bell)
}

fn full_pool() -> (Pool, support::Held) {
    let pool = Pool::builder().max_threads(1).queue_limit(2).build();
    let held = hold(&pool);
    pool.submit(|| ()).unwrap();
    pool.submit(|| ()).unwrap();
    assert_eq!(pool.submit(|| ()), Err(Rejected::QueueFull));
    (pool, held)
}

#[test]
fn who_comes_while_there_is_room_is_woken_at_once() {
    let pool = Pool::new(1);
    let (registration, bell) = wait_for_room(&pool);
    assert!(registration.is_woken());
    assert_eq!(bell.0.load(SeqCst), 1);
}

#[test]
fn each_job_that_leaves_wakes_one_in_their_order() {
    let pool = Pool::builder().max_threads(1).queue_limit(2).build();
    let first = hold(&pool);
    let (second, second_begun) = hold_later(&pool);
    let (third, third_begun) = hold_later(&pool);
    let waiting: Vec<_> = (0..3).map(|_| wait_for_room(&pool)).collect();
    let woken = || waiting.iter().map(|(registration, _)| registration.is_woken()).collect::<Vec<_>>();
    assert_eq!(woken(), [false, false, false]);
    first.release();
    second_begun.recv().unwrap();
    assert_eq!(woken(), [true, false, false]);
    second.release();
    third_begun.recv().unwrap();
    assert_eq!(woken(), [true, true, false]);
    drop(third);
    drop(waiting);
}

#[test]
fn who_gives_up_before_the_wake_gets_none() {
    let (pool, held) = full_pool();
    let (first, first_bell) = wait_for_room(&pool);
    let (second, second_bell) = wait_for_room(&pool);
    drop(first);
    held.release();
    pool.join(None);
    assert!(second.is_woken());
    assert_eq!((first_bell.0.load(SeqCst), second_bell.0.load(SeqCst)), (0, 1));
}

#[test]
fn who_gives_up_after_the_wake_passes_it_on() {
    let pool = Pool::builder().max_threads(1).queue_limit(1).build();
    let held = hold(&pool);
    let (last, begun) = hold_later(&pool);
    let (first, _) = wait_for_room(&pool);
    let (second, _) = wait_for_room(&pool);
    held.release();
    begun.recv().unwrap();
    assert!(first.is_woken() && !second.is_woken());
    drop(first); // there is room that it made no use of
    assert!(second.is_woken());
    drop(last);
}

#[test]
fn what_one_was_woken_for_is_not_announced_to_those_who_come_later() {
    let pool = Pool::builder().max_threads(1).queue_limit(1).build();
    let held = hold(&pool);
    let (last, begun) = hold_later(&pool);
    let (mut first, _) = wait_for_room(&pool);
    held.release();
    begun.recv().unwrap();
    assert!(first.is_woken() && pool.is_awaited());
    let (second, _) = wait_for_room(&pool);
    assert!(!second.is_woken());
    // Somebody who doesn't wait was faster.
    pool.submit(|| ()).unwrap();
    first.renew(Waker::noop().clone());
    assert!(!first.is_woken() && !second.is_woken());
    last.release();
    pool.join(None);
    assert!(first.is_woken() && !second.is_woken());
    drop(first);
    assert!(second.is_woken());
}

#[test]
fn who_makes_use_of_the_room_passes_nothing_on() {
    let pool = Pool::builder().max_threads(1).queue_limit(1).build();
    let held = hold(&pool);
    let (last, begun) = hold_later(&pool);
    let (first, _) = wait_for_room(&pool);
    let (second, _) = wait_for_room(&pool);
    held.release();
    begun.recv().unwrap();
    pool.submit(|| ()).unwrap();
    drop(first);
    assert!(!second.is_woken());
    drop(last);
    pool.join(None);
    assert!(second.is_woken());
}

#[test]
fn shutting_down_wakes_all() {
    let (pool, held) = full_pool();
    let waiting: Vec<_> = (0..5).map(|_| wait_for_room(&pool)).collect();
    assert!(!pool.shutdown(Some(std::time::Duration::ZERO)));
    assert!(waiting.iter().all(|(registration, _)| registration.is_woken()));
    assert!(wait_for_room(&pool).0.is_woken());
    held.release();
}

#[test]
fn a_waker_that_panics_harms_nobody() {
    struct Grenade;
    impl Wake for Grenade {
        fn wake(self: Arc<Self>) {
            std::panic::resume_unwind(Box::new("a waker"));
        }
    }
    let (pool, held) = full_pool();
    let registration = pool.on_room(Arc::new(Grenade).into());
    held.release();
    assert!(pool.join(None));
    assert!(registration.is_woken());
    assert_eq!(pool.stats().completed, 3);
}

/// Unparks a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Many submitters share one place in the queue; some give up now and then. A lost wake would leave one parked for ever.
#[test]
fn no_wake_is_lost() {
    let pool = Pool::builder().max_threads(2).queue_limit(1).build();
    const EACH: u64 = 500;
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for n in 0..EACH {
                    while pool.submit(|| ()).is_err() {
                        let registration = pool.on_room(Arc::new(Unpark(thread::current())).into());
                        if n % 5 == 0 {
                            continue; // gives up, and comes again
                        }
                        while !registration.is_woken() {
                            thread::park();
                        }
                    }
                }
            });
        }
    });
    pool.join(None);
    assert_eq!(pool.stats().completed, 6 * EACH);
}

#[test]
fn quiet_is_told_when_nothing_is_queued_or_running() {
    let (pool, held) = full_pool();
    let bell = Arc::new(Bell::default());
    let registration = pool.on_quiet(Waker::from(bell.clone()));
    let given_up = pool.on_quiet(Waker::from(bell.clone()));
    drop(given_up);
    assert!(!registration.is_woken());
    held.release();
    until("it is told", || bell.0.load(SeqCst) == 1);
    assert_eq!((pool.stats().queued, pool.stats().running), (0, 0));
    drop(registration);
    pool.shutdown(None);
    assert_eq!(bell.0.load(SeqCst), 1);
}
