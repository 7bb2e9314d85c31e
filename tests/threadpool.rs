//! ThreadPool: `apply` and its kin give what the job gave, the pool's numbers tell the truth, and nested calls end.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any};
use std::rc::Rc;
use std::sync::{Arc, Barrier, mpsc};
use std::thread::{self, ThreadId};
use std::time::Duration;

use greenroom::{
    ApplyError, ThreadPool, hub, in_greenlet, join_all, offload, sleep, spawn, timeout, try_hub, yield_now,
};
use greenroom_pool::{Pool, PoolStats};

/// Runs `test` on a thread of its own, and so with a hub of its own if it makes one. It has a minute.
fn watched(test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        let _done = done;
        test();
    });
    let timed_out = is_done.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout);
    assert!(!timed_out, "not done after a minute");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

/// Parks until the pool's numbers are as wanted.
fn until(pool: &ThreadPool, wanted: impl Fn(&PoolStats) -> bool) {
    while !wanted(&pool.stats()) {
        sleep(Duration::from_micros(100));
    }
}

fn here() -> ThreadId {
    thread::current().id()
}

fn caught<T>(f: impl FnOnce() -> T) -> Box<dyn std::any::Any + Send> {
    catch_unwind(AssertUnwindSafe(f)).err().expect("it panics")
}

// What comes back

#[test]
fn apply_gives_the_value_of_a_call_on_another_thread() {
    watched(|| {
        let pool = ThreadPool::new(1);
        assert_ne!(pool.run(here), here());
        assert_eq!(pool.apply(|a: u8, b: &str| format!("{a}{b}"), (1, "b")), "1b");
        assert_eq!(spawn(move || pool.apply(str::len, ("four",))).join().unwrap(), 4);
    });
}

#[test]
fn a_job_takes_up_to_eight_arguments() {
    watched(|| {
        let pool = ThreadPool::new(1);
        assert_eq!(pool.apply(|| 0, ()), 0);
        assert_eq!(pool.apply(|a: u32| a, (1,)), 1);
        assert_eq!(pool.apply(|a: u32, b: u32| a + b, (1, 2)), 3);
        assert_eq!(pool.apply(|a: u32, b: u32, c: u32| a + b + c, (1, 2, 4)), 7);
        assert_eq!(pool.apply(|a: u32, b: u32, c: u32, d: u32| a + b + c + d, (1, 2, 4, 8)), 15);
        assert_eq!(pool.apply(|a: u32, b: u32, c: u32, d: u32, e: u32| a + b + c + d + e, (1, 2, 4, 8, 16)), 31);
        let six = |a: u32, b: u32, c: u32, d: u32, e: u32, f: u32| a + b + c + d + e + f;
        assert_eq!(pool.apply(six, (1, 2, 4, 8, 16, 32)), 63);
        let seven = |a: u32, b: u32, c: u32, d: u32, e: u32, f: u32, g: u32| a + b + c + d + e + f + g;
        assert_eq!(pool.apply(seven, (1, 2, 4, 8, 16, 32, 64)), 127);
        let eight = |a: u32, b: u32, c: u32, d: u32, e: u32, f: u32, g: u32, h: u32| a + b + c + d + e + f + g + h;
        assert_eq!(pool.apply(eight, (1, 2, 4, 8, 16, 32, 64, 128)), 255);
    });
}

#[test]
fn a_panic_comes_back_with_its_payload_and_the_worker_lives_on() {
    watched(|| {
        let pool = ThreadPool::new(1);
        let worker = pool.run(here);
        let seven = std::hint::black_box(7);
        let text = caught(|| pool.run(|| panic!("job {seven}")));
        assert_eq!(text.downcast_ref::<String>().unwrap(), "job 7");
        let number = caught(|| pool.run(|| panic_any(7_u8)));
        assert_eq!(number.downcast_ref::<u8>(), Some(&7));
        assert_eq!(pool.run(here), worker);
        until(&pool, |stats| stats.completed == 4);
        assert_eq!(pool.stats().threads, 1);
    });
}

#[test]
fn a_panic_of_a_job_is_its_greenlets_panic() {
    watched(|| {
        let pool = ThreadPool::new(1);
        let error = spawn(move || pool.run(|| panic_any("in the job"))).join().unwrap_err();
        assert_eq!(error.into_panic().downcast_ref::<&str>(), Some(&"in the job"));
    });
}

#[test]
fn try_apply_gives_errors_in_place_of_panics() {
    watched(|| {
        let handle = Pool::builder().max_threads(1).queue_limit(1).build();
        let pool = ThreadPool::from(handle.clone());
        assert_eq!(pool.try_apply(|| 7, ()).unwrap(), 7);
        match pool.try_apply(|| panic_any(7_u8), ()) {
            Err(ApplyError::Panicked(payload)) => assert_eq!(payload.downcast_ref::<u8>(), Some(&7)),
            other => panic!("{other:?}"),
        }

        let (open, gate) = mpsc::channel::<()>();
        let held = spawn({
            let pool = pool.clone();
            move || pool.run(move || gate.recv().unwrap())
        });
        until(&pool, |stats| stats.running == 1 && stats.queued == 0);
        let queued = spawn({
            let pool = pool.clone();
            move || pool.run(|| ())
        });
        until(&pool, |stats| stats.queued == 1);
        let full = pool.try_apply(|| unreachable!(), ());
        assert!(matches!(full, Err(ApplyError::QueueFull)), "{full:?}");
        open.send(()).unwrap();
        held.join().unwrap();
        queued.join().unwrap();

        handle.shutdown(None);
        let late = pool.try_apply(|| unreachable!(), ());
        assert!(matches!(late, Err(ApplyError::ShutDown)), "{late:?}");
        let text = caught(|| pool.run(|| unreachable!()));
        assert!(text.downcast_ref::<String>().unwrap().contains("shut down"), "{text:?}");
    });
}

#[test]
fn try_apply_on_a_worker_gives_its_panic_as_an_error_too() {
    watched(|| {
        let pool = ThreadPool::new(1);
        let inner = pool.clone();
        let error = pool.run(move || inner.try_apply(|| panic_any(7_u8), ()).unwrap_err());
        assert!(matches!(error, ApplyError::Panicked(payload) if payload.is::<u8>()));
    });
}

#[test]
fn try_apply_on_a_worker_leaves_a_timeout_to_the_one_who_set_it() {
    watched(|| {
        let pool = ThreadPool::new(1);
        let inner = pool.clone();
        let elapsed = pool.run(move || {
            let sleeps = || inner.try_apply(|| sleep(Duration::MAX), ());
            timeout(Duration::from_millis(1), sleeps).is_err()
        });
        assert!(elapsed);
    });
}

// Numbers and order

#[test]
fn three_jobs_on_one_thread_run_in_order_and_the_numbers_tell_the_truth() {
    watched(|| {
        let pool = ThreadPool::new(1);
        let trace = Rc::new(RefCell::new(Vec::new()));
        let (gates, greenlets): (Vec<_>, Vec<_>) = (0..3)
            .map(|number| {
                let (open, gate) = mpsc::channel::<()>();
                let (pool, trace) = (pool.clone(), Rc::clone(&trace));
                let greenlet = spawn(move || {
                    let number = pool.run(move || {
                        gate.recv().unwrap();
                        number
                    });
                    trace.borrow_mut().push(number);
                });
                (open, greenlet)
            })
            .unzip();
        for (step, open) in gates.iter().enumerate() {
            until(&pool, |stats| stats.running == 1 && stats.queued == 2 - step);
            let stats = pool.stats();
            assert_eq!((stats.threads, stats.idle, stats.completed), (1, 0, step as u64));
            open.send(()).unwrap();
            until(&pool, |stats| stats.completed == step as u64 + 1);
        }
        join_all(greenlets).into_iter().for_each(|ended| ended.unwrap());
        until(&pool, |stats| stats.running == 0);
        assert_eq!(*trace.borrow(), [0, 1, 2]);
        assert_eq!((pool.stats().queued, pool.stats().idle, pool.stats().cancelled), (0, 1, 0));
    });
}

#[test]
fn threads_start_when_jobs_need_them_and_not_before() {
    watched(|| {
        let pool = ThreadPool::new(4);
        assert_eq!((pool.stats().threads, pool.stats().max_threads, pool.max_threads()), (0, 4, 4));
        for _ in 0..20 {
            pool.run(|| ());
            until(&pool, |stats| stats.idle == stats.threads);
        }
        assert_eq!(pool.stats().threads, 1, "one job at a time needs one");

        // Four that wait for each other need four; the rest queue.
        let barrier = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| pool.run(|| barrier.wait()));
            }
        });
        assert_eq!(pool.stats().threads, 4);
    });
}

#[test]
fn ten_jobs_at_once_on_ten_threads_by_default() {
    watched(|| {
        let pool = hub().threadpool();
        assert_eq!(pool.max_threads(), 10);
        let barrier = Arc::new(Barrier::new(10));
        let meet = || {
            let (pool, barrier) = (pool.clone(), Arc::clone(&barrier));
            spawn(move || pool.run(|| barrier.wait().is_leader()))
        };
        let met = join_all((0..10).map(|_| meet()));
        assert_eq!(met.into_iter().filter(|leads| *leads.as_ref().unwrap()).count(), 1);
    });
}

#[test]
fn a_pool_of_no_threads_queues_and_a_kill_takes_the_job_back() {
    watched(|| {
        let pool = ThreadPool::new(0);
        let greenlet = spawn({
            let pool = pool.clone();
            move || pool.run(|| unreachable!())
        });
        yield_now();
        assert_eq!((pool.stats().threads, pool.stats().queued), (0, 1));
        greenlet.kill();
        assert!(greenlet.join().unwrap_err().is_killed());
    });
}

// Greenlets go on

#[test]
fn while_a_job_runs_greenlets_go_on() {
    watched(|| {
        let (open, gate) = mpsc::channel::<()>();
        let job = spawn(move || hub().threadpool().run(move || gate.recv().unwrap()));
        // It is the greenlets who end the job: if they stood still, so would everything.
        let turns = Rc::new(Cell::new(0));
        let counters: Vec<_> = (0..10)
            .map(|_| {
                let turns = Rc::clone(&turns);
                spawn(move || {
                    for _ in 0..1_000 {
                        turns.set(turns.get() + 1);
                        yield_now();
                    }
                })
            })
            .collect();
        join_all(counters).into_iter().for_each(|ended| ended.unwrap());
        assert_eq!(turns.get(), 10_000);
        assert!(!job.is_finished());
        open.send(()).unwrap();
        job.join().unwrap();
    });
}

#[test]
fn main_runs_greenlets_while_its_own_job_runs() {
    watched(|| {
        let (open, gate) = mpsc::channel::<()>();
        spawn(move || {
            sleep(Duration::from_millis(1));
            open.send(()).unwrap();
        });
        hub().threadpool().run(move || gate.recv().unwrap());
    });
}

// Nested calls

#[test]
fn a_job_that_uses_its_own_pool_runs_in_place_however_deep() {
    fn deeper(pool: &ThreadPool, depth: u32) -> (u32, ThreadId) {
        match depth {
            0 => (0, here()),
            _ => {
                let (below, thread) = pool.apply(deeper, (pool, depth - 1));
                assert_eq!(thread, here());
                (below + 1, thread)
            }
        }
    }
    watched(|| {
        let pool = ThreadPool::new(1);
        let (depth, thread) = pool.run(|| deeper(&pool, 50));
        assert_eq!(depth, 50);
        assert_ne!(thread, here());
        assert_eq!(pool.stats().threads, 1);
    });
}

#[test]
fn a_full_pool_whose_every_job_uses_it_comes_to_an_end() {
    watched(|| {
        let pool = ThreadPool::new(2);
        let nested = |number| {
            let pool = pool.clone();
            spawn(move || pool.run(|| pool.run(|| pool.run(|| number * 2))))
        };
        let doubled = join_all((0..50).map(nested));
        assert!(doubled.into_iter().map(Result::unwrap).eq((0..50).map(|number| number * 2)));
    });
}

#[test]
fn a_job_that_uses_another_pool_goes_there() {
    watched(|| {
        let (first, second) = (ThreadPool::new(1), ThreadPool::new(1));
        let (outer, inner) = first.run(|| (here(), second.run(here)));
        assert!(outer != inner && inner != here());
        assert_eq!(inner, second.run(here));
    });
}

// Which pool

#[test]
fn a_view_of_a_pool_is_that_pool() {
    watched(|| {
        let handle = Pool::builder().max_threads(1).name("lane").build();
        let pool = ThreadPool::from(handle.clone());
        let clone = pool.clone();
        assert_eq!(pool.run(|| thread::current().name().map(str::to_owned)).as_deref(), Some("lane-1"));
        assert_eq!(pool.run(here), clone.run(here));
        until(&pool, |stats| stats.completed == 3);
        assert_eq!(handle.stats().completed, 3);
    });
}

#[test]
fn a_hub_takes_another_pool_and_jobs_under_way_stay_where_they_are() {
    watched(|| {
        let (before, after) = (hub().threadpool(), ThreadPool::new(1));
        let (open, gate) = mpsc::channel::<()>();
        let under_way = spawn(move || hub().threadpool().run(move || gate.recv().map(|()| here()).unwrap()));
        until(&before, |stats| stats.running == 1);
        hub().set_threadpool(after.clone());
        assert_eq!(hub().threadpool().max_threads(), 1);
        let there = after.run(here);
        assert_eq!(spawn(|| offload(here, ())).join().unwrap(), there);
        open.send(()).unwrap();
        assert_ne!(under_way.join().unwrap(), there);
    });
}

#[test]
fn hubs_share_a_pool() {
    watched(|| {
        let pool = ThreadPool::new(2);
        let hubs: Vec<_> = (0..4)
            .map(|_| {
                let pool = pool.clone();
                thread::spawn(move || {
                    hub().set_threadpool(pool);
                    let sums = join_all((0..100).map(|n: u64| spawn(move || offload(|n| n + 1, (n,)))));
                    sums.into_iter().map(Result::unwrap).sum::<u64>()
                })
            })
            .collect();
        for hub in hubs {
            assert_eq!(hub.join().unwrap(), 5050);
        }
        assert!(pool.stats().threads <= 2);
        until(&pool, |stats| stats.completed == 400);
    });
}

#[test]
fn a_pool_may_be_held_anywhere() {
    fn held_anywhere<T: Send + Sync + Clone + std::fmt::Debug + 'static>() {}
    held_anywhere::<ThreadPool>();
}

// offload

#[test]
fn offload_goes_to_the_pool_from_a_greenlet_and_from_main_with_a_hub() {
    watched(|| {
        hub().set_threadpool(ThreadPool::new(1));
        let worker = hub().threadpool().run(here);
        assert_eq!(offload(here, ()), worker);
        assert_eq!(spawn(|| offload(here, ())).join().unwrap(), worker);
        assert!(!spawn(|| offload(in_greenlet, ())).join().unwrap());
    });
}

#[test]
fn offload_is_a_plain_call_elsewhere_and_makes_no_hub() {
    watched(|| {
        assert_eq!(offload(here, ()), here());
        assert!(try_hub().is_none(), "a plain thread stays one");
        let (worker, offloaded, has_hub) = ThreadPool::new(1).run(|| (here(), offload(here, ()), try_hub().is_some()));
        assert_eq!(worker, offloaded);
        assert!(!has_hub, "so does a worker");
        assert!(try_hub().is_none(), "and apply itself makes none");
    });
}

#[test]
fn offload_borrows_and_hands_panics_on_wherever_it_is() {
    fn check() {
        let words = [String::from("a"), String::from("b")];
        assert_eq!(offload(|words: &[String]| words.concat(), (&words[..],)), "ab");
        assert_eq!(caught(|| offload(|| panic_any(7_u8), ())).downcast_ref::<u8>(), Some(&7));
    }
    watched(|| {
        check();
        ThreadPool::new(1).run(check);
        spawn(check).join().unwrap();
        check();
    });
}
