//! Kill, timeout and hand-over in the same turn, and hubs that have ended: no item gets lost.

use std::thread;
use std::time::{Duration, Instant};

use greenroom::queue::{GetError, PutError, Queue};
use greenroom::{sleep, timeout};

use crate::common::{LONG, begun, ms, set_up_within, spin, within_a_minute};
use crate::{AnyQueue, FILLER, drain, elsewhere, full, getter, putter};

each_queue! { u32;
    a_killed_getters_item_goes_to_the_next: check_killed_getter;
    a_killed_getters_item_stays_first: check_item_comes_back;
    a_putter_is_killed_as_its_item_is_taken: check_killed_putter;
    a_tie_of_get_and_deadline_gets: check_get_tie;
    a_tie_of_put_and_deadline_puts: check_put_tie;
    an_outer_timeout_passes_the_item_on: check_outer_timeout;
    a_put_that_timed_out_has_not_put: check_put_timed_out;
    getters_of_a_hub_that_ended_are_passed_over: check_lost_getters;
    items_of_a_hub_that_ended_are_there: check_lost_putters;
    a_handed_over_item_of_a_hub_that_ended: check_lost_looker;
}

fn check_killed_getter<Q: AnyQueue<u32>>() {
    // Handed over, then killed.
    let queue = Q::narrow();
    let [first, second, third] = [(); 3].map(|()| getter(&queue));
    elsewhere(&queue, |queue| queue.put(7)).unwrap();
    first.request_kill();
    second.request_kill();
    assert_eq!(third.join().unwrap(), Ok(7));
    assert!(first.join().unwrap_err().is_killed() && second.join().unwrap_err().is_killed());
    assert_eq!(queue.try_get(), Err(GetError::Empty));

    // Killed, then handed over before it has left.
    let [first, second, third] = [(); 3].map(|()| getter(&queue));
    first.request_kill();
    second.request_kill();
    queue.put(8).unwrap();
    assert_eq!(third.join().unwrap(), Ok(8));
    assert!(first.join().unwrap_err().is_killed() && second.join().unwrap_err().is_killed());
    assert_eq!(queue.try_get(), Err(GetError::Empty));

    // All at once, and several items.
    let all = [(); 6].map(|()| getter(&queue));
    elsewhere(&queue, |queue| (1..4).for_each(|item| queue.put(item).unwrap()));
    all[0].request_kill();
    all[2].request_kill();
    all[4].request_kill();
    let mut got: Vec<_> = all.into_iter().filter_map(|getter| getter.join().ok()).map(Result::unwrap).collect();
    got.sort_unstable();
    assert_eq!(got, [1, 2, 3]);
}

fn check_item_comes_back<Q: AnyQueue<u32>>() {
    let queue = Q::narrow();
    let first = getter(&queue);
    elsewhere(&queue, |queue| queue.put(7)).unwrap();
    // It comes after the one that is on its way.
    let later = putter(&queue, 8);
    if Q::ROOM > 0 {
        assert!(first.join().is_ok(), "the putter's turn was the getter's, too");
        assert_eq!(queue.get(), Ok(8));
        later.join().unwrap().unwrap();
        let first = getter(&queue);
        elsewhere(&queue, |queue| queue.put(7)).unwrap();
        queue.put(8).unwrap();
        first.request_kill();
        assert!(first.join().unwrap_err().is_killed());
        // One more than there is room for, until somebody gets one.
        assert_eq!(queue.len(), 2);
        assert_eq!(queue.try_put(9), Err(PutError::Full(9)));
        assert_eq!([queue.try_get(), queue.try_get()], [Ok(7), Ok(8)]);
    } else {
        assert_eq!(first.join().unwrap(), Ok(7));
        assert_eq!(queue.get(), Ok(8));
        later.join().unwrap().unwrap();
        let first = getter(&queue);
        elsewhere(&queue, |queue| queue.put(7)).unwrap();
        first.kill();
        assert_eq!(queue.len(), 1);
        let later = putter(&queue, 8);
        assert!(!later.is_finished());
        assert_eq!([queue.try_get(), queue.try_get()], [Ok(7), Ok(8)]);
        later.join().unwrap().unwrap();
    }
    assert_eq!(queue.try_get(), Err(GetError::Empty));
}

fn check_killed_putter<Q: AnyQueue<u32>>() {
    for kill_first in [false, true] {
        let queue = full::<Q>();
        let [first, second] = [7, 8].map(|item| putter(&queue, item));
        if kill_first {
            first.request_kill();
        }
        elsewhere(&queue, |queue| drain(&queue));
        if Q::ROOM == 0 {
            assert_eq!(elsewhere(&queue, |queue| queue.get()), Ok(7));
        }
        first.request_kill();
        assert!(first.join().unwrap_err().is_killed());
        // It was taken, so it is there, once.
        if Q::ROOM > 0 {
            assert_eq!(queue.get(), Ok(7));
        }
        assert_eq!(queue.get(), Ok(8));
        second.join().unwrap().unwrap();
        assert_eq!(queue.try_get(), Err(GetError::Empty));
    }

    // Killed in time, its item is gone with it.
    let queue = full::<Q>();
    let [first, second] = [7, 8].map(|item| putter(&queue, item));
    first.kill();
    drain(&queue);
    assert_eq!(queue.get(), Ok(8));
    second.join().unwrap().unwrap();
    assert_eq!(queue.try_get(), Err(GetError::Empty));
}

fn check_get_tie<Q: AnyQueue<u32>>() {
    // The hand-over comes first.
    let (queue, first) = set_up_within(ms(5), || {
        let queue = Q::narrow();
        let other = queue.clone();
        (queue, begun(move || other.get_timeout(ms(5))))
    });
    spin(ms(10));
    elsewhere(&queue, |queue| queue.put(7)).unwrap();
    assert_eq!(first.join().unwrap(), Ok(7));

    // The deadline comes first, the hand-over before it has left.
    let (queue, enabler, first) = set_up_within(ms(5), || {
        let queue = Q::narrow();
        let other = queue.clone();
        let enabler = begun(move || {
            sleep(ms(5));
            other.put(8)
        });
        let other = queue.clone();
        (queue, enabler, begun(move || other.get_timeout(ms(8))))
    });
    spin(ms(15));
    enabler.join().unwrap().unwrap();
    assert_eq!(first.join().unwrap(), Ok(8));
    assert_eq!(queue.try_get(), Err(GetError::Empty));
}

fn check_put_tie<Q: AnyQueue<u32>>() {
    // Gets one item that is, or gives way to, the putter's.
    fn make_room<Q: AnyQueue<u32>>(queue: &Q) {
        assert_eq!(queue.try_get(), Ok(if Q::ROOM > 0 { FILLER } else { 7 }));
    }
    fn look<Q: AnyQueue<u32>>(queue: &Q) {
        if Q::ROOM > 0 {
            assert_eq!(queue.try_get(), Ok(7));
        }
        assert_eq!(queue.try_get(), Err(GetError::Empty));
    }

    let (queue, first) = set_up_within(ms(5), || {
        let queue = full::<Q>();
        let other = queue.clone();
        (queue, begun(move || other.put_timeout(7, ms(5))))
    });
    spin(ms(10));
    elsewhere(&queue, |queue| make_room(&queue));
    assert_eq!(first.join().unwrap(), Ok(()));
    look(&queue);

    let (queue, enabler, first) = set_up_within(ms(5), || {
        let queue = full::<Q>();
        let other = queue.clone();
        let enabler = begun(move || {
            sleep(ms(5));
            make_room(&other);
        });
        let other = queue.clone();
        (queue, enabler, begun(move || other.put_timeout(7, ms(8))))
    });
    spin(ms(15));
    enabler.join().unwrap();
    assert_eq!(first.join().unwrap(), Ok(()), "its item was taken");
    look(&queue);
}

fn check_outer_timeout<Q: AnyQueue<u32>>() {
    loop {
        let (queue, start) = (Q::narrow(), Instant::now());
        let other = queue.clone();
        let enabler = begun(move || {
            sleep(ms(5));
            other.put(7)
        });
        let other = queue.clone();
        let first = begun(move || timeout(ms(8), || other.get()));
        let second = getter(&queue);
        let is_set_up = start.elapsed() < ms(5);
        spin(ms(15));
        // Both times are over, and the enabler's was first.
        enabler.join().unwrap().unwrap();
        match first.join().unwrap() {
            Err(_) => assert_eq!(second.join().unwrap(), Ok(7)),
            Ok(got) => {
                // The machine was too busy, and it was handed over earlier.
                assert!(!is_set_up, "the timeout had ended the park");
                assert_eq!(got, Ok(7));
                second.kill();
            }
        }
        assert_eq!(queue.try_get(), Err(GetError::Empty));
        if is_set_up {
            return;
        }
    }
}

fn check_put_timed_out<Q: AnyQueue<u32>>() {
    let queue = full::<Q>();
    assert_eq!(queue.put_timeout(7, Duration::ZERO), Err(PutError::Full(7)));
    assert_eq!(queue.put_timeout(7, ms(2)), Err(PutError::Full(7)));
    assert!(timeout(ms(2), || queue.put(7)).is_err());
    let behind = putter(&queue, 8);
    assert_eq!(queue.put_timeout(7, ms(2)), Err(PutError::Full(7)));
    drain(&queue);
    assert_eq!(queue.get(), Ok(8));
    behind.join().unwrap().unwrap();
    assert_eq!(queue.try_get(), Err(GetError::Empty));
    assert_eq!(queue.try_put(9).is_ok(), Q::ROOM > 0);
}

/// Does something on a thread with a hub that ends without a shutdown: what is parked there is leaked.
fn on_a_hub_that_ends<Q: AnyQueue<u32>>(queue: &Q, f: fn(&Q)) {
    let queue = queue.clone();
    thread::spawn(move || f(&queue)).join().unwrap();
}

fn check_lost_getters<Q: AnyQueue<u32>>() {
    let queue = Q::narrow();
    on_a_hub_that_ends(&queue, |queue| {
        drop(getter(queue));
        let other = queue.clone();
        drop(begun(move || other.get_timeout(LONG)));
    });
    assert!(queue.try_put(7).is_ok() == (Q::ROOM > 0), "it went to one that can't be woken");
    if Q::ROOM > 0 {
        assert_eq!(queue.try_get(), Ok(7));
    }

    // Before one that lives.
    on_a_hub_that_ends(&queue, |queue| drop(getter(queue)));
    let alive = getter(&queue);
    queue.put(8).unwrap();
    assert_eq!(alive.join().unwrap(), Ok(8));

    on_a_hub_that_ends(&queue, |queue| drop(getter(queue)));
    queue.close();
    assert_eq!(queue.get(), Err(GetError::Closed));
}

fn check_lost_putters<Q: AnyQueue<u32>>() {
    let queue = full::<Q>();
    on_a_hub_that_ends(&queue, |queue| {
        drop(putter(queue, 7));
        let other = queue.clone();
        drop(begun(move || other.put_timeout(8, LONG)));
    });
    let alive = putter(&queue, 9);
    drain(&queue);
    assert_eq!([(); 3].map(|()| queue.get()), [Ok(7), Ok(8), Ok(9)]);
    alive.join().unwrap().unwrap();
    assert_eq!(queue.try_get(), Err(GetError::Empty));

    let queue = full::<Q>();
    on_a_hub_that_ends(&queue, |queue| drop(putter(queue, 7)));
    queue.close_now();
    assert_eq!(queue.get(), Err(GetError::Closed));
}

fn check_lost_looker<Q: AnyQueue<u32>>() {
    // Parked in peek and in join: neither keeps the others from anything.
    let queue = Q::narrow();
    on_a_hub_that_ends(&queue, |queue| {
        let other = queue.clone();
        drop(begun(move || other.peek()));
    });
    let alive = getter(&queue);
    queue.put(7).unwrap();
    assert_eq!(alive.join().unwrap(), Ok(7));
    on_a_hub_that_ends(&queue, |queue| {
        let other = queue.clone();
        drop(begun(move || other.join(None)));
    });
    let other = queue.clone();
    let joiner = begun(move || other.join(None));
    queue.task_done().unwrap();
    assert!(joiner.join().unwrap());
}

#[test]
fn several_come_back_in_their_order() {
    within_a_minute(|| {
        for order in [[1, 0], [0, 1]] {
            let queue = Queue::unbounded();
            let getters = [(); 2].map(|()| getter(&queue));
            // They leave in this order, after they were handed an item each.
            order.into_iter().for_each(|at: usize| getters[at].request_kill());
            (1..3).for_each(|item| queue.put(item).unwrap());
            getters.into_iter().for_each(|getter| assert!(getter.join().unwrap_err().is_killed()));
            let got = [queue.try_get(), queue.try_get()];
            assert_eq!(got, [Ok(1), Ok(2)], "killed in the order {order:?}");
        }
    });
}

#[test]
fn two_who_look_leave_the_order_alone() {
    within_a_minute(|| {
        let queue = Queue::unbounded();
        let lookers = [(); 2].map(|()| {
            let queue = queue.clone();
            begun(move || queue.peek())
        });
        (1..3).for_each(|item| queue.put(item).unwrap());
        lookers.into_iter().for_each(|looker| assert!(looker.join().unwrap().is_ok()));
        assert_eq!([queue.try_get(), queue.try_get()], [Ok(1), Ok(2)]);
    });
}
