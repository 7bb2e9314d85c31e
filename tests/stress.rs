//! Random trees of greenlets on two hubs that do everything to each other, for two seconds. At the end all have ended,
//! and whatever was made has been dropped once.

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::*;
use greenroom::{
    Builder, Greenlet, HubHandle, Promise, ThreadPool, checkpoint, hub, idle, on_big_stack, promise, sleep, spawn,
    timeout, yield_now,
};

const DURATION: Duration = Duration::from_secs(2);

/// How long the end of one tree may take. It takes some milliseconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// Greenlets that one hub's tree spawns, at most.
const BUDGET: usize = 300;

#[test]
fn trees_of_greenlets_that_kill_time_out_and_wait_leave_nothing_behind() {
    within_a_minute(|| {
        let start = Instant::now();
        let mut seed = 0;
        while start.elapsed() < DURATION {
            seed += 1;
            forest(seed);
        }
    });
}

/// Two hubs with a tree each, a pool of two threads that they share, and a thread that resolves their promises.
fn forest(seed: u64) {
    let (to_resolver, promises) = mpsc::channel();
    let resolver = thread::spawn(move || resolve(promises, &Random::new(seed)));
    let pool = ThreadPool::new(2);
    let (first, at_first) = mpsc::channel();
    let (second, at_second) = mpsc::channel();
    let hubs = [(first, at_second), (second, at_first)].into_iter().enumerate().map(|(i, (mine, theirs))| {
        let (to_resolver, pool) = (to_resolver.clone(), pool.clone());
        thread::spawn(move || {
            mine.send(hub().handle()).unwrap();
            let neighbour = theirs.recv().unwrap();
            tree(seed, Random::new(2 * seed + i as u64), to_resolver, pool, neighbour);
        })
    });
    let hubs: Vec<_> = hubs.collect();
    drop(to_resolver);
    hubs.into_iter().for_each(|hub| hub.join().unwrap());
    resolver.join().unwrap();
}

fn resolve(promises: mpsc::Receiver<Promise<u64>>, random: &Random) {
    for promise in promises {
        match random.below(6) {
            0 => drop(promise),
            1 => {
                thread::sleep(Duration::from_micros(random.below(100)));
                promise.set(1);
            }
            _ => promise.set(2),
        }
    }
}

fn tree(seed: u64, random: Random, to_resolver: mpsc::Sender<Promise<u64>>, pool: ThreadPool, neighbour: HubHandle) {
    let world = Rc::new(World {
        random,
        made: Cell::new(0),
        dropped: Cell::new(0),
        spawned: Cell::new(0),
        greenlets: RefCell::new(Vec::new()),
        violence: seed % 8,
        to_resolver,
        pool,
        neighbour,
    });
    for _ in 0..8 {
        world.spawn(0);
    }
    let ended = match world.random.below(4) {
        0 | 1 => hub().join(Some(PATIENCE)),
        2 => {
            sleep(world.random.micros(5_000));
            timeout(PATIENCE, || hub().shutdown()).is_ok()
        }
        _ => {
            let world = Rc::clone(&world);
            let shutter = spawn(move || {
                sleep(world.random.micros(5_000));
                hub().shutdown();
            });
            shutter.wait_timeout(PATIENCE)
        }
    };
    let stats = hub().stats();
    assert!(ended, "seed {seed}: some never end: {stats:?}");
    assert_eq!((stats.greenlets, stats.timers, stats.stacks_in_use), (0, 0, 0), "seed {seed}");
    let greenlets = world.greenlets.take();
    assert!(greenlets.iter().all(|greenlet| greenlet.is_finished()), "seed {seed}");
    drop(greenlets);
    assert_eq!(world.made.get(), world.dropped.get(), "seed {seed}");
    assert!(world.made.get() > 0, "seed {seed}");
    assert_eq!(Rc::strong_count(&world), 1, "seed {seed}");
    assert!(!thread::panicking());
}

/// What all greenlets of a tree share.
struct World {
    random: Random,
    made: Cell<usize>,
    dropped: Cell<usize>,
    spawned: Cell<usize>,
    /// Some of them, for others to kill.
    greenlets: RefCell<Vec<Rc<Greenlet<()>>>>,
    /// Of 16 attempts at a kill so many are made.
    violence: u64,
    to_resolver: mpsc::Sender<Promise<u64>>,
    pool: ThreadPool,
    neighbour: HubHandle,
}

impl World {
    fn spawn(self: &Rc<World>, depth: u32) {
        if self.spawned.get() >= BUDGET || depth > 6 {
            return;
        }
        self.spawned.set(self.spawned.get() + 1);
        let (captured, world) = (Token::new(self), Rc::clone(self));
        let body = move || {
            let _captured = captured;
            world.live(depth);
        };
        let greenlet = match self.random.below(8) {
            // A shutdown may be under way.
            0 if Builder::new().spawn(|| ()).is_ok() => greenroom::spawn_later(self.random.micros(500), body),
            _ => match Builder::new().spawn(body) {
                Ok(greenlet) => greenlet,
                Err(_) => return,
            },
        };
        for _ in 0..self.random.below(3) {
            let token = Token::new(self);
            greenlet.link(move |_| drop(token));
        }
        if self.random.below(4) > 0 {
            self.greenlets.borrow_mut().push(Rc::new(greenlet));
        }
    }

    fn victim(&self) -> Option<Rc<Greenlet<()>>> {
        if self.random.below(16) < self.violence { self.any() } else { None }
    }

    fn any(&self) -> Option<Rc<Greenlet<()>>> {
        let greenlets = self.greenlets.borrow();
        let index = self.random.below(greenlets.len().max(1) as u64);
        greenlets.get(index as usize).cloned()
    }

    /// A greenlet's life: some random steps.
    fn live(self: &Rc<World>, depth: u32) {
        let _token = Token::new(self);
        for _ in 0..self.random.below(12) {
            self.step(depth);
        }
    }

    fn step(self: &Rc<World>, depth: u32) {
        let random = &self.random;
        match random.below(20) {
            0..=2 => self.spawn(depth + 1),
            3 => sleep(random.micros(300)),
            4 => yield_now(),
            5 => checkpoint(),
            6 => _ = timeout(random.micros(200), idle),
            7 => self.victim().iter().for_each(|any| any.request_kill()),
            // It may be oneself, or wait for oneself.
            8 => self.victim().iter().for_each(|any| _ = timeout(random.micros(500), || any.kill())),
            9 => self.victim().iter().for_each(|any| _ = any.kill_timeout(random.micros(500))),
            10 => self.any().iter().for_each(|any| _ = any.wait_timeout(random.micros(500))),
            11 => _ = timeout(random.micros(300), || self.live(depth)),
            12 => {
                let _token = Token::new(self);
                let _ = timeout(random.micros(300), || timeout(random.micros(300), forever));
            }
            13 => {
                let (promise, result) = promise();
                self.to_resolver.send(promise).unwrap();
                assert!(matches!(result.get(), Ok(1 | 2) | Err(greenroom::TaskError::Abandoned)));
            }
            14 => {
                let (promise, result) = promise();
                self.to_resolver.send(promise).unwrap();
                drop(result.get_timeout(random.micros(50)));
            }
            15 => {
                let numbers = vec![random.below(100); 100];
                let sum = self.pool.apply(|numbers: &[u64]| numbers.iter().sum::<u64>(), (&numbers[..],));
                assert_eq!(sum, 100 * numbers[0]);
            }
            16 => {
                let token = Token::new(self);
                on_big_stack(1 << 16, || {
                    let _token = token;
                    yield_now();
                });
            }
            17 => {
                // Swallows whatever ends it.
                is_ended_early(|| {
                    let _token = Token::new(self);
                    sleep(random.micros(200));
                });
            }
            18 => {
                is_ended_early(|| panic_with("caught"));
            }
            _ => {
                let result = self.neighbour.spawn(|| {
                    yield_now();
                    3
                });
                assert!(matches!(result.get(), Ok(3) | Err(greenroom::TaskError::Abandoned)));
            }
        }
    }
}

/// Something that must be dropped. Its destructor may park, kill, and time out.
struct Token(Rc<World>);

impl Token {
    fn new(world: &Rc<World>) -> Token {
        world.made.set(world.made.get() + 1);
        Token(Rc::clone(world))
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        let world = &self.0;
        world.dropped.set(world.dropped.get() + 1);
        let random = &world.random;
        match random.below(16) {
            0 => sleep(random.micros(100)),
            1 => yield_now(),
            2 => world.victim().iter().for_each(|any| any.request_kill()),
            3 => world.victim().iter().for_each(|any| _ = any.kill_timeout(random.micros(200))),
            4 => _ = timeout(random.micros(100), forever),
            5 => _ = timeout(random.micros(100), || timeout(random.micros(100), forever)),
            6 => assert_eq!(world.pool.run(|| 7), 7),
            _ => {}
        }
    }
}

/// SplitMix64.
struct Random(Cell<u64>);

impl Random {
    fn new(seed: u64) -> Random {
        Random(Cell::new(seed))
    }

    fn below(&self, limit: u64) -> u64 {
        self.0.set(self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut bits = self.0.get();
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % limit
    }

    fn micros(&self, limit: u64) -> Duration {
        Duration::from_micros(self.below(limit))
    }
}
