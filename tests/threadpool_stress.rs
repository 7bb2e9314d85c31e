//! Two hubs, a plain thread and another pool's workers that use one pool in every way, while it grows, shrinks to nothing and is
//! shut down, with kills and timeouts, for two seconds. All come to an end, and whatever was made has been dropped once.

mod common;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use common::crowd::Random;
use common::jobs::*;
use common::*;
use greenroom::{ApplyError, Greenlet, TaskError, ThreadPool, hub, sleep, spawn, timeout};

const DURATION: Duration = Duration::from_secs(2);

/// How long the end of a pool may take. It takes some milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// Greenlets of a hub.
const CREW: u64 = 8;

/// What each of them does.
const STEPS: usize = 12;

#[test]
fn a_pool_used_in_every_way_while_it_changes_leaves_nothing_behind() {
    within_a_minute(|| {
        let start = Instant::now();
        let mut seed = 0;
        while start.elapsed() < DURATION {
            seed += 1;
            play(seed);
        }
    });
}

/// What all share.
struct World {
    pool: ThreadPool,
    tokens: Tokens,
    /// Jobs that ran.
    ran: AtomicU64,
}

fn play(seed: u64) {
    let random = Random::new(1_000 * seed);
    let pool = ThreadPool::builder()
        .max_threads(random.below(4) as usize)
        .queue_limit(1 + random.below(4) as usize)
        .keep_alive(ms(1 + random.below(3)))
        .build();
    let world = Arc::new(World { pool: pool.clone(), tokens: Tokens::new(), ran: AtomicU64::new(0) });
    let mut threads = Vec::new();
    for hub in 0..2 {
        let world = Arc::clone(&world);
        threads.push(thread::spawn(move || crew(&world, 10 * seed + hub)));
    }
    let others = ThreadPool::new(2);
    for actor in 2..5 {
        let (world, others) = (Arc::clone(&world), others.clone());
        threads.push(thread::spawn(move || {
            let work = || {
                let random = Random::new(10 * seed + actor);
                (0..STEPS).for_each(|_| world.step(&random, 0));
            };
            if actor == 2 { work() } else { others.run(work) }
        }));
    }
    for _ in 0..random.below(20) {
        thread::sleep(random.micros(300));
        pool.set_max_threads(random.below(4) as usize);
    }
    let is_shut_down = random.below(3) == 0;
    if is_shut_down {
        pool.shutdown(Some(random.micros(500)));
    } else {
        pool.set_max_threads(1 + random.below(3) as usize);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(is_shut_down || pool.join(Some(PATIENCE)), "seed {seed}: {pool:?}");
    assert!(pool.shutdown(Some(PATIENCE)), "seed {seed}: {pool:?}");
    world.tokens.expect_none();
    let stats = pool.stats();
    assert_eq!((stats.threads, stats.queued, stats.running), (0, 0, 0), "seed {seed}");
    assert!(stats.completed <= world.ran.load(SeqCst), "seed {seed}: {stats:?}");
}

/// A hub's greenlets, some of which are killed.
fn crew(world: &Arc<World>, seed: u64) {
    let random = Random::new(seed);
    let greenlets: Vec<Greenlet<()>> = (0..CREW)
        .map(|number| {
            let world = Arc::clone(world);
            spawn(move || {
                let random = Random::new(100 * seed + number);
                (0..STEPS).for_each(|_| world.step(&random, 0));
            })
        })
        .collect();
    for _ in 0..random.below(CREW) {
        sleep(random.micros(600));
        greenlets[random.below(CREW) as usize].request_kill();
    }
    if random.below(4) == 0 {
        sleep(random.micros(3_000));
        hub().shutdown();
    } else {
        assert!(hub().join(Some(PATIENCE)), "seed {seed}: some never end");
    }
}

impl World {
    /// What a job does: it takes some time, and now and then panics.
    fn job(self: &Arc<World>, salt: u64) -> impl Fn(Token) -> Token + Send + Sync + Clone + use<> {
        let world = Arc::clone(self);
        move |token| {
            world.ran.fetch_add(1, SeqCst);
            match salt % 8 {
                0 => panic_with("in a job"),
                1 | 2 => thread::sleep(Duration::from_micros(salt % 200)),
                _ => {}
            }
            drop(token);
            world.tokens.make()
        }
    }

    fn step(self: &Arc<World>, random: &Random, depth: u32) {
        let (pool, tokens) = (&self.pool, &self.tokens);
        let job = self.job(random.below(1_000));
        let made = tokens.clone();
        let items = (0..random.below(12)).map(move |_| made.make());
        let few = random.below(6) as usize;
        match random.below(14) {
            0 => match pool.spawn(job, (tokens.make(),)).get() {
                Ok(_) | Err(TaskError::Panicked(_) | TaskError::Cancelled) => {}
                Err(other) => panic!("{other}"),
            },
            1 => drop(pool.spawn(job, (tokens.make(),))),
            2 => {
                let result = pool.spawn(job, (tokens.make(),));
                sleep(random.micros(50));
                if result.cancel() {
                    assert!(matches!(result.get(), Err(TaskError::Cancelled)));
                }
            }
            3 => drop(pool.spawn(job, (tokens.make(),)).get_timeout(random.micros(300))),
            4 | 5 => {
                // It panics with a job, with the pool's end, or with an iterator's.
                let fails_at = random.below(30);
                let items = items.enumerate().map(|(number, token)| {
                    if number as u64 == fails_at { panic_with("in the iterator") } else { token }
                });
                let _ = catch_unwind(AssertUnwindSafe(|| pool.map(job, items)));
            }
            6 => pool.imap(job, items, 1 + few).take(random.below(12) as usize).for_each(drop),
            7 => pool.imap_unordered(job, items, 1 + few).take(random.below(12) as usize).for_each(drop),
            8 => match pool.try_apply(job, (tokens.make(),)) {
                Ok(_) | Err(ApplyError::Panicked(_) | ApplyError::QueueFull | ApplyError::ShutDown) => {}
                Err(other) => panic!("{other}"),
            },
            9 => drop(catch_unwind(AssertUnwindSafe(|| pool.apply(job, (tokens.make(),))))),
            10 => _ = pool.join(Some(random.micros(200))),
            11 | 12 => _ = timeout(random.micros(400), || self.step(random, depth)),
            _ if depth < 3 => {
                // The same in one of its own jobs.
                let (world, seed) = (Arc::clone(self), random.below(1_000_000));
                let nested = move || {
                    world.ran.fetch_add(1, SeqCst);
                    world.step(&Random::new(seed), depth + 1);
                };
                match random.below(3) {
                    0 => drop(pool.spawn(nested, ())),
                    1 => drop(catch_unwind(AssertUnwindSafe(|| pool.run(nested)))),
                    _ => drop(pool.try_apply(nested, ())),
                }
            }
            _ => {}
        }
    }
}
