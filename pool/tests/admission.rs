//! Jobs that wait for a core: `Admission::CpuAware`.

mod support;

use std::num::NonZero;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use greenroom_pool::{Admission, Pool};
use support::until;

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

fn aware(max_threads: usize) -> Pool {
    Pool::builder().max_threads(max_threads).admission(Admission::CpuAware).build()
}

fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Jobs that block at a gate that the test opens.
struct Blocked {
    open: Arc<AtomicBool>,
    inside: Arc<AtomicUsize>,
}

impl Blocked {
    fn new() -> Blocked {
        Blocked { open: Arc::default(), inside: Arc::default() }
    }

    fn job(&self) -> impl FnOnce() + Send + 'static {
        let (open, inside) = (Arc::clone(&self.open), Arc::clone(&self.inside));
        move || {
            inside.fetch_add(1, SeqCst);
            while !open.load(SeqCst) {
                thread::sleep(Duration::from_millis(5));
            }
            inside.fetch_sub(1, SeqCst);
        }
    }
}

#[test]
fn jobs_that_block_all_run_at_once() {
    let pool = aware(20);
    let blocked = Blocked::new();
    for _ in 0..20 {
        pool.submit(blocked.job()).unwrap();
    }
    until("all 20 run", || blocked.inside.load(SeqCst) == 20);
    let stats = pool.stats();
    assert_eq!((stats.threads, stats.running, stats.queued), (20, 20, 0));
    blocked.open.store(true, SeqCst);
    assert!(pool.join(None));
}

#[test]
fn jobs_that_compute_are_done_in_order_and_all_are_done() {
    let pool = aware(10);
    let (sender, receiver) = channel();
    for n in 0..200 {
        let sender = sender.clone();
        pool.submit(move || {
            compute(Duration::from_micros(300));
            sender.send(n).unwrap();
        })
        .unwrap();
    }
    assert!(pool.join(None));
    let mut done: Vec<_> = receiver.try_iter().collect();
    assert_eq!(done.len(), 200);
    done.sort_unstable();
    assert!(done.into_iter().eq(0..200));
}

#[test]
fn it_holds_jobs_back_while_the_cores_are_busy() {
    // Other load can make a job that computes look blocked, so this may take several trials.
    let held_back = (0..20).any(|_| {
        let pool = aware(cores() + 8);
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..cores() + 8 {
            let stop = Arc::clone(&stop);
            pool.submit(move || while !stop.load(SeqCst) {}).unwrap();
        }
        thread::sleep(Duration::from_millis(20));
        let running = pool.stats().running;
        stop.store(true, SeqCst);
        assert!(pool.join(None));
        running < cores() + 8
    });
    assert!(held_back);
}

#[test]
fn long_jobs_do_not_hold_up_others_for_ever() {
    let pool = aware(cores() + 1);
    let stop = Arc::new(AtomicBool::new(false));
    for _ in 0..cores() {
        let stop = Arc::clone(&stop);
        pool.submit(move || while !stop.load(SeqCst) {}).unwrap();
    }
    let (sender, receiver) = channel();
    for n in 0..5 {
        let sender = sender.clone();
        pool.submit(move || sender.send(n).unwrap()).unwrap();
    }
    // The first ones never end, and yet these come through.
    assert!(receiver.iter().take(5).eq(0..5));
    stop.store(true, SeqCst);
    assert!(pool.join(None));
}

#[test]
fn it_never_runs_more_than_there_may_be_threads() {
    let pool = aware(3);
    let most = Arc::new(AtomicUsize::new(0));
    let now = Arc::new(AtomicUsize::new(0));
    for _ in 0..60 {
        let (most, now) = (Arc::clone(&most), Arc::clone(&now));
        pool.submit(move || {
            most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
            thread::sleep(Duration::from_millis(1));
            now.fetch_sub(1, SeqCst);
        })
        .unwrap();
    }
    assert!(pool.join(None));
    assert!(most.load(SeqCst) <= 3);
    assert_eq!(pool.stats().completed, 60);
}

#[test]
fn it_can_be_resized_and_shut_down_while_jobs_wait() {
    let pool = aware(8);
    let blocked = Blocked::new();
    for _ in 0..30 {
        pool.submit(blocked.job()).unwrap();
    }
    until("8 run", || blocked.inside.load(SeqCst) == 8);
    pool.resize(12);
    until("12 run", || blocked.inside.load(SeqCst) == 12);
    pool.resize(0);
    blocked.open.store(true, SeqCst);
    until("all have left", || pool.stats().threads == 0);
    assert_eq!(pool.stats().queued, 18);
    blocked.open.store(false, SeqCst);
    pool.resize(4);
    until("4 run", || blocked.inside.load(SeqCst) == 4);
    let closer = thread::spawn({
        let pool = pool.clone();
        move || pool.shutdown(None)
    });
    until("nothing waits", || pool.stats().queued == 0);
    blocked.open.store(true, SeqCst);
    assert!(closer.join().unwrap());
    let stats = pool.stats();
    assert_eq!((stats.threads, stats.completed, stats.cancelled), (0, 16, 14));
}

#[test]
fn the_watcher_leaves_with_the_others() {
    let pool = Pool::builder()
        .max_threads(cores() + 4)
        .admission(Admission::CpuAware)
        .keep_alive(Duration::from_millis(1))
        .build();
    for _ in 0..3 * cores() {
        pool.submit(|| compute(Duration::from_millis(3))).unwrap();
    }
    assert!(pool.join(None));
    until("all have left", || pool.stats().threads == 0);
    pool.submit(|| ()).unwrap();
    assert!(pool.join(None));
}
