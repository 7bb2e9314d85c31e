//! The hub: panics nobody joins, `Hub::join`, `Hub::shutdown`, and what it tells of itself.

#[macro_use]
mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::parks::{Park, Prepare, stubborn};
use common::*;
use greenroom::{
    Builder, Greenlet, GreenletId, Hub, Outcome, ThreadPool, hub, idle, on_big_stack, promise, sleep, spawn,
    spawn_later, timeout, try_hub, yield_now,
};

// Making one.

#[test]
fn a_thread_has_one_hub_made_on_first_use() {
    within_a_minute(|| {
        assert!(try_hub().is_none());
        sleep(ms(1));
        yield_now();
        let _ = timeout(ms(1), forever);
        assert!(try_hub().is_none(), "sleep, yield_now and timeout need none");
        let first = hub();
        spawn(|| ()).join().unwrap();
        assert!(try_hub().is_some());
        assert_eq!(first.stats(), hub().stats());
        assert_eq!(first.clone().stats().spawned, 1);
        thread::spawn(|| assert!(try_hub().is_none())).join().unwrap();
    });
}

#[test]
fn settings_are_for_the_first_who_comes() {
    within_a_minute(|| {
        let hub = Hub::builder().threads(3).stack_size(1 << 20).install().unwrap();
        assert_eq!(hub.threadpool().max_threads(), 3);
        let error = Hub::builder().threads(4).install().err().unwrap();
        assert!(error.to_string().contains("this thread has a hub already"));
        assert_eq!(greenroom::hub().threadpool().max_threads(), 3);
        // A quarter of a megabyte would not do.
        let deep = spawn(|| {
            let room = [1u8; 700 << 10];
            std::hint::black_box(&room).iter().map(|&byte| usize::from(byte)).sum::<usize>()
        });
        assert_eq!(deep.join().unwrap(), 700 << 10);
    });
}

#[test]
fn another_pool_can_be_shared_by_several() {
    within_a_minute(|| {
        let shared = ThreadPool::new(2);
        let threads: Vec<_> = (0..3)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    hub().set_threadpool(shared);
                    let jobs: Vec<_> = (0..10).map(|i| spawn(move || hub().threadpool().run(|| i))).collect();
                    greenroom::join_all(jobs).into_iter().map(Result::unwrap).sum::<i32>()
                })
            })
            .collect();
        assert!(threads.into_iter().all(|thread| thread.join().unwrap() == 45));
        // A job may count as running for a moment after its call has returned.
        assert!(shared.join(None));
        let stats = shared.stats();
        assert!(stats.threads <= 2);
        assert_eq!((stats.running, stats.completed), (0, 30));
    });
}

// Panics that nobody joins.

/// What `on_error` gets to see from here on.
fn errors() -> Trace {
    let trace = Trace::new();
    let seen = trace.clone();
    hub().on_error(move |greenlet, payload| {
        seen.add(format!("{}: {}", greenlet.name().unwrap_or("-"), text_of(payload)));
    });
    trace
}

fn panics(name: &str) -> Greenlet<()> {
    Builder::new().name(name).spawn(|| panic_with("boom")).unwrap()
}

#[test]
fn a_panic_of_a_detached_greenlet_is_reported_once() {
    within_a_minute(|| {
        let errors = errors();
        drop(panics("before its end"));
        assert!(errors.take().is_empty());
        assert!(hub().join(None));
        assert_eq!(errors.take(), ["before its end: boom"]);

        let ended = panics("after its end");
        ended.wait();
        assert!(errors.take().is_empty(), "it could still be joined");
        drop(ended);
        assert_eq!(errors.take(), ["after its end: boom"]);

        assert!(panics("joined").join().unwrap_err().is_panic());
        drop(panics("joined later").join_timeout(LONG));
        assert!(hub().join(None));
        assert!(errors.take().is_empty());
    });
}

#[test]
fn a_kill_of_a_detached_greenlet_is_no_error() {
    within_a_minute(|| {
        let errors = errors();
        let greenlet = begun(forever);
        greenlet.request_kill();
        drop(greenlet);
        let never_begun = spawn(|| ());
        never_begun.request_kill();
        drop(never_begun);
        let ended = begun(forever);
        ended.kill();
        drop(ended);
        assert!(hub().join(None));
        assert!(errors.take().is_empty());
    });
}

#[test]
fn a_report_says_which_greenlet_it_was() {
    within_a_minute(|| {
        let seen = Rc::new(RefCell::new(None));
        let note = Rc::clone(&seen);
        hub().on_error(move |greenlet, payload| {
            *note.borrow_mut() = Some((greenlet.clone(), payload.downcast_ref::<i32>().copied()));
        });
        let greenlet = Builder::new().name("login").spawn(|| std::panic::panic_any(7)).unwrap();
        let _: &Greenlet<()> = &greenlet;
        let (id, line) = (greenlet.id(), line!() - 2);
        drop(greenlet);
        assert!(hub().join(None));
        let (info, payload) = seen.take().unwrap();
        assert_eq!((info.id(), info.name(), payload), (id, Some("login"), Some(7)));
        assert_eq!((info.spawned_at().file(), info.spawned_at().line()), (file!(), line));
        let shown = info.to_string();
        assert!(shown.contains(&id.to_string()) && shown.contains("login") && shown.contains(file!()), "{shown}");
    });
}

#[test]
fn a_handler_that_panics_parks_or_spawns_harms_nobody() {
    within_a_minute(|| {
        let calls = Count::new();
        let called = calls.clone();
        hub().on_error(move |_, _| {
            called.add();
            sleep(ms(1));
            drop(spawn(|| ()));
            panic_with("of the handler");
        });
        for _ in 0..3 {
            drop(panics("detached"));
            let ended = panics("dropped");
            ended.wait();
            drop(ended);
        }
        assert!(hub().join(None));
        assert_eq!(calls.get(), 6);
        assert_eq!(spawn(|| 1).join().unwrap(), 1);
    });
}

#[test]
fn one_that_is_killed_in_a_handler_dies_at_its_next_park() {
    within_a_minute(|| {
        let trace = Trace::new();
        let (handler, body) = (trace.clone(), trace.clone());
        hub().on_error(move |_, _| {
            let _guard = handler.on_drop("left the handler");
            forever();
        });
        let ended = panics("ended");
        ended.wait();
        let greenlet = begun(move || {
            drop(ended);
            body.add("goes on");
            yield_now();
            body.add("passed");
        });
        greenlet.kill();
        assert!(greenlet.join().unwrap_err().is_killed());
        assert_eq!(trace.take(), ["left the handler", "goes on"]);
    });
}

#[test]
fn a_handler_can_be_changed_by_a_handler() {
    within_a_minute(|| {
        let trace = Trace::new();
        let (first, second) = (trace.clone(), trace.clone());
        hub().on_error(move |_, _| {
            first.add("first");
            let second = second.clone();
            hub().on_error(move |_, _| second.add("second"));
        });
        drop(panics("one"));
        drop(panics("two"));
        assert!(hub().join(None));
        assert_eq!(trace.take(), ["first", "second"]);
    });
}

#[test]
fn a_payload_whose_destructor_panics_harms_nobody() {
    struct Spiteful;
    impl Drop for Spiteful {
        fn drop(&mut self) {
            panic_with("of the payload");
        }
    }

    within_a_minute(|| {
        drop(spawn(|| std::panic::resume_unwind(Box::new(Spiteful))));
        let ended: Greenlet<()> = begun(|| std::panic::resume_unwind(Box::new(Spiteful)));
        drop(ended);
        assert!(hub().join(None));
        assert_eq!(spawn(|| 1).join().unwrap(), 1);
    });
}

// Values that nobody takes.

fn values_destructor_ends(prepare: Prepare) {
    let errors = errors();
    let ended = Rc::new(Cell::new(None));
    let (wait, note) = (prepare(), Rc::clone(&ended));
    drop(spawn(move || on_drop(move || note.set(Some(wait())))));
    assert!(hub().join(Some(LONG)));
    assert_eq!(ended.get(), Some(true));
    assert!(errors.take().is_empty());
}

each_wait!(the_value_of_a_detached_greenlet_waits_in_its_destructor_for, crate::values_destructor_ends);

/// A shutdown comes while the value is being dropped.
fn values_destructor_is_not_cut_short(prepare: Prepare) {
    let errors = errors();
    let (began, ended) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(None)));
    let wait = prepare();
    let (begin, note) = (Rc::clone(&began), Rc::clone(&ended));
    drop(spawn(move || {
        on_drop(move || {
            begin.set(true);
            note.set(Some(wait()));
        })
    }));
    while !began.get() {
        yield_now();
    }
    hub().shutdown();
    assert_eq!(ended.get(), Some(true));
    assert!(errors.take().is_empty());
}

each_wait!(a_shutdown_lets_the_destructor_of_a_value_wait_for, crate::values_destructor_is_not_cut_short);

#[test]
fn a_value_of_a_detached_greenlet_whose_destructor_panics_is_reported() {
    within_a_minute(|| {
        let errors = errors();
        drop(Builder::new().name("detached").spawn(|| on_drop(|| panic_with("of the value"))).unwrap());
        assert!(hub().join(None));
        assert_eq!(errors.take(), ["detached: of the value"]);
        assert_eq!(spawn(|| 1).join().unwrap(), 1);
    });
}

#[test]
fn a_value_that_is_never_taken_is_dropped_with_its_handle_once() {
    within_a_minute(|| {
        let dropped = Count::new();
        let value = dropped.on_drop();
        let greenlet = spawn(move || value);
        greenlet.wait();
        assert_eq!(dropped.get(), 0);
        drop(greenlet);
        assert_eq!(dropped.get(), 1);

        let value = dropped.on_drop();
        let taken = spawn(move || value).join().unwrap();
        assert_eq!(dropped.get(), 1);
        drop(taken);
        assert_eq!(dropped.get(), 2);

        // Its destructor waits for greenlets, in the code that drops the handle.
        let greenlet = begun(|| on_drop(|| spawn(|| sleep(ms(2))).join().unwrap()));
        drop(greenlet);
        assert_eq!(hub().stats().greenlets, 0);
    });
}

// The loop outlives everything.

#[test]
fn panics_of_links_and_late_ones_do_not_end_the_loop_or_a_sleep() {
    within_a_minute(|| {
        let errors = errors();
        let sleeper = begun(|| {
            let start = Instant::now();
            sleep(ms(30));
            start.elapsed()
        });
        let linked = spawn(|| ());
        linked.link(|_| panic_with("of a link"));
        drop(spawn_later(ms(2), || panic_with("of a late one")));
        drop(panics("detached"));
        let caller = hub().handle();
        let on_behalf = thread::spawn(move || caller.spawn(|| -> () { panic_with("of a call") })).join().unwrap();
        assert!(sleeper.join().unwrap() >= ms(30));
        assert!(hub().join(None));
        let mut errors = errors.take();
        errors.sort();
        assert_eq!(errors, ["-: of a late one", "-: of a link", "detached: boom"]);
        assert!(on_behalf.get().is_err());
    });
}

#[test]
fn a_panic_of_main_leaves_the_hub_usable() {
    within_a_minute(|| {
        let other = spawn(|| {
            sleep(ms(2));
            "goes on"
        });
        assert!(is_ended_early(|| {
            yield_now();
            panic_with("of main");
        }));
        assert_eq!(other.join().unwrap(), "goes on");
    });
}

// `Hub::join`.

#[test]
fn join_returns_when_nothing_is_left() {
    within_a_minute(|| {
        assert!(hub().join(None));
        assert!(hub().join(Some(Duration::ZERO)));
        let done = Count::new();
        for i in 0..20 {
            let done = done.clone();
            spawn(move || {
                sleep(ms(i % 5));
                let inner = done.clone();
                drop(spawn_later(ms(i % 3), move || inner.add()));
                done.add();
            });
        }
        assert!(hub().join(None));
        assert_eq!(done.get(), 40);
        assert!(hub().join(None));
        assert_eq!(hub().stats().greenlets, 0);
    });
}

#[test]
fn join_waits_for_links_and_for_what_they_spawn() {
    within_a_minute(|| {
        let done = Count::new();
        let last = done.clone();
        spawn(|| ()).link(move |_| {
            sleep(ms(1));
            spawn(|| ()).link(move |_| {
                yield_now();
                last.add();
            });
        });
        assert!(hub().join(None));
        assert_eq!(done.get(), 1);
    });
}

#[test]
fn join_for_a_time_says_whether_something_is_left_three_times() {
    within_a_minute(|| {
        let late = spawn_later(LONG, || ());
        let sleeper = begun(forever);
        for _ in 0..3 {
            let start = Instant::now();
            assert!(!hub().join(Some(ms(5))));
            assert!(start.elapsed() >= ms(5));
            assert!(!hub().join(Some(Duration::ZERO)));
        }
        late.kill();
        assert!(!hub().join(Some(ms(1))));
        sleeper.kill();
        for _ in 0..3 {
            assert!(hub().join(Some(ms(5))));
        }
        spawn(|| sleep(ms(1)));
        assert!(hub().join(Some(LONG)));
        spawn(|| sleep(ms(1)));
        assert!(hub().join(Some(Duration::MAX)));
    });
}

#[test]
fn join_is_ended_by_a_timeout_around_it() {
    within_a_minute(|| {
        let sleeper = begun(forever);
        assert!(timeout(ms(2), || hub().join(None)).is_err());
        assert!(timeout(ms(2), || hub().join(Some(LONG))).is_err());
        assert_eq!(timeout(LONG, || hub().join(Some(ms(2)))), Ok(false));
        sleeper.kill();
        assert_eq!(timeout(LONG, || hub().join(None)), Ok(true));
    });
}

#[test]
fn join_waits_for_one_that_only_another_thread_can_wake() {
    within_a_minute(|| {
        let (promise, result) = promise();
        spawn(move || result.get().unwrap());
        let thread = thread::spawn(move || {
            thread::sleep(ms(30));
            promise.set(());
        });
        assert!(hub().join(None));
        thread.join().unwrap();
    });
}

#[test]
fn join_in_a_greenlet_panics_with_the_reason() {
    within_a_minute(|| {
        let greenlet = spawn(|| {
            let result = std::panic::catch_unwind(|| hub().join(None));
            text_of(&*result.unwrap_err()).to_owned()
        });
        let text = greenlet.join().unwrap();
        assert!(text.contains("only main can wait for all greenlets"), "{text}");
    });
}

// `Hub::shutdown`.

fn a_shutdown_kills(place: Park) {
    let (dropped, passed) = (Count::new(), Count::new());
    let (guard, past) = (dropped.on_drop(), passed.clone());
    let greenlet = begun(move || {
        let _guard = guard;
        place();
        past.add();
    });
    (0..5).for_each(|_| yield_now());
    // Some of the places leave one behind that never dies; the shutdown waits for it like a kill.
    let _ = timeout(ms(300), || hub().shutdown());
    assert_eq!((dropped.get(), passed.get()), (1, 0));
    assert!(greenlet.join().unwrap_err().is_killed());
}

each_park!(shut_down_in, crate::a_shutdown_kills);

fn a_shutdown_waits_for_destructors(prepare: Prepare) {
    let (ended, prepared) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(false)));
    let (note, is_prepared) = (Rc::clone(&ended), Rc::clone(&prepared));
    drop(spawn(move || {
        let wait = prepare();
        let _guard = on_drop(move || note.set(Some(wait())));
        is_prepared.set(true);
        forever();
    }));
    while !prepared.get() {
        yield_now();
    }
    hub().shutdown();
    assert_eq!(ended.get(), Some(true));
    assert_eq!(hub().stats().greenlets, 0);
}

each_wait!(shut_down_it_waits_in_a_destructor_for, crate::a_shutdown_waits_for_destructors);

fn a_shutdown_by_a_greenlet_waits_for_destructors(prepare: Prepare) {
    let trace = Trace::new();
    let (inside, prepared) = (trace.clone(), Rc::new(Cell::new(false)));
    let is_prepared = Rc::clone(&prepared);
    drop(spawn(move || {
        let wait = prepare();
        let _guard = on_drop(move || {
            let went_well = wait();
            inside.add(format!("the other: {went_well}"));
        });
        is_prepared.set(true);
        forever();
    }));
    while !prepared.get() {
        yield_now();
    }
    let inside = trace.clone();
    let shutter = spawn(move || {
        let _guard = inside.on_drop("itself");
        hub().shutdown();
        inside.add("passed");
    });
    assert!(shutter.join().unwrap_err().is_killed());
    assert_eq!(trace.take(), ["the other: true", "itself"]);
    assert_eq!(hub().stats().greenlets, 0);
}

each_wait!(shut_down_by_a_greenlet_it_waits_in_a_destructor_for, crate::a_shutdown_by_a_greenlet_waits_for_destructors);

#[test]
fn a_shutdown_drops_what_never_began() {
    within_a_minute(|| {
        let dropped = Count::new();
        let mut kept = Vec::new();
        for after in [None, Some(Duration::ZERO), Some(LONG), Some(Duration::MAX)] {
            for keep in [true, false] {
                let guard = dropped.on_drop();
                let body = move || {
                    let _guard = guard;
                    unreachable!("it is killed before");
                };
                let greenlet = match after {
                    None => spawn(body),
                    Some(after) => spawn_later(after, body),
                };
                if keep {
                    kept.push(greenlet);
                }
            }
        }
        hub().shutdown();
        assert_eq!(dropped.get(), 8);
        let stats = hub().stats();
        assert_eq!((stats.greenlets, stats.timers, stats.stacks_in_use), (0, 0, 0));
        kept.into_iter().for_each(|greenlet: Greenlet<()>| assert!(greenlet.join().unwrap_err().is_killed()));
    });
}

#[test]
fn after_a_shutdown_nothing_can_be_spawned() {
    within_a_minute(|| {
        let hub = hub();
        hub.shutdown();
        let dropped = Count::new();
        let guard = dropped.on_drop();
        let error = Builder::new().spawn(move || drop(guard)).unwrap_err();
        assert!(error.to_string().contains("has been shut down"), "{error}");
        assert_eq!(dropped.get(), 1);
        let refused: [fn(); 2] = [|| drop(spawn(|| ())), || drop(spawn_later(ms(1), || ()))];
        for spawns in refused {
            let result = std::panic::catch_unwind(spawns);
            let text = text_of(&*result.unwrap_err()).to_owned();
            assert!(text.contains("has been shut down"), "{text}");
        }
        assert!(hub.join(None));
        hub.shutdown();
    });
}

#[test]
fn after_a_shutdown_main_goes_on_and_may_park() {
    within_a_minute(|| {
        let ended = begun(|| "value");
        hub().shutdown();
        assert_eq!(ended.join().unwrap(), "value");
        sleep(ms(1));
        yield_now();
        idle();
        assert!(timeout(ms(1), forever).is_err());
        assert_eq!(hub().threadpool().run(|| 7), 7);
        assert_eq!(on_big_stack(1 << 16, || 8), 8);
        let (promise, result) = promise();
        let thread = thread::spawn(move || promise.set(9));
        assert_eq!(result.get().unwrap(), 9);
        thread.join().unwrap();
    });
}

#[test]
fn destructors_in_a_shutdown_may_park_but_not_spawn() {
    within_a_minute(|| {
        let trace = Trace::new();
        let inside = trace.clone();
        drop(begun(move || {
            let _guard = on_drop(move || {
                let error = Builder::new().spawn(|| ()).unwrap_err();
                inside.add(if error.to_string().contains("is shutting down") { "refused" } else { "?" });
                sleep(ms(1));
                inside.add("parked");
            });
            forever();
        }));
        hub().shutdown();
        assert_eq!(trace.take(), ["refused", "parked"]);
    });
}

#[test]
fn links_run_in_a_shutdown_until_they_park() {
    within_a_minute(|| {
        let trace = Trace::new();
        let link = |greenlet: Greenlet<()>, name: &'static str| {
            for i in 0..2 {
                let trace = trace.clone();
                greenlet.link(move |outcome| {
                    let _guard = trace.on_drop(format!("{name} {i} ended"));
                    assert_eq!(*outcome, Outcome::Killed);
                    trace.add(format!("{name} {i} began"));
                    forever();
                    trace.add("passed");
                });
            }
        };
        let names = ["stubborn", "parked", "late", "never begun"];
        link(stubborn(), names[0]);
        link(begun(forever), names[1]);
        link(spawn_later(LONG, || ()), names[2]);
        link(spawn(|| ()), names[3]);
        hub().shutdown();
        let trace = trace.take();
        assert_eq!(trace.len(), 16);
        for name in names {
            let of_name: Vec<_> = trace.iter().filter(|entry| entry.starts_with(name)).collect();
            let entry = |i: usize, what: &str| format!("{name} {i} {what}");
            assert_eq!(of_name, [&entry(0, "began"), &entry(0, "ended"), &entry(1, "began"), &entry(1, "ended")]);
        }
        assert_eq!(hub().stats().greenlets, 0);
    });
}

#[test]
fn a_shutdown_drops_calls_of_other_threads_whose_captures_panic() {
    struct Spiteful(Arc<AtomicUsize>);
    impl Drop for Spiteful {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic_with("captured");
        }
    }

    within_a_minute(|| {
        let drops = Arc::new(AtomicUsize::new(0));
        let handle = hub().handle();
        let results: Vec<_> = (0..3)
            .map(|_| {
                let spiteful = Spiteful(Arc::clone(&drops));
                handle.spawn(move || drop(spiteful))
            })
            .collect();
        let dropped = Count::new();
        let guard = dropped.on_drop();
        drop(spawn(move || {
            let _guard = guard;
            forever();
        }));
        hub().shutdown();
        assert_eq!(dropped.get(), 1, "the shutdown went on");
        assert_eq!(drops.load(Ordering::SeqCst), 3);
        assert!(results.iter().all(|result| result.is_ready()));
        assert!(Builder::new().spawn(|| ()).is_err());
    });
}

#[test]
fn a_shutdown_is_ended_by_a_timeout_and_can_be_repeated() {
    within_a_minute(|| {
        let (promise, result) = promise::<()>();
        let greenlet = begun(move || {
            let _resists = on_drop(move || result.wait());
            forever();
        });
        for _ in 0..3 {
            assert!(timeout(ms(2), || hub().shutdown()).is_err());
            assert!(!greenlet.is_finished());
            assert!(Builder::new().spawn(|| ()).unwrap_err().to_string().contains("is shutting down"));
        }
        promise.set(());
        hub().shutdown();
        assert!(greenlet.join().unwrap_err().is_killed());
    });
}

#[test]
fn a_shutdown_ends_one_that_swallows_kills() {
    within_a_minute(|| {
        let greenlet = begun(|| (0..100).filter(|_| is_ended_early(forever)).count());
        hub().shutdown();
        assert_eq!(greenlet.join().unwrap(), 100);
    });
}

#[test]
fn a_greenlet_that_is_killed_in_its_shutdown_leaves_the_others_to_the_next() {
    within_a_minute(|| {
        let trace = Trace::new();
        let (promise, result) = promise::<()>();
        let inside = trace.clone();
        let slow = begun(move || {
            let _done = inside.on_drop("slow");
            let _slow = on_drop(move || result.wait());
            forever();
        });
        let inside = trace.clone();
        let shutter = begun(move || {
            let _guard = inside.on_drop("shutter");
            hub().shutdown();
        });
        shutter.kill();
        assert!(!slow.is_finished());
        drop(promise);
        hub().shutdown();
        assert!(slow.is_finished());
        assert_eq!(trace.take(), ["shutter", "slow"]);
    });
}

#[test]
fn two_greenlets_that_shut_down_and_main_too_all_end() {
    within_a_minute(|| {
        for main_too in [true, false] {
            thread::spawn(move || {
                let shutters: Vec<_> = (0..3)
                    .map(|_| {
                        spawn(|| {
                            yield_now();
                            hub().shutdown();
                        })
                    })
                    .collect();
                yield_now();
                if main_too {
                    hub().shutdown();
                }
                assert!(greenroom::join_all(shutters).into_iter().all(|shutter| shutter.unwrap_err().is_killed()));
                assert!(Builder::new().spawn(|| ()).is_err());
            })
            .join()
            .unwrap();
        }
    });
}

#[test]
fn a_destructor_that_shuts_down_kills_the_others_and_its_kill_goes_on() {
    within_a_minute(|| {
        let trace = Trace::new();
        let inside = trace.clone();
        let other = begun(forever);
        let greenlet = begun(move || {
            let _outer = inside.on_drop("outer");
            let _guard = on_drop(|| hub().shutdown());
            forever();
        });
        greenlet.kill();
        assert!(other.is_finished());
        assert_eq!(trace.take(), ["outer"]);
        assert!(Builder::new().spawn(|| ()).is_err());
    });
}

#[test]
fn a_shutdown_waits_for_jobs_that_run() {
    within_a_minute(|| {
        let ended = Arc::new(AtomicUsize::new(0));
        for _ in 0..3 {
            let (begin, end) = (Arc::clone(&ended), Arc::clone(&ended));
            drop(begun(move || {
                hub().threadpool().run(|| {
                    begin.fetch_add(1, Ordering::SeqCst);
                    thread::sleep(ms(20));
                    end.fetch_add(100, Ordering::SeqCst);
                });
            }));
        }
        while ended.load(Ordering::SeqCst) % 100 < 3 {
            sleep(ms(1));
        }
        hub().shutdown();
        assert_eq!(ended.load(Ordering::SeqCst), 303);
    });
}

#[test]
fn a_thread_that_ends_leaves_its_parked_greenlets_alone() {
    within_a_minute(|| {
        let dropped = Arc::new(AtomicUsize::new(0));
        struct Note(Arc<AtomicUsize>);
        impl Drop for Note {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::SeqCst);
            }
        }
        for _ in 0..10 {
            let note = Note(Arc::clone(&dropped));
            let ended = Note(Arc::clone(&dropped));
            thread::spawn(move || {
                let kept = begun(move || {
                    let _note = note;
                    forever();
                });
                drop(begun(move || drop(ended)));
                drop(stubborn());
                let (in_destructor, keep) = parked_in_its_destructor();
                std::mem::forget((in_destructor, keep));
                drop(spawn_later(LONG, || ()));
                drop(spawn(|| ()));
                let _ = kept;
            })
            .join()
            .unwrap();
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 10, "those that ended, and no other");
    });
}

/// A thread-local of the program's that outlives the hub.
#[test]
fn handles_in_thread_locals_outlive_the_hub() {
    #[derive(Default)]
    struct Last(RefCell<Vec<Greenlet<()>>>);
    impl Drop for Last {
        fn drop(&mut self) {
            for greenlet in self.0.take() {
                greenlet.request_kill();
                assert!(!greenlet.wait_timeout(Duration::ZERO));
                assert!(!greenlet.kill_timeout(ms(1)));
            }
        }
    }
    thread_local! {
        static LAST: Last = Last::default();
    }

    within_a_minute(|| {
        thread::spawn(|| {
            LAST.with(|last| last.0.borrow_mut().push(begun(forever)));
        })
        .join()
        .unwrap();
    });
}

#[test]
fn a_hub_in_a_thread_local_is_empty_after_its_end() {
    struct Last(RefCell<Option<(Hub, mpsc::Sender<bool>)>>);
    impl Drop for Last {
        fn drop(&mut self) {
            let (hub, tell) = self.0.take().unwrap();
            let harmless = !is_ended_early(|| {
                assert_eq!(hub.stats().greenlets, 0);
                assert!(hub.join(Some(Duration::ZERO)));
                hub.shutdown();
                assert!(hub.handle().spawn(|| ()).is_ready());
                assert_eq!(hub.threadpool().run(|| 7), 7);
                assert!(try_hub().is_none());
            });
            tell.send(harmless).unwrap();
        }
    }
    thread_local! {
        static LAST: Last = const { Last(RefCell::new(None)) };
    }

    within_a_minute(|| {
        let (tell, told) = mpsc::channel();
        let thread = thread::spawn(move || {
            LAST.with(|last| *last.0.borrow_mut() = Some((hub(), tell)));
            drop(begun(forever));
        });
        assert!(told.recv().unwrap());
        thread.join().unwrap();
    });
}

// What it tells.

#[test]
fn stats_tell_what_there_is() {
    within_a_minute(|| {
        let before = hub().stats();
        assert_eq!((before.greenlets, before.spawned, before.resumes, before.timers), (0, 0, 0, 0));
        let sleepers: Vec<_> = (0..10).map(|_| spawn(|| sleep(LONG))).collect();
        let late = spawn_later(LONG, || ());
        let stats = hub().stats();
        assert_eq!((stats.greenlets, stats.ready, stats.timers, stats.stacks_in_use), (11, 10, 1, 0));
        yield_now();
        let stats = hub().stats();
        assert_eq!((stats.greenlets, stats.ready, stats.timers, stats.stacks_in_use), (11, 0, 11, 10));
        assert_eq!((stats.spawned, stats.resumes), (11, 10));
        assert!(stats.stack_bytes_reserved >= 10 * (256 << 10));
        greenroom::kill_all(sleepers.iter().chain([&late]));
        sleep(ms(1));
        let stats = hub().stats();
        assert_eq!((stats.greenlets, stats.ready, stats.timers, stats.stacks_in_use), (0, 0, 0, 0));
        assert!(stats.sleeps >= 1 && stats.stacks_cached >= 1);
    });
}

#[test]
fn a_burst_of_short_greenlets_runs_on_a_handful_of_stacks() {
    within_a_minute(|| {
        for _ in 0..100_000 {
            drop(spawn(|| ()));
        }
        assert_eq!(hub().stats().stacks_in_use, 0);
        assert!(hub().join(None));
        let stats = hub().stats();
        assert_eq!((stats.spawned, stats.resumes), (100_000, 100_000));
        assert!(stats.stacks_in_use + stats.stacks_cached <= 4, "{stats:?}");
    });
}

#[test]
fn ids_are_unique_on_all_hubs_and_never_used_again() {
    within_a_minute(|| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                thread::spawn(|| {
                    let ids = (0..500).map(|_| {
                        let greenlet = spawn(|| ());
                        let id = greenlet.id();
                        greenlet.join().unwrap();
                        id
                    });
                    ids.collect::<Vec<GreenletId>>()
                })
            })
            .collect();
        let mut ids: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 2_000);
        let shown: std::collections::HashSet<_> = ids.iter().map(ToString::to_string).collect();
        assert_eq!(shown.len(), 2_000);
    });
}

#[test]
fn replacing_the_error_handler_drops_the_one_before_whatever_that_holds() {
    within_a_minute(|| {
        let broken = begun(|| panic_with("part of the test"));
        hub().on_error(move |_, _| assert!(broken.is_finished()));
        let seen = Count::new();
        let count = seen.clone();
        // The handle in the old handler is dropped now, and its panic goes to the new one.
        hub().on_error(move |_, _| count.add());
        assert_eq!(seen.get(), 1);
        let parks = common::on_drop(|| sleep(ms(5)));
        hub().on_error(move |_, _| {
            let _ = &parks;
        });
        drop(spawn(|| panic_with("part of the test")));
        hub().on_error(|_, _| ());
        assert!(hub().join(None));
    });
}

#[test]
fn more_hubs_than_memory_has_room_for_are_an_error() {
    let error = greenroom::Hubs::start(usize::MAX, Hub::builder()).unwrap_err();
    assert!(error.to_string().contains(&usize::MAX.to_string()));
}
