//! Greenlets of two hubs, plain threads and workers that do the same for a time, with kills.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use greenroom::{Greenlet, ThreadPool, hub, sleep, spawn};

/// How long a crowd works.
pub(crate) const DURATION: Duration = Duration::from_millis(1_500);

/// Numbers that differ from run to run by the order of the threads only.
pub(crate) struct Random(Cell<u64>);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(Cell::new(seed))
    }

    pub(crate) fn below(&self, limit: u64) -> u64 {
        self.0.set(self.0.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407));
        (self.0.get() >> 33) % limit
    }

    pub(crate) fn micros(&self, limit: u64) -> Duration {
        Duration::from_micros(self.below(limit))
    }
}

/// Runs `step` over and over, until the time is over: in greenlets of two hubs, where others kill them, on two plain
/// threads and on two workers. When this returns all have ended by themselves: nobody waits for something that got lost.
pub(crate) fn crowd<T: Send + Sync + 'static>(shared: &Arc<T>, step: fn(&T, &Random)) {
    let (is_over, pool) = (Arc::new(AtomicBool::new(false)), ThreadPool::new(2));
    let start = Instant::now();
    let until_over = |seed: u64| {
        let (shared, is_over) = (Arc::clone(shared), Arc::clone(&is_over));
        move || {
            let random = Random(Cell::new(seed));
            while !is_over.load(SeqCst) {
                step(&shared, &random);
            }
        }
    };
    let mut threads: Vec<_> = (0..2).map(|i| thread::spawn(until_over(i))).collect();
    threads.extend((2..4).map(|i| {
        let (pool, work) = (pool.clone(), until_over(i));
        thread::spawn(move || pool.run(work))
    }));
    threads.extend((1..3).map(|i| {
        let (is_over, work) = (Arc::clone(&is_over), (0..8).map(|j| until_over(100 * i + j)).collect::<Vec<_>>());
        thread::spawn(move || {
            let random = Random(Cell::new(i));
            let respawn = |at: u64| spawn(work[at as usize].clone());
            let mut greenlets: Vec<Greenlet<()>> = (0..8).map(respawn).collect();
            while !is_over.load(SeqCst) {
                sleep(random.micros(400));
                let at = random.below(8);
                let killed = std::mem::replace(&mut greenlets[at as usize], respawn(at));
                match random.below(3) {
                    0 => killed.kill(),
                    _ => killed.request_kill(),
                }
            }
            for greenlet in greenlets {
                greenlet.join().unwrap();
            }
            assert!(hub().join(None));
        })
    }));
    thread::sleep(DURATION.saturating_sub(start.elapsed()));
    is_over.store(true, SeqCst);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
