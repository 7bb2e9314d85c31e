//! Each operation, in each place, with each end.

use std::thread;
use std::time::{Duration, Instant};

use greenroom::queue::{GetError, PutError};
use greenroom::{ThreadPool, hub, spawn, timeout, try_hub};

use crate::common::places::PLACES;
use crate::common::{LONG, begun, ms};
use crate::{AnyQueue, FILLER, drain, full};

each_queue! { u32;
    done: check_done;
    done_on_one_hub: check_done_on_one_hub;
    timed_out: check_timed_out;
    closed: check_closed;
    killed: check_killed;
}

#[derive(Debug, PartialEq)]
enum End {
    Got(u32),
    Put,
    Joined,
    TimedOut,
    Closed,
}

impl End {
    fn of_get(result: Result<u32, GetError>) -> End {
        match result {
            Ok(item) => End::Got(item),
            Err(GetError::Empty) => End::TimedOut,
            Err(GetError::Closed) => End::Closed,
        }
    }

    fn of_put(result: Result<(), PutError<u32>>) -> End {
        match result {
            Ok(()) => End::Put,
            Err(PutError::Full(ITEM)) => End::TimedOut,
            Err(PutError::Closed(ITEM)) => End::Closed,
            Err(error) => panic!("it gave another item back: {}", error.into_inner()),
        }
    }
}

const ITEM: u32 = 7;

/// An operation, and what lets it be done.
struct Operation<Q> {
    name: &'static str,
    /// One on which it has to wait.
    prepare: fn() -> Q,
    /// With a limit or not.
    wait: fn(&Q, Option<Duration>) -> End,
    done: End,
    /// Lets it be done, and checks what it has done.
    enable: fn(&Q),
    /// How it ends if the queue is closed.
    closed: End,
}

/// Without a limit of its own.
fn limited(limit: Option<Duration>, f: impl FnOnce() -> End) -> End {
    match limit {
        None => f(),
        Some(limit) => timeout(limit, f).unwrap_or(End::TimedOut),
    }
}

fn operations<Q: AnyQueue<u32>>() -> [Operation<Q>; 5] {
    [
        Operation {
            name: "get",
            prepare: Q::narrow,
            wait: |queue, limit| match limit {
                None => End::of_get(queue.get()),
                Some(limit) => End::of_get(queue.get_timeout(limit)),
            },
            done: End::Got(ITEM),
            enable: |queue| queue.put(ITEM).unwrap(),
            closed: End::Closed,
        },
        Operation {
            name: "next",
            prepare: Q::narrow,
            wait: |queue, limit| limited(limit, || queue.next().map_or(End::Closed, End::Got)),
            done: End::Got(ITEM),
            enable: |queue| queue.put(ITEM).unwrap(),
            closed: End::Closed,
        },
        Operation {
            name: "peek",
            prepare: Q::narrow,
            wait: |queue, limit| {
                let end = limited(limit, || End::of_get(queue.peek()));
                assert!(end != End::Got(ITEM) || queue.try_get() == Ok(ITEM), "peek removed it");
                end
            },
            done: End::Got(ITEM),
            enable: |queue| queue.put(ITEM).unwrap(),
            closed: End::Closed,
        },
        Operation {
            name: "put",
            prepare: full,
            wait: |queue, limit| match limit {
                None => End::of_put(queue.put(ITEM)),
                Some(limit) => End::of_put(queue.put_timeout(ITEM, limit)),
            },
            done: End::Put,
            enable: |queue| {
                drain(queue);
                assert_eq!(queue.get(), Ok(ITEM));
            },
            closed: End::Closed,
        },
        Operation {
            name: "join",
            prepare: || {
                let queue = Q::narrow();
                let other = queue.clone();
                let putter = thread::spawn(move || other.put(ITEM));
                queue.get().unwrap();
                putter.join().unwrap().unwrap();
                queue
            },
            wait: |queue, limit| if queue.join(limit) { End::Joined } else { End::TimedOut },
            done: End::Joined,
            enable: |queue| queue.task_done().unwrap(),
            closed: End::TimedOut,
        },
    ]
}

/// From where it is let done: runs on a thread of its own.
type Enabler = fn(&(dyn Fn() + Sync));

const ENABLERS: [(&str, Enabler); 3] = [
    ("plain thread", |enable| {
        enable();
        assert!(try_hub().is_none(), "enabling made a hub");
    }),
    ("main", |enable| {
        hub();
        enable();
    }),
    ("worker", |enable| ThreadPool::new(1).run(enable)),
];

fn check_done<Q: AnyQueue<u32>>() {
    for (place_name, place) in PLACES {
        for (enabler_name, enabler) in ENABLERS {
            for (limit, delay) in [(None, 0), (None, 2), (Some(LONG), 2), (Some(Duration::MAX), 2)] {
                for operation in operations::<Q>() {
                    let queue = (operation.prepare)();
                    let other = queue.clone();
                    let waiter = thread::spawn(move || {
                        place(
                            operation.name,
                            Box::new(move || {
                                assert_eq!(timeout(LONG, || (operation.wait)(&queue, limit)), Ok(operation.done));
                            }),
                        );
                    });
                    thread::sleep(ms(delay));
                    thread::spawn(move || enabler(&|| (operation.enable)(&other))).join().unwrap();
                    let result = waiter.join();
                    let name = operation.name;
                    assert!(result.is_ok(), "{name} in a {place_name}, from a {enabler_name}, limit {limit:?}");
                }
            }
        }
    }
}

fn check_done_on_one_hub<Q: AnyQueue<u32>>() {
    for limit in [None, Some(LONG), Some(Duration::MAX)] {
        for operation in operations::<Q>() {
            // A greenlet waits.
            let queue = (operation.prepare)();
            let other = queue.clone();
            let waiter = begun(move || (operation.wait)(&other, limit));
            assert!(!waiter.is_finished());
            (operation.enable)(&queue);
            assert_eq!(waiter.join().unwrap(), operation.done);
            // Main waits.
            let queue = (operation.prepare)();
            let other = queue.clone();
            let enabler = spawn(move || (operation.enable)(&other));
            assert_eq!((operation.wait)(&queue, limit), operation.done);
            enabler.join().unwrap();
        }
    }
}

fn check_timed_out<Q: AnyQueue<u32>>() {
    for (_, place) in PLACES {
        for operation in operations::<Q>() {
            let wait = move || {
                let queue = (operation.prepare)();
                let len = queue.len();
                for limit in [Duration::ZERO, ms(2), ms(4)] {
                    let start = Instant::now();
                    assert_eq!((operation.wait)(&queue, Some(limit)), End::TimedOut);
                    assert!(start.elapsed() >= limit);
                    assert!(timeout(limit, || (operation.wait)(&queue, None)).is_err());
                    assert!(start.elapsed() >= 2 * limit);
                    assert_eq!(timeout(LONG, || (operation.wait)(&queue, Some(limit))), Ok(End::TimedOut));
                    assert!(matches!(
                        timeout(limit, || (operation.wait)(&queue, Some(LONG))),
                        Err(_) | Ok(End::TimedOut)
                    ));
                    assert_eq!(queue.len(), len, "{} did something all the same", operation.name);
                }
                // Nobody is in line any more, so nothing can go to the wrong one.
                let other = queue.clone();
                let enabler = thread::spawn(move || {
                    thread::sleep(ms(1));
                    (operation.enable)(&other);
                });
                assert_eq!((operation.wait)(&queue, Some(LONG)), operation.done);
                enabler.join().unwrap();
            };
            thread::spawn(move || place(operation.name, Box::new(wait))).join().unwrap();
        }
    }
}

fn check_closed<Q: AnyQueue<u32>>() {
    for (_, place) in PLACES {
        for (close, drops) in [(Q::close as fn(&Q), false), (Q::close_now, true)] {
            for delay in [0, 2] {
                for operation in operations::<Q>() {
                    let queue = (operation.prepare)();
                    let left = if drops { 0 } else { queue.len() };
                    let (other, closed) = (queue.clone(), operation.closed);
                    // What was got before is done by who got it, not by closing.
                    let limit = (operation.name == "join").then_some(ms(4));
                    let wait = move || {
                        assert_eq!((operation.wait)(&other, limit), closed, "{}", operation.name);
                        // A join may time out before it comes to that.
                        while !other.is_closed() {
                            thread::sleep(ms(1));
                        }
                        assert_eq!(other.put(ITEM), Err(PutError::Closed(ITEM)));
                        assert_eq!(other.put_timeout(ITEM, Duration::ZERO), Err(PutError::Closed(ITEM)));
                        assert_eq!(other.try_put(ITEM), Err(PutError::Closed(ITEM)));
                    };
                    let closer = queue.clone();
                    let thread = thread::spawn(move || {
                        thread::sleep(ms(delay));
                        close(&closer);
                    });
                    thread::spawn(move || {
                        place(operation.name, Box::new(wait));
                    })
                    .join()
                    .unwrap();
                    thread.join().unwrap();
                    for _ in 0..left {
                        assert_eq!(queue.get(), Ok(FILLER));
                    }
                    assert_eq!(queue.get(), Err(GetError::Closed));
                    assert_eq!(queue.try_get(), Err(GetError::Closed));
                    assert_eq!(queue.get_timeout(LONG), Err(GetError::Closed));
                    assert_eq!(queue.peek(), Err(GetError::Closed));
                    assert_eq!(queue.next(), None);
                }
            }
        }
    }
}

fn check_killed<Q: AnyQueue<u32>>() {
    for limit in [None, Some(LONG)] {
        for operation in operations::<Q>() {
            let queue = (operation.prepare)();
            let len = queue.len();
            let [first, second, third, fourth] = [(); 4].map(|()| {
                let queue = queue.clone();
                begun(move || (operation.wait)(&queue, limit))
            });
            // From the middle, the front, the end.
            for victim in [second, first, fourth] {
                victim.kill();
                assert!(victim.join().unwrap_err().is_killed());
            }
            assert!(!third.is_finished());
            assert_eq!(queue.len(), len, "{} did something all the same", operation.name);
            (operation.enable)(&queue);
            assert_eq!(third.join().unwrap(), operation.done);
        }
    }
}
