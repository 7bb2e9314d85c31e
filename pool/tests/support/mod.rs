//! What several test files need.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use greenroom_pool::Pool;

/// A job that runs until it is released or this is dropped.
pub(crate) struct Held {
    release: Sender<()>,
}

/// Occupies one worker: the job has begun when this returns.
pub(crate) fn hold(pool: &Pool) -> Held {
    let (held, begun) = hold_later(pool);
    begun.recv().expect("the job begins");
    held
}

/// Submits a job that says when it begins, and then runs until released.
pub(crate) fn hold_later(pool: &Pool) -> (Held, Receiver<()>) {
    let (begins, begun) = channel();
    let (release, released) = channel::<()>();
    pool.submit(move || {
        let _ = begins.send(());
        let _ = released.recv();
    })
    .expect("the pool takes the job");
    (Held { release }, begun)
}

impl Held {
    pub(crate) fn release(self) {
        let _ = self.release.send(());
    }
}

/// Waits for what must come true sooner or later.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(30), "still not so: {what}");
        thread::sleep(Duration::from_micros(200));
    }
}

/// Counts how often clones of it are dropped.
#[derive(Clone, Debug)]
pub(crate) struct DropCount(pub(crate) std::sync::Arc<std::sync::atomic::AtomicUsize>);

impl DropCount {
    pub(crate) fn new() -> DropCount {
        DropCount(Default::default())
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }
}

impl Drop for DropCount {
    fn drop(&mut self) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}
