//! Every kind of park, as macros that make a test for each.
//!
//! * `each_park!(name, check)`: code that parks until it is interrupted. `check(place)` gets it.
//! * `each_wait!(name, check)`: code that parks and comes to an end by itself, for destructors. `check(prepare)` gets it in
//!   two steps: `prepare()` may spawn and gives what parks; that returns whether it was left to end by itself.

use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use greenroom::group::{self, Group};
use greenroom::queue::{Channel, Queue};
use greenroom::sync::{Condvar, Event, Mutex, Semaphore};
use greenroom::{
    Greenlet, ThreadPool, checkpoint, hub, idle, join_all, kill_all, on_big_stack, promise, scope, sleep, sleep_until,
    spawn, timeout, wait, yield_now,
};

use super::{LONG, begun, forever, is_ended_early, ms, on_drop, panic_with, spin};

/// Parks until it is interrupted.
pub(crate) type Park = fn();

/// See the module.
pub(crate) type Prepare = fn() -> Wait;

/// See the module.
pub(crate) type Wait = Box<dyn FnOnce() -> bool>;

/// One that dies slowly: twenty milliseconds in its destructor.
pub(crate) fn stubborn() -> Greenlet<()> {
    begun(|| {
        let _slow = on_drop(|| sleep(ms(20)));
        forever();
    })
}

/// A pool whose jobs stay queued.
pub(crate) fn queue_only() -> ThreadPool {
    ThreadPool::new(0)
}

macro_rules! each_park {
    ($name:ident, $check:path) => {
        mod $name {
            use crate::common::parks::places;

            each_park!(@ $check: endless_sleep long_sleep sleep_until join wait wait_timeout join_timeout join_all
                result_get result_wait result_timeout job_queued job_running full_queue job_of_a_full_pool jobs_mapped jobs_read
                jobs_joined pool_shut_down yield_loop checkpoint_loop
                idle_loop inside_timeouts big_stack killing killing_for_a_time killing_all event semaphore mutex condvar
                queue_get queue_put channel_get channel_put queue_join wait_for_any in_a_scope of_a_scope group_join pool_spawn
                group_map group_imap);
        }
    };
    (@ $check:path: $($place:ident)*) => { $(
        #[test]
        fn $place() {
            crate::common::within_a_minute(|| $check(places::$place));
        }
    )* };
}

/// Where a greenlet can be parked.
pub(crate) mod places {
    use super::*;

    pub(crate) fn endless_sleep() {
        forever();
    }

    pub(crate) fn long_sleep() {
        sleep(LONG);
    }

    pub(crate) fn sleep_until() {
        super::sleep_until(Instant::now() + LONG);
    }

    pub(crate) fn join() {
        let _ = spawn(forever).join();
    }

    pub(crate) fn wait() {
        spawn(forever).wait();
    }

    pub(crate) fn wait_timeout() {
        spawn(forever).wait_timeout(LONG);
    }

    pub(crate) fn join_timeout() {
        let _ = spawn(forever).join_timeout(LONG);
    }

    pub(crate) fn join_all() {
        super::join_all([spawn(yield_now), spawn(forever), spawn(forever)]);
    }

    pub(crate) fn result_get() {
        let (_promise, result) = promise::<()>();
        let _ = result.get();
    }

    pub(crate) fn result_wait() {
        let (_promise, result) = promise::<()>();
        result.wait();
    }

    pub(crate) fn result_timeout() {
        let (_promise, result) = promise::<()>();
        let _ = result.get_timeout(LONG);
    }

    pub(crate) fn job_queued() {
        queue_only().run::<()>(|| unreachable!("nobody runs it"));
    }

    pub(crate) fn job_running() {
        let pool = hub().threadpool();
        loop {
            pool.run(|| thread::sleep(ms(5)));
        }
    }

    pub(crate) fn full_queue() {
        let pool = ThreadPool::builder().max_threads(0).queue_limit(1).build();
        let first = pool.clone();
        begun(move || first.run(|| ()));
        pool.run::<()>(|| unreachable!("nobody runs it"));
    }

    pub(crate) fn job_of_a_full_pool() {
        let pool = ThreadPool::builder().max_threads(0).queue_limit(1).build();
        (0..2).for_each(|_| drop(pool.spawn(|| (), ())));
    }

    pub(crate) fn jobs_mapped() {
        let pool = hub().threadpool();
        pool.map(|_| thread::sleep(ms(1)), 0..);
    }

    pub(crate) fn jobs_read() {
        let pool = queue_only();
        let _ = pool.imap(|number| number, 0.., 3).next();
        let _ = pool.imap_unordered(|number| number, 0.., 3).next();
    }

    pub(crate) fn jobs_joined() {
        let pool = queue_only();
        drop(pool.spawn(|| (), ()));
        pool.join(None);
    }

    pub(crate) fn pool_shut_down() {
        let (_open, gate) = mpsc::channel::<()>();
        let (began, begins) = mpsc::channel();
        let pool = ThreadPool::new(1);
        let job = move || {
            began.send(()).unwrap();
            let _ = gate.recv();
        };
        drop(pool.spawn(job, ()));
        begins.recv().unwrap();
        pool.shutdown(None);
    }

    pub(crate) fn yield_loop() {
        loop {
            yield_now();
        }
    }

    pub(crate) fn checkpoint_loop() {
        loop {
            checkpoint();
        }
    }

    pub(crate) fn idle_loop() {
        loop {
            idle();
        }
    }

    pub(crate) fn inside_timeouts() {
        let _ = timeout(LONG, || timeout(LONG * 2, || timeout(Duration::MAX, forever)));
    }

    pub(crate) fn big_stack() {
        on_big_stack(1 << 20, || on_big_stack(2 << 20, forever));
    }

    pub(crate) fn killing() {
        unkillable().kill();
    }

    pub(crate) fn killing_for_a_time() {
        unkillable().kill_timeout(LONG);
    }

    pub(crate) fn killing_all() {
        kill_all(&[spawn(yield_now), unkillable()]);
    }

    pub(crate) fn event() {
        Event::new().wait();
    }

    pub(crate) fn semaphore() {
        drop(Semaphore::new(0).acquire());
    }

    pub(crate) fn mutex() {
        let mutex = Rc::new(Mutex::new(0));
        let theirs = Rc::clone(&mutex);
        begun(move || {
            let _guard = theirs.lock();
            forever();
        });
        drop(mutex.lock());
    }

    pub(crate) fn condvar() {
        let mutex = Mutex::new(0);
        drop(Condvar::new().wait(mutex.lock()));
    }

    pub(crate) fn queue_get() {
        let _ = Queue::<()>::unbounded().get();
    }

    pub(crate) fn queue_put() {
        let queue = Queue::bounded(1);
        (0..2).for_each(|item| queue.put(item).unwrap());
    }

    pub(crate) fn channel_get() {
        let _ = Channel::<()>::new().get();
    }

    pub(crate) fn channel_put() {
        let _ = Channel::new().put(1);
    }

    pub(crate) fn queue_join() {
        let queue = Queue::unbounded();
        queue.put(1).unwrap();
        queue.join(None);
    }

    pub(crate) fn wait_for_any() {
        super::wait(&[&Event::new(), &spawn(forever), &Semaphore::new(0)], 1, None);
    }

    pub(crate) fn in_a_scope() {
        scope(|s| {
            s.spawn(forever);
            forever();
        });
    }

    pub(crate) fn of_a_scope() {
        scope(|s| drop(s.spawn(forever)));
    }

    pub(crate) fn group_join() {
        let group = Group::new();
        group.spawn(forever);
        group.join(None);
    }

    pub(crate) fn pool_spawn() {
        let pool = group::Pool::new(1);
        (0..2).for_each(|_| drop(pool.spawn(forever)));
    }

    pub(crate) fn group_map() {
        group::Pool::new(2).map(|_| forever(), 0..5);
    }

    pub(crate) fn group_imap() {
        let _ = Group::new().imap(|_| forever(), 0.., 3).next();
    }

    /// Parked in its destructor for good, once it is killed.
    fn unkillable() -> Greenlet<()> {
        begun(|| {
            let _refusal = on_drop(forever);
            forever();
        })
    }
}

macro_rules! each_wait {
    ($name:ident, $check:path) => {
        mod $name {
            use crate::common::parks::waits;

            each_wait!(@ $check: nothing sleeping yielding joining joining_a_dead_one waiting_in_vain killing killing_a_stubborn_one
                killing_in_vain killing_all result_of_a_thread result_of_a_greenlet result_in_vain job many_jobs
                timeout_elapsed timeout_in_time timeouts_nested timeout_swallowed caught_panic idling checkpoints
                big_stack own_destructors queued rendezvous);
        }
    };
    (@ $check:path: $($wait:ident)*) => { $(
        #[test]
        fn $wait() {
            crate::common::within_a_minute(|| $check(waits::$wait));
        }
    )* };
}

/// What a destructor can wait for.
pub(crate) mod waits {
    use super::*;

    pub(crate) fn nothing() -> Wait {
        Box::new(|| true)
    }

    pub(crate) fn sleeping() -> Wait {
        Box::new(|| {
            let start = Instant::now();
            sleep(ms(15));
            start.elapsed() >= ms(15)
        })
    }

    pub(crate) fn yielding() -> Wait {
        Box::new(|| {
            (0..10).for_each(|_| yield_now());
            true
        })
    }

    pub(crate) fn joining() -> Wait {
        let child = begun(|| sleep(ms(15)));
        Box::new(move || {
            child.wait();
            child.is_finished()
        })
    }

    pub(crate) fn joining_a_dead_one() -> Wait {
        let child = begun(|| ());
        Box::new(move || child.join().is_ok())
    }

    pub(crate) fn waiting_in_vain() -> Wait {
        let (promise, result) = promise::<()>();
        Box::new(move || {
            let start = Instant::now();
            let is_ready = result.wait_timeout(ms(15));
            drop(promise);
            !is_ready && start.elapsed() >= ms(15)
        })
    }

    pub(crate) fn killing() -> Wait {
        let child = begun(forever);
        Box::new(move || {
            child.kill();
            child.is_finished()
        })
    }

    pub(crate) fn killing_a_stubborn_one() -> Wait {
        let child = stubborn();
        Box::new(move || {
            child.kill();
            child.join().unwrap_err().is_killed()
        })
    }

    pub(crate) fn killing_in_vain() -> Wait {
        let child = stubborn();
        Box::new(move || {
            let died = child.kill_timeout(Duration::ZERO);
            child.wait();
            !died && child.is_finished()
        })
    }

    pub(crate) fn killing_all() -> Wait {
        let children = [begun(forever), stubborn(), begun(|| ()), begun(forever)];
        Box::new(move || {
            kill_all(children.iter().chain(&children));
            children.iter().all(Greenlet::is_finished)
        })
    }

    pub(crate) fn result_of_a_thread() -> Wait {
        Box::new(|| {
            let (promise, result) = promise();
            thread::spawn(move || {
                thread::sleep(ms(10));
                promise.set(7);
            });
            matches!(result.get(), Ok(7))
        })
    }

    pub(crate) fn result_of_a_greenlet() -> Wait {
        let (promise, result) = promise();
        begun(move || {
            // Whether it is left to live or killed meanwhile.
            let _set = on_drop(move || promise.set(7));
            sleep(ms(10));
        });
        Box::new(move || matches!(result.get(), Ok(7)))
    }

    pub(crate) fn result_in_vain() -> Wait {
        Box::new(|| {
            let (promise, result) = promise::<()>();
            let result = result.get_timeout(ms(5));
            drop(promise);
            result.is_err()
        })
    }

    pub(crate) fn job() -> Wait {
        Box::new(|| {
            let numbers = [1, 2, 3];
            let sum = hub().threadpool().apply(
                |numbers: &[i32]| {
                    thread::sleep(ms(5));
                    numbers.iter().sum::<i32>()
                },
                (&numbers[..],),
            );
            sum == 6
        })
    }

    pub(crate) fn many_jobs() -> Wait {
        Box::new(|| (0..20).all(|i| hub().threadpool().run(|| i + 1) == i + 1))
    }

    pub(crate) fn timeout_elapsed() -> Wait {
        Box::new(|| timeout(ms(5), forever).is_err())
    }

    pub(crate) fn timeout_in_time() -> Wait {
        Box::new(|| timeout(LONG, || sleep(ms(1))).is_ok())
    }

    pub(crate) fn timeouts_nested() -> Wait {
        Box::new(|| {
            let inner_first = timeout(LONG, || timeout(ms(5), forever).is_err());
            let outer_first = timeout(ms(5), || timeout(LONG, forever).is_err());
            inner_first == Ok(true) && outer_first.is_err()
        })
    }

    pub(crate) fn timeout_swallowed() -> Wait {
        Box::new(|| timeout(ms(5), || is_ended_early(forever)) == Ok(true))
    }

    pub(crate) fn caught_panic() -> Wait {
        Box::new(|| {
            is_ended_early(|| {
                yield_now();
                panic_with("caught")
            })
        })
    }

    pub(crate) fn idling() -> Wait {
        Box::new(|| {
            idle();
            true
        })
    }

    pub(crate) fn checkpoints() -> Wait {
        Box::new(|| {
            for _ in 0..3 {
                spin(ms(1));
                checkpoint();
            }
            true
        })
    }

    pub(crate) fn big_stack() -> Wait {
        Box::new(|| {
            on_big_stack(1 << 20, || {
                sleep(ms(1));
                true
            })
        })
    }

    pub(crate) fn queued() -> Wait {
        let queue = Queue::bounded(1);
        let theirs = queue.clone();
        thread::spawn(move || (0..10).try_for_each(|item| theirs.put(item)));
        Box::new(move || queue.iter().take(10).sum::<i32>() == 45)
    }

    pub(crate) fn rendezvous() -> Wait {
        let channel = Channel::new();
        let theirs = channel.clone();
        thread::spawn(move || theirs.iter().take(10).sum::<i32>());
        Box::new(move || (0..10).all(|item| channel.put(item).is_ok()))
    }

    /// A destructor inside of the destructor that parks as well.
    pub(crate) fn own_destructors() -> Wait {
        Box::new(|| {
            let result = timeout(ms(5), || {
                let _slow = on_drop(|| sleep(ms(5)));
                forever();
            });
            result.is_err()
        })
    }
}
