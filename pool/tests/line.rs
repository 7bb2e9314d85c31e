//! Jobs that stand in line for room in the queue; and waiting for quiet.

mod support;

use std::ptr::{from_ref, null};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::thread;
use std::time::Duration;

use greenroom_pool::lease::{Lease, Verdict};
use greenroom_pool::{Pool, Rejected};
use support::{hold, until};

/// Which jobs ran, and how many were cancelled.
#[derive(Default)]
struct Log {
    ran: Mutex<Vec<usize>>,
    cancelled: AtomicUsize,
}

struct Entry<'a>(usize, &'a Log);

unsafe fn note(frame: *const (), verdict: Verdict) {
    // SAFETY: each entry below outlives its job.
    let Entry(number, log) = unsafe { &*frame.cast::<Entry<'_>>() };
    match verdict {
        Verdict::Run => log.ran.lock().unwrap().push(*number),
        Verdict::Cancel => drop(log.cancelled.fetch_add(1, SeqCst)),
    }
}

unsafe fn nothing(_: *const (), _: Verdict) {}

/// Lends a job for each entry.
fn line_up(pool: &Pool, entries: &[Entry<'_>]) -> Vec<Lease> {
    let lend = |entry| {
        let mut lease = Lease::new();
        // SAFETY: `note` doesn't unwind; every test waits for its pool, or revokes, before the entries die.
        unsafe { pool.lend_in_line(&mut lease, from_ref::<Entry<'_>>(entry).cast(), note) }.unwrap();
        lease
    };
    entries.iter().map(lend).collect()
}

#[test]
fn they_run_in_their_order_however_small_the_queue() {
    for limit in [1, 2, 7, 1000] {
        let pool = Pool::builder().max_threads(1).queue_limit(limit).build();
        let held = hold(&pool);
        let log = Log::default();
        let entries: Vec<_> = (0..100).map(|number| Entry(number, &log)).collect();
        let _leases = line_up(&pool, &entries);
        assert_eq!(pool.stats().queued, 100);
        held.release();
        assert!(pool.join(None));
        assert_eq!(*log.ran.lock().unwrap(), (0..100).collect::<Vec<_>>());
    }
}

#[test]
fn who_does_not_wait_is_refused_and_who_comes_later_stands_behind() {
    let pool = Pool::builder().max_threads(1).queue_limit(1).build();
    let held = hold(&pool);
    let log = Log::default();
    let entries = [0, 1, 2].map(|number| Entry(number, &log));
    let mut first = line_up(&pool, &entries[..2]);
    assert_eq!(pool.submit(|| ()), Err(Rejected::QueueFull));
    let mut last = line_up(&pool, &entries[2..]);
    assert!(first[1].revoke());
    held.release();
    assert!(pool.join(None));
    assert_eq!(*log.ran.lock().unwrap(), [0, 2]);
    assert!(!first[0].revoke() && !last[0].revoke());
}

#[test]
fn a_pool_without_threads_takes_them_up_when_it_gets_some() {
    let pool = Pool::builder().max_threads(0).queue_limit(1).build();
    let log = Log::default();
    let entries: Vec<_> = (0..10).map(|number| Entry(number, &log)).collect();
    let _leases = line_up(&pool, &entries);
    pool.resize(3);
    assert!(pool.join(None));
    assert_eq!(log.ran.lock().unwrap().len(), 10);
}

#[test]
fn shutting_down_cancels_them_and_refuses_more() {
    let pool = Pool::builder().max_threads(1).queue_limit(1).build();
    let held = hold(&pool);
    let log = Log::default();
    let entries: Vec<_> = (0..10).map(|number| Entry(number, &log)).collect();
    let _leases = line_up(&pool, &entries);
    assert!(!pool.shutdown(Some(Duration::ZERO)));
    assert_eq!((log.cancelled.load(SeqCst), pool.stats().queued), (10, 0));
    let mut lease = Lease::new();
    // SAFETY: `nothing` uses no frame and doesn't unwind.
    assert_eq!(unsafe { pool.lend_in_line(&mut lease, null(), nothing) }, Err(Rejected::ShutDown));
    held.release();
    assert!(pool.shutdown(None));
}

#[test]
fn revoked_ones_do_not_pile_up() {
    let pool = Pool::builder().max_threads(0).queue_limit(1).build();
    let log = Log::default();
    let entry = [Entry(0, &log)];
    let _first = line_up(&pool, &entry);
    for _ in 0..10_000 {
        assert!(line_up(&pool, &entry)[0].revoke());
    }
    assert!(pool.stats().queued < 200, "{:?}", pool.stats());
    pool.resize(1);
    assert!(pool.join(None));
    assert_eq!(*log.ran.lock().unwrap(), [0]);
    assert_eq!(pool.stats().cancelled, 10_000);
}

/// Many threads share one place in the queue; some revoke. A lost look would leave one waiting for ever.
#[test]
fn none_is_forgotten() {
    const EACH: usize = 500;
    let pool = Pool::builder().max_threads(2).queue_limit(1).build();
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for number in 0..EACH {
                    let log = Log::default();
                    let entry = [Entry(number, &log)];
                    let mut lease = line_up(&pool, &entry);
                    if number % 5 == 0 && lease[0].revoke() {
                        continue;
                    }
                    until("it has run", || !log.ran.lock().unwrap().is_empty());
                }
            });
        }
    });
    assert!(pool.join(None));
    assert_eq!(pool.stats().completed + pool.stats().cancelled, 6 * EACH as u64);
}

/// Counts its wakes.
#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

#[test]
fn quiet_is_told_when_nothing_is_queued_or_running() {
    let pool = Pool::new(1);
    let held = hold(&pool);
    pool.submit(|| ()).unwrap();
    let bell = Arc::new(Bell::default());
    let registration = pool.on_quiet(Waker::from(bell.clone()));
    let given_up = pool.on_quiet(Waker::from(bell.clone()));
    drop(given_up);
    assert!(!registration.is_woken());
    held.release();
    until("it is told", || bell.0.load(SeqCst) == 1);
    assert_eq!((pool.stats().queued, pool.stats().running), (0, 0));
    drop(registration);
    pool.shutdown(None);
    assert_eq!(bell.0.load(SeqCst), 1);
}

#[test]
fn a_waker_that_panics_harms_nobody() {
    struct Grenade;
    impl Wake for Grenade {
        fn wake(self: Arc<Self>) {
            std::panic::resume_unwind(Box::new("a waker"));
        }
    }
    let pool = Pool::new(1);
    let held = hold(&pool);
    let registration = pool.on_quiet(Arc::new(Grenade).into());
    held.release();
    assert!(pool.join(None));
    until("it is told", || registration.is_woken());
    assert_eq!(pool.stats().completed, 1);
}

#[test]
fn who_stands_in_line_is_told_when_it_has_left_it() {
    #[derive(Default)]
    struct Told(AtomicUsize);
    impl Wake for Told {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    for shuts_down in [false, true] {
        let pool = Pool::builder().max_threads(0).queue_limit(1).build();
        let told = Arc::new(Told::default());
        let mut leases = [const { Lease::new() }; 3];
        let mut asked = 0;
        for lease in &mut leases {
            let left = || {
                asked += 1;
                Waker::from(Arc::clone(&told))
            };
            // SAFETY: `nothing` uses no frame and doesn't unwind.
            unsafe { pool.lend_in_line_and_wake(lease, null(), nothing, left) }.unwrap();
        }
        assert_eq!((asked, told.0.load(SeqCst)), (2, 0));
        if shuts_down {
            assert!(pool.shutdown(None));
        } else {
            pool.resize(1);
            assert!(pool.join(None));
        }
        until("both have left", || told.0.load(SeqCst) == 2);
        assert!(pool.shutdown(None));
        // SAFETY: as above.
        let late = unsafe { pool.lend_in_line_and_wake(&mut leases[0], null(), nothing, || unreachable!()) };
        assert_eq!(late, Err(Rejected::ShutDown));
    }
}

#[test]
fn wakers_of_revoked_jobs_are_freed_with_them() {
    let pool = Pool::builder().max_threads(0).queue_limit(1).build();
    pool.submit(|| ()).unwrap();
    struct Never;
    impl Wake for Never {
        fn wake(self: Arc<Self>) {
            unreachable!("it was revoked")
        }
    }
    let waker = Arc::new(Never);
    for _ in 0..1_000 {
        let mut lease = Lease::new();
        // SAFETY: `nothing` uses no frame and doesn't unwind.
        unsafe { pool.lend_in_line_and_wake(&mut lease, null(), nothing, || Arc::clone(&waker).into()) }.unwrap();
        assert!(lease.revoke());
    }
    assert!(Arc::strong_count(&waker) < 200, "{} are left", Arc::strong_count(&waker));
}
