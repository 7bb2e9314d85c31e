//! Queues under load: OS threads with and without hubs, workers, deadlines, timeouts and kills at random moments. Each item
//! is accounted for, once: got, given back by a `put` that failed, or left in the queue.

mod common;

use std::cell::Cell;
use std::cmp::Ordering;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::crowd::{DURATION, Random, crowd};
use common::*;
use greenroom::queue::{Channel, GetError, LifoQueue, PriorityQueue, PutError, Queue};
use greenroom::{ThreadPool, join_all, spawn, timeout, try_hub, yield_now};

// Crowds, with kills.

/// What became of an item.
#[derive(Default)]
struct Fate {
    /// `put` returned that it was put.
    put: AtomicU8,
    /// `put` gave it back.
    given_back: AtomicU8,
    /// `get` returned it, or it was left in the queue.
    got: AtomicU8,
    dropped: AtomicU8,
}

/// An item, and a mark on it.
struct Item {
    id: u64,
    fate: Arc<Fate>,
}

impl Drop for Item {
    fn drop(&mut self) {
        self.fate.dropped.fetch_add(1, SeqCst);
    }
}

impl Clone for Item {
    fn clone(&self) -> Item {
        // Copying takes its time now and then.
        if self.id.is_multiple_of(16) {
            yield_now();
        }
        Item { id: self.id, fate: Arc::default() }
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

/// A queue and all that was ever made for it.
struct Watched<Q> {
    queue: Q,
    fates: Mutex<Vec<Arc<Fate>>>,
}

impl<Q> Watched<Q> {
    fn new(queue: Q) -> Arc<Watched<Q>> {
        Arc::new(Watched { queue, fates: Mutex::default() })
    }

    fn make(&self, random: &Random) -> Item {
        let fate = Arc::<Fate>::default();
        self.fates.lock().unwrap().push(Arc::clone(&fate));
        Item { id: random.below(1_000), fate }
    }

    /// Once nobody is about any more. Returns how many were got.
    fn account(&self) -> usize {
        let fates = self.fates.lock().unwrap();
        let mut got = 0;
        for (at, fate) in fates.iter().enumerate() {
            let [put, given_back, taken, dropped] =
                [&fate.put, &fate.given_back, &fate.got, &fate.dropped].map(|count| count.load(SeqCst));
            let what = format!("item {at} of {}: put {put}, given back {given_back}, got {taken}", fates.len());
            assert_eq!(dropped, 1, "{what}: dropped {dropped} times");
            assert!(taken + given_back <= 1, "{what}");
            assert!(put == 0 || taken == 1, "{what}: lost");
            got += usize::from(taken);
        }
        got
    }
}

macro_rules! crowds {
    ($($name:ident: $kind:ident, $make:expr;)*) => { $(
        #[test]
        fn $name() {
            fn put(shared: &Watched<$kind<Item>>, random: &Random) {
                let item = shared.make(random);
                let fate = Arc::clone(&item.fate);
                // Marked where nothing can come in between.
                let mark = |result: Result<(), PutError<Item>>| match &result {
                    Ok(()) => fate.put.fetch_add(1, SeqCst),
                    Err(_) => fate.given_back.fetch_add(1, SeqCst),
                };
                match random.below(4) {
                    0 => _ = mark(shared.queue.put_timeout(item, random.micros(100))),
                    1 => _ = timeout(random.micros(100), || mark(shared.queue.put(item))),
                    2 => _ = mark(shared.queue.try_put(item)),
                    _ => _ = mark(shared.queue.put_timeout(item, random.micros(2_000))),
                }
            }

            fn get(shared: &Watched<$kind<Item>>, random: &Random) {
                let mark = |result: Result<Item, GetError>| {
                    if let Ok(item) = result {
                        item.fate.got.fetch_add(1, SeqCst);
                    }
                };
                match random.below(5) {
                    0 => mark(shared.queue.get_timeout(random.micros(100))),
                    1 => _ = timeout(random.micros(100), || mark(shared.queue.get())),
                    2 => mark(shared.queue.try_get()),
                    3 => _ = timeout(random.micros(50), || drop(shared.queue.peek())),
                    _ => mark(shared.queue.get_timeout(random.micros(2_000))),
                }
            }

            fn step(shared: &Watched<$kind<Item>>, random: &Random) {
                if random.below(2) == 0 { put(shared, random) } else { get(shared, random) }
                if random.below(32) == 0 {
                    yield_now();
                }
            }

            within_a_minute(|| {
                let shared = Watched::new($make);
                crowd(&shared, step);
                while let Ok(item) = shared.queue.try_get() {
                    item.fate.got.fetch_add(1, SeqCst);
                }
                assert!(shared.queue.is_empty());
                assert!(shared.account() > 100);
            });
        }
    )* };
}

crowds! {
    a_queue_of_one: Queue, Queue::bounded(1);
    a_queue_of_three: Queue, Queue::bounded(3);
    a_queue_without_limit: Queue, Queue::unbounded();
    a_lifo_queue: LifoQueue, LifoQueue::bounded(2);
    a_priority_queue: PriorityQueue, PriorityQueue::bounded(2);
    a_channel: Channel, Channel::new();
}

// Without kills: all there, in order.

/// Who and which of its items.
type Numbered = (usize, usize);

/// Does `work` in greenlets of two hubs, and on a plain thread and a worker: in six places. `work` gets its number.
fn six_places(work: impl Fn(usize) + Send + Sync + 'static) -> Vec<thread::JoinHandle<()>> {
    let work = Arc::new(work);
    let hub_of_two = |first: usize| {
        let work = Arc::clone(&work);
        thread::spawn(move || {
            let both = [first, first + 1].map(|place| {
                let work = Arc::clone(&work);
                spawn(move || work(place))
            });
            join_all(both).into_iter().for_each(|result| result.unwrap());
        })
    };
    let mut threads = vec![hub_of_two(0), hub_of_two(2)];
    let other = Arc::clone(&work);
    threads.push(thread::spawn(move || {
        other(4);
        assert!(try_hub().is_none(), "it made a hub");
    }));
    threads.push(thread::spawn(move || {
        ThreadPool::new(1).run(|| {
            work(5);
            assert!(try_hub().is_none(), "it made a hub");
        });
    }));
    threads
}

const EACH: usize = 1_500;

macro_rules! all_arrive {
    ($($name:ident: $kind:ident, $make:expr, $in_order:literal;)*) => { $(
        #[test]
        fn $name() {
            within_a_minute(|| {
                let queue: $kind<Numbered> = $make;
                let producers = {
                    let queue = queue.clone();
                    six_places(move |place| {
                        let random = Random::new(place as u64);
                        for number in 0..EACH {
                            let mut item = (place, number);
                            // Over and over the same, until it is in.
                            loop {
                                let result = match random.below(4) {
                                    0 => queue.try_put(item),
                                    1 => queue.put_timeout(item, random.micros(60)),
                                    _ => queue.put(item),
                                };
                                match result {
                                    Ok(()) => break,
                                    Err(PutError::Full(same)) => item = same,
                                    Err(PutError::Closed(_)) => panic!("nobody closes it"),
                                }
                                yield_now_on_a_hub();
                            }
                        }
                    })
                };
                let seen = Arc::new(Mutex::new(vec![vec![0_u8; EACH]; 6]));
                let consumers = {
                    let (queue, seen) = (queue.clone(), Arc::clone(&seen));
                    six_places(move |place| {
                        let random = Random::new(100 + place as u64);
                        let mut last = [None; 6];
                        loop {
                            let result = match random.below(4) {
                                0 => queue.try_get(),
                                1 => queue.get_timeout(random.micros(60)),
                                _ => queue.get(),
                            };
                            match result {
                                Ok((producer, number)) => {
                                    let before = last[producer].replace(number);
                                    assert!(!$in_order || before < Some(number), "{before:?} before {number}");
                                    seen.lock().unwrap()[producer][number] += 1;
                                    queue.task_done().unwrap();
                                }
                                Err(GetError::Empty) => yield_now_on_a_hub(),
                                Err(GetError::Closed) => break,
                            }
                        }
                    })
                };
                producers.into_iter().for_each(|thread| thread.join().unwrap());
                assert!(queue.join(None));
                queue.close();
                consumers.into_iter().for_each(|thread| thread.join().unwrap());
                assert!(seen.lock().unwrap().iter().flatten().all(|&times| times == 1));
                assert!(queue.is_empty() && queue.task_done().is_err());
            });
        }
    )* };
}

/// Lets others of its hub run; on a thread without one, other threads.
fn yield_now_on_a_hub() {
    if try_hub().is_some() { yield_now() } else { thread::yield_now() }
}

all_arrive! {
    in_order_through_a_queue_of_one: Queue, Queue::bounded(1), true;
    in_order_through_a_queue_of_five: Queue, Queue::bounded(5), true;
    in_order_through_a_channel: Channel, Channel::new(), true;
    through_a_lifo_queue: LifoQueue, LifoQueue::bounded(3), false;
    through_a_priority_queue: PriorityQueue, PriorityQueue::bounded(3), false;
}

#[test]
fn closed_at_any_moment_each_item_is_somewhere() {
    // All that was put is got, or was in it when it was discarded; no `put` that failed has put.
    within_a_minute(|| {
        let start = Instant::now();
        let random = Random::new(7);
        let mut rounds = 0;
        while start.elapsed() < DURATION {
            rounds += 1;
            let shared = Watched::new(if rounds % 2 == 0 { Queue::bounded(2) } else { Queue::unbounded() });
            let (discards, left) = (random.below(2) == 0, Arc::new(AtomicUsize::new(0)));
            let workers = {
                let (shared, left) = (Arc::clone(&shared), Arc::clone(&left));
                six_places(move |place| {
                    let random = Random::new(place as u64);
                    if place % 2 == 0 {
                        loop {
                            let item = shared.make(&random);
                            let fate = Arc::clone(&item.fate);
                            match shared.queue.put(item) {
                                Ok(()) => _ = left.fetch_add(1, SeqCst),
                                Err(error) => {
                                    assert!(error.is_closed());
                                    fate.given_back.fetch_add(1, SeqCst);
                                    break;
                                }
                            }
                            yield_now_on_a_hub();
                        }
                    } else {
                        for item in &shared.queue {
                            item.fate.got.fetch_add(1, SeqCst);
                            left.fetch_sub(1, SeqCst);
                        }
                    }
                })
            };
            thread::sleep(random.micros(3_000));
            if discards {
                shared.queue.close_now()
            } else {
                shared.queue.close()
            }
            workers.into_iter().for_each(|thread| thread.join().unwrap());
            assert!(discards || left.load(SeqCst) == 0, "what was put before closing can be got");
            assert!(shared.queue.is_empty());
            shared.account();
        }
        assert!(rounds > 3);
    });
}

#[test]
fn a_getter_without_a_time_gets_what_the_killed_leave() {
    // Victims wait for the same items; what one of them was handed when it was killed must go on to the consumers.
    within_a_minute(|| {
        let queue = Queue::bounded(1);
        let is_over = Arc::new(AtomicBool::new(false));
        let consumers = [false, true].map(|with_hub| {
            let queue = queue.clone();
            let work = move || queue.iter().collect::<Vec<u32>>();
            thread::spawn(move || if with_hub { spawn(work).join().unwrap() } else { work() })
        });
        let victims = {
            let (queue, is_over) = (queue.clone(), Arc::clone(&is_over));
            thread::spawn(move || {
                let (random, mut got) = (Random::new(3), Vec::new());
                while !is_over.load(SeqCst) {
                    let victims = [(); 4].map(|()| {
                        let queue = queue.clone();
                        begun(move || queue.get())
                    });
                    greenroom::sleep(random.micros(60));
                    victims.iter().for_each(greenroom::Greenlet::request_kill);
                    for victim in victims {
                        got.extend(victim.join().into_iter().flatten());
                    }
                }
                got
            })
        };
        let start = Instant::now();
        let mut put = 0;
        while start.elapsed() < DURATION {
            queue.put(put).unwrap();
            put += 1;
            if put.is_multiple_of(32) {
                thread::sleep(Duration::from_micros(50));
            }
        }
        is_over.store(true, SeqCst);
        let mut all = victims.join().unwrap();
        queue.close();
        consumers.into_iter().for_each(|thread| all.extend(thread.join().unwrap()));
        all.sort_unstable();
        assert_eq!(all, (0..put).collect::<Vec<_>>());
    });
}

#[test]
fn many_on_one_hub_share_a_channel() {
    within_a_minute(|| {
        let (channel, count) = (Channel::new(), Rc::new(Cell::new(0)));
        let readers = [(); 3].map(|()| {
            let (channel, count) = (channel.clone(), Rc::clone(&count));
            spawn(move || channel.iter().for_each(|number: usize| count.set(count.get() + number)))
        });
        let writers = [(); 3].map(|()| {
            let channel = channel.clone();
            spawn(move || (0..1_000).for_each(|number| channel.put(number).unwrap()))
        });
        join_all(writers).into_iter().for_each(|result| result.unwrap());
        channel.close();
        join_all(readers).into_iter().for_each(|result| result.unwrap());
        assert_eq!(count.get(), 3 * (0..1_000).sum::<usize>());
    });
}
