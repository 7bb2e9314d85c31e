//! Shutting a pool down: what is queued, what runs, who waits, and who submits meanwhile.

mod support;

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use greenroom_pool::{Pool, Rejected};
use support::{DropCount, hold, until};

const NOW: Option<Duration> = Some(Duration::ZERO);

#[test]
fn what_is_queued_is_cancelled_and_what_runs_is_waited_for() {
    let pool = Pool::new(1);
    let held = hold(&pool);
    let dropped = DropCount::new();
    for _ in 0..10 {
        let job = dropped.clone();
        pool.submit(move || panic!("runs, though it was cancelled: {job:?}")).unwrap();
    }
    assert!(!pool.shutdown(Some(Duration::from_millis(10))));
    let stats = pool.stats();
    assert_eq!((dropped.get(), stats.queued, stats.running, stats.cancelled), (10, 0, 1, 10));
    assert_eq!(pool.submit(|| ()), Err(Rejected::ShutDown));
    held.release();
    assert!(pool.shutdown(None));
    let stats = pool.stats();
    assert_eq!((stats.threads, stats.idle, stats.completed, stats.cancelled), (0, 0, 1, 10));
}

#[test]
fn idle_workers_leave_at_once() {
    let pool = Pool::builder().keep_alive(Duration::MAX).max_threads(8).build();
    drop((0..8).map(|_| hold(&pool)).collect::<Vec<_>>());
    pool.join(None);
    assert_eq!(pool.stats().idle, 8);
    assert!(pool.shutdown(None));
    assert_eq!(pool.stats().threads, 0);
}

#[test]
fn more_idle_workers_than_fit_into_the_queue_leave_too() {
    let pool = Pool::builder().keep_alive(Duration::MAX).max_threads(400).queue_limit(400).build();
    drop((0..400).map(|_| hold(&pool)).collect::<Vec<_>>());
    pool.join(None);
    assert_eq!(pool.stats().idle, 400);
    pool.resize(3);
    until("the others have left", || pool.stats().threads == 3);
    assert!(pool.shutdown(None));
}

#[test]
fn a_pool_that_never_had_a_thread_shuts_down() {
    let pool = Pool::new(0);
    let dropped = DropCount::new();
    let job = dropped.clone();
    pool.submit(move || drop(job)).unwrap();
    assert!(pool.shutdown(NOW));
    assert_eq!(dropped.get(), 1);
}

#[test]
fn a_job_may_shut_its_own_pool_down_but_not_wait_for_it() {
    let pool = Pool::new(2);
    let (sender, receiver) = channel();
    let same = pool.clone();
    pool.submit(move || sender.send(same.shutdown(None)).unwrap()).unwrap();
    assert_eq!(receiver.recv(), Ok(false));
    assert!(pool.shutdown(None));
}

#[test]
fn a_destructor_of_a_cancelled_job_may_call_the_pool() {
    struct Nosy(Pool, std::sync::mpsc::Sender<(bool, bool, Result<(), Rejected>)>);
    impl Drop for Nosy {
        fn drop(&mut self) {
            let _ = self.1.send((self.0.join(None), self.0.shutdown(None), self.0.submit(|| ())));
        }
    }
    let pool = Pool::new(0);
    let (sender, receiver) = channel();
    let nosy = Nosy(pool.clone(), sender);
    pool.submit(move || drop(nosy)).unwrap();
    pool.submit(|| ()).unwrap();
    assert!(pool.shutdown(None));
    assert_eq!(receiver.recv(), Ok((false, false, Err(Rejected::ShutDown))));
    assert_eq!(pool.stats().cancelled, 2);
}

#[test]
fn a_panic_in_the_destructor_of_a_cancelled_job_stops_nothing() {
    struct Grenade;
    impl Drop for Grenade {
        fn drop(&mut self) {
            resume_unwind(Box::new("in a destructor"));
        }
    }
    let pool = Pool::new(0);
    for _ in 0..3 {
        let grenade = Grenade;
        pool.submit(move || drop(grenade)).unwrap();
    }
    assert!(pool.shutdown(None));
    assert_eq!(pool.stats().cancelled, 3);
}

#[test]
fn several_may_wait_for_the_end() {
    let pool = Pool::new(2);
    let held = (hold(&pool), hold(&pool));
    let waiting: Vec<_> = (0..4)
        .map(|n| {
            let pool = pool.clone();
            thread::spawn(move || if n % 2 == 0 { pool.shutdown(None) } else { pool.join(None) })
        })
        .collect();
    until("somebody has shut it down", || pool.submit(|| ()).is_err());
    drop(held);
    for waiter in waiting {
        assert!(waiter.join().unwrap());
    }
    assert!(pool.shutdown(NOW));
}

/// Every job that was taken has run or has been dropped unrun, every other was rejected; and the pool ends each time.
#[test]
fn submitting_against_shutting_down_loses_no_job() {
    struct Job {
        ran: Arc<AtomicUsize>,
        gone: Arc<AtomicUsize>,
    }
    impl Drop for Job {
        fn drop(&mut self) {
            self.gone.fetch_add(1, SeqCst);
        }
    }
    for round in 0..150 {
        let pool = Pool::builder().max_threads(round % 4).queue_limit(64).build();
        let (ran, gone) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (mut submitted, mut taken) = (0, 0);
        thread::scope(|scope| {
            let submitters: Vec<_> = (0..3)
                .map(|_| {
                    let (pool, ran, gone) = (&pool, &ran, &gone);
                    scope.spawn(move || {
                        let (mut submitted, mut taken) = (0, 0);
                        loop {
                            let job = Job { ran: ran.clone(), gone: gone.clone() };
                            submitted += 1;
                            let run = move || {
                                let job = job; // all of it, not the field alone
                                job.ran.fetch_add(1, SeqCst);
                            };
                            match pool.submit(run) {
                                Ok(()) => taken += 1,
                                Err(Rejected::QueueFull) => thread::yield_now(),
                                Err(Rejected::ShutDown) => return (submitted, taken),
                            }
                        }
                    })
                })
                .collect();
            thread::sleep(Duration::from_micros(round as u64 * 7 % 500));
            assert!(pool.shutdown(None));
            for submitter in submitters {
                let (more, of_them) = submitter.join().unwrap();
                submitted += more;
                taken += of_them;
            }
        });
        let stats = pool.stats();
        assert_eq!(gone.load(SeqCst), submitted);
        assert_eq!(stats.completed, ran.load(SeqCst) as u64);
        assert_eq!(stats.completed + stats.cancelled, taken);
        assert_eq!((stats.threads, stats.queued), (0, 0));
    }
}

#[test]
fn a_waker_waits_until_all_have_left_without_blocking_a_thread() {
    struct Bell(thread::Thread);
    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    for round in 0..200 {
        let pool = Pool::new(3);
        let held = (round % 3 != 0).then(|| hold(&pool));
        for _ in 0..round % 7 {
            pool.submit(thread::yield_now).unwrap();
        }
        let waker = || Waker::from(Arc::new(Bell(thread::current())));
        let mut left = pool.on_left(waker());
        let mut is_over = pool.shutdown(NOW);
        held.into_iter().for_each(|held| held.release());
        while !is_over {
            while !left.is_woken() {
                thread::park();
            }
            is_over = pool.shutdown(NOW);
            left.renew(waker());
        }
        assert_eq!((pool.stats().threads, pool.stats().queued), (0, 0));
        assert!(left.is_woken());
    }
}
