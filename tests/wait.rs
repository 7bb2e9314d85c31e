//! Waiting for several things at once.

mod common;

use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::{LONG, begun, forever, ms, within_a_minute};
use greenroom::sync::{BoundedSemaphore, Event, Semaphore};
use greenroom::{
    AsyncResult, Greenlet, Promise, Waitable, hub, iwait, promise, scope, sleep, spawn, timeout, try_hub, wait,
    yield_now,
};

fn all<W: Waitable>(objects: &[W]) -> Vec<&dyn Waitable> {
    objects.iter().map(|object| object as &dyn Waitable).collect()
}

#[test]
fn a_set_event_is_ready_twice_and_a_cleared_one_is_not() {
    let event = Event::new();
    event.set();
    assert_eq!(wait(&[&event], usize::MAX, None), [0]);
    assert_eq!(wait(&[&event], 1, None), [0]);
    event.clear();
    assert_eq!(wait(&[&event], 1, Some(ms(10))), []);
}

#[test]
fn an_event_that_is_cleared_after_its_wake_counts() {
    let event = Rc::new(Event::new());
    let waiter = begun({
        let event = Rc::clone(&event);
        move || wait(&[&*event], 1, None)
    });
    event.set();
    event.clear();
    assert_eq!(waiter.join().unwrap(), [0]);
}

#[test]
fn of_ten_exactly_two() {
    let events = Rc::new([(); 5].map(|()| Event::new()));
    let (promises, results): (Vec<Promise<()>>, Vec<AsyncResult<()>>) = (0..5).map(|_| promise()).unzip();
    let theirs = Rc::clone(&events);
    spawn(move || {
        theirs[3].set();
        promises.into_iter().for_each(|promise| promise.set(()));
    });
    let objects = [all(&events[..]), all(&results)].concat();
    assert_eq!(wait(&objects, 2, None), [3, 5]);
    assert_eq!(wait(&objects, usize::MAX, Some(Duration::ZERO)), [3, 5, 6, 7, 8, 9]);
}

#[test]
fn indices_come_in_the_order_of_readiness_even_if_all_are_ready_by_then() {
    let events = Rc::new([(); 100].map(|()| Event::new()));
    let waiter = begun({
        let events = Rc::clone(&events);
        move || wait(&all(&events[..]), usize::MAX, None)
    });
    let order: Vec<_> = (0..100).map(|number| number * 37 % 100).collect();
    order.iter().for_each(|&number| events[number].set());
    assert_eq!(waiter.join().unwrap(), order);
}

#[test]
fn those_that_were_ready_before_come_first_in_their_order() {
    let events = [(); 4].map(|()| Event::new());
    events[2].set();
    events[1].set();
    assert_eq!(wait(&all(&events), usize::MAX, Some(ms(1))), [1, 2]);
    assert_eq!(wait(&all(&events), 1, None), [1]);
}

#[test]
fn greenlets_are_ready_when_they_have_ended_however() {
    let greenlets =
        [spawn(|| ()), spawn(forever), spawn(|| common::panic_with("it is part of the test")), spawn(forever)];
    yield_now();
    greenlets[3].request_kill();
    let mut ended = wait(&all(&greenlets), 3, None);
    assert_eq!(ended.pop(), Some(3));
    ended.sort_unstable();
    assert_eq!(ended, [0, 2]);
    assert_eq!(wait(&all(&greenlets), usize::MAX, Some(ms(1))).len(), 3);
}

#[test]
fn scoped_greenlets_too() {
    scope(|s| {
        let slow = s.spawn(|| sleep(ms(5)));
        let fast = s.spawn(|| ());
        assert_eq!(wait(&[&slow, &fast], 2, None), [1, 0]);
    });
}

#[test]
fn a_semaphore_is_ready_with_a_permit_and_keeps_it() {
    let semaphore = Rc::new(Semaphore::new(0));
    let bounded = BoundedSemaphore::new(1);
    assert_eq!(wait(&[&*semaphore, &bounded], 2, Some(ms(1))), [1]);
    let waiter = begun({
        let semaphore = Rc::clone(&semaphore);
        move || wait(&[&*semaphore], 1, None)
    });
    semaphore.release().unwrap();
    assert_eq!(waiter.join().unwrap(), [0]);
    assert_eq!(semaphore.available_permits(), 1);
}

#[test]
fn who_watches_a_semaphore_keeps_nobody_from_it() {
    within_a_minute(|| {
        let semaphore = Rc::new(Semaphore::new(0));
        let watcher = |semaphore: &Rc<Semaphore>| {
            let semaphore = Rc::clone(semaphore);
            begun(move || wait(&[&*semaphore], 1, None))
        };
        let taker = |semaphore: &Rc<Semaphore>| {
            let semaphore = Rc::clone(semaphore);
            begun(move || semaphore.acquire().forget())
        };
        let watchers = [watcher(&semaphore)];
        let takers = [taker(&semaphore), taker(&semaphore)];
        let killed = watcher(&semaphore);
        killed.kill();
        semaphore.release().unwrap();
        wait(&all(&watchers), 1, None);
        takers[0].wait();
        assert!(!takers[1].is_finished());
        semaphore.release().unwrap();
        takers[1].wait();
        assert_eq!(semaphore.available_permits(), 0);
    });
}

#[test]
fn duplicates_give_both_indices() {
    let event = Event::new();
    let greenlet = spawn(|| ());
    event.set();
    assert_eq!(wait(&[&event, &greenlet, &event, &greenlet], usize::MAX, None), [0, 2, 1, 3]);
}

#[test]
fn nothing_to_wait_for_ends_at_once() {
    assert_eq!(wait(&[], usize::MAX, None), []);
    assert_eq!(wait(&[&Event::new()], 0, None), []);
    assert_eq!(wait(&[&Event::new()], 1, Some(Duration::ZERO)), []);
}

#[test]
fn iwait_gives_one_after_the_other_and_ends() {
    let greenlets: Vec<Greenlet<()>> = [3, 1, 2].map(|n| spawn(move || sleep(ms(5 * n)))).into();
    let objects = all(&greenlets);
    let mut ready = iwait(&objects, Some(LONG));
    assert_eq!(ready.size_hint(), (0, Some(3)));
    let order: Vec<_> = ready.by_ref().collect();
    assert!(greenlets.iter().all(Greenlet::is_finished) && ready.next().is_none());
    let mut sorted = order;
    sorted.sort_unstable();
    assert_eq!(sorted, [0, 1, 2]);
}

#[test]
fn iwait_ends_when_its_time_is_over() {
    let events = [Event::new(), Event::new()];
    events[1].set();
    let objects = all(&events);
    let mut ready = iwait(&objects, Some(ms(5)));
    assert_eq!((ready.next(), ready.next(), ready.next()), (Some(1), None, None));
}

#[test]
fn iwait_sees_what_happens_between_two_looks() {
    let event = Event::new();
    let objects: [&dyn Waitable; 1] = [&event];
    let mut ready = iwait(&objects, None);
    event.set();
    event.clear();
    assert_eq!(ready.next(), Some(0));
}

#[test]
fn a_kill_and_an_outer_timeout_end_it_and_leave_nothing_linked() {
    within_a_minute(|| {
        let (events, never) = (Rc::new([Event::new(), Event::new()]), spawn(forever));
        let waiter = begun({
            let events = Rc::clone(&events);
            move || wait(&all(&events[..]), 2, None)
        });
        waiter.kill();
        assert!(timeout(ms(5), || wait(&[&never, &events[0]], 1, None)).is_err());
        events.iter().for_each(Event::set);
        never.kill();
        // Those who wait now get what is theirs.
        assert_eq!(wait(&[&events[0], &never], 2, None), [0, 1]);
    });
}

#[test]
fn on_a_thread_without_a_hub_it_blocks_and_makes_none() {
    within_a_minute(|| {
        let event = Arc::new(Event::new());
        let (promise, result) = promise();
        let thread = thread::spawn({
            let event = Arc::clone(&event);
            move || {
                let order = wait(&[&result, &*event], 2, Some(LONG));
                assert_eq!(wait(&[&Event::new()], 1, Some(ms(1))), []);
                (order, try_hub().is_none())
            }
        });
        sleep(ms(5));
        event.set();
        promise.set(1);
        assert_eq!(thread.join().unwrap(), (vec![1, 0], true));
    });
}

#[test]
fn other_threads_and_jobs_of_the_pool_wake_it() {
    within_a_minute(|| {
        for round in 0..100 {
            let events: Arc<[Event]> = (0..8).map(|_| Event::new()).collect();
            let waiter = begun({
                let events = Arc::clone(&events);
                move || wait(&all(&events[..]), usize::MAX, None)
            });
            let threads: Vec<_> = (0..2)
                .map(|half| {
                    let events = Arc::clone(&events);
                    thread::spawn(move || events[4 * half..4 * half + 4].iter().for_each(Event::set))
                })
                .collect();
            if round % 2 == 0 {
                hub().threadpool().run(|| events[0].set());
            }
            let order = waiter.join().unwrap();
            // Each thread's own come in its order.
            for half in [0..4, 4..8] {
                let mine: Vec<_> = order.iter().filter(|&&number| half.contains(&number)).collect();
                assert!(round % 2 == 0 || mine.is_sorted(), "{order:?}");
                assert_eq!(mine.len(), 4);
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        }
    });
}
