//! Greenlets: spawning, taking turns, time, joining, links, big stacks.

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use common::*;
use greenroom::{
    Builder, Greenlet, Outcome, checkpoint, hub, idle, in_greenlet, join_all, on_big_stack, promise, sleep,
    sleep_until, spawn, spawn_later, timeout, try_hub, yield_now,
};

// Spawning.

#[test]
fn a_body_never_runs_before_the_spawner_parks() {
    within_a_minute(|| {
        let ran = Count::new();
        let body = || {
            let ran = ran.clone();
            move || ran.add()
        };
        let first = spawn(body());
        let second = Builder::new().spawn(body()).unwrap();
        let third = spawn_later(Duration::ZERO, body());
        spin(ms(2));
        checkpoint();
        assert!(timeout(LONG, || first.is_finished()) == Ok(false));
        assert_eq!(ran.get(), 0);
        join_all([first, second, third]).into_iter().for_each(Result::unwrap);
        assert_eq!(ran.get(), 3);

        // In a greenlet as well.
        let (ran, inner) = (Count::new(), Count::new());
        let count = inner.clone();
        let seen = ran.clone();
        spawn(move || {
            let child = spawn(move || count.add());
            assert_eq!(inner.get(), 0);
            child.join().unwrap();
            assert_eq!(inner.get(), 1);
            seen.add();
        })
        .join()
        .unwrap();
        assert_eq!(ran.get(), 1);
    });
}

#[test]
fn greenlets_begin_in_the_order_in_which_they_were_spawned() {
    within_a_minute(|| {
        let order = Rc::new(RefCell::new(Vec::new()));
        for i in 0..1_000 {
            let order = Rc::clone(&order);
            spawn(move || order.borrow_mut().push(i));
        }
        yield_now();
        assert_eq!(*order.borrow(), (0..1_000).collect::<Vec<_>>());
    });
}

#[test]
fn values_and_captures_need_not_be_send_and_may_be_large() {
    within_a_minute(|| {
        let shared = Rc::new(Cell::new(1));
        let inside = Rc::clone(&shared);
        let large = [7u8; 16 << 10];
        let greenlet = spawn(move || {
            yield_now();
            inside.set(inside.get() + 1);
            (inside, large)
        });
        let (inside, large) = greenlet.join().unwrap();
        assert_eq!((shared.get(), Rc::ptr_eq(&inside, &shared)), (2, true));
        assert!(large.iter().all(|&byte| byte == 7));
    });
}

#[test]
fn a_greenlet_stays_on_its_thread() {
    within_a_minute(|| {
        thread_local! {
            static LOCAL: Cell<u32> = const { Cell::new(0) };
        }
        LOCAL.set(7);
        let here = thread::current().id();
        let greenlet = spawn(move || {
            let before = (thread::current().id(), LOCAL.get());
            sleep(ms(1));
            hub().threadpool().run(|| thread::sleep(ms(1)));
            LOCAL.set(8);
            before == (here, 7) && thread::current().id() == here
        });
        assert!(greenlet.join().unwrap());
        assert_eq!(LOCAL.get(), 8);
    });
}

#[test]
fn a_detached_greenlet_goes_on() {
    within_a_minute(|| {
        let steps = Count::new();
        let inside = steps.clone();
        drop(begun(move || {
            inside.add();
            sleep(ms(1));
            inside.add();
        }));
        assert_eq!(steps.get(), 1);
        assert!(hub().join(None));
        assert_eq!(steps.get(), 2);
    });
}

#[test]
fn captures_are_dropped_when_the_body_ends() {
    within_a_minute(|| {
        let dropped = Count::new();
        let guard = dropped.on_drop();
        let greenlet = spawn(move || {
            let _guard = guard;
            yield_now();
        });
        yield_now();
        assert_eq!(dropped.get(), 0);
        greenlet.wait();
        assert_eq!(dropped.get(), 1);
    });
}

#[test]
fn names_are_kept_and_ids_differ() {
    within_a_minute(|| {
        let named = Builder::new().name("login").spawn(|| ()).unwrap();
        let same = Builder::new().name(String::from("login")).spawn(|| ()).unwrap();
        let nameless = spawn(|| ());
        assert_eq!((named.name(), same.name(), nameless.name()), (Some("login"), Some("login"), None));
        assert!(named.id() != same.id() && same.id() != nameless.id());
        let shown = format!("{named:?}");
        assert!(shown.contains("login") && shown.contains(&named.id().to_string()), "{shown}");
        named.wait();
        assert_eq!(named.name(), Some("login"));
    });
}

#[test]
fn stacks_have_the_size_that_was_asked_for() {
    within_a_minute(|| {
        let smallest = Builder::new().stack_size(1).spawn(|| 1).unwrap();
        assert_eq!(smallest.join().unwrap(), 1);
        let deep = Builder::new().stack_size(8 << 20).spawn(|| depth(10_000)).unwrap();
        assert_eq!(deep.join().unwrap(), 10_000);
        for bytes in [usize::MAX, isize::MAX as usize] {
            let error = Builder::new().stack_size(bytes).spawn(|| ()).unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
            assert!(error.to_string().contains(&bytes.to_string()), "{error}");
        }
    });
}

#[test]
fn a_stack_that_the_kernel_refuses_is_the_panic_of_its_greenlet() {
    within_a_minute(|| {
        let dropped = Count::new();
        let guard = dropped.on_drop();
        let greenlet = Builder::new().stack_size(1 << 60).spawn(move || drop(guard)).unwrap();
        let error = greenlet.join().unwrap_err();
        assert!(error.is_panic());
        assert!(error.to_string().contains("could not start"), "{error}");
        assert_eq!(dropped.get(), 1);
        assert_eq!(spawn(|| 1).join().unwrap(), 1);
    });
}

#[test]
fn in_greenlet_tells_where_one_is() {
    within_a_minute(|| {
        assert!(!in_greenlet());
        assert!(try_hub().is_none());
        assert!(spawn(|| in_greenlet() && on_big_stack(1 << 16, in_greenlet)).join().unwrap());
        assert!(!in_greenlet());
        assert!(!hub().threadpool().run(in_greenlet));
        let inner = spawn(|| hub().threadpool().run(in_greenlet));
        assert!(!inner.join().unwrap());
    });
}

#[test]
fn ten_thousand_spawns_all_run_and_a_timer_due_meanwhile_fires_in_between() {
    within_a_minute(|| {
        let ran = Rc::new(Cell::new(0));
        let counter = Rc::clone(&ran);
        let deadline = Instant::now() + ms(50);
        let sleeper = begun(move || {
            sleep_until(deadline);
            counter.get()
        });
        let counter = Rc::clone(&ran);
        let late = spawn_later(ms(50), move || counter.get());
        let due = Instant::now() + ms(50);
        let greenlets: Vec<_> = (0..10_000)
            .map(|i| {
                let ran = Rc::clone(&ran);
                spawn(move || {
                    if i == 5_000 {
                        spin_until(due);
                    }
                    ran.set(ran.get() + 1);
                })
            })
            .collect();
        join_all(greenlets).into_iter().for_each(Result::unwrap);
        assert_eq!(ran.get(), 10_000);
        for seen in [sleeper.join().unwrap(), late.join().unwrap()] {
            assert!(seen < 10_000, "it fired after all of them");
        }
    });
}

#[test]
fn a_result_of_another_thread_comes_in_between_ten_thousand_busy_greenlets() {
    within_a_minute(|| {
        let (promise, result) = promise();
        let ran = Rc::new(Cell::new(0));
        let counter = Rc::clone(&ran);
        let waiter = begun(move || {
            result.get().unwrap();
            counter.get()
        });
        for _ in 0..10_000 {
            let ran = Rc::clone(&ran);
            spawn(move || ran.set(ran.get() + 1));
        }
        thread::spawn(move || promise.set(())).join().unwrap();
        assert!(waiter.join().unwrap() < 10_000);
        assert!(hub().join(None));
    });
}

#[test]
fn ten_thousand_parked_at_once_all_end() {
    within_a_minute(|| {
        let (promise, result) = promise();
        let result = Rc::new(result);
        let greenlets: Vec<_> = (0..10_000)
            .map(|i| {
                let result = Rc::clone(&result);
                spawn(move || {
                    result.wait();
                    i
                })
            })
            .collect();
        yield_now();
        assert_eq!(hub().stats().stacks_in_use, 10_000);
        promise.set(());
        let sum: u64 = join_all(greenlets).into_iter().map(Result::unwrap).sum();
        assert_eq!(sum, 9_999 * 10_000 / 2);
        assert_eq!(hub().stats().stacks_in_use, 0);
    });
}

#[test]
fn a_chain_of_a_thousand_that_join_the_next_unwinds_from_its_end() {
    fn chain(n: u32) -> u32 {
        if n == 0 { 0 } else { 1 + spawn(move || chain(n - 1)).join().unwrap() }
    }

    within_a_minute(|| assert_eq!(chain(1_000), 1_000));
}

// Taking turns.

#[test]
fn two_that_yield_take_turns() {
    within_a_minute(|| {
        let trace = Trace::new();
        for name in ["1", "2"] {
            let trace = trace.clone();
            spawn(move || {
                trace.add(format!("{name}A"));
                yield_now();
                trace.add(format!("{name}B"));
                sleep(Duration::ZERO);
                trace.add(format!("{name}C"));
                sleep_until(Instant::now());
                trace.add(format!("{name}D"));
            });
        }
        assert!(hub().join(None));
        assert_eq!(trace.take(), ["1A", "2A", "1B", "2B", "1C", "2C", "1D", "2D"]);
    });
}

#[test]
fn a_yield_lets_every_ready_greenlet_run_once() {
    within_a_minute(|| {
        let counts: Vec<_> = (0..200).map(|_| Count::new()).collect();
        let greenlets: Vec<_> = counts
            .iter()
            .map(|count| {
                let count = count.clone();
                spawn::<_, ()>(move || {
                    loop {
                        count.add();
                        yield_now();
                    }
                })
            })
            .collect();
        for turn in 1..=5 {
            yield_now();
            assert!(counts.iter().all(|count| count.get() == turn));
        }
        greenroom::kill_all(&greenlets);
    });
}

#[test]
fn a_checkpoint_yields_when_the_slice_is_used_up_and_not_before() {
    within_a_minute(|| {
        checkpoint();
        assert!(try_hub().is_none());

        let trace = Trace::new();
        let (worker, other) = (trace.clone(), trace.clone());
        spawn(move || {
            checkpoint();
            worker.add("in its slice");
            spin(ms(3));
            checkpoint();
            worker.add("in its second slice");
            checkpoint();
            worker.add("still");
        });
        spawn(move || other.add("the other"));
        assert!(hub().join(None));
        assert_eq!(trace.take(), ["in its slice", "the other", "in its second slice", "still"]);
    });
}

#[test]
fn a_loop_of_checkpoints_lets_timers_and_other_threads_in() {
    within_a_minute(|| {
        let stop = Rc::new(Cell::new(0));
        let (by_timer, by_thread) = (Rc::clone(&stop), Rc::clone(&stop));
        begun(move || {
            sleep(ms(2));
            by_timer.set(by_timer.get() + 1);
        });
        let (promise, result) = promise();
        begun(move || {
            result.get().unwrap();
            by_thread.set(by_thread.get() + 1);
        });
        let thread = thread::spawn(move || promise.set(()));
        while stop.get() < 2 {
            checkpoint();
        }
        thread.join().unwrap();
    });
}

#[test]
fn idle_returns_when_nothing_else_is_ready() {
    within_a_minute(|| {
        idle();
        let steps = Count::new();
        for _ in 0..5 {
            let steps = steps.clone();
            spawn(move || {
                for _ in 0..20 {
                    steps.add();
                    yield_now();
                }
            });
        }
        let sleeper = begun(forever);
        let seen = steps.clone();
        let idlers: Vec<_> = (0..3)
            .map(|_| {
                let seen = seen.clone();
                spawn(move || {
                    idle();
                    seen.get()
                })
            })
            .collect();
        idle();
        assert_eq!(steps.get(), 100);
        assert!(join_all(idlers).into_iter().all(|idler| idler.unwrap() == 100));
        assert!(!sleeper.is_finished());
        sleeper.kill();
    });
}

#[test]
fn idle_does_not_wait_for_time_threads_or_jobs() {
    within_a_minute(|| {
        let (promise, result) = promise::<()>();
        let waiter = begun(move || result.wait());
        let sleeper = begun(|| sleep(LONG));
        let job = begun(|| common::parks::queue_only().run(|| ()));
        for _ in 0..10 {
            idle();
        }
        assert!(![&waiter, &sleeper, &job].iter().any(|greenlet| greenlet.is_finished()));
        drop(promise);
        greenroom::kill_all([&waiter, &sleeper, &job]);
    });
}

// Time.

#[test]
fn a_sleep_is_never_shorter_and_may_be_fine() {
    within_a_minute(|| {
        let sleeps = || {
            for d in [Duration::from_micros(50), Duration::from_micros(300), Duration::from_micros(999), ms(3)] {
                let start = Instant::now();
                sleep(d);
                assert!(start.elapsed() >= d);
                let t = Instant::now() + d;
                sleep_until(t);
                assert!(Instant::now() >= t);
            }
        };
        sleeps();
        assert!(try_hub().is_none());
        spawn(sleeps).join().unwrap();
        sleeps();
    });
}

#[test]
fn a_loop_of_the_shortest_sleeps_lets_the_others_run() {
    within_a_minute(|| {
        for nanos in [1, 20, 50, 100, 300, 1_000] {
            let sleeper = begun::<()>(move || {
                loop {
                    sleep(Duration::from_nanos(nanos));
                }
            });
            let other = begun(|| (0..10).for_each(|_| yield_now()));
            sleep(ms(1));
            other.join().unwrap();
            sleeper.kill();
            // On main.
            let other = spawn(|| (0..10).for_each(|_| yield_now()));
            while !other.is_finished() {
                sleep(Duration::from_nanos(nanos));
            }
        }
    });
}

#[test]
fn sleepers_wake_in_the_order_of_their_deadlines() {
    within_a_minute(|| {
        let order = Rc::new(RefCell::new(Vec::new()));
        // Late enough for all to be parked by then.
        let base = Instant::now() + ms(1_000);
        for i in 0..100u64 {
            let order = Rc::clone(&order);
            // A stride prime to 100 names each once, in no useful order; every fifth pair shares its deadline.
            let rank = i * 37 % 100;
            spawn(move || {
                sleep_until(base + Duration::from_micros(100 * (rank / 2)));
                order.borrow_mut().push((rank / 2, i));
            });
        }
        assert!(hub().join(None));
        assert_eq!(order.borrow().len(), 100);
        assert!(order.borrow().is_sorted(), "by deadline, then by who came first: {order:?}");
    });
}

#[test]
fn a_sleep_far_beyond_the_clock_does_not_end() {
    within_a_minute(|| {
        for d in [Duration::MAX, Duration::from_secs(u64::MAX / 4), Duration::from_secs(1 << 40), LONG] {
            let sleeper = begun(move || sleep(d));
            sleep(ms(2));
            assert!(!sleeper.is_finished(), "{d:?}");
            sleeper.kill();
        }
    });
}

#[test]
fn late_ones_begin_in_the_order_of_their_times_and_not_before() {
    within_a_minute(|| {
        let trace = Trace::new();
        let start = Instant::now();
        let mut late = Vec::new();
        for (name, after) in [("third", ms(1_500)), ("first", Duration::ZERO), ("second", ms(400))] {
            let trace = trace.clone();
            late.push(spawn_later(after, move || {
                trace.add(name);
                start.elapsed() >= after
            }));
        }
        let never = spawn_later::<_, ()>(Duration::MAX, || unreachable!("its time never comes"));
        assert!(join_all(late).into_iter().all(|late| late.unwrap()));
        assert_eq!(trace.take(), ["first", "second", "third"]);
        assert!(!never.wait_timeout(ms(1)));
        never.kill();
        assert!(never.join().unwrap_err().is_killed());
    });
}

// Joining.

#[test]
fn several_wait_before_and_after_the_end_from_main_and_greenlets() {
    within_a_minute(|| {
        let trace = Trace::new();
        let greenlet = Rc::new(spawn(|| {
            sleep(ms(2));
            "value"
        }));
        let waits = |name: &'static str| {
            let (trace, greenlet) = (trace.clone(), Rc::clone(&greenlet));
            begun(move || {
                greenlet.wait();
                trace.add(name);
                greenlet.is_finished()
            })
        };
        let mut waiters = vec![waits("first"), waits("second"), waits("third")];
        greenlet.wait();
        assert!(greenlet.is_finished());
        trace.add("main");
        assert!(greenlet.wait_timeout(Duration::ZERO));
        waiters.push(waits("after"));
        assert!(join_all(waiters).into_iter().all(|waiter| waiter.unwrap()));
        assert_eq!(trace.take(), ["first", "second", "third", "main", "after"]);
        assert_eq!(join_shared(greenlet).unwrap(), "value");
    });
}

#[test]
fn joining_one_that_has_ended_does_not_park() {
    within_a_minute(|| {
        let ended = begun(|| 7);
        let other = Count::new();
        let ran = other.clone();
        spawn(move || ran.add());
        ended.wait();
        assert!(ended.wait_timeout(LONG));
        assert_eq!(ended.join_timeout(Duration::ZERO).unwrap().unwrap(), 7);
        assert_eq!(other.get(), 0);
    });
}

#[test]
fn joining_for_a_time_gives_the_handle_back() {
    within_a_minute(|| {
        let (promise, result) = promise();
        let mut greenlet = spawn(move || result.get().unwrap());
        for limit in [Duration::ZERO, ms(1), ms(5)] {
            let start = Instant::now();
            assert!(!greenlet.wait_timeout(limit));
            greenlet = greenlet.join_timeout(limit).unwrap_err();
            assert!(start.elapsed() >= 2 * limit);
        }
        promise.set("value");
        let joiner = spawn(move || greenlet.join_timeout(Duration::MAX).unwrap().unwrap());
        assert_eq!(joiner.join().unwrap(), "value");
        assert_eq!(hub().stats().timers, 0);
    });
}

#[test]
fn an_end_in_the_turn_of_the_deadline_counts() {
    within_a_minute(|| {
        let slot = Rc::new(RefCell::new(None));
        let waited = Rc::clone(&slot);
        let waiter = spawn(move || {
            let greenlet: Rc<Greenlet<()>> = waited.take().unwrap();
            greenlet.wait_timeout(ms(2))
        });
        // It begins when the waiter has parked, before the hub looks at the clock again.
        let greenlet = Rc::new(spawn(|| spin(ms(5))));
        *slot.borrow_mut() = Some(Rc::clone(&greenlet));
        assert!(waiter.join().unwrap());
        assert!(greenlet.is_finished());
    });
}

#[test]
fn a_panic_reaches_the_joiner_and_the_others_go_on() {
    within_a_minute(|| {
        let unseen = Count::new();
        let seen = unseen.clone();
        hub().on_error(move |_, _| seen.add());
        let others: Vec<_> = (0..5)
            .map(|i| {
                spawn(move || {
                    sleep(ms(2));
                    i
                })
            })
            .collect();
        let dropped = Count::new();
        let guard = dropped.on_drop();
        let greenlet: Greenlet<()> = spawn(move || {
            let _guard = guard;
            yield_now();
            panic_with("its own")
        });
        let error = greenlet.join().unwrap_err();
        assert!(error.is_panic() && !error.is_killed());
        assert_eq!(error.to_string(), "the greenlet panicked: its own");
        assert!(format!("{error:?}").contains("its own"));
        assert_eq!(text_of(&*error.into_panic()), "its own");
        assert_eq!(dropped.get(), 1);
        assert_eq!(join_all(others).into_iter().map(Result::unwrap).sum::<i32>(), 10);
        assert_eq!(unseen.get(), 0);
    });
}

#[test]
fn a_killed_one_has_no_payload_to_give() {
    within_a_minute(|| {
        let greenlet = begun(forever);
        greenlet.kill();
        let error = greenlet.join().unwrap_err();
        assert_eq!((error.is_killed(), error.is_panic()), (true, false));
        assert_eq!(error.to_string(), "the greenlet was killed");
        let asked = is_ended_early(|| drop(error.into_panic()));
        assert!(asked);
    });
}

#[test]
fn joining_all_gives_the_outcomes_in_order() {
    within_a_minute(|| {
        assert!(join_all(Vec::<Greenlet<()>>::new()).is_empty());
        let all = join_all((0..10u64).map(|i| {
            let greenlet = spawn(move || {
                sleep(ms(10 - i));
                if i == 3 {
                    panic_with("the fourth");
                }
                i
            });
            if i == 5 {
                greenlet.request_kill();
            }
            greenlet
        }));
        for (i, outcome) in all.into_iter().enumerate() {
            match (i, outcome) {
                (3, Err(error)) => assert!(error.is_panic()),
                (5, Err(error)) => assert!(error.is_killed()),
                (_, outcome) => assert_eq!(outcome.unwrap(), i as u64),
            }
        }
    });
}

// Links.

#[test]
fn a_thousand_links_run_once_each_in_order_each_in_a_greenlet() {
    within_a_minute(|| {
        let order = Rc::new(RefCell::new(Vec::new()));
        let greenlet = spawn(|| sleep(ms(1)));
        for i in 0..1_000 {
            let order = Rc::clone(&order);
            greenlet.link(move |outcome| {
                assert!(in_greenlet());
                assert_eq!(*outcome, Outcome::Value);
                order.borrow_mut().push(i);
                sleep(ms(1));
            });
        }
        greenlet.join().unwrap();
        assert!(hub().join(None));
        assert_eq!(*order.borrow(), (0..1_000).collect::<Vec<_>>());
    });
}

#[test]
fn a_link_that_panics_does_not_stop_the_next() {
    within_a_minute(|| {
        let unseen = Count::new();
        let seen = unseen.clone();
        hub().on_error(move |_, payload| {
            assert_eq!(text_of(payload), "of a link");
            seen.add();
        });
        let trace = Trace::new();
        let greenlet = spawn(|| ());
        for i in 0..6 {
            let trace = trace.clone();
            greenlet.link(move |_| {
                trace.add(i.to_string());
                if i % 2 == 0 {
                    panic_with("of a link");
                }
            });
        }
        greenlet.join().unwrap();
        assert!(hub().join(None));
        assert_eq!(trace.take(), ["0", "1", "2", "3", "4", "5"]);
        assert_eq!(unseen.get(), 3);
    });
}

#[test]
fn links_see_how_it_ended_also_when_they_come_late_or_it_is_detached() {
    within_a_minute(|| {
        let seen = Trace::new();
        let link = |greenlet: &Greenlet<()>, when: &'static str| {
            let seen = seen.clone();
            greenlet.link(move |outcome| seen.add(format!("{when}: {outcome:?}")));
        };
        let kinds: [fn() -> Greenlet<()>; 4] = [
            || spawn(|| ()),
            || spawn(|| panic_with("its own")),
            || {
                let greenlet = begun(forever);
                greenlet.request_kill();
                greenlet
            },
            || {
                let greenlet = spawn(|| ());
                greenlet.request_kill();
                greenlet
            },
        ];
        for (kind, outcome) in kinds.into_iter().zip(["Value", "Panicked", "Killed", "Killed"]) {
            let greenlet = kind();
            link(&greenlet, "before");
            greenlet.wait();
            link(&greenlet, "after");
            assert!(seen.take().is_empty(), "a link runs in a greenlet of its own");
            yield_now();
            assert_eq!(seen.take(), [format!("before: {outcome}"), format!("after: {outcome}")]);
            if greenlet.is_finished() {
                let _ = greenlet.join();
            }

            let detached = kind();
            link(&detached, "detached");
            hub().on_error(|_, _| ());
            drop(detached);
            assert!(hub().join(None));
            assert_eq!(seen.take(), [format!("detached: {outcome}")]);
        }
    });
}

#[test]
fn a_link_comes_before_those_that_are_added_by_it() {
    within_a_minute(|| {
        let trace = Trace::new();
        let greenlet = Rc::new(spawn(|| ()));
        let (inside, linked) = (trace.clone(), Rc::clone(&greenlet));
        greenlet.link(move |_| {
            let inner = inside.clone();
            linked.link(move |_| inner.add("third"));
            inside.add("first");
        });
        let inside = trace.clone();
        greenlet.link(move |_| inside.add("second"));
        assert!(hub().join(None));
        assert_eq!(trace.take(), ["first", "second", "third"]);
    });
}

// Big stacks.

/// Recurses `n` deep, some hundred bytes each.
fn depth(n: u64) -> u64 {
    if n == 0 { 0 } else { 1 + std::hint::black_box(depth(n - 1)) }
}

#[test]
fn a_deep_call_runs_on_a_big_stack_everywhere() {
    within_a_minute(|| {
        let deep = || on_big_stack(64 << 20, || depth(100_000));
        assert_eq!(deep(), 100_000);
        assert!(try_hub().is_none());
        assert_eq!(spawn(deep).join().unwrap(), 100_000);
        assert_eq!(deep(), 100_000);
        assert_eq!(hub().threadpool().run(deep), 100_000);
        assert_eq!(hub().stats().stacks_in_use, 0);
    });
}

#[test]
fn on_big_stacks_greenlets_park_and_take_turns() {
    within_a_minute(|| {
        let trace = Trace::new();
        let greenlets: Vec<_> = ["1", "2"]
            .into_iter()
            .map(|name| {
                let trace = trace.clone();
                spawn(move || {
                    on_big_stack(1 << 20, || {
                        trace.add(format!("{name}A"));
                        yield_now();
                        on_big_stack(1 << 20, || {
                            trace.add(format!("{name}B"));
                            yield_now();
                        });
                        trace.add(format!("{name}C"));
                        sleep(ms(1));
                        hub().threadpool().run(|| depth(10))
                    })
                })
            })
            .collect();
        // Main as well.
        on_big_stack(1 << 20, yield_now);
        assert_eq!(trace.take(), ["1A", "2A"]);
        assert!(join_all(greenlets).into_iter().all(|greenlet| greenlet.unwrap() == 10));
        assert_eq!(trace.take(), ["1B", "2B", "1C", "2C"]);
        assert_eq!(hub().stats().stacks_in_use, 0);
    });
}

#[test]
fn a_hub_may_be_made_on_a_big_stack() {
    within_a_minute(|| {
        let sum = on_big_stack(1 << 20, || {
            let greenlets = (0..10).map(|i| {
                spawn(move || {
                    sleep(ms(1));
                    on_big_stack(1 << 20, || i)
                })
            });
            join_all(greenlets).into_iter().map(Result::unwrap).sum::<i32>()
        });
        assert_eq!(sum, 45);
        assert_eq!(spawn(|| on_big_stack(1 << 20, || 7)).join().unwrap(), 7);
    });
}

#[test]
fn panics_and_kills_leave_a_big_stack_with_all_destructors_run() {
    within_a_minute(|| {
        let trace = Trace::new();
        let body = |end: fn()| {
            let trace = trace.clone();
            move || {
                let _outer = trace.on_drop("outer");
                on_big_stack(1 << 20, || {
                    let _middle = trace.on_drop("middle");
                    on_big_stack(2 << 20, || {
                        let slow = trace.clone();
                        let _inner = on_drop(move || {
                            sleep(ms(1));
                            slow.add("inner");
                        });
                        end();
                    });
                });
                trace.add("passed");
            }
        };
        let killed = begun(body(forever));
        killed.kill();
        assert!(killed.join().unwrap_err().is_killed());
        assert_eq!(trace.take(), ["inner", "middle", "outer"]);

        let panicked = spawn(body(|| panic_with("deep down")));
        assert_eq!(text_of(&*panicked.join().unwrap_err().into_panic()), "deep down");
        assert_eq!(trace.take(), ["inner", "middle", "outer"]);

        assert!(timeout(ms(2), body(forever)).is_err());
        assert_eq!(trace.take(), ["inner", "middle", "outer"]);

        let swallowed = begun(|| {
            on_big_stack(1 << 20, || assert!(is_ended_early(forever)));
            on_big_stack(1 << 20, forever);
        });
        swallowed.kill();
        assert!(swallowed.join().unwrap_err().is_killed());
        assert_eq!(hub().stats().stacks_in_use, 0);
    });
}

#[test]
fn a_big_stack_that_the_kernel_refuses_is_a_panic_with_the_reason() {
    within_a_minute(|| {
        for bytes in [usize::MAX, 1 << 60] {
            let refused = move || {
                let result = std::panic::catch_unwind(|| on_big_stack(bytes, || ()));
                let text = text_of(&*result.unwrap_err()).to_owned();
                assert!(text.contains("on_big_stack") && text.contains("bytes"), "{text}");
            };
            refused();
            spawn(refused).join().unwrap();
            refused();
        }
        assert_eq!(on_big_stack(0, || 7), 7);
    });
}

#[test]
fn ids_are_unique_over_all_hubs() {
    within_a_minute(|| {
        let of_a_hub = || thread::spawn(|| (0..10_000).map(|_| spawn(|| ()).id()).collect::<Vec<_>>());
        let threads: Vec<_> = (0..4).map(|_| of_a_hub()).collect();
        let all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(all.iter().collect::<std::collections::HashSet<_>>().len(), 40_000);
    });
}

#[test]
fn a_thread_local_that_ends_its_greenlet_after_the_hub_does_not_wait_for_ever() {
    struct Guard(RefCell<Option<Greenlet<()>>>);
    impl Drop for Guard {
        fn drop(&mut self) {
            let greenlet = self.0.take().unwrap();
            greenlet.kill();
            greenlet.wait();
            assert!(!greenlet.kill_timeout(LONG) && !greenlet.wait_timeout(LONG) && !greenlet.is_finished());
            assert!(is_ended_early(|| drop(greenlet.join())));
        }
    }
    thread_local! {
        static GUARD: Guard = const { Guard(RefCell::new(None)) };
    }
    within_a_minute(|| {
        let thread = thread::spawn(|| {
            // Made before the hub, so dropped after it.
            GUARD.with(|_| ());
            GUARD.with(|guard| guard.0.replace(Some(begun(forever))));
        });
        thread.join().unwrap();
    });
}
