//! Locks, signals, queues and waiting for several: every kind of waiter, woken from everywhere, killed and timed out at every
//! moment. Then what each lock and signal does by itself.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::places::PLACES;
use common::*;
use greenroom::queue::{LifoQueue, Queue};
use greenroom::sync::{
    Barrier, BoundedSemaphore, Condvar, Event, Mutex, MutexGuard, OnceCell, RLock, RLockGuard, RwLock, RwLockReadGuard,
    RwLockWriteGuard, Semaphore,
};
use greenroom::{Greenlet, ThreadPool, hub, join_all, sleep, spawn, timeout, try_hub, wait, yield_now};

// Each primitive, in a state in which one waits.

/// A primitive that one has to wait for, until `notify`, which lets all through: at once or one after the other.
struct Rig {
    /// Waits; false: the time was over. What it got it gives back.
    wait: Box<dyn Fn(Option<Duration>) -> bool + Send + Sync>,
    /// Lets them through. When it returns, nobody has to wait any more.
    notify: Box<dyn Fn() + Send + Sync>,
}

impl Rig {
    fn new(
        wait: impl Fn(Option<Duration>) -> bool + Send + Sync + 'static,
        notify: impl Fn() + Send + Sync + 'static,
    ) -> Arc<Rig> {
        Arc::new(Rig { wait: Box::new(wait), notify: Box::new(notify) })
    }

    fn wait(&self, limit: Option<Duration>) -> bool {
        (self.wait)(limit)
    }

    fn notify(&self) {
        (self.notify)();
    }

    /// A greenlet that waits.
    fn waiter(self: &Arc<Rig>, limit: Option<Duration>) -> Greenlet<bool> {
        let rig = Arc::clone(self);
        begun(move || rig.wait(limit))
    }
}

/// A thread that does `hold`, which calls what it is given while it holds something. Returns what makes it end.
fn holder(hold: impl FnOnce(&dyn Fn()) + Send + 'static) -> impl Fn() + Send + Sync {
    let (is_held, held) = mpsc::channel();
    let (release, is_released) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        hold(&|| {
            is_held.send(()).unwrap();
            // An error: the test is over.
            let _ = is_released.recv();
        });
    });
    held.recv().unwrap();
    let thread = std::sync::Mutex::new(Some(thread));
    move || {
        let _ = release.send(());
        if let Some(thread) = thread.lock().unwrap().take() {
            thread.join().unwrap();
        }
    }
}

type Make = fn() -> Arc<Rig>;

fn event() -> Arc<Rig> {
    let event = Arc::new(Event::new());
    let other = Arc::clone(&event);
    let wait = move |limit| match limit {
        None => {
            event.wait();
            true
        }
        Some(limit) => event.wait_timeout(limit),
    };
    Rig::new(wait, move || other.set())
}

fn semaphore() -> Arc<Rig> {
    let semaphore = Arc::new(Semaphore::new(0));
    let other = Arc::clone(&semaphore);
    let wait = move |limit: Option<Duration>| match limit {
        None => {
            drop(semaphore.acquire());
            true
        }
        Some(limit) => semaphore.acquire_timeout(limit).is_some(),
    };
    Rig::new(wait, move || other.release().unwrap())
}

fn bounded_semaphore() -> Arc<Rig> {
    let semaphore = Arc::new(BoundedSemaphore::new(1));
    semaphore.acquire().forget();
    let other = Arc::clone(&semaphore);
    let wait = move |limit: Option<Duration>| match limit {
        None => {
            drop(semaphore.acquire());
            true
        }
        Some(limit) => semaphore.acquire_timeout(limit).is_some(),
    };
    Rig::new(wait, move || other.release().unwrap())
}

fn mutex() -> Arc<Rig> {
    let mutex = Arc::new(Mutex::new(0));
    let other = Arc::clone(&mutex);
    let wait = move |limit: Option<Duration>| match limit {
        None => {
            *mutex.lock() += 1;
            true
        }
        Some(limit) => mutex.lock_timeout(limit).map(|mut guard| *guard += 1).is_some(),
    };
    Rig::new(
        wait,
        holder(move |hold| {
            let _guard = other.lock();
            hold();
        }),
    )
}

fn read_lock() -> Arc<Rig> {
    let lock = Arc::new(RwLock::new(0));
    let other = Arc::clone(&lock);
    let wait = move |limit: Option<Duration>| match limit {
        None => *lock.read() == 0,
        Some(limit) => lock.read_timeout(limit).is_some(),
    };
    Rig::new(
        wait,
        holder(move |hold| {
            let _guard = other.write();
            hold();
        }),
    )
}

fn write_lock() -> Arc<Rig> {
    let lock = Arc::new(RwLock::new(0));
    let other = Arc::clone(&lock);
    let wait = move |limit: Option<Duration>| match limit {
        None => {
            *lock.write() += 1;
            true
        }
        Some(limit) => lock.write_timeout(limit).map(|mut guard| *guard += 1).is_some(),
    };
    Rig::new(
        wait,
        holder(move |hold| {
            let _guards = (other.read(), other.read());
            hold();
        }),
    )
}

fn re_entrant_lock() -> Arc<Rig> {
    let lock = Arc::new(RLock::new(Cell::new(0)));
    let other = Arc::clone(&lock);
    let wait = move |limit: Option<Duration>| {
        let guard = match limit {
            None => Some(lock.lock()),
            Some(limit) => lock.lock_timeout(limit),
        };
        guard.map(|guard| guard.set(guard.get() + lock.lock().get())).is_some()
    };
    Rig::new(
        wait,
        holder(move |hold| {
            let _guards = (other.lock(), other.lock());
            hold();
        }),
    )
}

fn condvar() -> Arc<Rig> {
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let other = Arc::clone(&pair);
    let wait = move |limit| {
        let guard = pair.0.lock();
        let timed_out = match limit {
            None => {
                drop(pair.1.wait_while(guard, |ready| !*ready));
                false
            }
            Some(limit) => pair.1.wait_timeout_while(guard, limit, |ready| !*ready).1.timed_out(),
        };
        if !timed_out {
            // On to the next.
            pair.1.notify_one();
        }
        !timed_out
    };
    let notify = move || {
        *other.0.lock() = true;
        other.1.notify_one();
    };
    Rig::new(wait, notify)
}

fn condvar_all() -> Arc<Rig> {
    let pair = Arc::new((Mutex::new(false), Condvar::new()));
    let other = Arc::clone(&pair);
    let wait = move |limit: Option<Duration>| {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut guard = pair.0.lock();
        while !*guard {
            match deadline {
                None => guard = pair.1.wait(guard),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    let (again, result) = pair.1.wait_timeout(guard, left);
                    guard = again;
                    if result.timed_out() {
                        break;
                    }
                }
            }
        }
        *guard
    };
    let notify = move || {
        *other.0.lock() = true;
        other.1.notify_all();
    };
    Rig::new(wait, notify)
}

fn once_cell_turn() -> Arc<Rig> {
    let cell = Arc::new(OnceCell::new());
    let other = Arc::clone(&cell);
    let wait = move |limit| match limit {
        None => *cell.get_or_init(|| 7) == 7,
        Some(limit) => cell.get_or_init_timeout(limit, || 7).is_some(),
    };
    Rig::new(
        wait,
        holder(move |hold| {
            let result = other.get_or_try_init(|| {
                hold();
                Err("no value")
            });
            assert_eq!(result, Err("no value"));
        }),
    )
}

fn once_cell_value() -> Arc<Rig> {
    let cell = Arc::new(OnceCell::new());
    let other = Arc::clone(&cell);
    let wait = move |limit| match limit {
        None => *cell.wait() == 7,
        Some(limit) => cell.wait_timeout(limit).is_some(),
    };
    Rig::new(wait, move || other.set(7).unwrap())
}

fn queue_get() -> Arc<Rig> {
    let queue = Queue::unbounded();
    let other = queue.clone();
    let wait = move |limit: Option<Duration>| match limit {
        None => queue.put(queue.get().unwrap()).is_ok(),
        Some(limit) => queue.get_timeout(limit).is_ok_and(|item| queue.put(item).is_ok()),
    };
    Rig::new(wait, move || other.put(7).unwrap())
}

fn lifo_queue_get() -> Arc<Rig> {
    let queue = LifoQueue::bounded(1);
    let other = queue.clone();
    let wait = move |limit: Option<Duration>| match limit {
        None => queue.put(queue.get().unwrap()).is_ok(),
        Some(limit) => queue.get_timeout(limit).is_ok_and(|item| queue.put(item).is_ok()),
    };
    Rig::new(wait, move || other.put(7).unwrap())
}

fn queue_join() -> Arc<Rig> {
    let queue = Queue::unbounded();
    queue.put(1).unwrap();
    let other = queue.clone();
    Rig::new(move |limit| queue.join(limit), move || other.task_done().unwrap())
}

fn wait_for_one() -> Arc<Rig> {
    let objects = Arc::new((Event::new(), Semaphore::new(0)));
    let other = Arc::clone(&objects);
    let wait = move |limit| wait(&[&objects.0, &objects.1], 1, limit) == [1];
    Rig::new(wait, move || other.1.release().unwrap())
}

fn wait_for_all() -> Arc<Rig> {
    let objects = Arc::new((Event::new(), Semaphore::new(0)));
    let other = Arc::clone(&objects);
    let wait = move |limit| wait(&[&objects.0, &objects.1], 2, limit).len() == 2;
    let notify = move || {
        other.1.release().unwrap();
        other.0.set();
    };
    Rig::new(wait, notify)
}

macro_rules! each_rig {
    ($($name:ident: $check:path,)*) => { $(
        mod $name {
            each_rig!(@ $check: event semaphore bounded_semaphore mutex read_lock write_lock re_entrant_lock condvar
                condvar_all once_cell_turn once_cell_value queue_get lifo_queue_get queue_join
                wait_for_one wait_for_all);
        }
    )* };
    (@ $check:path: $($rig:ident)*) => { $(
        #[test]
        fn $rig() {
            crate::common::within_a_minute(|| $check(crate::$rig));
        }
    )* };
}

each_rig! {
    notified: super::check_notified,
    notified_on_the_same_hub: super::check_notified_on_the_same_hub,
    timed_out: super::check_timed_out,
    ready_beats_expired: super::check_ready_beats_expired,
    killed: super::check_killed,
    killed_when_it_was_its_turn: super::check_killed_when_it_was_its_turn,
    a_tie_loses_nothing: super::check_a_tie_loses_nothing,
    an_outer_timeout_passes_it_on: super::check_an_outer_timeout_passes_it_on,
    in_a_destructor: super::check_in_a_destructor,
    leaked_with_its_hub: super::check_leaked_with_its_hub,
}

/// From where it is notified: runs on a thread of its own.
type Notifier = fn(&Rig);

const NOTIFIERS: [(&str, Notifier); 3] = [
    ("plain thread", |rig| {
        rig.notify();
        assert!(try_hub().is_none(), "notifying made a hub");
    }),
    ("main", |rig| {
        hub();
        rig.notify();
    }),
    ("worker", |rig| ThreadPool::new(1).run(|| rig.notify())),
];

fn check_notified(make: Make) {
    for (place_name, place) in PLACES {
        for (notifier_name, notifier) in NOTIFIERS {
            for limit in [None, Some(LONG), Some(Duration::MAX)] {
                for delay in [0, 2] {
                    let rig = make();
                    let other = Arc::clone(&rig);
                    let waiter = thread::spawn(move || {
                        place("waiting", Box::new(move || assert!(timeout(LONG, || rig.wait(limit)).unwrap())));
                    });
                    thread::sleep(ms(delay));
                    thread::spawn(move || notifier(&other)).join().unwrap();
                    let result = waiter.join();
                    assert!(result.is_ok(), "in a {place_name}, from a {notifier_name}, limit {limit:?}");
                }
            }
        }
    }
}

fn check_notified_on_the_same_hub(make: Make) {
    for limit in [None, Some(LONG), Some(Duration::MAX)] {
        let rig = make();
        let waiters: Vec<_> = (0..5).map(|_| rig.waiter(limit)).collect();
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
        rig.notify();
        assert!(join_all(waiters).into_iter().all(|result| result.unwrap()));

        // Main waits, a greenlet notifies.
        let rig = make();
        let other = Arc::clone(&rig);
        spawn(move || other.notify());
        assert!(rig.wait(limit));
    }
}

fn check_timed_out(make: Make) {
    for (_, place) in PLACES {
        let rig = make();
        let wait = move || {
            for limit in [Duration::ZERO, ms(2), ms(4)] {
                let start = Instant::now();
                assert!(!rig.wait(Some(limit)));
                assert!(start.elapsed() >= limit);
                assert!(timeout(limit, || rig.wait(None)).is_err());
                assert!(start.elapsed() >= 2 * limit);
                assert_eq!(timeout(LONG, || rig.wait(Some(limit))), Ok(false));
                assert!(timeout(limit, || rig.wait(Some(LONG))).is_err());
            }
            // Nobody is in line any more, so nothing can go to the wrong one.
            let other = Arc::clone(&rig);
            let notifier = thread::spawn(move || {
                thread::sleep(ms(1));
                other.notify();
            });
            assert!(rig.wait(Some(LONG)));
            notifier.join().unwrap();
        };
        thread::spawn(move || place("timing out", Box::new(wait))).join().unwrap();
    }
}

fn check_ready_beats_expired(make: Make) {
    for (_, place) in PLACES {
        let rig = make();
        rig.notify();
        let wait = move || {
            assert!(rig.wait(Some(Duration::ZERO)));
            // Neither parks, so a timeout that has expired can't end it.
            assert_eq!(timeout(Duration::ZERO, || rig.wait(None)), Ok(true));
        };
        thread::spawn(move || place("waiting", Box::new(wait))).join().unwrap();
    }
}

fn check_killed(make: Make) {
    for limit in [None, Some(LONG)] {
        let rig = make();
        let [first, second, third, fourth] = [(); 4].map(|()| rig.waiter(limit));
        // From the middle, the front, the end.
        for victim in [second, first, fourth] {
            victim.kill();
            assert!(victim.join().unwrap_err().is_killed());
        }
        assert!(!third.is_finished());
        rig.notify();
        assert!(third.join().unwrap());
        assert!(rig.wait(Some(Duration::ZERO)), "the killed ones kept something");
    }
}

fn check_killed_when_it_was_its_turn(make: Make) {
    for limit in [None, Some(LONG)] {
        // Handed over, then killed.
        let rig = make();
        let [first, second, third] = [(); 3].map(|()| rig.waiter(limit));
        rig.notify();
        first.request_kill();
        second.request_kill();
        assert!(third.join().unwrap());
        assert!(first.join().unwrap_err().is_killed());
        assert!(second.join().unwrap_err().is_killed());
        assert!(rig.wait(Some(Duration::ZERO)));

        // Killed, then handed over before it has left.
        let rig = make();
        let [first, second, third] = [(); 3].map(|()| rig.waiter(limit));
        first.request_kill();
        second.request_kill();
        rig.notify();
        assert!(third.join().unwrap());
        assert!(first.join().unwrap_err().is_killed());
        assert!(second.join().unwrap_err().is_killed());
        assert!(rig.wait(Some(Duration::ZERO)));
    }
}

fn check_a_tie_loses_nothing(make: Make) {
    // The wake comes first.
    let (rig, first, second) = set_up_within(ms(5), || {
        let rig = make();
        let (first, second) = (rig.waiter(Some(ms(5))), rig.waiter(Some(LONG)));
        (rig, first, second)
    });
    spin(ms(10));
    rig.notify();
    assert!(first.join().unwrap(), "it was notified before it could see that its time was over");
    assert!(second.join().unwrap());

    // The deadline comes first, the hand-over before it has left.
    let (notifier, first, second) = set_up_within(ms(5), || {
        let rig = make();
        let other = Arc::clone(&rig);
        let notifier = begun(move || {
            sleep(ms(5));
            other.notify();
        });
        (notifier, rig.waiter(Some(ms(8))), rig.waiter(Some(LONG)))
    });
    spin(ms(15));
    notifier.join().unwrap();
    assert!(first.join().unwrap(), "it was handed over, and it could still use it");
    assert!(second.join().unwrap());
}

fn check_an_outer_timeout_passes_it_on(make: Make) {
    loop {
        let (rig, start) = (make(), Instant::now());
        let other = Arc::clone(&rig);
        let notifier = begun(move || {
            sleep(ms(5));
            other.notify();
        });
        let other = Arc::clone(&rig);
        let first = begun(move || timeout(ms(8), || other.wait(None)).is_err());
        let second = rig.waiter(Some(LONG));
        let is_set_up = start.elapsed() < ms(5);
        spin(ms(15));
        // Both times are over, and the notifier's was first.
        notifier.join().unwrap();
        let has_elapsed = first.join().unwrap();
        assert!(second.join().unwrap());
        assert!(rig.wait(Some(Duration::ZERO)));
        // Else the machine was too busy, and it was notified earlier.
        if is_set_up {
            assert!(has_elapsed, "the timeout had ended the park");
            return;
        }
    }
}

fn check_in_a_destructor(make: Make) {
    // Waits while its greenlet unwinds, in vain and then not.
    let rig = make();
    let (other, result) = (Arc::clone(&rig), Rc::new(Cell::new(None)));
    let seen = Rc::clone(&result);
    let greenlet = begun(move || {
        let _guard = on_drop(move || {
            seen.set(Some(other.wait(Some(ms(1)))));
            seen.set(Some(other.wait(None)));
        });
        forever();
    });
    greenlet.request_kill();
    while result.get().is_none() {
        sleep(ms(1));
    }
    assert_eq!(result.get(), Some(false));
    assert!(!greenlet.is_finished());
    rig.notify();
    assert!(greenlet.join().unwrap_err().is_killed());
    assert_eq!(result.get(), Some(true));
}

fn check_leaked_with_its_hub(make: Make) {
    let rig = make();
    let other = Arc::clone(&rig);
    thread::spawn(move || {
        for limit in [None, Some(LONG)] {
            drop(other.waiter(limit));
        }
        // Ends without a shutdown: both are leaked.
    })
    .join()
    .unwrap();
    let waiter = rig.waiter(None);
    rig.notify();
    assert!(waiter.join().unwrap(), "it went to one that can't be woken");
    assert!(rig.wait(Some(Duration::ZERO)));
}

// Event.

#[test]
fn set_and_clear_without_a_park_wakes_all_in_order() {
    within_a_minute(|| {
        for n in [1, 100, 1_000] {
            let (event, order) = (Rc::new(Event::new()), Rc::new(RefCell::new(Vec::new())));
            let waiters: Vec<_> = (0..n)
                .map(|i| {
                    let (event, order) = (Rc::clone(&event), Rc::clone(&order));
                    begun(move || {
                        event.wait();
                        order.borrow_mut().push(i);
                    })
                })
                .collect();
            event.set();
            event.clear();
            let late = event.wait_timeout(Duration::ZERO);
            join_all(waiters).into_iter().for_each(|result| result.unwrap());
            assert_eq!(*order.borrow(), (0..n).collect::<Vec<_>>());
            assert!(!late && !event.is_set());
        }
    });
}

#[test]
fn one_who_comes_after_clear_waits_for_the_next_set() {
    within_a_minute(|| {
        let event = Rc::new(Event::new());
        let waiter = |event: &Rc<Event>| {
            let event = Rc::clone(event);
            begun(move || event.wait())
        };
        let early = waiter(&event);
        event.set();
        event.clear();
        let late = waiter(&event);
        assert!(early.is_finished() && !late.is_finished());
        event.set();
        late.join().unwrap();
    });
}

#[test]
fn waiting_for_a_set_event_does_not_park() {
    within_a_minute(|| {
        let ran = Count::new();
        let other = ran.clone();
        spawn(move || other.add());
        let event = Event::default();
        event.set();
        event.wait();
        assert!(event.wait_timeout(LONG) && event.wait_timeout(Duration::ZERO) && event.is_set());
        assert_eq!(ran.get(), 0);
    });
}

// Semaphores.

#[test]
fn an_empty_semaphore_times_out() {
    within_a_minute(|| {
        let start = Instant::now();
        assert!(Semaphore::new(0).acquire_timeout(ms(10)).is_none());
        assert!(start.elapsed() >= ms(10));
    });
}

#[test]
fn waiters_are_served_in_order() {
    within_a_minute(|| {
        let (semaphore, trace) = (Rc::new(Semaphore::new(2)), Trace::new());
        let all: Vec<_> = (0..5)
            .map(|i| {
                let (semaphore, trace) = (Rc::clone(&semaphore), trace.clone());
                begun(move || {
                    let _permit = semaphore.acquire();
                    trace.add(format!("{i}"));
                    sleep(ms(1));
                })
            })
            .collect();
        assert_eq!(semaphore.available_permits(), 0);
        assert!(semaphore.try_acquire().is_none());
        join_all(all);
        assert_eq!(trace.take(), ["0", "1", "2", "3", "4"]);
        assert_eq!(semaphore.available_permits(), 2);
    });
}

#[test]
fn a_holder_that_takes_it_again_at_once_starves_nobody() {
    within_a_minute(|| {
        let (semaphore, mutex, rounds) = (Rc::new(Semaphore::new(1)), Rc::new(Mutex::new(())), Count::new());
        let greedy = {
            let (semaphore, mutex, rounds) = (Rc::clone(&semaphore), Rc::clone(&mutex), rounds.clone());
            begun(move || {
                loop {
                    let _permit = semaphore.acquire();
                    let _guard = mutex.lock();
                    rounds.add();
                    yield_now();
                }
            })
        };
        for waits in [0, 1] {
            let (semaphore, mutex) = (Rc::clone(&semaphore), Rc::clone(&mutex));
            let before = rounds.get();
            let waiter = begun(move || match waits {
                0 => drop(semaphore.acquire()),
                _ => drop(mutex.lock()),
            });
            waiter.join().unwrap();
            assert!(rounds.get() <= before + 3, "{} rounds", rounds.get() - before);
        }
        greedy.kill();
    });
}

#[test]
fn a_thread_that_takes_it_again_at_once_starves_no_other() {
    within_a_minute(|| {
        let (mutex, is_over) = (Arc::new(Mutex::new(0_u64)), Arc::new(AtomicUsize::new(0)));
        let greedy = {
            let (mutex, is_over) = (Arc::clone(&mutex), Arc::clone(&is_over));
            thread::spawn(move || {
                while is_over.load(SeqCst) == 0 {
                    let mut rounds = mutex.lock();
                    *rounds += 1;
                    thread::yield_now();
                }
            })
        };
        for _ in 0..100 {
            drop(mutex.lock());
        }
        is_over.store(1, SeqCst);
        greedy.join().unwrap();
    });
}

#[test]
fn a_semaphore_never_wraps() {
    within_a_minute(|| {
        let semaphore = Semaphore::new(usize::MAX - 1);
        semaphore.release().unwrap();
        let error = semaphore.release().unwrap_err();
        assert!(error.to_string().contains(&usize::MAX.to_string()), "{error}");
        assert_eq!(semaphore.available_permits(), usize::MAX);
        // One that is out when the place for it is taken vanishes.
        let permit = semaphore.acquire();
        semaphore.release().unwrap();
        drop(permit);
        assert_eq!(semaphore.available_permits(), usize::MAX);
        assert!(semaphore.release().is_err());
    });
}

#[test]
fn a_bounded_semaphore_released_too_often_errs() {
    within_a_minute(|| {
        let semaphore = BoundedSemaphore::new(2);
        assert!(semaphore.release().is_err());
        drop(semaphore.acquire());
        assert!(semaphore.release().is_err());
        semaphore.acquire().forget();
        std::mem::forget(semaphore.try_acquire());
        assert_eq!(semaphore.available_permits(), 0);
        semaphore.release().unwrap();
        semaphore.release().unwrap();
        assert!(semaphore.release().is_err());
        assert_eq!(semaphore.available_permits(), 2);
        assert!(BoundedSemaphore::new(0).release().is_err());
    });
}

#[test]
fn a_killed_waiter_gives_a_bounded_semaphore_no_permit_too_many() {
    within_a_minute(|| {
        let semaphore = Rc::new(BoundedSemaphore::new(1));
        semaphore.acquire().forget();
        let other = Rc::clone(&semaphore);
        let waiter = begun(move || semaphore.acquire().forget());
        other.release().unwrap();
        waiter.request_kill();
        // The waiter's; nobody knows yet that it can't use it.
        other.release().unwrap();
        waiter.wait();
        assert_eq!(other.available_permits(), 1);
    });
}

// Guards.

#[test]
fn a_guard_dropped_by_a_kill_a_timeout_or_a_panic_releases_and_poisons_nothing() {
    fn check(name: &str, hold: impl Fn(&mut dyn FnMut()) + 'static, is_free: impl Fn() -> bool) {
        let hold = Rc::new(hold);
        let other = Rc::clone(&hold);
        let killed = begun(move || other(&mut forever));
        assert!(!is_free(), "{name}");
        let other = Rc::clone(&hold);
        let next = begun(move || other(&mut || ()));
        assert!(!next.is_finished(), "{name}");
        killed.kill();
        next.join().unwrap();
        assert!(is_free(), "{name}");
        assert!(timeout(ms(1), || hold(&mut forever)).is_err());
        assert!(is_free(), "{name}");
        assert!(is_ended_early(|| hold(&mut || panic_with("inside"))));
        assert!(is_free(), "{name}");
    }

    within_a_minute(|| {
        static MUTEX: Mutex<u32> = Mutex::new(1);
        static RW: RwLock<u32> = RwLock::new(1);
        static R: RLock<u32> = RLock::new(1);
        static SEMAPHORE: Semaphore = Semaphore::new(1);
        static ONCE: OnceCell<u32> = OnceCell::new();
        fn elsewhere(is_free: impl Fn() -> bool + Send) -> bool {
            thread::scope(|scope| scope.spawn(is_free).join().unwrap())
        }
        check(
            "mutex",
            |inside| {
                let _guard = MUTEX.lock();
                inside();
            },
            || MUTEX.try_lock().is_some(),
        );
        check(
            "write",
            |inside| {
                let _guard = RW.write();
                inside();
            },
            || RW.try_read().is_some(),
        );
        check(
            "re-entrant",
            |inside| {
                let _guards = (R.lock(), R.lock());
                inside();
            },
            || elsewhere(|| R.try_lock().is_some()),
        );
        check(
            "semaphore",
            |inside| {
                let _permit = SEMAPHORE.acquire();
                inside();
            },
            || SEMAPHORE.try_acquire().is_some(),
        );
        check(
            "once",
            |inside| {
                let _ = ONCE.get_or_try_init(|| {
                    inside();
                    Err(())
                });
            },
            || timeout(Duration::ZERO, || ONCE.get_or_try_init(|| Err(()))).is_ok(),
        );
    });
}

#[test]
fn values_whose_destructors_panic_or_park_leave_the_lock_in_order() {
    within_a_minute(|| {
        let mutex = Rc::new(Mutex::new(Some(on_drop(|| panic_with("dropped")))));
        let other = Rc::clone(&mutex);
        assert!(is_ended_early(move || *other.lock() = None));
        assert!(mutex.try_lock().is_some());

        *mutex.lock() = Some(on_drop(|| sleep(ms(5))));
        let other = Rc::clone(&mutex);
        let slow = begun(move || *other.lock() = None);
        assert!(mutex.try_lock().is_none());
        assert!(mutex.lock_timeout(ms(1)).is_none());
        assert!(mutex.lock().is_none());
        slow.join().unwrap();

        // A destructor that locks the lock it lay in.
        let own = Rc::clone(&mutex);
        *mutex.lock() = Some(on_drop(move || assert!(own.try_lock().is_some())));
        let taken = mutex.lock().take();
        drop(taken);

        let lock = RwLock::new(Some(on_drop(|| panic_with("dropped"))));
        assert!(is_ended_early(|| *lock.write() = None));
        assert!(lock.try_write().is_some());

        let cell = OnceCell::from(on_drop(|| ()));
        let refused = cell.set(on_drop(|| panic_with("refused")));
        assert!(is_ended_early(move || drop(refused)));
        assert!(cell.get().is_some());
    });
}

// Read-write lock.

#[test]
fn readers_share_and_writers_do_not() {
    within_a_minute(|| {
        let lock = RwLock::new(1);
        let (first, second) = (lock.read(), lock.try_read().unwrap());
        assert_eq!(*first + *second, 2);
        assert!(lock.try_write().is_none() && lock.write_timeout(ms(1)).is_none());
        drop((first, second));
        let mut writer = lock.try_write().unwrap();
        *writer = 2;
        assert!(lock.try_read().is_none() && lock.try_write().is_none());
        drop(writer);
        assert_eq!(*lock.read(), 2);
    });
}

#[test]
fn readers_and_writers_come_in_order_and_readers_together() {
    within_a_minute(|| {
        let (lock, trace) = (Rc::new(RwLock::new(())), Trace::new());
        let held = lock.write();
        let all: Vec<_> = "rrwrrw"
            .chars()
            .enumerate()
            .map(|(i, what)| {
                let (lock, trace) = (Rc::clone(&lock), trace.clone());
                begun(move || {
                    let (_reader, _writer) = match what {
                        'r' => (Some(lock.read()), None),
                        _ => (None, Some(lock.write())),
                    };
                    trace.add(format!("{i}{what}"));
                    yield_now();
                    trace.add(format!("{i}."));
                })
            })
            .collect();
        drop(held);
        join_all(all);
        assert_eq!(trace.take(), ["0r", "1r", "0.", "1.", "2w", "2.", "3r", "4r", "3.", "4.", "5w", "5."]);
    });
}

#[test]
fn a_waiting_writer_holds_back_readers_until_it_gives_up() {
    within_a_minute(|| {
        let lock = Rc::new(RwLock::new(()));
        let reader = lock.read();
        for ends in ["timeout", "kill", "outer timeout"] {
            let other = Rc::clone(&lock);
            let writer = begun(move || match ends {
                "timeout" => assert!(other.write_timeout(ms(50)).is_none()),
                "kill" => drop(other.write()),
                _ => assert!(timeout(ms(50), || drop(other.write())).is_err()),
            });
            let other = Rc::clone(&lock);
            let late = begun(move || drop(other.read()));
            assert!(lock.try_read().is_none(), "a reader would overtake the writer");
            assert!(!late.is_finished());
            if ends == "kill" {
                writer.kill();
            }
            writer.wait();
            assert!(late.wait_timeout(LONG), "{ends}: the reader behind it waits for nobody");
            assert!(lock.try_read().is_some());
        }
        drop(reader);
        assert!(lock.try_write().is_some());
    });
}

// Re-entrant lock.

#[test]
fn its_owner_re_enters_and_others_wait() {
    within_a_minute(|| {
        let lock = Rc::new(RLock::new(Cell::new(0)));
        let (owner, trace) = (Rc::clone(&lock), Trace::new());
        let traced = trace.clone();
        let owner = begun(move || {
            let outer = owner.lock();
            {
                let inner = owner.lock_timeout(Duration::ZERO).unwrap();
                inner.set(inner.get() + 1);
                yield_now();
            }
            drop(owner.try_lock().unwrap());
            yield_now();
            traced.add(format!("owner {}", outer.get()));
        });
        let (other, traced) = (Rc::clone(&lock), trace.clone());
        let other = begun(move || {
            assert!(other.try_lock().is_none());
            assert!(other.lock_timeout(Duration::ZERO).is_none());
            let guard = other.lock();
            guard.set(guard.get() + 1);
            traced.add(format!("other {}", guard.get()));
        });
        assert!(lock.try_lock().is_none(), "main is somebody else");
        join_all([owner, other]).into_iter().for_each(|result| result.unwrap());
        assert_eq!(trace.take(), ["owner 1", "other 2"]);

        // Main, before it has a hub and after.
        thread::spawn(|| {
            let lock = RLock::new(());
            let _first = lock.lock();
            assert!(lock.try_lock().is_some());
            hub();
            assert!(lock.try_lock().is_some());
            thread::scope(|scope| assert!(scope.spawn(|| lock.try_lock().is_none()).join().unwrap()));
        })
        .join()
        .unwrap();
    });
}

// Condition variable.

#[test]
fn a_notification_wakes_the_oldest_only() {
    within_a_minute(|| {
        let (pair, trace) = (Rc::new((Mutex::new(()), Condvar::new())), Trace::new());
        let all: Vec<_> = (0..4)
            .map(|i| {
                let (pair, trace) = (Rc::clone(&pair), trace.clone());
                begun(move || {
                    let guard = pair.1.wait(pair.0.lock());
                    trace.add(format!("{i}"));
                    drop(guard);
                })
            })
            .collect();
        pair.1.notify_one();
        yield_now();
        assert_eq!(trace.take(), ["0"]);
        pair.1.notify_all();
        yield_now();
        assert_eq!(trace.take(), ["1", "2", "3"]);
        join_all(all);
        // Nobody waits: it is not kept.
        pair.1.notify_one();
        assert!(pair.1.wait_timeout(pair.0.lock(), ms(1)).1.timed_out());
    });
}

#[test]
fn waiting_unlocks_and_returns_locked() {
    within_a_minute(|| {
        let pair = Rc::new((Mutex::new(0), Condvar::new()));
        let other = Rc::clone(&pair);
        let waiter = begun(move || {
            let mut number = other.1.wait(other.0.lock());
            *number += 1;
            yield_now();
            *number
        });
        *pair.0.try_lock().expect("it is unlocked while they wait") = 6;
        pair.1.notify_one();
        yield_now();
        assert!(pair.0.try_lock().is_none());
        assert_eq!(waiter.join().unwrap(), 7);
        assert!(pair.0.try_lock().is_some());
    });
}

#[test]
fn a_notification_passes_on_when_its_owner_is_killed_before_it_has_the_mutex() {
    within_a_minute(|| {
        let pair = Rc::new((Mutex::new(()), Condvar::new()));
        let waiter = || {
            let pair = Rc::clone(&pair);
            begun(move || drop(pair.1.wait(pair.0.lock())))
        };
        let (first, second) = (waiter(), waiter());
        let guard = pair.0.lock();
        pair.1.notify_one();
        yield_now();
        // It has been notified and waits for the mutex.
        first.kill();
        drop(guard);
        assert!(second.wait_timeout(LONG));
        assert!(pair.0.try_lock().is_some());

        // After `notify_all`, nothing is left to pass on to one who came later.
        let first = waiter();
        pair.1.notify_all();
        let late = waiter();
        assert!(first.is_finished() && !late.is_finished());
        assert!(!late.wait_timeout(ms(1)));
        late.kill();

        // The same, killed while it waits for the mutex, and main comes later.
        let first = Rc::new(waiter());
        let guard = pair.0.lock();
        pair.1.notify_all();
        yield_now();
        let victim = Rc::clone(&first);
        let killer = spawn(move || victim.request_kill());
        let (guard, result) = pair.1.wait_timeout(guard, ms(5));
        assert!(result.timed_out(), "woken by a notification from before it came");
        drop(guard);
        killer.join().unwrap();
        assert!(join_shared(first).unwrap_err().is_killed());
    });
}

#[test]
fn a_condition_decides_before_the_time_does() {
    within_a_minute(|| {
        let (mutex, condvar) = (Mutex::new(7), Condvar::default());
        let (number, result) = condvar.wait_timeout_while(mutex.lock(), Duration::ZERO, |number| *number != 7);
        assert!(*number == 7 && !result.timed_out());
        drop(number);
        let start = Instant::now();
        let (_number, result) = condvar.wait_timeout_while(mutex.lock(), ms(5), |number| *number == 7);
        assert!(result.timed_out() && start.elapsed() >= ms(5));
    });
}

// Barrier.

#[test]
fn a_barrier_lets_n_through_from_everywhere_again_and_again() {
    within_a_minute(|| {
        let (barrier, leaders) = (Arc::new(Barrier::new(PLACES.len())), Arc::new(AtomicUsize::new(0)));
        let passed = Arc::new(AtomicUsize::new(0));
        let threads = PLACES.map(|(_, place)| {
            let (barrier, leaders, passed) = (Arc::clone(&barrier), Arc::clone(&leaders), Arc::clone(&passed));
            let wait = move || {
                for round in 0..50 {
                    // Nobody is a round ahead of anybody.
                    assert!(passed.load(SeqCst) >= round * PLACES.len());
                    let result = if round % 2 == 0 { barrier.wait() } else { barrier.wait_timeout(LONG).unwrap() };
                    leaders.fetch_add(usize::from(result.is_leader()), SeqCst);
                    passed.fetch_add(1, SeqCst);
                    barrier.wait();
                }
            };
            thread::spawn(move || place("waiting", Box::new(wait)))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((leaders.load(SeqCst), passed.load(SeqCst)), (50, 50 * PLACES.len()));
    });
}

#[test]
fn who_is_killed_or_timed_out_does_not_count_at_a_barrier() {
    within_a_minute(|| {
        let barrier = Rc::new(Barrier::new(3));
        let waiter = || {
            let barrier = Rc::clone(&barrier);
            begun(move || barrier.wait().is_leader())
        };
        assert!(barrier.wait_timeout(Duration::ZERO).is_none());
        assert!(barrier.wait_timeout(ms(1)).is_none());
        assert!(timeout(ms(1), || barrier.wait()).is_err());
        waiter().kill();
        let (first, second) = (waiter(), waiter());
        assert!(!first.is_finished() && !second.is_finished(), "somebody who has left was counted");
        assert!(barrier.wait().is_leader());
        assert!(!first.join().unwrap() && !second.join().unwrap());

        // Killed after it was let through: the others go on, and the next round begins with none.
        let (first, second) = (waiter(), waiter());
        assert!(barrier.wait_timeout(Duration::ZERO).unwrap().is_leader());
        first.request_kill();
        assert!(first.join().unwrap_err().is_killed() && !second.join().unwrap());
        assert!(barrier.wait_timeout(ms(1)).is_none());

        for n in [0, 1] {
            assert!(Barrier::new(n).wait().is_leader());
        }
    });
}

// Once.

#[test]
fn one_initializes_and_all_get_its_value() {
    within_a_minute(|| {
        let (cell, calls) = (Arc::new(OnceCell::new()), Arc::new(AtomicUsize::new(0)));
        let threads = PLACES.map(|(_, place)| {
            let (cell, calls) = (Arc::clone(&cell), Arc::clone(&calls));
            let wait = move || {
                let value = *cell.get_or_init(|| {
                    calls.fetch_add(1, SeqCst);
                    sleep(ms(5));
                    7
                });
                assert_eq!((value, *cell.wait(), cell.set(8)), (7, 7, Err(8)));
            };
            thread::spawn(move || place("waiting", Box::new(wait)))
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(calls.load(SeqCst), 1);
    });
}

#[test]
fn when_an_initializer_panics_or_is_killed_the_next_one_tries() {
    within_a_minute(|| {
        let cell = Rc::new(OnceCell::new());
        let with = |f: fn() -> u32| {
            let cell = Rc::clone(&cell);
            begun(move || *cell.get_or_init(f))
        };
        let killed = with(|| {
            forever();
            1
        });
        let panics = with(|| panic_with("no value"));
        let (third, fourth) = (with(|| 3), with(|| 4));
        assert!(cell.get_or_init_timeout(ms(1), || 5).is_none());
        killed.kill();
        assert!(panics.join().unwrap_err().is_panic());
        assert_eq!((third.join().unwrap(), fourth.join().unwrap(), cell.get()), (3, 3, Some(&3)));
        let mut cell = Rc::into_inner(cell).unwrap();
        assert_eq!((cell.clone().take(), cell.take(), cell.take()), (Some(3), Some(3), None));
        assert_eq!(cell.set(4), Ok(()));
    });
}

// What all have in common.

#[test]
fn what_can_be_had_at_once_is_had_without_a_park() {
    within_a_minute(|| {
        let ran = Count::new();
        let other = ran.clone();
        spawn(move || other.add());
        drop(Semaphore::new(1).acquire());
        drop(BoundedSemaphore::new(1).acquire_timeout(Duration::ZERO).unwrap());
        drop(Mutex::new(1).lock_timeout(Duration::ZERO).unwrap());
        drop(RwLock::new(1).read_timeout(Duration::ZERO).unwrap());
        drop(RwLock::new(1).write_timeout(Duration::ZERO).unwrap());
        drop(RLock::new(1).lock_timeout(Duration::ZERO).unwrap());
        OnceCell::new().get_or_init(|| 1);
        Barrier::new(1).wait();
        assert_eq!(ran.get(), 0);
    });
}

/// Whether a type is `Send` and `Sync`: the trait's constants are seen only where the inherent ones aren't.
macro_rules! marks {
    ($type:ty) => {{
        #[allow(dead_code)]
        trait No {
            const SEND: bool = false;
            const SYNC: bool = false;
        }
        impl<T: ?Sized> No for T {}
        struct IsSend<T: ?Sized>(std::marker::PhantomData<T>);
        struct IsSync<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code)]
        impl<T: ?Sized + Send> IsSend<T> {
            const SEND: bool = true;
        }
        #[allow(dead_code)]
        impl<T: ?Sized + Sync> IsSync<T> {
            const SYNC: bool = true;
        }
        (<IsSend<$type>>::SEND, <IsSync<$type>>::SYNC)
    }};
}

#[test]
fn send_and_sync_are_as_in_std() {
    macro_rules! same {
        ($($content:ty),*) => { $(
            assert_eq!(marks!(Mutex<$content>), marks!(std::sync::Mutex<$content>));
            assert_eq!(marks!(MutexGuard<'static, $content>), marks!(std::sync::MutexGuard<'static, $content>));
            assert_eq!(marks!(RwLock<$content>), marks!(std::sync::RwLock<$content>));
            assert_eq!(marks!(RwLockReadGuard<'static, $content>), marks!(std::sync::RwLockReadGuard<'static, $content>));
            assert_eq!(marks!(RwLockWriteGuard<'static, $content>), marks!(std::sync::RwLockWriteGuard<'static, $content>));
            assert_eq!(marks!(OnceCell<$content>), marks!(std::sync::OnceLock<$content>));
            // std's re-entrant lock is not public; the rule is the mutex's.
            assert_eq!(marks!(RLock<$content>), marks!(std::sync::Mutex<$content>));
            assert_eq!(marks!(RLockGuard<'static, $content>), marks!(std::sync::MutexGuard<'static, $content>));
        )* };
    }
    // Both, `Send` alone, `Sync` alone, neither.
    same!(u32, Cell<u32>, std::sync::MutexGuard<'static, u32>, Rc<u32>);
    assert_eq!(marks!(Mutex<Cell<u32>>), (true, true));
    assert_eq!(marks!(MutexGuard<'static, u32>), (false, true));
    assert_eq!(marks!(Rc<u32>), (false, false));
    assert_eq!(
        [marks!(Event), marks!(Semaphore), marks!(BoundedSemaphore), marks!(Condvar), marks!(Barrier)],
        [(true, true); 5]
    );
    assert_eq!(marks!(greenroom::sync::Permit<'static>), (true, true));
}

/// The system's allocator, and a count for each thread.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(old, layout) }
    }
}

/// Runs `operation` in ten greenlets at once; returns how often the thread allocated, once they had warmed up.
fn allocations(operation: impl Fn() + Clone + 'static) -> usize {
    let before = Rc::new(Cell::new(0));
    let all: Vec<_> = (0..10)
        .map(|_| {
            let (operation, before) = (operation.clone(), Rc::clone(&before));
            spawn(move || {
                (0..100).for_each(|_| operation());
                before.set(ALLOCATIONS.get());
                (0..100).for_each(|_| operation());
                ALLOCATIONS.get()
            })
        })
        .collect();
    let after: Vec<_> = join_all(all).into_iter().map(Result::unwrap).collect();
    after.into_iter().min().unwrap().saturating_sub(before.get())
}

#[test]
fn nothing_is_allocated_per_operation() {
    within_a_minute(|| {
        let semaphore = Rc::new(Semaphore::new(1));
        let mutex = Rc::new(Mutex::new(0));
        let rw = Rc::new(RwLock::new(0));
        let lock = Rc::new(RLock::new(0));
        let barrier = Rc::new(Barrier::new(5));
        let event = Rc::new(Event::new());
        let pair = Rc::new((Mutex::new(0), Condvar::new()));
        let counts = [
            allocations(move || {
                let _permit = semaphore.acquire();
                yield_now();
            }),
            allocations(move || {
                *mutex.lock_timeout(LONG).unwrap() += 1;
                let _guard = mutex.lock();
                yield_now();
            }),
            allocations(move || {
                let reader = rw.read();
                yield_now();
                drop(reader);
                let _writer = rw.write();
                yield_now();
            }),
            allocations(move || {
                let _guards = (lock.lock(), lock.lock());
                yield_now();
            }),
            allocations(move || {
                barrier.wait();
            }),
            allocations(move || {
                if !event.wait_timeout(Duration::from_micros(20)) {
                    event.set();
                    event.clear();
                }
            }),
            allocations(move || {
                let (mut number, result) = pair.1.wait_timeout(pair.0.lock(), Duration::from_micros(20));
                *number += 1;
                if result.timed_out() {
                    pair.1.notify_one();
                    pair.1.notify_all();
                }
            }),
        ];
        assert_eq!(counts, [0; 7]);
    });
}

#[test]
fn those_who_were_left_behind_by_their_hub_do_not_count_at_a_barrier() {
    within_a_minute(|| {
        let barrier = Arc::new(Barrier::new(3));
        for _ in 0..2 {
            let barrier = Arc::clone(&barrier);
            thread::spawn(move || drop(begun(move || barrier.wait().is_leader()))).join().unwrap();
        }
        assert!(barrier.wait_timeout(ms(5)).is_none());
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let barrier = Arc::clone(&barrier);
                begun(move || barrier.wait().is_leader())
            })
            .collect();
        assert!(barrier.wait().is_leader());
        assert!(join_all(waiters).into_iter().all(|is_leader| !is_leader.unwrap()));
    });
}
