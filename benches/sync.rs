//! What the primitives cost: an item from hand to hand on one hub and across two, locks with and without competition.
//!
//! ```console
//! cargo bench --bench sync
//! cargo bench --bench sync -- --measurement-time 1 rendezvous
//! ```

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion};
use greenroom::queue::{Channel, Queue};
use greenroom::sync::{Event, Mutex, Semaphore};
use greenroom::{hub, join_all, spawn, yield_now};

fn main() {
    // Not on the first use that is measured.
    hub();
    let mut criterion = Criterion::default().configure_from_args();
    hand_over(criterion.benchmark_group("hand-over, one hub"));
    across_hubs(criterion.benchmark_group("hand-over, two hubs"));
    locks(criterion.benchmark_group("lock"));
    criterion.final_summary();
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// The time of `items` items from one greenlet to another.
macro_rules! pass {
    ($queue:expr) => {
        |items: u64| {
            let queue = Rc::new($queue);
            let putter = spawn({
                let queue = Rc::clone(&queue);
                move || (0..items).for_each(|item| queue.put(item).expect("it is open"))
            });
            let getter = spawn(move || {
                (0..items).for_each(|_| {
                    let _ = black_box(queue.get());
                })
            });
            let start = Instant::now();
            join_all([putter, getter]);
            start.elapsed()
        }
    };
}

fn hand_over(mut group: Group<'_>) {
    group.bench_function("rendezvous", |bencher| bencher.iter_custom(pass!(Channel::new())));
    group.bench_function("Queue of 1", |bencher| bencher.iter_custom(pass!(Queue::bounded(1))));
    group.bench_function("Queue of 100", |bencher| bencher.iter_custom(pass!(Queue::bounded(100))));
    // The getter is ready all the time, but runs only when the putter has given way: after 64 items each.
    group.bench_function("unbounded Queue, 64 at a time", |bencher| {
        bencher.iter_custom(|items| {
            let queue = Queue::unbounded();
            let putter = spawn({
                let queue = queue.clone();
                move || {
                    for item in 0..items {
                        queue.put(item).expect("it is open");
                        if item % 64 == 63 {
                            yield_now();
                        }
                    }
                }
            });
            let getter = spawn(move || {
                (0..items).for_each(|_| {
                    let _ = black_box(queue.get());
                })
            });
            let start = Instant::now();
            join_all([putter, getter]);
            start.elapsed()
        });
    });
    group.bench_function("put + get of an unbounded Queue, nobody parks", |bencher| {
        let queue = Queue::unbounded();
        bencher.iter(|| {
            queue.put(black_box(7)).expect("it is open");
            queue.get().expect("it is there")
        });
    });
    group.bench_function("Event, set and waited for by turns", |bencher| {
        bencher.iter_custom(|rounds| {
            let events = Rc::new([Event::new(), Event::new()]);
            let sides = [0, 1].map(|side| {
                let events = Rc::clone(&events);
                spawn(move || {
                    for _ in 0..rounds {
                        if side == 0 {
                            events[1].set();
                        }
                        events[side].wait();
                        events[side].clear();
                        if side == 1 {
                            events[0].set();
                        }
                    }
                })
            });
            let start = Instant::now();
            join_all(sides);
            start.elapsed()
        });
    });
}

/// Runs `far` on a hub of another thread and `near` on this one; the time until both are done.
fn on_two_hubs(near: impl FnOnce() + 'static, far: impl FnOnce() + Send + 'static) -> Duration {
    let ready = Arc::new(Event::new());
    let thread = thread::spawn({
        let ready = Arc::clone(&ready);
        move || {
            hub();
            ready.set();
            spawn(far).join().expect("it returns");
        }
    });
    ready.wait();
    let start = Instant::now();
    spawn(near).join().expect("it returns");
    thread.join().expect("it returns");
    start.elapsed()
}

fn across_hubs(mut group: Group<'_>) {
    group.sample_size(20);
    group.bench_function("rendezvous", |bencher| {
        bencher.iter_custom(|items| {
            let near = Channel::new();
            let far = near.clone();
            on_two_hubs(
                move || (0..items).for_each(|item| near.put(item).expect("it is open")),
                move || {
                    (0..items).for_each(|_| {
                        let _ = black_box(far.get());
                    })
                },
            )
        });
    });
    group.bench_function("Queue of 100", |bencher| {
        bencher.iter_custom(|items| {
            let near = Queue::bounded(100);
            let far = near.clone();
            on_two_hubs(
                move || (0..items).for_each(|item| near.put(item).expect("it is open")),
                move || {
                    (0..items).for_each(|_| {
                        let _ = black_box(far.get());
                    })
                },
            )
        });
    });
    group.bench_function("unbounded Queue", |bencher| {
        bencher.iter_custom(|items| {
            let near = Queue::unbounded();
            let far = near.clone();
            on_two_hubs(
                move || (0..items).for_each(|item| near.put(item).expect("it is open")),
                move || {
                    (0..items).for_each(|_| {
                        let _ = black_box(far.get());
                    })
                },
            )
        });
    });
}

fn locks(mut group: Group<'_>) {
    group.bench_function("Mutex, nobody else", |bencher| {
        let mutex = Mutex::new(0_u64);
        bencher.iter(|| *mutex.lock() += 1);
    });
    group.bench_function("std's Mutex, nobody else", |bencher| {
        let mutex = std::sync::Mutex::new(0_u64);
        bencher.iter(|| *mutex.lock().expect("nobody panics") += 1);
    });
    group.bench_function("Semaphore, nobody else", |bencher| {
        let semaphore = Semaphore::new(1);
        bencher.iter(|| drop(black_box(semaphore.acquire())));
    });
    group.bench_function("Mutex, held across a yield by ten greenlets in turn", |bencher| {
        bencher.iter_custom(|rounds| {
            let each = rounds.div_ceil(10);
            let mutex = Rc::new(Mutex::new(0_u64));
            let all = [(); 10].map(|()| {
                let mutex = Rc::clone(&mutex);
                spawn(move || {
                    for _ in 0..each {
                        let mut guard = mutex.lock();
                        *guard += 1;
                        yield_now();
                    }
                })
            });
            let start = Instant::now();
            join_all(all);
            start.elapsed().mul_f64(rounds as f64 / (10 * each) as f64)
        });
    });
    group.bench_function("Semaphore, two hubs", |bencher| {
        bencher.iter_custom(|rounds| {
            let near = Arc::new(Semaphore::new(1));
            let far = Arc::clone(&near);
            let each = rounds.div_ceil(2);
            let time = on_two_hubs(
                move || (0..each).for_each(|_| drop(black_box(near.acquire()))),
                move || (0..each).for_each(|_| drop(black_box(far.acquire()))),
            );
            time.mul_f64(rounds as f64 / (2 * each) as f64)
        });
    });
}
