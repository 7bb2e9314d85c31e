//! `close` and `close_now`, destructors of items, `task_done` and `join`, iteration.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use greenroom::queue::{GetError, LifoQueue, PriorityQueue, PutError, Queue};
use greenroom::{Greenlet, sleep, spawn, timeout, yield_now};

use crate::common::{LONG, begun, forever, is_ended_early, ms, on_drop, panic_with};
use crate::{AnyQueue, FILLER, Item, elsewhere, full, getter, putter};

mod numbers {
    use super::*;

    each_queue! { u32;
        parked_getters_are_told: check_getters;
        parked_putters_get_their_items_back: check_putters;
        what_was_handed_over_before_counts: check_handed_over;
        a_getter_killed_after_closing_gives_back: check_killed_after_close;
        closing_twice: check_twice;
        iteration_ends_with_closing: check_iteration;
        join_waits_for_every_task: check_join;
        task_done_too_often: check_task_done;
        task_done_before_the_get: check_early_task_done;
        joiners_come_and_go: check_joiners;
    }
}

mod items {
    use super::*;

    each_queue! { Item;
        close_now_drops_what_is_in_it: check_close_now;
        what_comes_back_after_close_now_is_dropped: check_late_return;
        a_destructor_that_uses_the_queue: check_recursion;
        a_destructor_that_parks: check_parks;
        a_destructor_that_panics: check_panics;
        dropped_with_its_putter: check_killed_putter;
        dropped_with_the_queue: check_dropped;
    }
}

fn check_getters<Q: AnyQueue<u32>>() {
    for close in [Q::close, Q::close_now] {
        let queue = Q::narrow();
        let getters: Vec<_> = (0..5).map(|_| getter(&queue)).collect();
        close(&queue);
        for getter in getters {
            assert_eq!(getter.join().unwrap(), Err(GetError::Closed));
        }
    }
}

fn check_putters<Q: AnyQueue<u32>>() {
    for (close, keeps) in [(Q::close as fn(&Q), true), (Q::close_now, false)] {
        let queue = full::<Q>();
        let putters: Vec<_> = (1..5).map(|item| putter(&queue, item)).collect();
        close(&queue);
        // What is in it can still be got, and lets nobody in.
        for _ in 0..Q::ROOM {
            assert_eq!(queue.get(), if keeps { Ok(FILLER) } else { Err(GetError::Closed) });
        }
        assert_eq!(queue.get(), Err(GetError::Closed));
        for (item, putter) in (1..5).zip(putters) {
            assert_eq!(putter.join().unwrap(), Err(PutError::Closed(item)));
        }
        assert_eq!(queue.len(), 0);
        for _ in 0..if keeps { Q::ROOM } else { 0 } {
            queue.task_done().unwrap();
        }
        assert!(queue.join(Some(Duration::ZERO)), "a putter's item was counted although it wasn't put");
    }
}

fn check_handed_over<Q: AnyQueue<u32>>() {
    for close in [Q::close, Q::close_now] {
        let queue = Q::narrow();
        let (first, second) = (getter(&queue), getter(&queue));
        elsewhere(&queue, move |queue| {
            queue.put(7).unwrap();
            close(&queue);
        });
        assert_eq!(first.join().unwrap(), Ok(7));
        assert_eq!(second.join().unwrap(), Err(GetError::Closed));

        let queue = full::<Q>();
        let (first, second) = (putter(&queue, 7), putter(&queue, 8));
        let got = elsewhere(&queue, move |queue| {
            let got = queue.get();
            close(&queue);
            got
        });
        assert_eq!(got, Ok(if Q::ROOM > 0 { FILLER } else { 7 }));
        assert_eq!(first.join().unwrap(), Ok(()));
        assert_eq!(second.join().unwrap(), Err(PutError::Closed(8)));
    }
}

fn check_killed_after_close<Q: AnyQueue<u32>>() {
    let queue = Q::narrow();
    let first = getter(&queue);
    elsewhere(&queue, |queue| {
        queue.put(7).unwrap();
        queue.close();
    });
    first.kill();
    assert!(first.join().unwrap_err().is_killed());
    assert_eq!(queue.get(), Ok(7));
    assert_eq!(queue.get(), Err(GetError::Closed));
    queue.task_done().unwrap();
    assert!(queue.join(None));

    // After `close_now` there is nothing to come back to.
    let queue = Q::narrow();
    let first = getter(&queue);
    elsewhere(&queue, |queue| {
        queue.put(7).unwrap();
        queue.close_now();
    });
    first.kill();
    assert_eq!(queue.get(), Err(GetError::Closed));
    assert!(queue.join(None));
}

fn check_twice<Q: AnyQueue<u32>>() {
    let queue = full::<Q>();
    queue.close();
    queue.close();
    assert!(queue.is_closed());
    assert_eq!(queue.len(), Q::ROOM);
    queue.close_now();
    assert_eq!(queue.len(), 0);
    queue.close();
    queue.close_now();
    assert!(queue.is_closed() && queue.join(None));
    assert_eq!(queue.get(), Err(GetError::Closed));
}

fn check_iteration<Q: AnyQueue<u32>>() {
    let queue = Q::narrow();
    let all = {
        let queue = queue.clone();
        begun(move || std::iter::from_fn(|| queue.next()).collect::<Vec<_>>())
    };
    for item in 0..10 {
        queue.put(item).unwrap();
    }
    queue.close();
    assert_eq!(all.join().unwrap(), (0..10).collect::<Vec<_>>());
}

#[test]
fn the_iterators_take_what_is_left() {
    macro_rules! iterators {
        ($($kind:ident)*) => { $(
            let queue = $kind::unbounded();
            (0..6).for_each(|item| queue.put(item).unwrap());
            queue.close();
            assert_eq!(queue.iter().take(2).count(), 2);
            let mut count = 0;
            for _ in &queue {
                count += 1;
                if count == 2 {
                    break;
                }
            }
            assert_eq!(queue.len(), 2);
            assert_eq!(queue.into_iter().count(), 2);
        )* };
    }
    iterators!(Queue LifoQueue PriorityQueue);
}

/// Puts and gets one.
fn pass<Q: AnyQueue<u32>>(queue: &Q) {
    let putter = putter(queue, 7);
    assert_eq!(queue.get(), Ok(7));
    putter.join().unwrap().unwrap();
}

fn check_join<Q: AnyQueue<u32>>() {
    let queue = Q::narrow();
    assert!(queue.join(None) && queue.join(Some(Duration::ZERO)) && queue.join(Some(LONG)), "nothing was ever put");
    (0..3).for_each(|_| pass(&queue));
    // A put that fails is no task, nor is a get.
    let _ = queue.put_timeout(8, ms(1)).map(|()| queue.get().unwrap()).map(|_| queue.task_done().unwrap());
    assert_eq!(queue.try_get(), Err(GetError::Empty));
    let joiner = {
        let queue = queue.clone();
        begun(move || queue.join(None))
    };
    for _ in 0..3 {
        yield_now();
        assert!(!joiner.is_finished());
        assert!(!queue.join(Some(Duration::ZERO)) && !queue.join(Some(ms(1))));
        queue.task_done().unwrap();
    }
    assert!(joiner.join().unwrap());
    assert!(queue.join(None));
    // And again.
    pass(&queue);
    assert!(!queue.join(Some(Duration::ZERO)));
    elsewhere(&queue, |queue| queue.task_done()).unwrap();
    assert!(queue.join(None));
}

fn check_task_done<Q: AnyQueue<u32>>() {
    let queue = Q::narrow();
    let error = queue.task_done().unwrap_err();
    assert!(error.to_string().contains("too often"));
    pass(&queue);
    queue.task_done().unwrap();
    assert!(queue.task_done().is_err() && queue.join(None));
    // The error has left the count alone.
    pass(&queue);
    assert!(!queue.join(Some(Duration::ZERO)));
    queue.task_done().unwrap();
    assert!(queue.join(None) && queue.task_done().is_err());
}

fn check_early_task_done<Q: AnyQueue<u32>>() {
    // Done before it was got, then dropped: nothing is counted twice.
    let queue = Q::narrow();
    let first = (Q::ROOM == 0).then(|| getter(&queue));
    elsewhere(&queue, |queue| queue.put(7)).unwrap();
    if let Some(first) = first {
        first.kill();
    }
    assert_eq!(queue.len(), 1);
    queue.task_done().unwrap();
    queue.close_now();
    assert!(queue.is_empty() && queue.is_closed() && queue.join(None));
    assert!(queue.task_done().is_err());

    // The same for one that comes back too late.
    let queue = Q::narrow();
    let first = getter(&queue);
    elsewhere(&queue, |queue| {
        queue.put(7).unwrap();
        queue.task_done().unwrap();
        queue.close_now();
    });
    first.kill();
    assert!(first.join().unwrap_err().is_killed());
    assert!(queue.join(None) && queue.task_done().is_err());
}

fn check_joiners<Q: AnyQueue<u32>>() {
    let queue = Q::narrow();
    pass(&queue);
    let joiner = |limit: Option<Duration>| -> Greenlet<bool> {
        let queue = queue.clone();
        begun(move || queue.join(limit))
    };
    let [first, second, third] = [None, Some(LONG), Some(ms(2))].map(joiner);
    let other = queue.clone();
    let fourth = begun(move || timeout(ms(2), || other.join(None)).is_err());
    let thread = {
        let queue = queue.clone();
        thread::spawn(move || queue.join(None))
    };
    first.kill();
    assert!(!third.join().unwrap());
    assert!(fourth.join().unwrap());
    assert!(!second.is_finished());
    // Closing is no end of the work.
    queue.close();
    yield_now();
    assert!(!second.is_finished());
    queue.task_done().unwrap();
    assert!(second.join().unwrap() && thread.join().unwrap());
}

/// How many were dropped.
#[derive(Clone, Default)]
struct Drops(Arc<AtomicUsize>);

impl Drops {
    fn item(&self, id: u32) -> Item {
        let drops = self.clone();
        Item::with_drop(id, move |_| _ = drops.0.fetch_add(1, SeqCst))
    }

    fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// Puts one in, and has it stay there: in a channel, it comes back from a getter that is killed.
fn leave<Q: AnyQueue<Item>>(queue: &Q, item: Item) {
    let first = (Q::ROOM == 0).then(|| getter(queue));
    elsewhere(queue, |queue| queue.put(item).unwrap());
    if let Some(first) = first {
        first.kill();
    }
    assert_eq!(queue.len(), 1);
}

fn check_close_now<Q: AnyQueue<Item>>() {
    let (queue, drops) = (Q::narrow(), Drops::default());
    leave(&queue, drops.item(1));
    let waiting = putter(&queue, drops.item(2));
    let other = queue.clone();
    let joiner = begun(move || other.join(None));
    assert!(!joiner.is_finished());
    queue.close_now();
    assert_eq!(drops.get(), 1, "the putter's isn't the queue's");
    assert!(joiner.join().unwrap(), "what was dropped is done");
    let error = waiting.join().unwrap().unwrap_err();
    assert!(error.is_closed());
    assert_eq!(error.into_inner().id, 2);
    assert_eq!(drops.get(), 2);
}

fn check_late_return<Q: AnyQueue<Item>>() {
    let (queue, drops) = (Q::narrow(), Drops::default());
    let getter = getter(&queue);
    let item = drops.item(1);
    elsewhere(&queue, |queue| {
        queue.put(item).unwrap();
        queue.close_now();
    });
    assert_eq!(drops.get(), 0);
    getter.kill();
    assert!(getter.join().unwrap_err().is_killed());
    assert_eq!(drops.get(), 1);
    assert!(queue.join(None) && queue.is_empty());
}

fn check_recursion<Q: AnyQueue<Item>>() {
    for close in [true, false] {
        let (queue, drops) = (Q::narrow(), Drops::default());
        let (other, count) = (queue.clone(), drops.clone());
        let item = Item::with_drop(1, move |_| {
            assert!(other.try_get().is_err());
            assert_eq!(other.try_put(Item::with_drop(2, |_| ())).is_ok(), !close && Q::ROOM > 0);
            let _ = other.task_done();
            assert!(other.len() <= 1);
            other.close_now();
            count.0.fetch_add(1, SeqCst);
        });
        leave(&queue, item);
        if close {
            queue.close_now();
        } else {
            drop(queue.get());
        }
        assert_eq!(drops.get(), 1);
        assert!(queue.is_closed() && queue.is_empty());
    }
}

fn check_parks<Q: AnyQueue<Item>>() {
    let (queue, drops) = (Q::narrow(), Drops::default());
    let count = drops.clone();
    let item = Item::with_drop(1, move |_| {
        sleep(ms(3));
        count.0.fetch_add(1, SeqCst);
    });
    leave(&queue, item);
    let other = queue.clone();
    let closer = begun(move || other.close_now());
    // Meanwhile the queue is usable.
    assert_eq!(drops.get(), 0);
    assert!(queue.is_closed() && queue.is_empty());
    assert!(queue.get().is_err());
    closer.join().unwrap();
    assert_eq!(drops.get(), 1);

    // Dropped while its getter unwinds.
    let (queue, count) = (Q::narrow(), drops.clone());
    let item = Item::with_drop(1, move |_| {
        sleep(ms(3));
        count.0.fetch_add(1, SeqCst);
    });
    let getter = getter(&queue);
    elsewhere(&queue, |queue| {
        queue.put(item).unwrap();
        queue.close_now();
    });
    getter.request_kill();
    yield_now();
    assert!(!getter.is_finished() && queue.is_empty());
    assert!(getter.join().unwrap_err().is_killed());
    assert_eq!(drops.get(), 2);
}

fn check_panics<Q: AnyQueue<Item>>() {
    let queue = Q::narrow();
    leave(&queue, Item::with_drop(1, |_| panic_with("can't be dropped")));
    let waiting = getter_behind(&queue);
    assert!(is_ended_early(|| queue.close_now()), "the panic comes out where it was dropped");
    // Nothing is poisoned, and everybody was told.
    assert!(queue.is_closed() && queue.is_empty() && queue.join(None));
    assert!(queue.get().is_err() && queue.try_put(Item::with_drop(2, |_| ())).is_err());
    assert!(waiting.join().unwrap());

    // In the frame of a putter that finds the queue closed.
    let queue = Q::narrow();
    queue.close();
    assert!(is_ended_early(|| drop(queue.put(Item::with_drop(1, |_| panic_with("can't be dropped"))))));
    assert!(queue.is_closed() && queue.get().is_err());
}

/// Joins: with an item in it, nobody waits to get one.
fn getter_behind<Q: AnyQueue<Item>>(queue: &Q) -> Greenlet<bool> {
    let queue = queue.clone();
    begun(move || queue.join(None))
}

fn check_killed_putter<Q: AnyQueue<Item>>() {
    let (queue, drops) = (Q::narrow(), Drops::default());
    if Q::ROOM > 0 {
        queue.put(drops.item(0)).unwrap();
    }
    let victim = putter(&queue, drops.item(1));
    let other = queue.clone();
    let (count, item) = (drops.clone(), drops.item(2));
    // Its destructor runs while it unwinds, without the lock.
    let using = begun(move || {
        let _guard = on_drop(move || assert!(count.get() >= 1));
        let again = other.clone();
        let nested = Item::with_drop(3, move |_| {
            let _ = (again.len(), &item);
            drop(again.try_get());
        });
        let _ = other.put(nested);
        forever();
    });
    victim.kill();
    assert_eq!(drops.get(), 1);
    using.kill();
    // Its destructor got the first, and its captures are gone.
    assert_eq!(drops.get(), 2 + Q::ROOM);
    assert!(queue.is_empty());
}

fn check_dropped<Q: AnyQueue<Item>>() {
    let (queue, drops) = (Q::narrow(), Drops::default());
    leave(&queue, drops.item(1));
    drop(queue.clone());
    assert_eq!(drops.get(), 0);
    drop(queue);
    assert_eq!(drops.get(), 1);
}

#[test]
fn the_others_are_dropped_although_one_panics() {
    crate::common::within_a_minute(|| {
        let (queue, drops) = (Queue::unbounded(), Drops::default());
        for id in 0..10 {
            let item = drops.item(id);
            queue.put(if id == 3 { Item::with_drop(3, |_| panic_with("can't be dropped")) } else { item }).unwrap();
        }
        assert_eq!(drops.get(), 1, "the one that was not put");
        assert!(is_ended_early(|| queue.close_now()));
        assert_eq!(drops.get(), 10);
        assert!(queue.join(None) && queue.is_empty());
        assert_eq!(spawn(|| 7).join().unwrap(), 7);
    });
}
