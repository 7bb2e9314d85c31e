//! ThreadPool: jobs that nobody waits for yet. Each result resolves, whatever becomes of its job, its pool, its hub, or the one who
//! spawned it.

mod common;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use common::jobs::*;
use common::places::PLACES;
use common::*;
use greenroom::{
    ApplyError, AsyncResult, TaskError, ThreadPool, hub, join_all, sleep, spawn, timeout, try_hub, wait, yield_now,
};

/// A pool of one thread with room for one job in its queue; the thread is held up by the first job, and the queue is full with
/// the second.
fn full() -> (ThreadPool, Gate) {
    let pool = ThreadPool::builder().max_threads(1).queue_limit(1).build();
    let gate = Gate::new();
    drop(hold(&pool, &gate));
    drop(pool.spawn(|| (), ()));
    (pool, gate)
}

/// A destructor that panics, past the panic hook.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_with("bomb");
    }
}

// What comes back

#[test]
fn a_job_gives_its_value_or_its_panic_wherever_it_is_spawned_and_waited_for() {
    for (what, place) in PLACES {
        within_a_minute(move || {
            let pool = ThreadPool::new(2);
            place(
                what,
                Box::new(move || {
                    let sum = pool.spawn(|a: u8, b: u8, c: u8| a + b + c, (1, 2, 3));
                    let panics = pool.spawn(|| std::panic::resume_unwind(Box::new(7_u8)), ());
                    assert_eq!(sum.get().unwrap(), 6, "{what}");
                    let error: Result<(), TaskError> = panics.get();
                    match error {
                        Err(TaskError::Panicked(payload)) => assert!(payload.is::<u8>(), "{what}"),
                        other => panic!("{what}: {other:?}"),
                    }
                    assert_eq!(pool.spawn(|| "lives on", ()).get().unwrap(), "lives on", "{what}");
                }),
            );
        });
    }
}

#[test]
fn jobs_begin_in_the_order_in_which_they_were_spawned() {
    within_a_minute(|| {
        let (pool, began) = (ThreadPool::new(1), Arc::new(Mutex::new(Vec::new())));
        let jobs: Vec<_> = (0..100)
            .map(|number| {
                let began = Arc::clone(&began);
                pool.spawn(move || began.lock().unwrap().push(number), ())
            })
            .collect();
        assert!(jobs.into_iter().all(|job| job.get().is_ok()));
        assert!(began.lock().unwrap().iter().copied().eq(0..100));
    });
}

#[test]
fn a_time_limit_on_a_long_job_leaves_it_alone() {
    within_a_minute(|| {
        let (pool, gate) = (ThreadPool::new(1), Gate::new());
        let long = hold(&pool, &gate).get_timeout(ms(35)).unwrap_err();
        assert!(!pool.join(Some(ms(1))));
        gate.open();
        assert!(pool.join(None));
        assert!(long.is_ready());
        long.get().unwrap();
    });
}

#[test]
fn a_job_whose_result_nobody_wants_still_runs() {
    within_a_minute(|| {
        let (pool, tokens) = (ThreadPool::new(1), Tokens::new());
        let ran = Arc::new(AtomicUsize::new(0));
        for number in 0..30 {
            let (ran, token) = (Arc::clone(&ran), tokens.make());
            drop(pool.spawn(
                move || {
                    ran.fetch_add(1, SeqCst);
                    if number % 3 == 0 {
                        panic_with("unseen");
                    }
                    token
                },
                (),
            ));
        }
        // The worker drops these.
        drop(pool.spawn(|| Bomb, ()));
        drop(pool.spawn(|| std::panic::resume_unwind(Box::new(Bomb)), ()));
        assert!(pool.join(None));
        assert_eq!((ran.load(SeqCst), pool.stats().completed, pool.stats().threads), (30, 32, 1));
        tokens.expect_none();
    });
}

#[test]
fn results_of_jobs_can_be_waited_for_together() {
    within_a_minute(|| {
        let (pool, gate) = (ThreadPool::new(2), Gate::new());
        let slow = hold(&pool, &gate);
        let fast = pool.spawn(|| (), ());
        assert_eq!(wait(&[&slow, &fast], 1, None), [1]);
        gate.open();
        assert_eq!(wait(&[&slow], 1, None), [0]);
    });
}

// A full queue

#[test]
fn a_full_queue_parks_the_caller_alone_and_lets_them_in_by_turns() {
    within_a_minute(|| {
        let (pool, gate) = full();
        let ran = Arc::new(Mutex::new(Vec::new()));
        let spawners: Vec<_> = (0..50)
            .map(|number| {
                let (pool, ran) = (pool.clone(), Arc::clone(&ran));
                spawn(move || pool.spawn(move || ran.lock().unwrap().push(number), ()))
            })
            .collect();
        for _ in 0..100 {
            yield_now();
        }
        assert!(spawners.iter().all(|spawner| !spawner.is_finished()), "they wait for room");
        assert_eq!(pool.stats().queued, 51);
        gate.open();
        for job in join_all(spawners) {
            job.unwrap().get().unwrap();
        }
        assert!(ran.lock().unwrap().iter().copied().eq(0..50));
    });
}

#[test]
fn a_full_queue_blocks_a_plain_thread_and_makes_no_hub() {
    within_a_minute(|| {
        let (pool, gate) = full();
        let theirs = pool.clone();
        let blocked = thread::spawn(move || {
            let job = theirs.spawn(|| 7, ());
            assert!(try_hub().is_none());
            job.get().unwrap()
        });
        until(&pool, |stats| stats.queued == 2);
        gate.open();
        assert_eq!(blocked.join().unwrap(), 7);
    });
}

#[test]
fn greenlets_go_on_while_main_waits_for_room() {
    within_a_minute(|| {
        let (pool, gate) = full();
        spawn(move || {
            (0..100).for_each(|_| yield_now());
            gate.open();
        });
        assert_eq!(pool.spawn(|| 7, ()).get().unwrap(), 7);
    });
}

#[test]
fn a_kill_or_timeout_takes_back_what_waits_for_room() {
    within_a_minute(|| {
        let (pool, gate) = full();
        let tokens = Tokens::new();
        let spawn_in = {
            let (pool, tokens) = (pool.clone(), tokens.clone());
            move || {
                let token = tokens.make();
                drop(pool.spawn(move || drop(token), ()));
            }
        };
        let killed: Vec<_> = (0..100).map(|_| spawn(spawn_in.clone())).collect();
        yield_now();
        assert_eq!(tokens.alive(), 100);
        killed.iter().for_each(|greenlet| greenlet.kill());
        assert_eq!(tokens.alive(), 0, "dropped at once");
        assert!(join_all(killed).into_iter().all(|ended| ended.unwrap_err().is_killed()));

        assert!(timeout(ms(2), &spawn_in).is_err());
        assert_eq!(tokens.alive(), 0);
        let theirs = spawn_in.clone();
        thread::spawn(move || assert!(timeout(ms(2), theirs).is_err())).join().unwrap();
        assert_eq!(tokens.alive(), 0);

        gate.open();
        assert!(pool.join(None));
        until(&pool, |stats| stats.queued == 0);
        assert_eq!((pool.stats().completed, pool.stats().cancelled), (2, 102));
    });
}

#[test]
fn who_waits_for_room_and_meets_its_kill_gets_in_or_does_not() {
    within_a_minute(|| {
        for round in 0..200 {
            let (pool, gate) = full();
            let tokens = Tokens::new();
            let (token, theirs) = (tokens.make(), pool.clone());
            let spawner = begun(move || drop(theirs.spawn(move || drop(token), ())));
            gate.open();
            if round % 2 == 0 {
                spin(Duration::from_micros(round / 4));
            }
            spawner.kill();
            assert!(pool.join(None));
            until(&pool, |stats| stats.queued == 0);
            assert_eq!(pool.stats().completed + pool.stats().cancelled, 3);
            tokens.expect_none();
        }
    });
}

#[test]
fn a_worker_that_meets_its_own_full_queue_runs_the_job_in_place() {
    within_a_minute(|| {
        let pool = ThreadPool::builder().max_threads(1).queue_limit(1).build();
        let inner = pool.clone();
        let ran = pool.run(move || {
            let here = thread::current().id();
            let queued = inner.spawn(move || (), ());
            assert!(!queued.is_ready());
            let in_place = inner.spawn(move || thread::current().id() == here, ());
            let panics = inner.spawn(|| panic_with("in place"), ());
            assert!(matches!(panics.get(), Err::<(), _>(TaskError::Panicked(_))));
            in_place.get().unwrap()
        });
        assert!(ran);
        assert!(pool.join(None));
        assert_eq!(pool.stats().completed, 2);
    });
}

#[test]
fn jobs_that_wait_for_what_they_spawn_on_their_own_pool_come_to_an_end() {
    fn sum_to(pool: &ThreadPool, n: u64) -> u64 {
        let inner = pool.clone();
        if n == 0 { 0 } else { n + pool.spawn(move || sum_to(&inner, n - 1), ()).get().unwrap() }
    }
    within_a_minute(|| {
        for threads in [1, 2, 3] {
            let pool = ThreadPool::builder().max_threads(threads).queue_limit(3).build();
            let sums = pool.map(|n| sum_to(&pool, n), 0..20);
            assert!(sums.into_iter().eq((0..20).map(|n| n * (n + 1) / 2)));
            let inner = pool.clone();
            let job = pool.spawn(move || sum_to(&inner, 20), ());
            assert_eq!(job.get().unwrap(), 210);
            assert!(pool.join(None));
        }
    });
}

#[test]
fn a_job_that_is_handed_the_result_of_one_behind_it_runs_that() {
    within_a_minute(|| {
        let pool = ThreadPool::new(1);
        let (hand_over, handed) = mpsc::channel::<AsyncResult<u8>>();
        let first = pool.spawn(move || handed.recv().unwrap().get().unwrap(), ());
        hand_over.send(pool.spawn(|| 7, ())).unwrap();
        assert_eq!(first.get().unwrap(), 7);
    });
}

#[test]
fn a_job_that_waits_for_another_pool_leaves_the_work_to_that() {
    within_a_minute(|| {
        let (first, second) = (ThreadPool::new(1), ThreadPool::new(1));
        let there = second.run(|| thread::current().id());
        let ran_by = first.spawn(move || second.spawn(|| thread::current().id(), ()).get().unwrap(), ());
        assert_eq!(ran_by.get().unwrap(), there);
    });
}

#[test]
fn a_timeout_around_a_job_in_place_does_not_end_it() {
    within_a_minute(|| {
        let pool = ThreadPool::builder().max_threads(1).queue_limit(1).build();
        let inner = pool.clone();
        let value = pool.run(move || {
            let _queued = inner.spawn(|| (), ());
            let slow = || {
                sleep(ms(10));
                7
            };
            timeout(ms(1), || inner.spawn(slow, ())).unwrap().get().unwrap()
        });
        assert_eq!(value, 7);
    });
}

// Cancelling

#[test]
fn cancelled_before_it_begins_it_never_runs_and_its_captures_are_dropped_at_once() {
    within_a_minute(|| {
        let (pool, tokens) = (ThreadPool::new(0), Tokens::new());
        let (token, argument) = (tokens.make(), tokens.make());
        let job = pool.spawn(
            move |_argument: Token| {
                let _token = token;
                unreachable!("it never runs")
            },
            (argument,),
        );
        assert_eq!(tokens.alive(), 2);
        assert!(job.cancel());
        assert_eq!(tokens.alive(), 0);
        assert!(job.is_ready() && !job.cancel());
        assert!(matches!(job.get(), Err::<(), _>(TaskError::Cancelled)));
        assert_eq!((pool.stats().queued, pool.stats().cancelled), (1, 0));
        pool.set_max_threads(1);
        assert!(pool.join(None));
        assert_eq!((pool.stats().completed, pool.stats().cancelled), (0, 1));
    });
}

#[test]
fn what_has_begun_can_not_be_cancelled() {
    within_a_minute(|| {
        let (pool, gate) = (ThreadPool::new(1), Gate::new());
        let runs = hold(&pool, &gate);
        assert!(!runs.cancel());
        gate.open();
        runs.wait();
        assert!(!runs.cancel());
        runs.get().unwrap();
    });
}

#[test]
fn a_cancel_wakes_who_waits() {
    within_a_minute(|| {
        let pool = ThreadPool::new(0);
        let job = Rc::new(pool.spawn(|| (), ()));
        let theirs = Rc::clone(&job);
        let waiter = begun(move || theirs.wait());
        assert!(job.cancel());
        waiter.join().unwrap();
    });
}

#[test]
fn a_destructor_that_panics_does_not_break_the_canceller() {
    within_a_minute(|| {
        let told = Rc::new(Cell::new(0));
        let count = Rc::clone(&told);
        hub().on_error(move |_, payload| {
            assert_eq!(text_of(payload), "bomb");
            count.set(count.get() + 1);
        });
        let pool = ThreadPool::new(0);
        let explosive = || {
            let bomb = Bomb;
            pool.spawn(move |_: Bomb| drop(bomb), (Bomb,))
        };
        let job = explosive();
        assert!(job.cancel());
        assert!(matches!(job.get(), Err(TaskError::Cancelled)));
        assert_eq!(told.get(), 2);

        // In the middle of unwinding.
        let job = explosive();
        let greenlet = begun(move || {
            let _cancels = on_drop(move || assert!(job.cancel()));
            forever();
        });
        greenlet.kill();
        assert!(greenlet.join().unwrap_err().is_killed());
        assert_eq!(told.get(), 4);

        // On a shutdown.
        let job = explosive();
        assert!(pool.shutdown(None));
        assert!(matches!(job.get(), Err(TaskError::Cancelled)));
        assert_eq!(told.get(), 6);
        assert!(matches!(explosive().get(), Err(TaskError::Cancelled)));
    });
}

#[test]
fn a_destructor_that_parks_while_its_job_is_cancelled_is_left_to_end() {
    within_a_minute(|| {
        let pool = ThreadPool::new(0);
        let ended = Arc::new(AtomicBool::new(false));
        struct Slow(Arc<AtomicBool>);
        impl Drop for Slow {
            fn drop(&mut self) {
                sleep(ms(10));
                self.0.store(true, SeqCst);
            }
        }
        let slow = Slow(Arc::clone(&ended));
        let job = pool.spawn(move || drop(slow), ());
        assert!(timeout(ms(1), || job.cancel()).unwrap());
        assert!(ended.load(SeqCst));
        // The timeout wasn't lost for others.
        assert!(timeout(ms(1), forever).is_err());
    });
}

#[test]
fn of_a_cancel_and_a_worker_one_has_the_job() {
    within_a_minute(|| {
        let pool = ThreadPool::new(2);
        let (tokens, ran) = (Tokens::new(), Arc::new(AtomicUsize::new(0)));
        let mut cancelled = 0;
        for _ in 0..2_000 {
            let (token, count) = (tokens.make(), Arc::clone(&ran));
            let job = pool.spawn(
                move || {
                    drop(token);
                    count.fetch_add(1, SeqCst);
                },
                (),
            );
            let was_cancelled = job.cancel();
            cancelled += usize::from(was_cancelled);
            assert_eq!(matches!(job.get(), Err(TaskError::Cancelled)), was_cancelled);
        }
        assert!(pool.join(None));
        assert_eq!(ran.load(SeqCst) + cancelled, 2_000);
        assert_eq!(pool.stats().cancelled, cancelled as u64);
        tokens.expect_none();
    });
}

// Waiting for the pool

#[test]
fn join_parks_the_caller_alone_until_nothing_is_queued_or_runs() {
    for (what, place) in PLACES {
        within_a_minute(move || {
            let (pool, gate) = (ThreadPool::new(1), Gate::new());
            place(
                what,
                Box::new(move || {
                    assert!(pool.join(None), "{what}: never used");
                    drop(hold(&pool, &gate));
                    let last = pool.spawn(|| (), ());
                    assert!(!pool.join(Some(ms(0))), "{what}");
                    assert!(!pool.join(Some(ms(2))), "{what}");
                    assert!(timeout(ms(2), || pool.join(None)).is_err(), "{what}");
                    thread::spawn(move || {
                        thread::sleep(ms(2));
                        gate.open();
                    });
                    assert!(pool.join(Some(LONG)), "{what}");
                    assert!(last.is_ready() && pool.stats().running == 0, "{what}");
                }),
            );
        });
    }
}

#[test]
fn a_job_can_not_wait_for_its_own_pool() {
    within_a_minute(|| {
        let pool = ThreadPool::new(2);
        let inner = pool.clone();
        let answers = pool.run(move || [inner.join(None), inner.join(Some(LONG)), inner.shutdown(None)]);
        assert_eq!(answers, [false; 3]);
        assert!(pool.shutdown(None), "the job was the last");
        assert!(matches!(pool.try_apply(|| (), ()), Err(ApplyError::ShutDown)));
    });
}

#[test]
fn shutdown_cancels_what_is_queued_and_waits_for_what_runs_up_to_the_limit() {
    for (what, place) in PLACES {
        within_a_minute(move || {
            let (pool, gate, tokens) = (ThreadPool::new(2), Gate::new(), Tokens::new());
            let held = [hold(&pool, &gate), hold(&pool, &gate)];
            let token = tokens.make();
            let queued = pool.spawn(move || drop(token), ());
            place(
                what,
                Box::new(move || {
                    assert!(!pool.shutdown(Some(ms(2))), "{what}");
                    assert!(matches!(queued.get(), Err(TaskError::Cancelled)), "{what}");
                    assert_eq!((tokens.alive(), pool.stats().running), (0, 2), "{what}");
                    assert!(matches!(pool.try_apply(|| (), ()), Err(ApplyError::ShutDown)), "{what}");
                    assert!(matches!(pool.spawn(|| (), ()).get(), Err(TaskError::Cancelled)), "{what}");
                    thread::spawn(move || {
                        thread::sleep(ms(2));
                        gate.open();
                    });
                    assert!(pool.shutdown(None), "{what}");
                    assert_eq!(pool.stats().threads, 0, "{what}");
                    assert!(pool.shutdown(Some(ms(0))) && pool.join(None), "{what}: again");
                    assert!(held.into_iter().all(|job| job.get().is_ok()), "{what}");
                }),
            );
        });
    }
}

#[test]
fn shutdown_of_an_idle_pool_sends_its_threads_home() {
    within_a_minute(|| {
        for threads in [1, 2, 5, 20] {
            let pool = ThreadPool::new(threads);
            let barrier = Arc::new(std::sync::Barrier::new(threads));
            let jobs: Vec<_> = (0..threads)
                .map(|_| {
                    let barrier = Arc::clone(&barrier);
                    pool.spawn(move || barrier.wait(), ())
                })
                .collect();
            assert!(jobs.into_iter().all(|job| job.get().is_ok()));
            assert_eq!(pool.stats().threads, threads);
            assert!(pool.shutdown(None));
            assert_eq!(pool.stats().threads, 0);
        }
    });
}

#[test]
fn those_that_wait_for_room_are_told_of_the_shutdown() {
    within_a_minute(|| {
        let (pool, gate) = full();
        let tokens = Tokens::new();
        let spawners: Vec<_> = (0..10)
            .map(|_| {
                let (pool, token) = (pool.clone(), tokens.make());
                begun(move || pool.spawn(move || drop(token), ()))
            })
            .collect();
        assert!(!pool.shutdown(Some(ms(0))));
        for job in join_all(spawners) {
            assert!(matches!(job.unwrap().get(), Err(TaskError::Cancelled)));
        }
        tokens.expect_none();
        gate.open();
        assert!(pool.shutdown(None));
        assert_eq!((pool.stats().completed, pool.stats().cancelled), (1, 11));
    });
}

#[test]
fn several_wait_for_the_end_of_one_pool() {
    within_a_minute(|| {
        let (pool, gate) = (ThreadPool::new(2), Gate::new());
        drop(hold(&pool, &gate));
        let waits: Vec<_> = (0..20)
            .map(|number| {
                let pool = pool.clone();
                begun(move || if number % 2 == 0 { pool.join(None) } else { pool.shutdown(None) })
            })
            .collect();
        waits[3].kill();
        waits[4].kill();
        gate.open();
        let ended = join_all(waits);
        assert_eq!(ended.iter().filter(|ended| matches!(ended, Ok(true))).count(), 18);
    });
}

// More and fewer threads

#[test]
fn more_threads_start_what_waits_and_fewer_leave() {
    within_a_minute(|| {
        let (pool, gate) = (ThreadPool::new(1), Gate::new());
        let jobs: Vec<_> = (0..4)
            .map(|_| {
                let gate = gate.clone();
                pool.spawn(move || gate.wait(), ())
            })
            .collect();
        until(&pool, |stats| stats.running == 1 && stats.queued == 3);
        pool.set_max_threads(3);
        assert_eq!(pool.max_threads(), 3);
        until(&pool, |stats| stats.running == 3 && stats.queued == 1);
        pool.set_max_threads(2);
        gate.open();
        jobs.into_iter().for_each(|job| job.get().unwrap());
        until(&pool, |stats| stats.threads == 2 && stats.idle == 2);
        pool.set_max_threads(0);
        until(&pool, |stats| stats.threads == 0);

        let waits = pool.spawn(|| 7, ());
        let waits = waits.get_timeout(ms(2)).unwrap_err();
        assert_eq!(pool.stats().queued, 1);
        pool.set_max_threads(1);
        assert_eq!(waits.get().unwrap(), 7);
    });
}

#[test]
fn a_pool_shrunk_to_nothing_with_its_queue_full_serves_all_when_it_grows() {
    within_a_minute(|| {
        let (pool, gate) = full();
        let spawners: Vec<_> = (0..5)
            .map(|number| {
                let pool = pool.clone();
                begun(move || pool.spawn(move || number, ()))
            })
            .collect();
        pool.set_max_threads(0);
        gate.open();
        until(&pool, |stats| stats.threads == 0);
        assert!(spawners.iter().all(|spawner| !spawner.is_finished()));
        pool.set_max_threads(1);
        let numbers: Vec<_> = join_all(spawners).into_iter().map(|job| job.unwrap().get().unwrap()).collect();
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
    });
}

#[test]
fn idle_threads_leave_after_a_while_and_the_next_job_starts_one() {
    within_a_minute(|| {
        let pool = ThreadPool::builder().max_threads(2).keep_alive(ms(5)).name("short").build();
        let name = || thread::current().name().map(str::to_owned);
        assert_eq!(pool.spawn(name, ()).get().unwrap().as_deref(), Some("short-1"));
        until(&pool, |stats| stats.threads == 0);
        assert_eq!(pool.spawn(name, ()).get().unwrap().as_deref(), Some("short-2"));
    });
}

// Who ends first

#[test]
fn a_hub_that_ends_first_leaves_its_jobs_to_the_pool() {
    within_a_minute(|| {
        for shuts_down in [true, false] {
            let (pool, gate) = full();
            let tokens = Tokens::new();
            let theirs = (pool.clone(), tokens.make(), tokens.make());
            thread::spawn(move || {
                let (pool, waits, held) = theirs;
                // Its own result, and one that is parked in line for room.
                begun({
                    let pool = pool.clone();
                    move || drop(pool.spawn(move || drop(waits), ()))
                });
                begun(move || {
                    let _ = pool.spawn(move || drop(held), ()).get();
                });
                if shuts_down {
                    hub().shutdown();
                }
            })
            .join()
            .unwrap();
            gate.open();
            assert!(pool.join(None));
            until(&pool, |stats| stats.queued == 0);
            assert_eq!(pool.stats().completed + pool.stats().cancelled, 4);
            tokens.expect_none();
        }
    });
}

#[test]
fn a_result_outlives_its_pool() {
    within_a_minute(|| {
        let (pool, gate) = (ThreadPool::new(1), Gate::new());
        let (runs, queued) = (hold(&pool, &gate), pool.spawn(|| 7, ()));
        drop(pool);
        gate.open();
        runs.get().unwrap();
        assert_eq!(queued.get().unwrap(), 7);
    });
}

#[test]
fn a_pool_without_threads_takes_its_jobs_with_it() {
    within_a_minute(|| {
        let tokens = Tokens::new();
        let token = tokens.make();
        let job = ThreadPool::new(0).spawn(move || drop(token), ());
        assert!(matches!(job.get(), Err(TaskError::Cancelled)));
        assert_eq!(tokens.alive(), 0);
    });
}

#[test]
fn a_job_may_hold_its_own_pool_and_be_the_last_to_do_so() {
    within_a_minute(|| {
        let pool = ThreadPool::new(1);
        let inner = pool.clone();
        let again = pool.spawn(move || inner.spawn(|| 7, ()), ());
        drop(pool);
        assert_eq!(again.get().unwrap().get().unwrap(), 7);
    });
}

// Lanes

#[test]
fn a_lane_of_its_own_is_not_held_up_by_slow_jobs() {
    within_a_minute(|| {
        let lookups = ThreadPool::builder().max_threads(1).name("lookup").build();
        let (slow, gate) = (hub().threadpool(), Gate::new());
        let jobs: Vec<_> = (0..50)
            .map(|_| {
                let gate = gate.clone();
                slow.spawn(move || gate.wait(), ())
            })
            .collect();
        until(&slow, |stats| stats.running == 10);
        // They would wait for ever in the pool of the slow ones, whose gate opens afterwards.
        for number in 0..100 {
            assert_eq!(lookups.spawn(move || number, ()).get().unwrap(), number);
        }
        assert_eq!(slow.stats().running, 10);
        gate.open();
        assert!(jobs.into_iter().all(|job| job.get().is_ok()));
    });
}
