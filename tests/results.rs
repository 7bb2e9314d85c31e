//! Results that cross threads: promises, and greenlets spawned from elsewhere.

mod common;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::*;
use greenroom::{
    AsyncResult, HubHandle, Promise, TaskError, ThreadPool, hub, join_all, kill_all, promise, sleep, spawn,
    spawn_later, timeout, try_hub, yield_now,
};

// Every kind of waiter, woken by every kind of setter.

/// Waits in some way; `None` if the promise was dropped.
type Way = fn(AsyncResult<u32>) -> Option<u32>;

const WAYS: [(&str, Way); 6] = [
    ("get", |result| result.get().ok()),
    ("get_timeout", |result| result.get_timeout(LONG).unwrap().ok()),
    ("get_timeout without end", |result| result.get_timeout(Duration::MAX).unwrap().ok()),
    ("wait", |result| {
        result.wait();
        result.get().ok()
    }),
    ("wait_timeout", |result| {
        assert!(result.wait_timeout(LONG));
        result.get_timeout(Duration::ZERO).unwrap().ok()
    }),
    ("get under a timeout", |result| timeout(LONG, || result.get().ok()).unwrap()),
];

/// Where one waits: runs on a thread of its own.
type Place = fn(Way, AsyncResult<u32>) -> Option<u32>;

const PLACES: [(&str, Place); 6] = [
    ("plain thread", |way, result| {
        let value = way(result);
        assert!(try_hub().is_none(), "waiting made a hub");
        value
    }),
    ("main alone", |way, result| {
        hub();
        way(result)
    }),
    ("main with others", |way, result| {
        let sleeper = begun(|| sleep(LONG));
        let busy = begun::<()>(|| {
            loop {
                sleep(ms(1));
            }
        });
        let value = way(result);
        kill_all([&sleeper, &busy]);
        value
    }),
    ("greenlet alone", |way, result| spawn(move || way(result)).join().unwrap()),
    ("greenlet with others", |way, result| {
        let sleeper = begun(|| sleep(LONG));
        let busy = begun(common::parks::places::yield_loop);
        let value = spawn(move || way(result)).join().unwrap();
        kill_all([&sleeper, &busy]);
        value
    }),
    ("worker", |way, result| {
        ThreadPool::new(1).run(|| {
            let value = way(result);
            assert!(try_hub().is_none(), "waiting made a hub");
            value
        })
    }),
];

/// Who sets it: sets or drops a promise on a thread of its own.
type Setter = fn(Promise<u32>, fn(Promise<u32>));

const SETTERS: [(&str, Setter); 5] = [
    ("plain thread", |promise, set| set(promise)),
    ("main", |promise, set| {
        sleep(ms(1));
        hub();
        set(promise);
    }),
    ("greenlet", |promise, set| spawn(move || set(promise)).join().unwrap()),
    ("greenlet that sleeps first", |promise, set| {
        spawn(move || {
            sleep(ms(1));
            set(promise);
        })
        .join()
        .unwrap();
    }),
    ("worker", |promise, set| ThreadPool::new(1).run(move || set(promise))),
];

fn crosses(place: Place, delay: Duration) {
    for (way_name, way) in WAYS {
        for (setter_name, setter) in SETTERS {
            for is_set in [true, false] {
                let (promise, result) = promise();
                let waiter = thread::spawn(move || place(way, result));
                let setter = thread::spawn(move || {
                    thread::sleep(delay);
                    setter(promise, if is_set { |promise| promise.set(7) } else { drop });
                });
                let value = waiter.join().unwrap();
                setter.join().unwrap();
                assert_eq!(value, is_set.then_some(7), "{way_name}, set by a {setter_name}");
            }
        }
    }
}

macro_rules! reaches {
    ($($name:ident: $place:literal),*) => { $(
        #[test]
        fn $name() {
            within_a_minute(|| {
                let place = PLACES.iter().find(|(name, _)| *name == $place).unwrap().1;
                crosses(place, Duration::ZERO);
                crosses(place, ms(3));
            });
        }
    )* };
}

reaches! {
    a_result_reaches_a_plain_thread_and_makes_no_hub: "plain thread",
    a_result_reaches_main_alone: "main alone",
    a_result_reaches_main_with_others: "main with others",
    a_result_reaches_a_greenlet_alone: "greenlet alone",
    a_result_reaches_a_greenlet_with_others: "greenlet with others",
    a_result_reaches_a_worker_and_makes_no_hub: "worker"
}

#[test]
fn a_result_set_by_a_greenlet_of_the_same_hub_wakes_main_and_greenlets() {
    within_a_minute(|| {
        for (_, way) in WAYS {
            let (promise, result) = promise();
            spawn(move || promise.set(7));
            assert_eq!(way(result), Some(7));
            let (promise, result) = greenroom::promise();
            let waiter = begun(move || way(result));
            promise.set(8);
            assert_eq!(waiter.join().unwrap(), Some(8));
            let (promise, result) = greenroom::promise();
            let waiter = begun(move || way(result));
            drop(promise);
            assert_eq!(waiter.join().unwrap(), None);
        }
    });
}

#[test]
fn a_result_that_is_there_is_given_without_a_park() {
    within_a_minute(|| {
        let other = Count::new();
        let ran = other.clone();
        spawn(move || ran.add());
        for (_, way) in WAYS {
            let (promise, result) = promise();
            promise.set(7);
            assert!(result.is_ready());
            assert_eq!(way(result), Some(7));
        }
        assert_eq!(other.get(), 0);
    });
}

// Time.

#[test]
fn waiting_for_a_time_gives_the_result_back_and_can_go_on() {
    fn waits_in_vain() -> Option<u32> {
        let (promise, result) = promise();
        let mut result = result;
        for limit in [Duration::ZERO, ms(2), ms(5)] {
            let start = Instant::now();
            assert!(!result.is_ready());
            assert!(!result.wait_timeout(limit));
            result = result.get_timeout(limit).unwrap_err();
            assert!(start.elapsed() >= 2 * limit);
        }
        promise.set(7);
        assert!(result.wait_timeout(Duration::ZERO));
        result.get_timeout(Duration::ZERO).unwrap().ok()
    }

    within_a_minute(|| {
        assert_eq!(thread::spawn(waits_in_vain).join().unwrap(), Some(7));
        assert!(try_hub().is_none());
        assert_eq!(waits_in_vain(), Some(7));
        assert!(try_hub().is_none(), "waiting made a hub");
        assert_eq!(spawn(waits_in_vain).join().unwrap(), Some(7));
        assert_eq!(waits_in_vain(), Some(7));
        assert_eq!(hub().stats().timers, 0);
    });
}

#[test]
fn a_result_that_comes_in_the_turn_of_the_deadline_counts() {
    within_a_minute(|| {
        let (promise, result) = promise();
        let waiter = begun(move || result.get_timeout(ms(20)).unwrap().unwrap());
        spin(ms(30));
        promise.set(7);
        assert_eq!(waiter.join().unwrap(), 7);
    });
}

// Several waiters.

#[test]
fn all_who_wait_wake_in_order() {
    within_a_minute(|| {
        for n in [1, 100, 1_000] {
            let (promise, result) = promise();
            let (result, woken) = (Rc::new(result), Rc::new(RefCell::new(Vec::new())));
            for i in 0..n {
                let (result, woken) = (Rc::clone(&result), Rc::clone(&woken));
                begun(move || {
                    result.wait();
                    woken.borrow_mut().push(i);
                });
            }
            promise.set("value");
            assert!(hub().join(None));
            assert_eq!(*woken.borrow(), (0..n).collect::<Vec<_>>());
            assert_eq!(Rc::into_inner(result).unwrap().get().unwrap(), "value");
        }
    });
}

#[test]
fn waiters_on_many_threads_all_wake() {
    within_a_minute(|| {
        for is_set in [true, false] {
            let (promise, result) = promise();
            let result = Arc::new(result);
            let waiters: Vec<_> = (0..12)
                .map(|i| {
                    let result = Arc::clone(&result);
                    thread::spawn(move || match i % 4 {
                        0 => result.wait(),
                        1 => assert!(result.wait_timeout(LONG)),
                        2 => {
                            let waiters = (0..5).map(|_| {
                                let result = Arc::clone(&result);
                                spawn(move || result.wait())
                            });
                            assert!(join_all(waiters).into_iter().all(|waiter| waiter.is_ok()));
                        }
                        _ => ThreadPool::new(1).run(|| result.wait()),
                    })
                })
                .collect();
            thread::sleep(ms(5));
            if is_set {
                promise.set(7);
            } else {
                drop(promise);
            }
            waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
            assert_eq!(Arc::into_inner(result).unwrap().get().ok(), is_set.then_some(7));
        }
    });
}

#[test]
fn those_who_give_up_leave_the_line_for_the_others() {
    within_a_minute(|| {
        let (promise, result) = promise();
        let (result, woken) = (Rc::new(result), Count::new());
        let mut leavers = Vec::new();
        for i in 0..90 {
            let (result, woken) = (Rc::clone(&result), woken.clone());
            let waiter = begun(move || {
                let got = match i % 3 {
                    0 => result.wait_timeout(ms(1)),
                    1 => timeout(ms(1), || result.wait()).is_ok(),
                    _ => {
                        result.wait();
                        true
                    }
                };
                if got {
                    woken.add();
                }
            });
            if i % 3 < 2 {
                leavers.push(waiter);
            } else if i % 2 == 0 {
                waiter.kill();
            }
        }
        join_all(leavers);
        assert_eq!(woken.get(), 0);
        promise.set(());
        assert!(hub().join(None));
        assert_eq!(woken.get(), 15);
    });
}

// What becomes of the value.

/// Counts how often values are dropped, on whatever thread.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn a_value_is_dropped_once_whether_it_is_taken_or_not() {
    within_a_minute(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let value = || Dropped(Arc::clone(&drops));

        let (promise, result) = promise();
        promise.set(value());
        let taken = result.get();
        assert_eq!(drops.load(Ordering::SeqCst), 0);
        drop(taken);
        assert_eq!(drops.load(Ordering::SeqCst), 1);

        let (promise, result) = greenroom::promise();
        promise.set(value());
        drop(result);
        assert_eq!(drops.load(Ordering::SeqCst), 2);

        let (promise, result) = greenroom::promise();
        drop(result);
        promise.set(value());
        assert_eq!(drops.load(Ordering::SeqCst), 3);

        let (promise, result) = greenroom::promise();
        assert!(result.cancel());
        promise.set(value());
        assert_eq!(drops.load(Ordering::SeqCst), 4);
    });
}

#[test]
fn a_value_whose_destructor_parks_or_panics_harms_nobody() {
    within_a_minute(|| {
        let parked = Count::new();
        let note = parked.clone();
        let (promise, result) = promise();
        drop(result);
        promise.set(on_drop(move || {
            sleep(ms(2));
            note.add();
        }));
        assert_eq!(parked.get(), 1);

        let (promise, result) = greenroom::promise();
        drop(result);
        assert!(is_ended_early(|| promise.set(on_drop(|| panic_with("of the value")))));

        let (promise, result) = greenroom::promise();
        assert!(result.cancel());
        assert!(is_ended_early(|| promise.set(on_drop(|| panic_with("of the value")))));
        assert!(matches!(result.get(), Err(TaskError::Cancelled)));
    });
}

#[test]
fn a_dropped_promise_says_so() {
    within_a_minute(|| {
        let (promise, result) = promise::<()>();
        drop(promise);
        assert!(result.is_ready());
        let error = result.get().unwrap_err();
        assert!(matches!(error, TaskError::Abandoned));
        assert_eq!(error.to_string(), "the promise was dropped without a value");

        let (promise, result) = greenroom::promise::<()>();
        let greenlet = begun(move || {
            let _promise = promise;
            forever();
        });
        greenlet.kill();
        assert!(matches!(result.get(), Err(TaskError::Abandoned)));

        let (promise, result) = greenroom::promise::<()>();
        let _ = thread::spawn(move || {
            let _promise = promise;
            panic_with("the thread")
        })
        .join()
        .map(|never: ()| never);
        assert!(matches!(result.get(), Err(TaskError::Abandoned)));
    });
}

#[test]
fn cancelled_it_wakes_who_waits_and_only_the_first_cancel_counts() {
    within_a_minute(|| {
        let (promise, result) = promise::<u32>();
        let result = Arc::new(result);
        let (on_thread, in_greenlet) = (Arc::clone(&result), Arc::clone(&result));
        let thread = thread::spawn(move || on_thread.wait());
        let greenlet = begun(move || in_greenlet.wait());
        assert!(result.cancel());
        assert!(!result.cancel());
        thread.join().unwrap();
        greenlet.join().unwrap();
        promise.set(1);
        let error = Arc::into_inner(result).unwrap().get().unwrap_err();
        assert!(matches!(error, TaskError::Cancelled));

        let (promise, result) = greenroom::promise();
        promise.set(2);
        assert!(!result.cancel());
        assert_eq!(result.get().unwrap(), 2);
    });
}

#[test]
fn a_result_for_a_hub_that_has_ended_is_set_without_harm() {
    within_a_minute(|| {
        for _ in 0..20 {
            let (promise, result) = promise();
            thread::spawn(move || {
                begun(move || result.get().unwrap());
            })
            .join()
            .unwrap();
            promise.set(7);

            // And while it ends.
            let (promise, result) = greenroom::promise();
            let thread = thread::spawn(move || {
                begun(move || result.get().unwrap());
            });
            promise.set(7);
            thread.join().unwrap();
        }
    });
}

// No wake is lost.

#[test]
fn two_hubs_and_a_thread_pass_results_around() {
    /// Sets what comes in, and waits for its answer, `n` times.
    fn plays(partner: mpsc::Sender<(u32, Promise<u32>)>, n: u32) {
        for i in 0..n {
            let (promise, answer) = promise();
            partner.send((i, promise)).unwrap();
            assert_eq!(answer.get().unwrap(), i + 1);
        }
    }

    within_a_minute(|| {
        let (to_thread, on_thread) = mpsc::channel::<(u32, Promise<u32>)>();
        let hubs: Vec<_> = (0..2)
            .map(|_| {
                let to_thread = to_thread.clone();
                thread::spawn(move || {
                    let players = (0..3).map(|_| {
                        let to_thread = to_thread.clone();
                        spawn(move || plays(to_thread, 1_000))
                    });
                    join_all(players.collect::<Vec<_>>()).into_iter().for_each(Result::unwrap);
                    plays(to_thread, 1_000);
                })
            })
            .collect();
        drop(to_thread);
        for (i, promise) in on_thread {
            promise.set(i + 1);
        }
        hubs.into_iter().for_each(|hub| hub.join().unwrap());
    });
}

#[test]
fn two_hubs_spawn_on_each_other_a_thousand_times() {
    within_a_minute(|| {
        let (handles, exchange): (Vec<_>, Vec<_>) = (0..2).map(|_| mpsc::channel::<HubHandle>()).unzip();
        let done = Arc::new(AtomicUsize::new(0));
        let threads: Vec<_> = exchange
            .into_iter()
            .enumerate()
            .map(|(i, theirs)| {
                let (mine, done) = (handles[1 - i].clone(), Arc::clone(&done));
                thread::spawn(move || {
                    mine.send(hub().handle()).unwrap();
                    let other = theirs.recv().unwrap();
                    for n in 0..1_000 {
                        assert_eq!(other.spawn(move || n + 1).get().unwrap(), n + 1);
                    }
                    done.fetch_add(1, Ordering::SeqCst);
                    while done.load(Ordering::SeqCst) < 2 {
                        sleep(ms(1));
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

// `HubHandle::spawn`.

/// Calls `f` with this hub's handle on another thread, and runs greenlets until it returns.
fn elsewhere<T: Send + 'static>(f: impl FnOnce(HubHandle) -> T + Send + 'static) -> T {
    let handle = hub().handle();
    let (promise, result) = promise();
    let thread = thread::spawn(move || promise.set(f(handle)));
    let value = result.get();
    thread.join().unwrap();
    value.unwrap()
}

#[test]
fn a_greenlet_spawned_from_another_thread_runs_here_at_once() {
    within_a_minute(|| {
        let here = thread::current().id();
        let sleeper = begun(|| sleep(LONG));
        let there = elsewhere(move |handle| {
            let ran = handle.spawn(move || {
                yield_now();
                (thread::current().id(), greenroom::in_greenlet())
            });
            let value = ran.get().unwrap();
            assert!(try_hub().is_none());
            value
        });
        assert_eq!(there, (here, true));
        sleeper.kill();
    });
}

#[test]
fn greenlets_of_one_thread_begin_in_order_and_those_of_many_all_run() {
    within_a_minute(|| {
        let log = Arc::new(std::sync::Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let (handle, log) = (hub().handle(), Arc::clone(&log));
                std::thread::spawn(move || {
                    let results: Vec<_> = (0..500)
                        .map(|i| {
                            let log = Arc::clone(&log);
                            handle.spawn(move || log.lock().unwrap().push((thread, i)))
                        })
                        .collect();
                    results.into_iter().for_each(|result| result.get().unwrap());
                })
            })
            .collect();
        while !threads.iter().all(|thread| thread.is_finished()) {
            sleep(ms(1));
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        let log = log.lock().unwrap();
        for thread in 0..4 {
            let order: Vec<_> = log.iter().filter(|(of, _)| *of == thread).map(|(_, i)| *i).collect();
            assert_eq!(order, (0..500).collect::<Vec<_>>());
        }
    });
}

#[test]
fn a_greenlet_spawned_by_the_hubs_own_handle_runs() {
    within_a_minute(|| {
        let handle = hub().handle();
        assert_eq!(handle.spawn(|| 1).get().unwrap(), 1);
        let inner = handle.clone();
        let greenlet = spawn(move || inner.spawn(|| 2).get().unwrap());
        assert_eq!(greenlet.join().unwrap(), 2);
        let ran = handle.spawn(|| 3);
        assert!(hub().join(None));
        assert!(ran.is_ready());
    });
}

#[test]
fn its_panic_is_in_the_result_and_nobody_else_hears_of_it() {
    within_a_minute(|| {
        let unseen = Count::new();
        let heard = unseen.clone();
        hub().on_error(move |_, _| heard.add());
        let error = elsewhere(|handle| handle.spawn(|| -> () { panic_with("its own") }).get().unwrap_err());
        assert_eq!(error.to_string(), "the task panicked: its own");
        let TaskError::Panicked(payload) = error else { panic!("{error}") };
        assert_eq!(text_of(&*payload), "its own");
        assert_eq!(unseen.get(), 0);
        assert_eq!(elsewhere(|handle| handle.spawn(|| 1).get().unwrap()), 1);
    });
}

#[test]
fn cancelled_before_it_begins_it_never_runs() {
    within_a_minute(|| {
        let ran = Arc::new(AtomicBool::new(false));
        let dropped = Arc::new(AtomicUsize::new(0));
        let handle = hub().handle();
        let (would_run, captured) = (Arc::clone(&ran), Dropped(Arc::clone(&dropped)));
        let result = handle.spawn(move || {
            let _captured = captured;
            would_run.store(true, Ordering::SeqCst);
        });
        assert!(
            thread::spawn(move || result.cancel() && matches!(result.get(), Err(TaskError::Cancelled))).join().unwrap()
        );
        sleep(ms(2));
        assert!(hub().join(None));
        assert!(!ran.load(Ordering::SeqCst));
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
    });
}

#[test]
fn once_it_has_begun_it_is_not_cancelled() {
    within_a_minute(|| {
        let (promise, go_on) = promise();
        let result = hub().handle().spawn(move || go_on.get().unwrap());
        yield_now();
        sleep(ms(1));
        assert!(!result.cancel());
        promise.set(7);
        assert_eq!(result.get().unwrap(), 7);
    });
}

#[test]
fn on_a_hub_that_has_ended_it_is_abandoned() {
    within_a_minute(|| {
        let dropped = Arc::new(AtomicUsize::new(0));
        let handle = thread::spawn(|| hub().handle()).join().unwrap();
        let captured = Dropped(Arc::clone(&dropped));
        let result = handle.spawn(move || {
            let _captured = captured;
            unreachable!("its hub has ended");
        });
        assert!(result.is_ready());
        assert!(matches!(result.get(), Err::<(), _>(TaskError::Abandoned)));
        assert_eq!(dropped.load(Ordering::SeqCst), 1);

        hub().shutdown();
        let result = hub().handle().spawn(|| ());
        assert!(matches!(result.get(), Err(TaskError::Abandoned)));
    });
}

#[test]
fn on_a_hub_that_ends_before_it_began_it_is_abandoned() {
    within_a_minute(|| {
        for shuts_down in [true, false] {
            let (give, take) = mpsc::channel();
            let (sent, is_sent) = mpsc::channel();
            let thread = thread::spawn(move || {
                give.send(hub().handle()).unwrap();
                is_sent.recv().unwrap();
                if shuts_down {
                    hub().shutdown();
                }
            });
            let handle: HubHandle = take.recv().unwrap();
            let result = handle.spawn(|| ());
            sent.send(()).unwrap();
            assert!(matches!(result.get(), Err(TaskError::Abandoned)));
            thread.join().unwrap();
        }
    });
}

#[test]
fn killed_by_the_shutdown_of_its_hub_it_is_abandoned() {
    within_a_minute(|| {
        let (give, take) = mpsc::channel();
        let thread = thread::spawn(move || {
            let (promise, has_begun) = promise();
            give.send((hub().handle(), promise)).unwrap();
            has_begun.get().unwrap();
            hub().shutdown();
        });
        let (handle, begins): (HubHandle, Promise<()>) = take.recv().unwrap();
        let result = handle.spawn(move || {
            begins.set(());
            forever();
        });
        assert!(matches!(result.get(), Err(TaskError::Abandoned)));
        thread.join().unwrap();
    });
}

/// Without a shutdown the greenlet is leaked; who waits for it is not.
#[test]
fn when_its_thread_ends_meanwhile_it_is_abandoned() {
    within_a_minute(|| {
        let (give, take) = mpsc::channel();
        let thread = thread::spawn(move || {
            let (promise, has_begun) = promise();
            give.send((hub().handle(), promise)).unwrap();
            has_begun.get().unwrap();
        });
        let (handle, begins): (HubHandle, Promise<()>) = take.recv().unwrap();
        let result = handle.spawn(move || {
            begins.set(());
            forever();
        });
        thread.join().unwrap();
        assert!(result.wait_timeout(Duration::from_secs(5)), "its hub has ended");
        assert!(matches!(result.get(), Err(TaskError::Abandoned)));
    });
}

#[test]
fn many_handles_and_hubs_come_and_go() {
    within_a_minute(|| {
        for _ in 0..50 {
            let (give, take) = mpsc::channel();
            let thread = thread::spawn(move || {
                give.send(hub().handle()).unwrap();
                sleep(Duration::from_micros(200));
            });
            let handle: HubHandle = take.recv().unwrap();
            // Some run, the others come too late.
            let results: Vec<_> = (0..20).map(|i| handle.spawn(move || i)).collect();
            for (i, result) in results.into_iter().enumerate() {
                match result.get() {
                    Ok(value) => assert_eq!(value, i),
                    Err(error) => assert!(matches!(error, TaskError::Abandoned)),
                }
            }
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_late_result_wakes_main_beside_a_timer_far_away() {
    within_a_minute(|| {
        let far = spawn_later(LONG, || ());
        let (promise, result) = promise();
        let thread = thread::spawn(move || {
            thread::sleep(ms(10));
            promise.set(7);
        });
        assert_eq!(result.get().unwrap(), 7);
        thread.join().unwrap();
        far.kill();
    });
}

#[test]
fn errors_and_results_can_be_shown() {
    let (promise, result) = promise::<()>();
    assert!(format!("{promise:?}").contains("Promise"));
    assert_eq!(format!("{result:?}"), "AsyncResult { ready: false }");
    drop(promise);
    assert_eq!(format!("{result:?}"), "AsyncResult { ready: true }");
    let error: Box<dyn std::error::Error> = Box::new(result.get().unwrap_err());
    assert!(!error.to_string().is_empty());
    assert_eq!(TaskError::Cancelled.to_string(), "the task was cancelled before it began");
}
