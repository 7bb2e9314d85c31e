//! Locks and signals under load: OS threads with and without hubs, deadlines, timeouts and kills at random moments. A
//! wake, permit or notification that got lost hangs a test, and the watchdog ends it.

mod common;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use common::crowd::{DURATION, Random, crowd};
use common::*;
use greenroom::sync::{Barrier, BoundedSemaphore, Condvar, Event, Mutex, OnceCell, RLock, RwLock, Semaphore};
use greenroom::{Greenlet, join_all, sleep, spawn, timeout, try_hub, yield_now};

// Two threads, ten thousand times each.

/// Runs the two in some way, each on a thread of its own.
fn two_threads(with_hubs: bool, work: impl Fn() + Send + Sync + Clone + 'static) {
    let threads = [(); 2].map(|()| {
        let work = work.clone();
        thread::spawn(move || {
            if !with_hubs {
                work();
                assert!(try_hub().is_none(), "it made a hub");
                return;
            }
            // Two greenlets and main, which share the work of one.
            let others = [(); 2].map(|()| spawn(work.clone()));
            work();
            join_all(others).into_iter().for_each(|result| result.unwrap());
        })
    });
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

macro_rules! ten_thousand_times {
    ($($name:ident: |$round:ident, $counted:ident| $work:expr, $make:expr;)*) => { $(
        mod $name {
            use super::*;

            fn check(with_hubs: bool) {
                within_a_minute(move || {
                    let $counted = Arc::new(($make, AtomicUsize::new(0)));
                    let (rounds, all) = if with_hubs { (3_334, 6 * 3_334) } else { (10_000, 2 * 10_000) };
                    let other = Arc::clone(&$counted);
                    two_threads(with_hubs, move || {
                        let $counted = &*other;
                        for $round in 0..rounds {
                            $work;
                        }
                    });
                    assert_eq!($counted.1.load(SeqCst), all);
                });
            }

            #[test]
            fn without_hubs() {
                check(false);
            }

            #[test]
            fn with_hubs() {
                check(true);
            }
        }
    )* };
}

/// What nobody does at the same time as another.
fn alone(inside: &AtomicUsize) {
    let before = inside.load(SeqCst);
    if before.is_multiple_of(64) {
        yield_now();
    }
    inside.store(before + 1, SeqCst);
}

/// Tries with a short time until it has it.
fn persist<T>(round: usize, mut attempt: impl FnMut(Duration) -> Option<T>) -> T {
    let mut micros = round as u64 % 50;
    loop {
        match attempt(Duration::from_micros(micros)) {
            Some(got) => return got,
            None => micros = micros * 2 + 1,
        }
    }
}

ten_thousand_times! {
    semaphore: |_round, counted| { let _permit = counted.0.acquire(); alone(&counted.1) }, Semaphore::new(1);
    semaphore_with_times: |round, counted| {
        let _permit = persist(round, |d| counted.0.acquire_timeout(d));
        alone(&counted.1);
    }, Semaphore::new(1);
    semaphore_under_timeouts: |round, counted| {
        let _permit = persist(round, |d| timeout(d, || counted.0.acquire()).ok());
        alone(&counted.1);
    }, Semaphore::new(1);
    acquired_and_released: |_round, counted| {
        counted.0.acquire().forget();
        alone(&counted.1);
        counted.0.release().unwrap();
    }, BoundedSemaphore::new(1);
    mutex: |_round, counted| { let _guard = counted.0.lock(); alone(&counted.1) }, Mutex::new(());
    mutex_with_times: |round, counted| {
        let _guard = persist(round, |d| counted.0.lock_timeout(d));
        alone(&counted.1);
    }, Mutex::new(());
    re_entrant_lock: |round, counted| {
        let _outer = persist(round, |d| counted.0.lock_timeout(d));
        let _inner = counted.0.lock();
        alone(&counted.1);
    }, RLock::new(());
    read_write_lock: |round, counted| {
        let seen = {
            let _reader = counted.0.read();
            counted.1.load(SeqCst)
        };
        let _writer = persist(round, |d| counted.0.write_timeout(d));
        assert!(seen <= counted.1.load(SeqCst));
        alone(&counted.1);
    }, RwLock::new(());
}

// Crowds of greenlets on two hubs, plain threads and workers, with kills, for a time.

/// Counts those inside; takes itself out when it unwinds too.
struct Inside<'a>(&'a AtomicUsize);

impl<'a> Inside<'a> {
    fn enter(inside: &'a AtomicUsize, most: usize) -> Inside<'a> {
        let now = inside.fetch_add(1, SeqCst) + 1;
        assert!(now <= most, "{now} inside, of at most {most}");
        Inside(inside)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// A while inside, now and then.
fn stay(random: &Random) {
    match random.below(16) {
        0 => sleep(random.micros(60)),
        1 => yield_now(),
        _ => {}
    }
}

#[test]
fn permits_are_neither_lost_nor_doubled() {
    fn step((semaphore, inside): &(Semaphore, AtomicUsize), random: &Random) {
        let permit = match random.below(4) {
            0 => semaphore.acquire_timeout(random.micros(100)),
            1 => timeout(random.micros(100), || semaphore.acquire()).ok(),
            2 => semaphore.try_acquire(),
            _ => Some(semaphore.acquire()),
        };
        if let Some(_permit) = permit {
            let _inside = Inside::enter(inside, 3);
            stay(random);
        }
    }

    within_a_minute(|| {
        let shared = Arc::new((Semaphore::new(3), AtomicUsize::new(0)));
        crowd(&shared, step);
        assert_eq!(shared.0.available_permits(), 3);
    });
}

#[test]
fn a_mutex_is_held_by_one() {
    fn step((mutex, inside): &(Mutex<(u64, u64)>, AtomicUsize), random: &Random) {
        let guard = match random.below(4) {
            0 => mutex.lock_timeout(random.micros(100)),
            1 => timeout(random.micros(100), || mutex.lock()).ok(),
            2 => mutex.try_lock(),
            _ => Some(mutex.lock()),
        };
        if let Some(mut numbers) = guard {
            let _inside = Inside::enter(inside, 1);
            numbers.0 += 1;
            stay(random);
            // A kill may have come in between.
            numbers.1 = numbers.0;
        }
    }

    within_a_minute(|| {
        let shared = Arc::new((Mutex::new((0, 0)), AtomicUsize::new(0)));
        crowd(&shared, step);
        let numbers = shared.0.try_lock().expect("nobody has it any more");
        assert!(numbers.0 > 100 && numbers.1 <= numbers.0);
    });
}

#[test]
fn writers_are_alone() {
    fn step((lock, readers, writers): &(RwLock<u64>, AtomicUsize, AtomicUsize), random: &Random) {
        if random.below(3) == 0 {
            let writer = match random.below(3) {
                0 => lock.write_timeout(random.micros(100)),
                1 => timeout(random.micros(100), || lock.write()).ok(),
                _ => Some(lock.write()),
            };
            if let Some(mut writer) = writer {
                let _inside = Inside::enter(writers, 1);
                assert_eq!(readers.load(SeqCst), 0);
                *writer += 1;
                stay(random);
            }
        } else {
            let reader = match random.below(3) {
                0 => lock.read_timeout(random.micros(100)),
                1 => lock.try_read(),
                _ => Some(lock.read()),
            };
            if let Some(_reader) = reader {
                let _inside = Inside::enter(readers, usize::MAX);
                assert_eq!(writers.load(SeqCst), 0);
                stay(random);
            }
        }
    }

    within_a_minute(|| {
        let shared = Arc::new((RwLock::new(0), AtomicUsize::new(0), AtomicUsize::new(0)));
        crowd(&shared, step);
        assert!(*shared.0.try_write().expect("nobody has it any more") > 100);
    });
}

#[test]
fn a_re_entrant_lock_has_one_owner() {
    fn step((lock, inside): &(RLock<Cell<u64>>, AtomicUsize), random: &Random) {
        let guard = match random.below(3) {
            0 => lock.lock_timeout(random.micros(100)),
            1 => timeout(random.micros(100), || lock.lock()).ok(),
            _ => Some(lock.lock()),
        };
        if let Some(outer) = guard {
            let _inside = Inside::enter(inside, 1);
            let _inner = lock.lock();
            stay(random);
            outer.set(outer.get() + 1);
        }
    }

    within_a_minute(|| {
        let shared = Arc::new((RLock::new(Cell::new(0)), AtomicUsize::new(0)));
        crowd(&shared, step);
        assert!(shared.0.try_lock().expect("nobody has it any more").get() > 100);
    });
}

#[test]
fn each_notification_reaches_one_who_can_use_it() {
    #[derive(Default)]
    struct Shared {
        tokens: Mutex<usize>,
        changed: Condvar,
        made: AtomicUsize,
        used: AtomicUsize,
    }

    /// Takes one token, of those that are notified one by one: if a killed waiter took a notification with it, one that
    /// waits would not see its token.
    fn step(shared: &Shared, random: &Random) {
        if random.below(2) == 0 {
            let mut tokens = shared.tokens.lock();
            *tokens += 1;
            shared.made.fetch_add(1, SeqCst);
            drop(tokens);
            shared.changed.notify_one();
        } else {
            let tokens = shared.tokens.lock();
            let mut tokens = match random.below(2) {
                0 => shared.changed.wait_timeout_while(tokens, random.micros(200), |tokens| *tokens == 0).0,
                _ => match timeout(random.micros(200), || shared.changed.wait_while(tokens, |tokens| *tokens == 0)) {
                    Ok(tokens) => tokens,
                    Err(_) => return,
                },
            };
            if *tokens > 0 {
                *tokens -= 1;
                shared.used.fetch_add(1, SeqCst);
            }
        }
    }

    within_a_minute(|| {
        let shared = Arc::new(Shared::default());
        crowd(&shared, step);
        let left = *shared.tokens.try_lock().expect("nobody has it any more");
        assert_eq!(left + shared.used.load(SeqCst), shared.made.load(SeqCst));
        assert!(shared.used.load(SeqCst) > 100);
    });
}

#[test]
fn a_notification_is_enough_for_a_consumer_without_a_time() {
    // Victims wait for the same notifications; what one of them got when it was killed must go on to the consumers.
    within_a_minute(|| {
        let pair = Arc::new((Mutex::new(0_usize), Condvar::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let consumer = |pair: &Arc<(Mutex<usize>, Condvar)>| {
            let pair = Arc::clone(pair);
            move || {
                for _ in 0..2_000 {
                    *pair.1.wait_while(pair.0.lock(), |tokens| *tokens == 0) -= 1;
                }
            }
        };
        let consumers = [thread::spawn(consumer(&pair)), {
            let work = consumer(&pair);
            thread::spawn(move || spawn(work).join().unwrap())
        }];
        let victims = {
            let (pair, is_over) = (Arc::clone(&pair), Arc::clone(&is_over));
            thread::spawn(move || {
                while !is_over.load(SeqCst) {
                    let victims = [(); 4].map(|()| {
                        let pair = Arc::clone(&pair);
                        begun(move || drop(pair.1.wait(pair.0.lock())))
                    });
                    sleep(Duration::from_micros(50));
                    victims.iter().for_each(Greenlet::request_kill);
                    // One that had been notified in time goes on without its token: it passes the notification on.
                    for victim in victims {
                        if victim.join().is_ok() {
                            pair.1.notify_one();
                        }
                    }
                }
            })
        };
        for i in 0..4_000 {
            *pair.0.lock() += 1;
            pair.1.notify_one();
            if i % 32 == 0 {
                thread::sleep(Duration::from_micros(50));
            }
        }
        consumers.into_iter().for_each(|thread| thread.join().unwrap());
        is_over.store(true, SeqCst);
        victims.join().unwrap();
        assert_eq!(*pair.0.lock(), 0);
    });
}

#[test]
fn events_set_and_cleared_at_once_wake_everybody_there() {
    // Each side waits for the other's event, which is cleared right after it is set.
    within_a_minute(|| {
        for with_hubs in [false, true] {
            let events = Arc::new([Event::new(), Event::new()]);
            let turns = Arc::new(AtomicUsize::new(0));
            let sides = [0, 1].map(|side| {
                let (events, turns) = (Arc::clone(&events), Arc::clone(&turns));
                move || {
                    for round in 0..5_000 {
                        while turns.load(SeqCst) % 2 != side {
                            if round % 2 == 0 {
                                events[side].wait();
                            } else {
                                events[side].wait_timeout(LONG);
                            }
                            events[side].clear();
                        }
                        turns.fetch_add(1, SeqCst);
                        events[1 - side].set();
                    }
                }
            });
            let threads =
                sides.map(|side| thread::spawn(move || if with_hubs { spawn(side).join().unwrap() } else { side() }));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(turns.load(SeqCst), 10_000);
        }
    });
}

#[test]
fn an_event_wakes_crowds_that_come_and_go() {
    fn step((event, woken): &(Event, AtomicUsize), random: &Random) {
        match random.below(4) {
            0 => {
                event.set();
                event.clear();
            }
            1 => _ = event.wait_timeout(random.micros(200)),
            2 => _ = timeout(random.micros(200), || event.wait()),
            _ => {
                if event.wait_timeout(random.micros(1_000)) {
                    woken.fetch_add(1, SeqCst);
                }
            }
        }
    }

    within_a_minute(|| {
        let shared = Arc::new((Event::new(), AtomicUsize::new(0)));
        crowd(&shared, step);
        assert!(shared.1.load(SeqCst) > 0 && !shared.0.is_set());
    });
}

#[test]
fn a_barrier_counts_those_who_are_there() {
    fn step((barrier, passed, leaders): &(Barrier, AtomicUsize, AtomicUsize), random: &Random) {
        let result = match random.below(2) {
            0 => barrier.wait_timeout(random.micros(300)),
            _ => timeout(random.micros(300), || barrier.wait()).ok(),
        };
        if let Some(result) = result {
            passed.fetch_add(1, SeqCst);
            leaders.fetch_add(usize::from(result.is_leader()), SeqCst);
        }
        stay(random);
    }

    within_a_minute(|| {
        let shared = Arc::new((Barrier::new(4), AtomicUsize::new(0), AtomicUsize::new(0)));
        crowd(&shared, step);
        let (passed, leaders) = (shared.1.load(SeqCst), shared.2.load(SeqCst));
        // Some were killed after they were let through, before they could count themselves.
        assert!(leaders > 0 && passed <= 4 * leaders + 4, "{passed} passed, {leaders} leaders");
        // Nobody is counted who is not there.
        assert!(format!("{:?}", shared.0).contains("waiting: 0"), "{:?}", shared.0);
    });
}

#[test]
fn a_cell_is_initialized_once_however_many_fail() {
    within_a_minute(|| {
        let start = Instant::now();
        while start.elapsed() < DURATION {
            let (cell, made) = (Arc::new(OnceCell::new()), Arc::new(AtomicUsize::new(0)));
            let attempt = |seed: u64| {
                let (cell, made) = (Arc::clone(&cell), Arc::clone(&made));
                move || {
                    let random = Random::new(seed);
                    loop {
                        let value = cell.get_or_try_init(|| {
                            stay(&random);
                            match random.below(4) {
                                0 => Ok(made.fetch_add(1, SeqCst)),
                                _ => Err(()),
                            }
                        });
                        if value.is_ok() {
                            return *cell.wait();
                        }
                    }
                }
            };
            let seed = start.elapsed().as_nanos() as u64;
            let mut threads: Vec<_> = (0..2).map(|i| thread::spawn(attempt(seed + i))).collect();
            let work: Vec<_> = (2..8).map(|i| attempt(seed + i)).collect();
            threads.push(thread::spawn(move || {
                let greenlets: Vec<Rc<Greenlet<usize>>> = work.into_iter().map(|work| Rc::new(spawn(work))).collect();
                yield_now();
                greenlets[0].request_kill();
                greenlets.into_iter().skip(1).map(|greenlet| join_shared(greenlet).unwrap()).sum()
            }));
            let values: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
            assert_eq!((values, made.load(SeqCst)), (0, 1));
        }
    });
}
