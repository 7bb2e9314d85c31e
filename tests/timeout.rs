//! `timeout`: what it ends, what it leaves alone, and how several nest.

#[macro_use]
mod common;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::parks::{Park, Prepare, places, queue_only, stubborn};
use common::*;
use greenroom::{
    Elapsed, hub, idle, join_all, on_big_stack, promise, sleep, sleep_until, spawn, timeout, try_hub, yield_now,
};

// It ends every kind of park, in a greenlet and on main.

fn elapses_here(place: Park) {
    for (limit, tolerance) in [(ms(5), ms(5)), (Duration::ZERO, Duration::ZERO)] {
        let trace = Trace::new();
        let inside = trace.clone();
        let start = Instant::now();
        let result = timeout(limit, move || {
            let _guard = inside.on_drop("dropped");
            place();
            inside.add("passed");
        });
        assert!(result.is_err());
        assert!(start.elapsed() >= tolerance);
        assert_eq!(trace.take(), ["dropped"]);
    }
    // It is over: what comes now isn't interrupted.
    sleep(ms(1));
}

fn elapses_on_main(place: Park) {
    hub();
    elapses_here(place);
}

fn elapses(place: Park) {
    spawn(move || elapses_here(place)).join().unwrap();
}

each_park!(it_ends, crate::elapses);
each_park!(on_main_it_ends, crate::elapses_on_main);

fn elapses_beside_one_that_unwinds(place: Park) {
    let (other, keep) = parked_in_its_destructor();
    elapses(place);
    elapses_here(place);
    drop(keep);
    other.wait();
}

each_park!(beside_one_that_unwinds_it_ends, crate::elapses_beside_one_that_unwinds);

/// The body catches the unwinding, and parks there again.
fn meets_it_again(place: Park) {
    hub();
    let trace = Trace::new();
    let inside = trace.clone();
    let result = timeout(ms(2), move || {
        for _ in 0..3 {
            assert!(is_ended_early(place));
            inside.add("swallowed");
        }
        place();
        inside.add("passed");
    });
    assert!(result.is_err());
    assert_eq!(trace.take(), ["swallowed"; 3]);
}

each_park!(swallowed_it_comes_again_in, crate::meets_it_again);

fn meets_it_again_beside_one_that_unwinds(place: Park) {
    let (other, keep) = parked_in_its_destructor();
    meets_it_again(place);
    spawn(move || meets_it_again(place)).join().unwrap();
    drop(keep);
    other.wait();
}

each_park!(beside_one_that_unwinds_swallowed_it_comes_again_in, crate::meets_it_again_beside_one_that_unwinds);

/// The outer one is there first, whatever inner ones are pending.
fn outer_first(place: Park) {
    hub();
    let outer = timeout(ms(2), || {
        let inner = timeout(LONG, || {
            let innermost = timeout(LONG, place);
            panic!("the innermost gave {innermost:?}");
        });
        panic!("the inner one gave {inner:?}");
    });
    assert!(outer.is_err());
}

each_park!(the_outer_one_ends, crate::outer_first);

/// The inner one is there first; then the outer one is still pending.
fn inner_first(place: Park) {
    hub();
    let outer = timeout(ms(40), || {
        assert!(timeout(ms(2), place).is_err());
        assert!(timeout(ms(2), place).is_err());
        place();
    });
    assert!(outer.is_err());
}

each_park!(inner_ones_leave_the_outer_one_pending_in, crate::inner_first);

// Destructors that park.

fn destructors_run_to_their_end(prepare: Prepare) {
    let trace = Trace::new();
    let (inside, wait) = (trace.clone(), prepare());
    let start = Instant::now();
    let outer = timeout(ms(3), || {
        let result = timeout(ms(2), || {
            let _guard = on_drop(move || {
                let went_well = wait();
                // Now the outer one is due as well.
                sleep_until(start + ms(4));
                inside.add(format!("{went_well}"));
            });
            forever();
        });
        assert!(result.is_err());
        yield_now();
        panic!("the outer one is due");
    });
    assert!(outer.is_err());
    assert_eq!(trace.take(), ["true"]);
}

fn on_main_destructors_run_to_their_end(prepare: Prepare) {
    hub();
    destructors_run_to_their_end(prepare);
}

fn in_a_greenlet_destructors_run_to_their_end(prepare: Prepare) {
    spawn(move || destructors_run_to_their_end(prepare)).join().unwrap();
}

each_wait!(on_main_its_destructors_wait_for, crate::on_main_destructors_run_to_their_end);
each_wait!(its_destructors_wait_for, crate::in_a_greenlet_destructors_run_to_their_end);

#[test]
fn inside_a_destructor_it_ends_a_wait_and_the_unwinding_goes_on() {
    within_a_minute(|| {
        let trace = Trace::new();
        let inside = trace.clone();
        let greenlet = begun(move || {
            let _outer = inside.on_drop("outer");
            let _guard = on_drop({
                let inside = inside.clone();
                move || {
                    for name in ["first", "second"] {
                        let inner = timeout(LONG, || {
                            let _guard = inside.on_drop(name);
                            timeout(ms(1), forever)
                        });
                        let outer = timeout(ms(1), || {
                            let _guard = inside.on_drop(name);
                            timeout(LONG, forever)
                        });
                        inside.add(format!("{inner:?}, {outer:?}"));
                    }
                }
            });
            forever();
        });
        greenlet.kill();
        assert!(greenlet.join().unwrap_err().is_killed());
        let ended = "Ok(Err(Elapsed(()))), Err(Elapsed(()))";
        assert_eq!(trace.take(), ["first", "first", ended, "second", "second", ended, "outer"]);
    });
}

#[test]
fn around_a_kill_it_ends_the_waiting_and_leaves_the_kill_pending() {
    within_a_minute(|| {
        let victim = stubborn();
        assert!(timeout(ms(1), || victim.kill()).is_err());
        assert!(!victim.is_finished());
        assert!(victim.join().unwrap_err().is_killed());
    });
}

// Values.

#[test]
fn a_body_that_is_done_first_gives_its_value_and_the_timer_is_gone() {
    within_a_minute(|| {
        for limit in [ms(5), LONG, Duration::MAX, Duration::from_secs(u64::MAX / 4)] {
            let result = timeout(limit, || {
                sleep(Duration::from_micros(100));
                "value"
            });
            // On a busy machine five milliseconds may be over.
            assert!(result == Ok("value") || limit == ms(5));
            assert_eq!(hub().stats().timers, 0);
        }
        sleep(ms(10));
    });
}

#[test]
fn ten_thousand_that_are_not_needed_leave_no_timers() {
    within_a_minute(|| {
        spawn(|| {
            for i in 0..10_000 {
                assert_eq!(timeout(LONG, || timeout(LONG, yield_now).map(|()| i)), Ok(Ok(i)));
            }
        })
        .join()
        .unwrap();
        assert_eq!(hub().stats().timers, 0);
    });
}

#[test]
fn code_that_does_not_park_late_gives_its_value_however_late() {
    within_a_minute(|| {
        let late = timeout(ms(1), || {
            spin(ms(5));
            7
        });
        assert_eq!(late, Ok(7));
        yield_now();
        let early = timeout(LONG, || 8);
        assert_eq!(early, Ok(8));
    });
}

#[test]
fn code_that_parks_late_is_ended_at_that_park() {
    within_a_minute(|| {
        hub();
        let trace = Trace::new();
        let parks: [fn(); 5] =
            [yield_now, || sleep(Duration::ZERO), || sleep_until(Instant::now()), || sleep(LONG), places::job_queued];
        for park in parks {
            let result = timeout(ms(1), || {
                let _guard = trace.on_drop("dropped");
                spin(ms(3));
                trace.add("late");
                park();
                trace.add("passed");
            });
            assert!(result.is_err());
            assert_eq!(trace.take(), ["late", "dropped"]);
        }
    });
}

#[test]
fn zero_time_lets_pass_what_is_ready() {
    within_a_minute(|| {
        assert_eq!(timeout(Duration::ZERO, || 1), Ok(1));
        let (promise, result) = promise();
        promise.set(2);
        assert_eq!(timeout(Duration::ZERO, || result.get().unwrap()), Ok(2));
        let ended = begun(|| 3);
        assert_eq!(timeout(Duration::ZERO, || ended.join().unwrap()), Ok(3));
        let ended = begun(|| ());
        assert_eq!(timeout(Duration::ZERO, || ended.kill()), Ok(()));
        assert!(timeout(Duration::ZERO, || sleep(Duration::ZERO)).is_err());
        assert!(timeout(Duration::ZERO, yield_now).is_err());
    });
}

#[test]
fn a_wake_that_comes_before_the_hub_sees_the_deadline_counts() {
    within_a_minute(|| {
        let (promise, result) = promise();
        let waiter = begun(|| timeout(ms(20), || result.get().unwrap()));
        spin(ms(30));
        promise.set(1);
        assert_eq!(waiter.join().unwrap(), Ok(1));
    });
}

#[test]
fn a_loop_of_yields_ends() {
    within_a_minute(|| {
        let others = Count::new();
        let turns = others.clone();
        let other = begun::<()>(move || {
            loop {
                turns.add();
                yield_now();
            }
        });
        let start = Instant::now();
        assert_eq!(timeout(ms(10), places::yield_loop).unwrap_err().to_string(), "the timeout has elapsed");
        assert!(start.elapsed() >= ms(10));
        assert!(others.get() > 0);
        other.kill();
    });
}

#[test]
fn a_loop_of_checkpoints_ends() {
    within_a_minute(|| {
        let looper = spawn(|| timeout(ms(5), places::checkpoint_loop));
        assert!(looper.join().unwrap().is_err());
    });
}

#[test]
fn a_panic_of_the_body_passes_through() {
    within_a_minute(|| {
        let greenlet = spawn(|| {
            let result = std::panic::catch_unwind(|| {
                timeout(ms(20), || {
                    sleep(ms(1));
                    panic_with("of the body")
                })
            });
            let payload = match result {
                Ok(result) => panic!("gave {result:?}"),
                Err(payload) => payload,
            };
            assert_eq!(text_of(&*payload), "of the body");
            let start = Instant::now();
            sleep(ms(30));
            assert!(start.elapsed() >= ms(30));
            assert_eq!(hub().stats().timers, 0);
        });
        greenlet.join().unwrap();
    });
}

#[test]
fn swallowed_by_code_that_does_not_park_again_it_has_not_elapsed() {
    within_a_minute(|| {
        let result = timeout(ms(2), || {
            assert!(is_ended_early(forever));
            "value"
        });
        assert_eq!(result, Ok("value"));
        sleep(ms(5));
    });
}

// Nesting.

#[test]
fn of_two_that_are_both_due_the_outer_one_elapses() {
    within_a_minute(|| {
        hub();
        for (outer, inner) in [(ms(1), ms(1)), (ms(2), ms(1)), (ms(1), ms(2)), (Duration::ZERO, Duration::ZERO)] {
            let result: Result<(), Elapsed> = timeout(outer, || {
                let inner: Result<(), Elapsed> = timeout(inner, || {
                    spin(ms(4));
                    yield_now();
                    panic!("both are due");
                });
                panic!("the inner one gave {inner:?}");
            });
            assert!(result.is_err());
        }
    });
}

#[test]
fn of_three_the_middle_one_elapses_alone() {
    within_a_minute(|| {
        let outer = timeout(LONG, || {
            let middle = timeout(ms(5), || {
                let inner = timeout(LONG, forever);
                panic!("the inner one gave {inner:?}");
            });
            assert!(middle.is_err());
            sleep(ms(1));
            "goes on"
        });
        assert_eq!(outer, Ok("goes on"));
    });
}

#[test]
fn fifty_nested_ones_elapse_from_the_inside_when_that_is_their_order() {
    fn nest(depth: u64, base: Instant, trace: &Trace) {
        let left = (base + ms(100 - 2 * depth)).saturating_duration_since(Instant::now());
        let result = timeout(left, || {
            if depth < 40 {
                nest(depth + 1, base, trace);
            }
            forever();
        });
        if result.is_err() {
            trace.add(format!("{depth}"));
        }
    }

    within_a_minute(|| {
        let trace = Trace::new();
        nest(0, Instant::now(), &trace);
        let trace: Vec<u64> = trace.take().iter().map(|depth| depth.parse().unwrap()).collect();
        // A stall of the machine makes several due at once; then the outermost of them takes the inner ones along.
        assert_eq!(trace.last(), Some(&0));
        assert!(trace.is_sorted_by(|a, b| a > b), "{trace:?}");
    });
}

#[test]
fn the_nearer_of_a_timeout_and_a_timed_wait_counts() {
    within_a_minute(|| {
        let (promise, result) = promise::<()>();
        let sleeper = begun(forever);
        assert_eq!(timeout(LONG, || result.wait_timeout(ms(2))), Ok(false));
        assert_eq!(timeout(LONG, || sleeper.wait_timeout(ms(2))), Ok(false));
        assert!(timeout(ms(2), || result.wait_timeout(LONG)).is_err());
        assert!(timeout(ms(2), || sleeper.wait_timeout(LONG)).is_err());
        assert!(timeout(ms(2), || result.wait_timeout(Duration::MAX)).is_err());
        drop(promise);
    });
}

#[test]
fn each_greenlet_has_its_own() {
    within_a_minute(|| {
        let results = join_all((0..50).map(|i| {
            spawn(move || {
                let limit = if i % 2 == 0 { ms(1 + i) } else { LONG };
                timeout(limit, || sleep(ms(100)))
            })
        }));
        for (i, result) in results.into_iter().enumerate() {
            assert_eq!(result.unwrap().is_err(), i % 2 == 0, "{i}");
        }
    });
}

#[test]
fn a_greenlet_spawned_inside_is_not_under_it() {
    within_a_minute(|| {
        let (child, own) = timeout(ms(5), || {
            let child = spawn(|| {
                sleep(ms(20));
                "goes on"
            });
            (child, is_ended_early(forever))
        })
        .unwrap();
        assert!(own);
        assert_eq!(child.join().unwrap(), "goes on");
    });
}

// Around what others do.

#[test]
fn around_a_join_it_leaves_the_greenlet_alone() {
    within_a_minute(|| {
        let (promise, result) = promise();
        let greenlet = Rc::new(spawn(move || result.get().unwrap()));
        assert!(timeout(ms(2), || greenlet.wait()).is_err());
        assert!(!greenlet.is_finished());
        promise.set("value");
        assert_eq!(timeout(LONG, || join_shared(greenlet).unwrap()), Ok("value"));
    });
}

#[test]
fn around_a_job_that_runs_it_waits_for_the_job_then_elapses() {
    within_a_minute(|| {
        let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let pool = hub().threadpool();
        let result = timeout(ms(20), || {
            pool.run(|| {
                begun.store(true, Ordering::SeqCst);
                thread::sleep(ms(300));
                ended.store(true, Ordering::SeqCst);
            });
        });
        assert!(result.is_err());
        // Unless the machine was too busy to begin it in time, in which case it was taken back.
        assert_eq!(begun.load(Ordering::SeqCst), ended.load(Ordering::SeqCst));
        assert_eq!(pool.run(|| 7), 7);
    });
}

#[test]
fn around_a_job_that_is_queued_it_takes_it_back() {
    within_a_minute(|| {
        let pool = queue_only();
        let dropped = Arc::new(());
        let (job, also) = (Arc::clone(&dropped), pool.clone());
        let other = begun(move || also.run(|| 5));
        let result = timeout(ms(2), || {
            pool.run::<()>(move || unreachable!("nobody runs {job:?}"));
        });
        assert!(result.is_err());
        assert_eq!(Arc::strong_count(&dropped), 1);
        assert!(!other.is_finished());
        other.kill();
    });
}

#[test]
fn around_idling_it_elapses_while_others_are_busy() {
    within_a_minute(|| {
        let busy = begun(places::yield_loop);
        assert!(timeout(ms(3), idle).is_err());
        assert!(spawn(|| timeout(ms(3), idle)).join().unwrap().is_err());
        busy.kill();
        assert_eq!(timeout(LONG, idle), Ok(()));
    });
}

#[test]
fn on_a_big_stack_it_passes_in_and_out() {
    within_a_minute(|| {
        let trace = Trace::new();
        let inside = trace.clone();
        let greenlet = spawn(move || {
            let outside = timeout(ms(2), || {
                on_big_stack(1 << 20, || {
                    let _guard = inside.on_drop("dropped");
                    forever();
                })
            });
            assert!(outside.is_err());
            on_big_stack(1 << 20, || timeout(ms(2), forever)).unwrap_err();
            inside.add("goes on");
        });
        greenlet.join().unwrap();
        assert_eq!(trace.take(), ["dropped", "goes on"]);
        assert_eq!(hub().stats().stacks_in_use, 0);
    });
}

#[test]
fn on_main_the_others_go_on_meanwhile() {
    within_a_minute(|| {
        let ticks = Count::new();
        let ticking = ticks.clone();
        let ticker = spawn::<_, ()>(move || {
            loop {
                ticking.add();
                sleep(ms(1));
            }
        });
        assert!(timeout(ms(20), forever).is_err());
        assert!(ticks.get() > 1);
        ticker.kill();
    });
}

// Without a hub.

#[test]
fn on_a_plain_thread_it_works_and_makes_no_hub() {
    within_a_minute(|| {
        let trace = Trace::new();
        let dropped = || {
            let _guard = trace.on_drop("dropped");
            forever();
        };
        assert!(timeout(ms(2), dropped).is_err());
        assert!(timeout(ms(2), || timeout(LONG, dropped)).is_err());
        assert_eq!(timeout(LONG, || timeout(ms(2), dropped).is_err()), Ok(true));
        assert_eq!(trace.take(), ["dropped"; 3]);

        let (promise, result) = promise::<()>();
        assert!(timeout(ms(2), || result.wait()).is_err());
        assert_eq!(timeout(LONG, || result.wait_timeout(ms(2))), Ok(false));
        assert!(timeout(Duration::ZERO, || result.wait_timeout(LONG)).is_err());
        drop(promise);
        assert_eq!(timeout(Duration::ZERO, || result.get().is_err()), Ok(true));

        assert_eq!(timeout(Duration::MAX, || sleep(ms(1))), Ok(()));
        assert_eq!(timeout(LONG, || sleep(ms(1))), Ok(()));
        assert!(timeout(ms(2), || on_big_stack(1 << 16, forever)).is_err());
        assert!(timeout(ms(2), || queue_only().run(|| ())).is_err());
        let ended = AtomicBool::new(false);
        let pool = greenroom::ThreadPool::new(1);
        pool.run(|| ());
        let result = timeout(ms(1), || {
            pool.run(|| {
                thread::sleep(ms(200));
                ended.store(true, Ordering::SeqCst);
            });
        });
        assert!(result.is_err());
        drop(pool);
        assert!(try_hub().is_none());
    });
}

#[test]
fn on_a_plain_thread_it_ends_a_loop_that_yields() {
    within_a_minute(|| {
        let yields: [fn(); 3] = [yield_now, || sleep(Duration::ZERO), || sleep_until(Instant::now())];
        for yields in yields {
            let result = timeout(ms(2), || {
                let give_up = Instant::now() + Duration::from_secs(2);
                while Instant::now() < give_up {
                    yields();
                }
            });
            assert!(result.is_err());
        }
        assert!(try_hub().is_none());
    });
}

#[test]
fn on_a_plain_thread_swallowed_it_comes_again() {
    within_a_minute(|| {
        let result = timeout(ms(2), || {
            assert!(is_ended_early(forever));
            forever();
        });
        assert!(result.is_err());
        assert!(try_hub().is_none());
    });
}

#[test]
fn on_a_plain_thread_destructors_run_to_their_end_and_may_use_it() {
    within_a_minute(|| {
        let trace = Trace::new();
        let inside = trace.clone();
        let outer = timeout(ms(4), || {
            let inner = timeout(ms(2), || {
                let _guard = on_drop(move || {
                    sleep(ms(4));
                    let own = timeout(ms(2), forever);
                    inside.add(format!("{own:?}"));
                });
                forever();
            });
            assert!(inner.is_err());
            sleep(ms(1));
        });
        assert!(outer.is_err());
        assert_eq!(trace.take(), ["Err(Elapsed(()))"]);
        assert!(try_hub().is_none());
    });
}

/// A thread-local of the program's, dropped when greenroom's are gone already.
#[test]
fn in_the_destructor_of_a_thread_local_it_still_works() {
    struct Last(RefCell<Option<mpsc::Sender<bool>>>);
    impl Drop for Last {
        fn drop(&mut self) {
            let elapsed = timeout(ms(2), forever).is_err() && timeout(ms(2), || timeout(LONG, forever)).is_err();
            self.0.take().unwrap().send(elapsed && timeout(LONG, || 1) == Ok(1)).unwrap();
        }
    }
    thread_local! {
        static LAST: Last = const { Last(RefCell::new(None)) };
    }

    within_a_minute(|| {
        let lives: [fn(); 4] = [
            || (),
            || sleep(ms(1)),
            || spawn(|| sleep(ms(1))).join().unwrap(),
            || {
                sleep(ms(1));
                spawn(|| ()).join().unwrap();
            },
        ];
        // What is used first goes last.
        for (asks_first, life) in lives.into_iter().flat_map(|life| [(false, life), (true, life)]) {
            let (tell, told) = mpsc::channel();
            let thread = thread::spawn(move || {
                if asks_first {
                    assert!(try_hub().is_none());
                }
                LAST.with(|last| *last.0.borrow_mut() = Some(tell));
                life();
            });
            assert!(told.recv().unwrap());
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_thread_that_gets_its_hub_inside_of_it_is_interrupted_there() {
    within_a_minute(|| {
        let result = timeout(ms(5), || {
            assert!(try_hub().is_none());
            let greenlet = spawn(|| sleep(ms(1)));
            greenlet.wait();
            spawn(forever).wait();
        });
        assert!(result.is_err());
        assert!(try_hub().is_some());
        sleep(ms(1));
    });
}

#[test]
fn a_pool_worker_is_interrupted_like_any_thread() {
    within_a_minute(|| {
        let elapsed = hub().threadpool().run(|| {
            let (_promise, result) = promise::<()>();
            timeout(ms(2), || result.wait()).is_err() && timeout(ms(2), forever).is_err() && try_hub().is_none()
        });
        assert!(elapsed);
    });
}

#[test]
fn what_another_threads_timeout_raised_is_not_ours() {
    within_a_minute(|| {
        let (send, payload) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let caught = timeout(ms(1), || std::panic::catch_unwind(forever).unwrap_err());
            send.send(caught.unwrap()).unwrap();
        })
        .join()
        .unwrap();
        let payload = payload.recv().unwrap();
        let raised = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            timeout(LONG, || std::panic::resume_unwind(payload)).is_err()
        }));
        assert!(raised.is_err(), "it came to {raised:?}");
    });
}
