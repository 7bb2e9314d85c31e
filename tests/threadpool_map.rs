//! ThreadPool: the same call for many items, all at once (`map`) or read one by one (`imap`).

mod common;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use common::jobs::*;
use common::places::PLACES;
use common::*;
use greenroom::threadpool::{IMap, IMapUnordered};
use greenroom::{TaskError, ThreadPool, hub, sleep, spawn, timeout, try_hub, yield_now};
use proptest::prelude::*;

/// The payload of a panic.
fn caught<T>(f: impl FnOnce() -> T) -> Box<dyn std::any::Any + Send> {
    catch_unwind(AssertUnwindSafe(f)).err().expect("it panics")
}

/// Panics with a number, past the panic hook.
fn panic_at(number: usize) -> ! {
    resume_unwind(Box::new(number))
}

// map

#[test]
fn map_gives_the_results_in_order_wherever_it_is_called() {
    for (what, place) in PLACES {
        within_a_minute(move || {
            place(
                what,
                Box::new(move || {
                    for threads in [1, 2, 3, 10] {
                        let pool = ThreadPool::new(threads);
                        let squares = pool.map(|n| n * n, 0..100);
                        assert!(squares.into_iter().eq((0..100).map(|n| n * n)), "{what}, {threads} threads");
                        assert!(pool.map(|n: u8| n, []).is_empty(), "{what}");
                    }
                }),
            );
        });
    }
}

#[test]
fn map_borrows_from_its_caller() {
    within_a_minute(|| {
        let pool = ThreadPool::new(2);
        let words = [String::from("green"), String::from("room")];
        let suffix = String::from("!");
        let longer: Vec<String> = pool.map(|word| format!("{word}{suffix}"), &words);
        assert_eq!(longer, ["green!", "room!"]);
        let slices: Vec<&str> = pool.map(|word: &String| &word[1..], &words);
        assert_eq!(slices, ["reen", "oom"]);
        let mut numbers = [1, 2, 3];
        pool.map(|number: &mut i32| *number *= 2, &mut numbers);
        assert_eq!(numbers, [2, 4, 6]);
    });
}

#[test]
fn map_uses_all_threads_at_once() {
    within_a_minute(|| {
        for threads in [1, 2, 5] {
            // Each waits for as many as there are threads.
            let (pool, barrier) = (ThreadPool::new(threads), Barrier::new(threads));
            pool.map(|_| barrier.wait().is_leader(), 0..20 * threads);
            assert_eq!(pool.stats().threads, threads);
        }
    });
}

#[test]
fn map_takes_its_items_a_bounded_number_ahead_of_the_threads() {
    within_a_minute(|| {
        let pool = ThreadPool::builder().max_threads(3).queue_limit(2).build();
        let (taken, done) = (Cell::new(0), AtomicUsize::new(0));
        let items = (0..200).inspect(|_| {
            taken.set(taken.get() + 1);
            assert!(taken.get() <= done.load(SeqCst) + 6, "{} taken, {done:?} done", taken.get());
        });
        pool.map(|_| done.fetch_add(1, SeqCst), items);
        assert_eq!(taken.get(), 200);
    });
}

#[test]
fn greenlets_go_on_while_one_maps() {
    within_a_minute(|| {
        let (open, gate) = mpsc::channel::<()>();
        let gate = Mutex::new(gate);
        let mapper = begun(move || hub().threadpool().map(|_| gate.lock().unwrap().recv().unwrap(), 0..50));
        // It is the greenlets who let it go on.
        for _ in 0..50 {
            spawn(yield_now).join().unwrap();
            open.send(()).unwrap();
        }
        assert_eq!(mapper.join().unwrap().len(), 50);
    });
}

#[test]
fn map_in_a_job_of_the_same_pool_is_a_loop_in_place() {
    within_a_minute(|| {
        let pool = ThreadPool::builder().max_threads(1).queue_limit(1).build();
        let (here, threads) = pool.run(|| (thread::current().id(), pool.map(|_| thread::current().id(), 0..10)));
        assert_eq!(threads, [here; 10]);
        let sums = pool.map(|n: u64| pool.map(|m| n * m, 0..10).into_iter().sum::<u64>(), 0..10);
        assert!(sums.into_iter().eq((0..10).map(|n| 45 * n)));
    });
}

#[test]
fn map_on_a_pool_of_no_threads_waits_for_one() {
    within_a_minute(|| {
        let pool = ThreadPool::new(0);
        let theirs = pool.clone();
        let mapper = begun(move || theirs.map(|n: i32| n + 1, 0..10));
        assert_eq!(pool.stats().queued, 1);
        pool.set_max_threads(2);
        assert_eq!(mapper.join().unwrap(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    });
}

#[test]
fn a_panic_ends_map_with_the_payload_of_the_lowest_position() {
    within_a_minute(|| {
        let (pool, tokens) = (ThreadPool::new(2), Tokens::new());
        let (taken, ran, both) = (Cell::new(0), AtomicUsize::new(0), Barrier::new(2));
        let items = (0..1_000).map(|number| {
            taken.set(taken.get() + 1);
            (number, tokens.make())
        });
        let payload = caught(|| {
            pool.map(
                |(number, token)| {
                    let results = (token, tokens.make());
                    ran.fetch_add(1, SeqCst);
                    if number == 10 || number == 11 {
                        both.wait(); // both run
                        panic_at(number);
                    }
                    results
                },
                items,
            )
        });
        assert_eq!(payload.downcast_ref::<usize>(), Some(&10));
        assert!(taken.get() < 20, "{} taken", taken.get());
        assert_eq!(tokens.alive(), 0, "all have ended, and all was dropped");
        let ran_by_then = ran.load(SeqCst);
        assert_eq!(pool.map(|n| n, 0..3), [0, 1, 2], "the pool lives on");
        assert_eq!(ran.load(SeqCst), ran_by_then, "what was queued was taken back");
    });
}

#[test]
fn a_panic_of_the_iterator_waits_for_what_runs() {
    within_a_minute(|| {
        let (pool, tokens) = (ThreadPool::new(2), Tokens::new());
        let items = (0..).map(|number| if number == 3 { panic_at(number) } else { tokens.make() });
        let running = AtomicUsize::new(0);
        let work = |token: Token| {
            running.fetch_add(1, SeqCst);
            thread::sleep(ms(5));
            running.fetch_sub(1, SeqCst);
            token
        };
        let payload = caught(|| pool.map(work, items));
        assert_eq!(payload.downcast_ref::<usize>(), Some(&3));
        assert_eq!((running.load(SeqCst), tokens.alive()), (0, 0));
    });
}

#[test]
fn a_kill_or_timeout_takes_back_what_is_queued_and_waits_for_what_runs() {
    within_a_minute(|| {
        for round in 0..100_u64 {
            let pool = ThreadPool::builder().max_threads(2).queue_limit(1 + round as usize % 3).build();
            let (tokens, running) = (Tokens::new(), Arc::new(AtomicUsize::new(0)));
            let (theirs, made, runs) = (pool.clone(), tokens.clone(), Arc::clone(&running));
            let map = move || {
                let frame = [7_u8; 256];
                let items = (0..).map(|_| made.make());
                theirs.map(
                    |token| {
                        runs.fetch_add(1, SeqCst);
                        thread::sleep(Duration::from_micros(200));
                        assert_eq!(frame, [7; 256]);
                        runs.fetch_sub(1, SeqCst);
                        token
                    },
                    items,
                );
            };
            let wait = Duration::from_micros(round * 17 % 900);
            if round % 2 == 0 {
                let mapper = begun(map);
                sleep(wait);
                mapper.kill();
                assert!(mapper.join().unwrap_err().is_killed());
            } else {
                assert!(timeout(wait, map).is_err());
            }
            assert_eq!((running.load(SeqCst), tokens.alive()), (0, 0));
            assert!(pool.join(None));
        }
    });
}

#[test]
fn the_iterator_may_park_and_be_killed_there() {
    within_a_minute(|| {
        let pool = ThreadPool::new(1);
        let sleepy = (0..5).inspect(|_| sleep(ms(1)));
        assert_eq!(pool.map(|n| n, sleepy), [0, 1, 2, 3, 4]);
        let stuck = (0..5).inspect(|n| {
            if *n == 2 {
                forever()
            }
        });
        assert!(timeout(ms(5), || pool.map(|n| n, stuck)).is_err());
        let theirs = pool.clone();
        let killed = begun(move || {
            theirs.map(
                |n: i32| n,
                (0..).inspect(|n| {
                    if *n == 2 {
                        forever()
                    }
                }),
            )
        });
        killed.kill();
        assert!(killed.join().unwrap_err().is_killed());
        assert!(timeout(ms(5), forever).is_err(), "timeouts still work");
    });
}

#[test]
fn map_on_a_pool_that_is_shut_down_panics_and_says_so() {
    within_a_minute(|| {
        for runs in [true, false] {
            let (pool, gate, tokens) = (ThreadPool::new(usize::from(runs)), Gate::new(), Tokens::new());
            let (theirs, held, made) = (pool.clone(), gate.clone(), tokens.clone());
            let mapper = begun(move || {
                theirs.map(
                    |token| {
                        held.wait();
                        token
                    },
                    (0..10).map(|_| made.make()),
                )
            });
            until(&pool, |stats| stats.running == usize::from(runs));
            assert_eq!(pool.shutdown(Some(ms(0))), !runs);
            gate.open();
            let payload = mapper.join().unwrap_err().into_panic();
            assert!(text_of(&*payload).contains("shut down"), "{}", text_of(&*payload));
            assert_eq!(tokens.alive(), 0);
            assert!(text_of(&*caught(|| pool.map(|n| n, [1]))).contains("shut down"));
            assert!(pool.map(|n: i32| n, []).is_empty(), "nothing to do");
        }
    });
}

#[test]
fn a_hub_that_ends_in_the_middle_of_map_does_no_harm() {
    within_a_minute(|| {
        for shuts_down in [true, false] {
            let (pool, tokens) = (ThreadPool::new(2), Tokens::new());
            let theirs = (pool.clone(), tokens.clone());
            thread::spawn(move || {
                let (pool, tokens) = theirs;
                begun(move || {
                    let work = |token| {
                        thread::sleep(ms(1));
                        token
                    };
                    pool.map(work, (0..1_000).map(|_| tokens.make()))
                });
                sleep(ms(3));
                if shuts_down {
                    hub().shutdown();
                }
            })
            .join()
            .unwrap();
            assert!(pool.join(None));
            assert!(!shuts_down || tokens.alive() == 0);
            assert_eq!(pool.map(|n| n, 0..3), [0, 1, 2]);
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever the pool and the items: as a plain loop, but for what comes after a panic.
    #[test]
    fn map_is_a_plain_loop(threads in 1..5_usize, limit in 1..4_usize, items in prop::collection::vec(0..40_usize, 0..40)) {
        let pool = ThreadPool::builder().max_threads(threads).queue_limit(limit).build();
        let work = |item: usize| if item == 0 { panic_at(item) } else { item * 2 };
        let plain = catch_unwind(|| items.iter().copied().map(work).collect::<Vec<_>>());
        let mapped = catch_unwind(AssertUnwindSafe(|| pool.map(work, items.iter().copied())));
        prop_assert_eq!(mapped.as_ref().ok(), plain.as_ref().ok());
        prop_assert!(pool.join(None));
    }

    /// The same results from `imap` in order, and in any order from `imap_unordered`.
    #[test]
    fn imap_gives_a_result_for_each_item(
        threads in 1..5_usize,
        limit in 1..4_usize,
        ahead in 1..10_usize,
        items in prop::collection::vec(0..40_usize, 0..40),
    ) {
        let pool = ThreadPool::builder().max_threads(threads).queue_limit(limit).build();
        let work = |item: usize| if item < 3 { panic_at(item) } else { item * 2 };
        let number = |result: Result<usize, TaskError>| match result {
            Ok(value) => value,
            Err(TaskError::Panicked(payload)) => 1_000 + *payload.downcast::<usize>().unwrap(),
            Err(other) => panic!("{other}"),
        };
        let mut plain: Vec<_> = items.iter().map(|&item| if item < 3 { 1_000 + item } else { item * 2 }).collect();
        let ordered: Vec<_> = pool.imap(work, items.clone(), ahead).map(number).collect();
        prop_assert_eq!(&ordered, &plain);
        let mut unordered: Vec<_> = pool.imap_unordered(work, items, ahead).map(number).collect();
        plain.sort();
        unordered.sort();
        prop_assert_eq!(unordered, plain);
    }
}

// imap

#[test]
fn imap_works_everywhere_and_makes_no_hub() {
    for (what, place) in PLACES {
        within_a_minute(move || {
            let pool = ThreadPool::new(2);
            place(
                what,
                Box::new(move || {
                    for ahead in [1, 2, 7, 1_000] {
                        let had_hub = try_hub().is_some();
                        let squares: Vec<u64> = pool.imap(|n| n * n, 0..50, ahead).map(Result::unwrap).collect();
                        assert!(squares.into_iter().eq((0..50).map(|n| n * n)), "{what}, {ahead} ahead");
                        let sum: u64 = pool.imap_unordered(|n| n, 0..50, ahead).map(Result::unwrap).sum();
                        assert_eq!(sum, 1_225, "{what}, {ahead} ahead");
                        assert_eq!(try_hub().is_some(), had_hub);
                    }
                    assert!(pool.imap(|n: u8| n, [], 3).next().is_none());
                    assert!(pool.imap_unordered(|n: u8| n, [], 3).next().is_none());
                }),
            );
        });
    }
}

/// Both kinds of `imap`, read by a slow reader.
fn read_slowly(
    ahead: usize,
    start: impl FnOnce(ThreadPool, Box<dyn Iterator<Item = u32>>) -> Box<dyn Iterator<Item = u32>>,
) {
    let (pool, taken) = (ThreadPool::new(3), Rc::new(Cell::new(0)));
    let count = Rc::clone(&taken);
    let items = (0..100).inspect(move |_| count.set(count.get() + 1));
    let mut results = start(pool.clone(), Box::new(items));
    assert_eq!(taken.get(), ahead, "before the first read");
    for read in 0..100 {
        assert!(pool.join(None));
        assert!(taken.get() <= read + ahead, "{} taken, {read} read", taken.get());
        results.next().unwrap();
    }
    assert!(results.next().is_none() && results.next().is_none());
    assert_eq!(taken.get(), 100);
}

#[test]
fn with_a_slow_reader_no_more_than_ahead_are_unread() {
    within_a_minute(|| {
        for ahead in [1, 2, 5, 50] {
            read_slowly(ahead, |pool, items| Box::new(pool.imap(|n| n, items, ahead).map(Result::unwrap)));
            read_slowly(ahead, |pool, items| Box::new(pool.imap_unordered(|n| n, items, ahead).map(Result::unwrap)));
        }
    });
}

#[test]
fn unordered_gives_them_as_they_finish() {
    within_a_minute(|| {
        let pool = ThreadPool::new(3);
        let gates = [Gate::new(), Gate::new(), Gate::new()];
        let wait_for = gates.clone();
        let wait = move |at: usize| {
            wait_for[at].wait();
            at
        };
        let mut results = pool.imap_unordered(wait, 0..3, 3).map(Result::unwrap);
        for at in [1, 2, 0] {
            gates[at].open();
            assert_eq!(results.next(), Some(at));
        }
        assert_eq!(results.next(), None);

        // One after the other, in their order.
        let one_by_one: Vec<_> = pool.imap_unordered(|n| n, 0..10, 1).map(Result::unwrap).collect();
        assert!(one_by_one.into_iter().eq(0..10));
    });
}

#[test]
fn an_item_that_panics_is_an_error_in_its_place_and_the_others_come() {
    within_a_minute(|| {
        let pool = ThreadPool::new(2);
        let work = |number: usize| if number == 2 { panic_at(number) } else { number };
        let results: Vec<_> = pool.imap(work, 0..5, 3).collect();
        let values: Vec<_> = results.iter().map(|result| result.as_ref().ok().copied()).collect();
        assert_eq!(values, [Some(0), Some(1), None, Some(3), Some(4)]);
        assert!(matches!(&results[2], Err(TaskError::Panicked(payload)) if payload.is::<usize>()));
        let unordered = pool.imap_unordered(work, 0..5, 3);
        assert_eq!(unordered.filter(|result| result.is_ok()).count(), 4);
    });
}

#[test]
fn none_ahead_is_refused_with_advice() {
    within_a_minute(|| {
        let pool = ThreadPool::new(1);
        for payload in
            [caught(|| pool.imap(|n| n, [1], 0).next()), caught(|| pool.imap_unordered(|n| n, [1], 0).next())]
        {
            assert!(text_of(&*payload).contains("ahead = 0") && text_of(&*payload).contains('1'));
        }
    });
}

#[test]
fn a_panic_of_the_iterator_reaches_the_reader_after_what_came_before_it() {
    within_a_minute(|| {
        let pool = ThreadPool::new(2);
        let items = || (0..).map(|number| if number == 3 { panic_at(number) } else { number });
        let mut results = pool.imap(|n| n, items(), 10);
        for number in 0..3 {
            assert_eq!(results.next().unwrap().unwrap(), number);
        }
        assert_eq!(caught(|| results.next()).downcast_ref::<usize>(), Some(&3));
        assert!(results.next().is_none(), "once");

        let mut results = pool.imap_unordered(|n| n, items(), 10);
        assert_eq!(results.by_ref().take(3).map(Result::unwrap).sum::<usize>(), 3);
        assert_eq!(caught(|| results.next()).downcast_ref::<usize>(), Some(&3));
        assert!(results.next().is_none());
    });
}

#[test]
fn dropping_it_cancels_what_is_queued() {
    within_a_minute(|| {
        for unordered in [false, true] {
            let (pool, gate, tokens) = (ThreadPool::new(1), Gate::new(), Tokens::new());
            let (held, made, ran) = (gate.clone(), tokens.clone(), Arc::new(AtomicUsize::new(0)));
            let count = Arc::clone(&ran);
            let work = move |token: Token| {
                count.fetch_add(1, SeqCst);
                held.wait();
                token
            };
            let items = (0..100).map(move |_| made.make());
            let results: Box<dyn std::any::Any> = match unordered {
                false => Box::new(pool.imap(work, items, 10)),
                true => Box::new(pool.imap_unordered(work, items, 10)),
            };
            until(&pool, |stats| stats.running == 1);
            assert_eq!(tokens.alive(), 10);
            drop(results);
            assert_eq!(tokens.alive(), 1, "the one that runs");
            gate.open();
            assert!(pool.join(None));
            assert_eq!((ran.load(SeqCst), pool.stats().cancelled), (1, 9));
            tokens.expect_none();
        }
    });
}

#[test]
fn a_timeout_around_next_loses_nothing() {
    within_a_minute(|| {
        let (pool, gate) = (ThreadPool::new(1), Gate::new());
        let held = gate.clone();
        let wait = move |number: u32| {
            held.wait();
            number
        };
        let mut ordered = pool.imap(wait.clone(), 0..5, 2);
        let mut unordered = pool.imap_unordered(wait, 0..5, 2);
        assert!(timeout(ms(2), || ordered.next()).is_err());
        assert!(timeout(ms(2), || unordered.next()).is_err());
        gate.open();
        assert!(ordered.map(Result::unwrap).eq(0..5));
        assert_eq!(unordered.map(Result::unwrap).sum::<u32>(), 10);
    });
}

#[test]
fn a_killed_reader_leaves_nothing() {
    within_a_minute(|| {
        let (pool, tokens) = (ThreadPool::new(2), Tokens::new());
        for round in 0..100 {
            let (theirs, made) = (pool.clone(), tokens.clone());
            let reader = begun(move || {
                let work = |token| {
                    thread::sleep(Duration::from_micros(100));
                    token
                };
                let items = (0..).map(move |_| made.make());
                match round % 2 {
                    0 => theirs.imap(work, items, 4).for_each(drop),
                    _ => theirs.imap_unordered(work, items, 4).for_each(drop),
                }
            });
            sleep(Duration::from_micros(round * 13 % 700));
            reader.kill();
            assert!(reader.join().unwrap_err().is_killed());
        }
        assert!(pool.join(None));
        tokens.expect_none();
    });
}

#[test]
fn a_pool_that_is_shut_down_cancels_what_is_to_come() {
    within_a_minute(|| {
        let (pool, gate) = (ThreadPool::new(1), Gate::new());
        let held = gate.clone();
        let mut results = pool.imap(move |number: u32| (held.wait(), number).1, 0..5, 3);
        until(&pool, |stats| stats.running == 1);
        assert!(!pool.shutdown(Some(ms(0))));
        gate.open();
        assert_eq!(results.next().unwrap().unwrap(), 0);
        assert!(results.all(|result| matches!(result, Err(TaskError::Cancelled))));
    });
}

#[test]
fn imap_in_a_job_of_the_same_pool_runs_in_place() {
    within_a_minute(|| {
        let pool = ThreadPool::builder().max_threads(1).queue_limit(1).build();
        let inner = pool.clone();
        let in_place = pool.run(move || {
            let here = thread::current().id();
            let (began, ordered) = (Rc::new(Cell::new(0)), inner.clone());
            let count = Rc::clone(&began);
            let items = (0..5).inspect(move |_| count.set(count.get() + 1));
            let mut results = ordered.imap(move |_| thread::current().id() == here, items, 3);
            assert_eq!(began.get(), 0, "it waits for its reader");
            assert!(results.next().unwrap().unwrap());
            assert_eq!(began.get(), 1);
            let all_here = results.all(Result::unwrap);
            let unordered = inner.imap_unordered(move |_| thread::current().id() == here, 0..5, 3);
            all_here && unordered.map(Result::unwrap).filter(|here| *here).count() == 5
        });
        assert!(in_place);
    });
}

#[test]
fn the_iterator_of_imap_stays_on_the_readers_thread() {
    within_a_minute(|| {
        let pool = ThreadPool::new(2);
        let here = thread::current().id();
        let trace = Rc::new(RefCell::new(Vec::new()));
        let ids = Rc::clone(&trace);
        let items = (0..10).inspect(move |_| ids.borrow_mut().push(thread::current().id()));
        assert_eq!(pool.imap(|n| n, items, 3).map(Result::unwrap).sum::<i32>(), 45);
        assert!(trace.borrow().iter().all(|id| *id == here));
    });
}

#[test]
fn they_tell_what_they_are() {
    fn debug<T: std::fmt::Debug>(value: T) -> String {
        format!("{value:?}")
    }
    let pool = ThreadPool::new(0);
    let (ordered, unordered): (IMap<u8>, IMapUnordered<u8>) =
        (pool.imap(|n| n, [1], 1), pool.imap_unordered(|n| n, [1], 1));
    assert!(debug(ordered).contains("unread: 1") && debug(unordered).contains("unread: 1"));
}
