//! Queues: what each does, from every kind of thread, with kills, timeouts and closing at every moment.
//!
//! * this file: what the tests share, and the common use.
//! * `everywhere`: each operation in each place, with each end.
//! * `moments`: kill, timeout and hand-over in the same turn; hubs that have ended.
//! * `closing`: `close`, `close_now`, destructors of items, `task_done` and `join`.
//! * `looking`: `peek`.
//! * `models`: random sequences against a list.

#[path = "../common/mod.rs"]
mod common;

/// Tests for each kind of queue: `name: check;` calls `check::<Queue<item>>()` and so on.
macro_rules! each_queue {
    ($item:ty; $($name:ident: $check:ident;)*) => { $(
        mod $name {
            use greenroom::queue::{Channel, LifoQueue, PriorityQueue, Queue};

            #[allow(unused_imports, reason = "the item may be a type of the language")]
            use super::*;

            #[test]
            fn queue() {
                crate::common::within_a_minute(super::$check::<Queue<$item>>);
            }

            #[test]
            fn lifo_queue() {
                crate::common::within_a_minute(super::$check::<LifoQueue<$item>>);
            }

            #[test]
            fn priority_queue() {
                crate::common::within_a_minute(super::$check::<PriorityQueue<$item>>);
            }

            #[test]
            fn channel() {
                crate::common::within_a_minute(super::$check::<Channel<$item>>);
            }
        }
    )* };
}

mod closing;
mod everywhere;
mod looking;
mod models;
mod moments;

use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use common::*;
use greenroom::queue::{Channel, GetError, LifoQueue, PriorityQueue, PutError, Queue, TaskDoneError};
use greenroom::{Greenlet, ThreadPool, hub, join_all, sleep, spawn, timeout, yield_now};

// What the four have in common.

trait AnyQueue<T>: Clone + Send + Sync + 'static {
    /// How many items go into one that `narrow` has made.
    const ROOM: usize;

    /// With as little room as there can be.
    fn narrow() -> Self;

    fn put(&self, item: T) -> Result<(), PutError<T>>;
    fn try_put(&self, item: T) -> Result<(), PutError<T>>;
    fn put_timeout(&self, item: T, d: Duration) -> Result<(), PutError<T>>;
    fn get(&self) -> Result<T, GetError>;
    fn try_get(&self) -> Result<T, GetError>;
    fn get_timeout(&self, d: Duration) -> Result<T, GetError>;
    fn peek(&self) -> Result<T, GetError>;
    fn next(&self) -> Option<T>;
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool;
    fn is_full(&self) -> bool;
    fn task_done(&self) -> Result<(), TaskDoneError>;
    fn join(&self, timeout: Option<Duration>) -> bool;
    fn close(&self);
    fn close_now(&self);
    fn is_closed(&self) -> bool;
}

macro_rules! any_queue {
    ($($kind:ident: $room:literal, $make:expr;)*) => { $(
        impl<T: Clone + Ord + Send + 'static> AnyQueue<T> for $kind<T> {
            const ROOM: usize = $room;

            fn narrow() -> Self {
                $make
            }

            any_queue! { $kind:
                put(item: T) -> Result<(), PutError<T>>;
                try_put(item: T) -> Result<(), PutError<T>>;
                put_timeout(item: T, d: Duration) -> Result<(), PutError<T>>;
                get() -> Result<T, GetError>;
                try_get() -> Result<T, GetError>;
                get_timeout(d: Duration) -> Result<T, GetError>;
                peek() -> Result<T, GetError>;
                len() -> usize;
                is_empty() -> bool;
                is_full() -> bool;
                task_done() -> Result<(), TaskDoneError>;
                join(timeout: Option<Duration>) -> bool;
                close() -> ();
                close_now() -> ();
                is_closed() -> bool;
            }

            fn next(&self) -> Option<T> {
                self.iter().next()
            }
        }
    )* };
    ($kind:ident: $($method:ident($($arg:ident: $of:ty),*) -> $result:ty;)*) => { $(
        fn $method(&self, $($arg: $of),*) -> $result {
            $kind::$method(self, $($arg),*)
        }
    )* };
}

any_queue! {
    Queue: 1, Queue::bounded(1);
    LifoQueue: 1, LifoQueue::bounded(1);
    PriorityQueue: 1, PriorityQueue::bounded(1);
    Channel: 0, Channel::new();
}

/// What fills a queue that is full; smaller than all others.
const FILLER: u32 = 0;

/// One whose `put` has to wait.
fn full<Q: AnyQueue<u32>>() -> Q {
    let queue = Q::narrow();
    (0..Q::ROOM).for_each(|_| queue.put(FILLER).unwrap());
    queue
}

/// Takes out what fills it.
fn drain<Q: AnyQueue<u32>>(queue: &Q) {
    (0..Q::ROOM).for_each(|_| assert_eq!(queue.try_get(), Ok(FILLER)));
}

/// A greenlet that has begun to get.
fn getter<T: Send + 'static, Q: AnyQueue<T>>(queue: &Q) -> Greenlet<Result<T, GetError>> {
    let queue = queue.clone();
    begun(move || queue.get())
}

/// A greenlet that has begun to put.
fn putter<T: Send + 'static, Q: AnyQueue<T>>(queue: &Q, item: T) -> Greenlet<Result<(), PutError<T>>> {
    let queue = queue.clone();
    begun(move || queue.put(item))
}

/// Does something on a thread without a hub, while no greenlet of this one runs.
fn elsewhere<Q: Clone + Send + 'static, R: Send + 'static>(queue: &Q, f: impl FnOnce(Q) -> R + Send + 'static) -> R {
    let queue = queue.clone();
    thread::spawn(move || f(queue)).join().unwrap()
}

type Hook = Arc<dyn Fn(u32) + Send + Sync>;

/// An item whose clone and destructor do something. Its clones are harmless.
struct Item {
    id: u32,
    on_clone: Option<Hook>,
    on_drop: Option<Hook>,
}

impl Item {
    fn with_drop(id: u32, f: impl Fn(u32) + Send + Sync + 'static) -> Item {
        Item { id, on_drop: Some(Arc::new(f)), on_clone: None }
    }

    fn with_clone(id: u32, f: impl Fn(u32) + Send + Sync + 'static) -> Item {
        Item { id, on_clone: Some(Arc::new(f)), on_drop: None }
    }
}

impl Clone for Item {
    fn clone(&self) -> Item {
        if let Some(f) = &self.on_clone {
            f(self.id);
        }
        Item { id: self.id, on_clone: None, on_drop: None }
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "item {}", self.id)
    }
}

impl Drop for Item {
    fn drop(&mut self) {
        if let Some(f) = self.on_drop.take() {
            f(self.id);
        }
    }
}

impl Ord for Item {
    fn cmp(&self, other: &Item) -> Ordering {
        self.id.cmp(&other.id)
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Item) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Item) -> bool {
        self.id == other.id
    }
}

impl Eq for Item {}

// The common use.

each_queue! { u32;
    nothing_parks_that_can_be_done_at_once: check_at_once;
    both_lines_are_served_in_order: check_lines;
    a_getter_is_woken_at_once_from_elsewhere: check_woken_at_once;
    a_greenlet_in_its_destructor_may_wait: check_in_a_destructor;
    clones_are_the_same_queue: check_clones;
}

#[test]
fn the_third_of_two_parks_until_one_is_out() {
    within_a_minute(|| {
        let (queue, trace) = (Queue::bounded(2), Trace::new());
        let putter = {
            let (queue, trace) = (queue.clone(), trace.clone());
            begun(move || {
                for item in ["a", "b", "c"] {
                    queue.put(item).unwrap();
                    trace.add(item);
                }
            })
        };
        assert_eq!(trace.take(), ["a", "b"]);
        assert!(queue.is_full() && queue.len() == 2);
        yield_now();
        assert_eq!(trace.len(), 0);
        assert_eq!(queue.get(), Ok("a"));
        yield_now();
        assert_eq!(trace.take(), ["c"]);
        putter.join().unwrap();
        assert_eq!([queue.get(), queue.get()], [Ok("b"), Ok("c")]);
    });
}

fn check_at_once<Q: AnyQueue<u32>>() {
    let ran = Count::new();
    let queue = Q::narrow();
    let putter = (Q::ROOM == 0).then(|| putter(&queue, 7));
    let other = ran.clone();
    let counter = spawn(move || other.add());
    if Q::ROOM > 0 {
        queue.put(7).unwrap();
    }
    assert_eq!(queue.try_put(8), Err(PutError::Full(8)));
    assert_eq!(queue.get(), Ok(7));
    assert_eq!(queue.try_get(), Err(GetError::Empty));
    // Neither waits, so a timeout that has expired can't end it; a time of zero is enough, too.
    for _ in 0..Q::ROOM {
        assert_eq!(timeout(Duration::ZERO, || queue.put(1)), Ok(Ok(())));
        assert_eq!(timeout(Duration::ZERO, || queue.get()), Ok(Ok(1)));
        assert_eq!(queue.put_timeout(1, Duration::ZERO), Ok(()));
        assert_eq!(queue.get_timeout(Duration::ZERO), Ok(1));
        assert_eq!(queue.put_timeout(1, Duration::MAX), Ok(()));
        assert_eq!(queue.get_timeout(Duration::MAX), Ok(1));
        queue.try_put(2).unwrap();
        assert_eq!(queue.peek(), Ok(2));
        assert_eq!(queue.next(), Some(2));
    }
    assert_eq!(ran.get(), 0, "it parked");
    counter.join().unwrap();
    if let Some(putter) = putter {
        putter.join().unwrap().unwrap();
    }

    // Who waits on the other side is found at once as well.
    let putter = putter_behind(&queue);
    assert_eq!(queue.get_timeout(Duration::ZERO), Ok(7));
    putter.join().unwrap().unwrap();
    let getter = getter(&queue);
    assert_eq!(queue.put_timeout(9, Duration::ZERO), Ok(()));
    assert_eq!(getter.join().unwrap(), Ok(9));
}

/// Somebody whose item is the next.
fn putter_behind<Q: AnyQueue<u32>>(queue: &Q) -> Greenlet<Result<(), PutError<u32>>> {
    let queue = queue.clone();
    begun(move || queue.put(7))
}

fn check_lines<Q: AnyQueue<u32>>() {
    let (queue, trace) = (Q::narrow(), Trace::new());
    let getters: Vec<_> = (0..20)
        .map(|i| {
            let (queue, trace) = (queue.clone(), trace.clone());
            begun(move || {
                let item = queue.get().unwrap();
                trace.add(format!("{i} {item}"));
            })
        })
        .collect();
    (0..20).for_each(|item| queue.put(item).unwrap());
    join_all(getters);
    assert_eq!(trace.take(), (0..20).map(|i| format!("{i} {i}")).collect::<Vec<_>>());

    let queue = full::<Q>();
    let putters: Vec<_> = (1..20)
        .map(|i| {
            let (queue, trace) = (queue.clone(), trace.clone());
            begun(move || {
                queue.put(i).unwrap();
                trace.add(format!("{i}"));
            })
        })
        .collect();
    drain(&queue);
    // One item at a time, so their order is that of the putters for each kind of queue.
    for i in 1..20 {
        assert_eq!(queue.get(), Ok(i));
    }
    join_all(putters);
    assert_eq!(trace.take(), (1..20).map(|i| format!("{i}")).collect::<Vec<_>>());
}

#[test]
fn hello_world_through_a_channel() {
    within_a_minute(|| {
        let (channel, trace) = (Channel::new(), Trace::new());
        let reader = {
            let (channel, trace) = (channel.clone(), trace.clone());
            spawn(move || (0..2).for_each(|_| trace.add(channel.get().unwrap())))
        };
        trace.add("sending");
        for word in ["hello", "world"] {
            channel.put(word).unwrap();
            trace.add(format!("sent {word}"));
        }
        reader.join().unwrap();
        assert_eq!(trace.take(), ["sending", "hello", "sent hello", "world", "sent world"]);
    });
}

#[test]
fn each_has_its_order() {
    fn order<Q: IntoIterator<Item = u32>>(queue: Q, put: fn(&Q, u32), close: fn(&Q)) -> Vec<u32> {
        [2, 3, 1, 3, 0].iter().for_each(|&item| put(&queue, item));
        close(&queue);
        queue.into_iter().collect()
    }
    macro_rules! orders {
        ($($kind:ident: $order:expr;)*) => { $(
            for queue in [$kind::unbounded(), $kind::bounded(5)] {
                assert_eq!(order(queue, |queue, item| queue.try_put(item).unwrap(), $kind::close), $order);
            }
        )* };
    }
    orders! {
        Queue: [2, 3, 1, 3, 0];
        LifoQueue: [0, 3, 1, 3, 2];
        PriorityQueue: [0, 1, 2, 3, 3];
    }
}

#[test]
fn a_putters_item_finds_its_place_among_the_others() {
    within_a_minute(|| {
        let smallest = PriorityQueue::bounded(2);
        (5..7).for_each(|item| smallest.put(item).unwrap());
        let waiting = [putter(&smallest, 1), putter(&smallest, 9)];
        assert_eq!([(); 4].map(|()| smallest.get().unwrap()), [5, 1, 6, 9]);
        join_all(waiting);

        let newest = LifoQueue::bounded(2);
        (5..7).for_each(|item| newest.put(item).unwrap());
        let waiting = [putter(&newest, 1), putter(&newest, 9)];
        assert_eq!([(); 4].map(|()| newest.get().unwrap()), [6, 1, 9, 5]);
        join_all(waiting);
    });
}

fn check_woken_at_once<Q: AnyQueue<u32>>() {
    for from_worker in [false, true] {
        let queue = Q::narrow();
        // Until the next timer it would be an hour.
        let timer = begun(|| sleep(LONG));
        let getter = getter(&queue);
        let other = queue.clone();
        let thread = thread::spawn(move || {
            thread::sleep(ms(5));
            if from_worker { ThreadPool::new(1).run(|| other.put(7)) } else { other.put(7) }
        });
        assert_eq!(getter.join().unwrap(), Ok(7));
        thread.join().unwrap().unwrap();
        timer.kill();
    }
}

fn check_in_a_destructor<Q: AnyQueue<u32>>() {
    let (queue, seen) = (Q::narrow(), Trace::new());
    let (other, trace) = (queue.clone(), seen.clone());
    let greenlet = begun(move || {
        let _guard = on_drop(move || {
            trace.add(format!("{:?}", other.get_timeout(ms(1))));
            trace.add(format!("{:?}", other.get()));
            (0..Q::ROOM).for_each(|_| other.put(FILLER).unwrap());
            trace.add(format!("{:?}", other.put_timeout(1, ms(1))));
            trace.add(format!("{:?}", other.put(2)));
        });
        forever();
    });
    greenlet.request_kill();
    while seen.len() == 0 {
        sleep(ms(1));
    }
    assert_eq!(seen.take(), ["Err(Empty)"]);
    queue.put(7).unwrap();
    while seen.len() < 2 {
        sleep(ms(1));
    }
    assert_eq!(seen.take(), ["Ok(7)", "Err(Full(..))"]);
    assert!(!greenlet.is_finished());
    drain(&queue);
    assert_eq!(queue.get(), Ok(2));
    assert!(greenlet.join().unwrap_err().is_killed());
    assert_eq!(seen.take(), ["Ok(())"]);
}

fn check_clones<Q: AnyQueue<u32>>() {
    let queue = Q::narrow();
    let getter = getter(&queue.clone());
    queue.clone().put(7).unwrap();
    assert_eq!(getter.join().unwrap(), Ok(7));
    queue.clone().close();
    assert!(queue.is_closed() && queue.is_empty());
}

#[test]
fn no_room_is_a_panic_that_names_the_channel() {
    for make in [
        || drop(Queue::<u32>::bounded(0)),
        || drop(LifoQueue::<u32>::bounded(0)),
        || {
            drop(PriorityQueue::<u32>::bounded(0));
        },
    ] {
        let payload = thread::spawn(make).join().unwrap_err();
        assert!(text_of(&*payload).contains("Channel::new()"), "{}", text_of(&*payload));
    }
}

#[test]
fn capacity_tells_the_room() {
    let (queue, stack, smallest) = (Queue::bounded(3), LifoQueue::bounded(3), PriorityQueue::bounded(3));
    assert_eq!([queue.capacity(), stack.capacity(), smallest.capacity()], [Some(3); 3]);
    for item in 0..3 {
        assert!(!queue.is_full() && !stack.is_full() && !smallest.is_full());
        (queue.try_put(item), stack.try_put(item), smallest.try_put(item)).0.unwrap();
    }
    assert!(queue.is_full() && stack.is_full() && smallest.is_full());
    assert_eq!(Queue::<u32>::unbounded().capacity(), None);
    assert!(!Queue::<u32>::unbounded().is_full());
    let channel = Channel::<u32>::default();
    assert!(channel.is_full() && channel.is_empty());
}

#[test]
fn what_waits_is_told_by_hub_threads_too() {
    // The getter's hub does nothing else than wait, and the putter's nothing else than put.
    within_a_minute(|| {
        let queue = Queue::bounded(1);
        let other = queue.clone();
        let thread = thread::spawn(move || {
            hub();
            (0..1_000).for_each(|item| other.put(item).unwrap());
            other.close();
        });
        assert_eq!(spawn(move || queue.iter().collect::<Vec<u32>>()).join().unwrap(), (0..1_000).collect::<Vec<_>>());
        thread.join().unwrap();
    });
}

#[test]
fn items_that_stay_on_their_thread_can_be_queued_there() {
    within_a_minute(|| {
        let queue = Queue::bounded(1);
        let other = queue.clone();
        let getter = begun(move || other.iter().map(|item: Rc<u32>| *item).sum::<u32>());
        (0..5).for_each(|item| queue.put(Rc::new(item)).unwrap());
        queue.close();
        assert_eq!(getter.join().unwrap(), 10);
    });
}
