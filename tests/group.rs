//! Groups and pools of greenlets.

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use common::{Count, LONG, Trace, begun, forever, is_ended_early, ms, on_drop, panic_with, text_of, within_a_minute};
use greenroom::group::{Group, Pool};
use greenroom::queue::Queue;
use greenroom::{hub, join_all, sleep, spawn, timeout, yield_now};

/// What runs at once, and how much did at most.
#[derive(Clone, Default)]
struct Gauge(Rc<Cell<(usize, usize)>>);

impl Gauge {
    fn work(&self) {
        let (now, most) = self.0.get();
        self.0.set((now + 1, most.max(now + 1)));
        yield_now();
        let (now, most) = self.0.get();
        self.0.set((now - 1, most));
    }

    fn most(&self) -> usize {
        self.0.get().1
    }
}

/// A group without a limit and pools of several sizes.
fn groups() -> Vec<Group> {
    let mut groups: Vec<Group> = [1, 2, 3, 10].map(|limit| (*Pool::new(limit)).clone()).into();
    groups.push(Group::new());
    groups
}

#[test]
fn a_group_counts_its_members_until_they_end_however() {
    within_a_minute(|| {
        let group = Group::new();
        let (value, panics, killed) =
            (group.spawn(|| 7), group.spawn(|| panic_with("part of the test")), group.spawn(forever));
        let unborn = group.spawn(forever);
        unborn.request_kill();
        assert_eq!(group.len(), 4);
        yield_now();
        yield_now();
        assert_eq!(group.len(), 1);
        killed.kill();
        assert!(group.is_empty() && group.join(None));
        assert_eq!(value.join().unwrap(), 7);
        assert!(panics.join().unwrap_err().is_panic());
        assert!(format!("{group:?}").contains("len: 0"));
    });
}

#[test]
fn join_says_whether_it_became_empty() {
    within_a_minute(|| {
        let group = Group::new();
        assert!(group.join(Some(Duration::ZERO)));
        group.spawn(|| sleep(ms(20)));
        assert!(!group.join(Some(ms(1))) && !group.join(Some(Duration::ZERO)));
        let joiners: Vec<_> = (0..3)
            .map(|_| {
                let group = group.clone();
                begun(move || group.join(Some(LONG)))
            })
            .collect();
        assert!(group.join(Some(Duration::MAX)));
        assert!(join_all(joiners).into_iter().all(Result::unwrap));
        assert!(
            timeout(ms(1), || {
                group.spawn(forever);
                group.join(None)
            })
            .is_err()
        );
    });
}

#[test]
fn kill_ends_all_members_and_those_they_spawn_while_dying() {
    within_a_minute(|| {
        let group = Group::new();
        let (dropped, ran) = (Count::new(), Count::new());
        for _ in 0..10 {
            let (group, dropped, ran) = (group.clone(), dropped.clone(), ran.clone());
            group.clone().spawn(move || {
                let _spawns = on_drop(move || {
                    yield_now();
                    let ran = ran.clone();
                    group.spawn(move || ran.add());
                    group.spawn(forever);
                    dropped.add();
                });
                forever();
            });
        }
        yield_now();
        group.kill();
        assert!(group.is_empty());
        assert_eq!((dropped.get(), ran.get()), (10, 0));
        // It can be used again.
        assert_eq!(group.spawn(|| 7).join().unwrap(), 7);
        group.kill();
    });
}

#[test]
fn a_member_that_kills_its_group_dies_last() {
    within_a_minute(|| {
        let (group, trace) = (Group::new(), Trace::new());
        let noted = trace.on_drop("other");
        group.spawn(move || {
            let _noted = noted;
            forever();
        });
        let (own, noted) = (group.clone(), trace.on_drop("killer"));
        let killer = group.spawn(move || {
            let _noted = noted;
            own.kill();
            unreachable!("it is one of them");
        });
        assert!(killer.join().unwrap_err().is_killed());
        assert_eq!(trace.take(), ["other", "killer"]);
        assert!(group.is_empty());
    });
}

#[test]
fn two_members_kill_their_group_at_once() {
    within_a_minute(|| {
        let group = Group::new();
        for _ in 0..2 {
            let own = group.clone();
            group.spawn(move || own.kill());
        }
        assert!(group.join(None));
    });
}

#[test]
fn the_third_spawn_in_a_pool_of_two_parks_until_one_ends() {
    within_a_minute(|| {
        let pool = Pool::new(2);
        let trace = Trace::new();
        let spawner = {
            let (pool, trace) = (pool.clone(), trace.clone());
            begun(move || {
                for number in 0..3 {
                    pool.spawn(forever);
                    trace.add(number.to_string());
                }
            })
        };
        yield_now();
        assert_eq!((trace.take(), pool.len(), pool.free_count()), (vec!["0".to_owned(), "1".to_owned()], 2, 0));
        pool.kill();
        spawner.wait();
        assert_eq!(trace.take(), ["2"]);
        pool.kill();
        assert_eq!(pool.free_count(), 2);
    });
}

#[test]
fn a_pool_of_one_with_a_sleeper_refuses() {
    within_a_minute(|| {
        let pool = Pool::new(1);
        pool.spawn(forever);
        let refused = pool.try_spawn(|| 5).unwrap_err();
        assert!(refused.to_string().contains("1 members") && format!("{refused:?}").contains("Full"));
        assert_eq!(refused.into_inner()(), 5);
        assert!(pool.spawn_timeout(ms(1), || ()).is_err());
        assert!(pool.spawn_timeout(Duration::ZERO, || ()).is_err());
        assert!(timeout(ms(1), || pool.spawn(|| ())).is_err());
        assert!(timeout(ms(1), || pool.spawn_timeout(LONG, || ())).is_err());
        assert_eq!((pool.len(), pool.free_count()), (1, 0));
        pool.kill();
        assert!(pool.spawn_timeout(Duration::ZERO, || ()).is_ok());
        assert!(format!("{pool:?}").contains("limit: 1"));
    });
}

#[test]
fn a_slot_comes_back_on_every_path() {
    within_a_minute(|| {
        let pool = Pool::new(1);
        for _ in 0..10 {
            let unborn = pool.spawn(forever);
            unborn.kill();
            pool.spawn(|| panic_with("part of the test")).wait();
            let parked = pool.spawn(forever);
            // One waits for the slot, and is killed before it gets it, or at the moment it gets it.
            let waiting = {
                let pool = pool.clone();
                begun(move || {
                    pool.spawn(|| ());
                    forever();
                })
            };
            waiting.kill();
            let waiting = {
                let pool = pool.clone();
                begun(move || pool.spawn(forever).wait())
            };
            parked.kill();
            waiting.request_kill();
            waiting.wait();
            pool.kill();
            assert_eq!((pool.len(), pool.free_count()), (0, 1));
        }
    });
}

#[test]
fn a_pool_of_none_parks_every_spawn() {
    within_a_minute(|| {
        let pool = Pool::new(0);
        assert!(timeout(ms(5), || pool.spawn(|| ())).is_err());
        assert!(pool.try_spawn(|| ()).is_err());
    });
}

#[test]
fn those_who_wait_for_a_slot_get_it_in_their_order() {
    within_a_minute(|| {
        let (pool, trace) = (Pool::new(1), Trace::new());
        let first = pool.spawn(forever);
        let waiting: Vec<_> = (0..5)
            .map(|number| {
                let (pool, trace) = (pool.clone(), trace.clone());
                begun(move || pool.spawn(move || trace.add(number.to_string())).wait())
            })
            .collect();
        first.kill();
        join_all(waiting);
        assert_eq!(trace.take(), ["0", "1", "2", "3", "4"]);
    });
}

#[test]
fn apply_runs_in_a_member_and_in_place_if_called_by_one() {
    within_a_minute(|| {
        let pool = Pool::new(1);
        let own = pool.clone();
        let nested = pool.apply(
            move |number: u32| {
                assert_eq!(own.len(), 1);
                own.apply(|number: u32| number * 2, (number,))
            },
            (21,),
        );
        assert_eq!(nested, 42);
        let failed = std::panic::catch_unwind(|| Pool::new(1).apply(|| panic_with("part of the test"), ()));
        assert_eq!(text_of(&*failed.unwrap_err()), "part of the test");
        let (group, ended) = (Group::new(), Count::new());
        let noted = ended.on_drop();
        assert!(
            timeout(ms(1), || {
                group.apply(
                    move || {
                        let _noted = noted;
                        forever();
                    },
                    (),
                );
            })
            .is_err()
        );
        assert!(group.join(None));
        assert_eq!(ended.get(), 1);
    });
}

#[test]
fn maps_give_squares_with_every_size() {
    within_a_minute(|| {
        let squares: Vec<u32> = (0..100).map(|number| number * number).collect();
        for group in groups() {
            let square = |number: u32| {
                if number.is_multiple_of(7) {
                    sleep(Duration::from_micros(u64::from(number)));
                }
                number * number
            };
            assert_eq!(group.map(square, 0..100), squares);
            assert_eq!(group.map(square, 0..0), []);
            for ahead in [1, 3, 1000] {
                let mut in_order = group.imap(square, 0..100, ahead);
                assert_eq!(in_order.by_ref().map(Result::unwrap).collect::<Vec<_>>(), squares);
                assert!(in_order.next().is_none());
                let mut any: Vec<_> = group.imap_unordered(square, 0..100, ahead).map(Result::unwrap).collect();
                any.sort_unstable();
                assert_eq!(any, squares);
                assert!(group.imap(square, 0..0, ahead).next().is_none());
                assert!(group.imap_unordered(square, 0..0, ahead).next().is_none());
            }
            assert!(group.is_empty());
        }
        assert!(hub().join(None));
    });
}

#[test]
fn no_more_run_than_the_pool_and_ahead_allow() {
    within_a_minute(|| {
        for (limit, ahead, most) in [(3, 100, 3), (100, 3, 3), (1, 1, 1)] {
            let (pool, gauge) = (Pool::new(limit), Gauge::default());
            let of_all = gauge.clone();
            assert_eq!(pool.imap_unordered(move |_| of_all.work(), 0..50, ahead).count(), 50);
            assert_eq!(gauge.most(), most);
            let gauge = Gauge::default();
            let of_all = gauge.clone();
            pool.map(move |_| of_all.work(), 0..50);
            assert_eq!(gauge.most(), limit.min(50));
        }
    });
}

#[test]
fn items_are_taken_no_further_ahead_than_allowed() {
    within_a_minute(|| {
        for ordered in [true, false] {
            let taken = Rc::new(Cell::new(0));
            let items = {
                let taken = Rc::clone(&taken);
                (0..).inspect(move |_| taken.set(taken.get() + 1))
            };
            let group = Group::new();
            let mut results: Box<dyn Iterator<Item = _>> = if ordered {
                Box::new(group.imap(|number: u32| number, items, 5))
            } else {
                Box::new(group.imap_unordered(|number: u32| number, items, 5))
            };
            for read in 0..20 {
                sleep(Duration::from_micros(50));
                assert_eq!(taken.get(), read + 5);
                results.next().unwrap().unwrap();
            }
        }
    });
}

#[test]
fn unordered_results_come_as_they_finish() {
    within_a_minute(|| {
        let nap = |milliseconds: u64| {
            sleep(ms(milliseconds));
            milliseconds
        };
        let naps =
            |limit| Pool::new(limit).imap_unordered(nap, [100, 1, 30], 3).map(Result::unwrap).collect::<Vec<_>>();
        assert_eq!(naps(3), [1, 30, 100]);
        assert_eq!(naps(1), [100, 1, 30]);
    });
}

#[test]
fn an_item_that_panics_is_an_error_at_its_position() {
    within_a_minute(|| {
        let fragile = |number: u32| if number == 3 { panic_with("three") } else { number };
        let group = Group::new();
        let results: Vec<_> = group.imap(fragile, 0..6, 2).collect();
        assert_eq!(results.len(), 6);
        for (number, result) in (0..).zip(results) {
            match result {
                Ok(value) => assert_eq!(value, number),
                Err(error) => assert_eq!((number, text_of(&*error.into_panic())), (3, "three")),
            }
        }
        let failed = group.imap_unordered(fragile, 0..6, 2).filter(Result::is_err).count();
        assert_eq!(failed, 1);
        // `map` has no place for it.
        let ended = Count::new();
        let count = ended.clone();
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let slow = move |number: u32| {
                let _ended = count.on_drop();
                if number > 3 {
                    forever();
                }
                fragile(number)
            };
            group.map(slow, 0..6)
        }));
        assert_eq!(text_of(&*failed.unwrap_err()), "three");
        assert!(group.join(None), "the others were killed");
        assert_eq!(ended.get(), 6);
    });
}

#[test]
fn items_that_panic_come_out_of_next_after_what_was_before() {
    within_a_minute(|| {
        for ordered in [true, false] {
            let items = (0..).inspect(|&number| {
                if number == 3 {
                    panic_with("no more")
                }
            });
            let group = Group::new();
            let mut results: Box<dyn Iterator<Item = _>> = if ordered {
                Box::new(group.imap(|number: u32| number, items, 10))
            } else {
                Box::new(group.imap_unordered(|number: u32| number, items, 10))
            };
            for number in 0..3 {
                assert_eq!(results.next().unwrap().unwrap(), number);
            }
            let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| results.next().is_none()));
            assert_eq!(text_of(&*panic.unwrap_err()), "no more");
            assert!(results.next().is_none());
        }
    });
}

#[test]
fn items_may_come_from_a_queue() {
    within_a_minute(|| {
        let queue = Queue::unbounded();
        let mut results = Group::new().imap(|number: u32| number + 1, queue.clone(), 10);
        for number in 0..10 {
            queue.put(number).unwrap();
            assert_eq!(results.next().unwrap().unwrap(), number + 1);
        }
        queue.close();
        assert!(results.next().is_none());
    });
}

#[test]
fn a_kill_stops_the_feeders_and_their_readers_see_the_end() {
    within_a_minute(|| {
        for ordered in [true, false] {
            for group in groups() {
                let taken = Rc::new(Cell::new(0));
                let count = Rc::clone(&taken);
                let items = (0..1000).inspect(move |_| count.set(count.get() + 1));
                let reader = {
                    let group = group.clone();
                    begun(move || {
                        let stuck = |_| forever();
                        if ordered {
                            group.imap(stuck, items, 7).map(|result| assert!(result.unwrap_err().is_killed())).count()
                        } else {
                            group.imap_unordered(stuck, items, 7).filter(Result::is_err).count()
                        }
                    })
                };
                sleep(ms(1));
                group.kill();
                assert!(reader.join().unwrap() <= 7);
                assert!(taken.get() <= 7 && group.is_empty());
            }
        }
        assert!(hub().join(None));
    });
}

#[test]
fn an_iterator_that_is_dropped_kills_what_it_started() {
    within_a_minute(|| {
        for ordered in [true, false] {
            let (group, ended) = (Group::new(), Count::new());
            let count = ended.clone();
            let stuck = move |number: u32| {
                let _ended = count.on_drop();
                if number > 0 {
                    forever();
                }
            };
            if ordered {
                group.imap(stuck, 0.., 4).next().unwrap().unwrap();
            } else {
                group.imap_unordered(stuck, 0.., 4).next().unwrap().unwrap();
            }
            assert!(hub().join(None));
            assert!(ended.get() >= 1 && ended.get() <= 5);
        }
    });
}

#[test]
fn a_reader_that_is_killed_or_timed_out_takes_its_members_along() {
    within_a_minute(|| {
        for kind in 0..3 {
            let group = Group::new();
            let ended = timeout(ms(2), || match kind {
                0 => drop(group.map(|_| forever(), 0..5)),
                1 => drop(group.imap(|_| forever(), 0.., 5).next()),
                _ => drop(group.imap_unordered(|_| forever(), 0.., 5).next()),
            });
            assert!(ended.is_err());
            assert!(hub().join(None) && group.is_empty());
        }
    });
}

#[test]
fn a_member_that_is_killed_in_a_map_is_named() {
    within_a_minute(|| {
        let group = Group::new();
        let killer = {
            let group = group.clone();
            spawn(move || {
                yield_now();
                group.kill();
            })
        };
        let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            group.map(
                |number| {
                    if number == 2 {
                        forever()
                    }
                },
                0..4,
            );
        }));
        has(text_of(&*failed.unwrap_err()), "item 2 was killed");
        killer.wait();
    });
}

fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{text:?} has no {part:?}");
}

#[test]
fn ahead_of_none_is_refused_by_name() {
    let refused = is_ended_early(|| drop(Group::new().imap(|(): ()| (), [], 0)));
    assert!(refused);
    assert!(is_ended_early(|| drop(Group::new().imap_unordered(|(): ()| (), [], 0))));
}

#[test]
fn a_shutdown_ends_everything() {
    within_a_minute(|| {
        let pool = Pool::new(2);
        let outcome = Rc::new(RefCell::new(None));
        let theirs = Rc::clone(&outcome);
        let own = pool.clone();
        spawn(move || {
            let results: Vec<_> = own.imap(|_| forever(), 0..10, 5).collect();
            *theirs.borrow_mut() = Some(results.len());
        });
        let own = pool.clone();
        spawn(move || own.spawn(forever).wait());
        sleep(ms(1));
        hub().shutdown();
        assert!(pool.is_empty());
        assert_eq!(pool.free_count(), 2);
        assert!(outcome.borrow().is_none());
        assert!(is_ended_early(|| drop(pool.spawn(|| ()))));
        assert_eq!(pool.free_count(), 2);
    });
}

#[test]
fn a_full_pool_whose_hub_does_not_exist_yet_makes_it_first() {
    std::thread::spawn(|| {
        let pool = Pool::new(0);
        assert!(pool.spawn_timeout(ms(1), || ()).is_err());
        assert!(greenroom::try_hub().is_some());
    })
    .join()
    .unwrap();
}

#[test]
fn a_timeout_around_next_loses_no_item() {
    within_a_minute(|| {
        for ahead in [1, 3] {
            let group = Group::new();
            let nap = |n: u32| {
                sleep(ms(if n.is_multiple_of(2) { 8 } else { 1 }));
                n
            };
            let mut items = group.imap(nap, 0..10, ahead);
            let mut read = Vec::new();
            let mut timeouts = 0;
            while read.len() < 10 {
                match timeout(ms(2), || items.next()) {
                    Ok(item) => read.push(item.unwrap().unwrap()),
                    Err(_) => timeouts += 1,
                }
            }
            assert!(read.into_iter().eq(0..10));
            assert!(timeouts > 0 && items.next().is_none());
        }
        // What the reader waited for dies with the iterator.
        let group = Group::new();
        let mut items = group.imap(|_| forever(), 0..3, 1);
        assert!(timeout(ms(2), || items.next()).is_err());
        assert_eq!(group.len(), 1);
        drop(items);
        assert!(group.join(Some(LONG)));
    });
}

#[test]
fn map_that_panics_drops_values_whose_destructors_panic() {
    within_a_minute(|| {
        let value = |n: u32| {
            if n == 0 {
                sleep(ms(5));
                panic_with("the item's");
            }
            on_drop(|| panic_with("the value's"))
        };
        let payload =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(Group::new().map(value, 0..3)))).unwrap_err();
        assert_eq!(text_of(&*payload), "the item's");
    });
}
