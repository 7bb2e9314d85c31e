//! Deadlocks of several hubs, of scopes, groups and waits for several things; and what is logged where nothing is proved.

use std::process::Command;

use super::*;
use greenroom::group::Group;
use greenroom::sync::Event;
use greenroom::{Hubs, Priority, ThreadPool, scope, wait};

/// What a shell does for some seconds, whatever becomes of the test.
const LOAD: &str = "i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done";

pub(crate) fn deadlocks() -> Vec<Case> {
    vec![
        deadlock(
            "of two hubs that wait for each other one reports, and the other is freed by that",
            || {
                let ((mine, of_other), (others, of_mine)) = (promise::<()>(), promise::<()>());
                let other = thread::spawn(move || {
                    hub();
                    let ended = catch_unwind(AssertUnwindSafe(|| drop(of_other.get())));
                    drop(others);
                    ended.is_err()
                });
                hub();
                let ended = catch_unwind(AssertUnwindSafe(|| drop(of_mine.get())));
                drop(mine);
                let reports = usize::from(ended.is_err()) + usize::from(other.join().unwrap());
                assert_eq!(reports, 1);
            },
            succeeds,
        ),
        deadlock(
            "main reports although hubs attend, which do not",
            || {
                let hubs = Hubs::start(2, Hub::builder()).unwrap();
                assert_eq!(hubs.spawn(|| 7).get().unwrap(), 7);
                hubs.spawn(|| drop(never().1.get()));
                let report = report_of(|| never().1.get());
                has(&report, "2 other hub(s) of this process wait as well");
                assert!(!hubs.stop(Some(Duration::ZERO)));
            },
            succeeds,
        ),
        deadlock(
            "a scope whose greenlets wait for ever is left with the report, after they are dead",
            || {
                let dropped = std::cell::Cell::new(0);
                struct Counts<'a>(&'a std::cell::Cell<usize>);
                impl Drop for Counts<'_> {
                    fn drop(&mut self) {
                        sleep(Duration::from_millis(1));
                        self.0.set(self.0.get() + 1);
                    }
                }
                let report = report_of(|| {
                    scope(|s| {
                        for _ in 0..3 {
                            s.spawn(|| {
                                let _counts = Counts(&dropped);
                                drop(never().1.get());
                            });
                        }
                    });
                });
                has(&report, "main waits for end of a scope's greenlets");
                assert_eq!(report.matches("waits for async result").count(), 3, "{report}");
                assert_eq!(dropped.get(), 3);
            },
            succeeds,
        ),
        deadlock(
            "groups and waits for several things are named",
            || {
                let group = Group::new();
                group.spawn(|| drop(wait(&[&Event::new(), &spawn(|| sleep(FOR_EVER))], 2, None)));
                let report = report_of(|| group.join(None));
                has(&report, "main waits for end of a group's greenlets");
                has(&report, "waits for any of 2 objects");
            },
            succeeds,
        ),
    ]
}

pub(crate) fn no_deadlocks() -> Vec<Case> {
    vec![
        case(
            "no report while another hub has a timer that wakes main",
            || {
                let hubs = Hubs::start(2, Hub::builder()).unwrap();
                let (promise, result) = promise();
                hubs.spawn(move || {
                    sleep(A_WHILE);
                    promise.set(7);
                });
                assert_eq!(result.get().unwrap(), 7);
                assert!(hubs.stop(None));
            },
            succeeds,
        ),
        case(
            "no report while another hub runs, or its job does",
            || {
                let hubs = Hubs::start(2, Hub::builder()).unwrap();
                for on_the_pool in [false, true] {
                    let (promise, result) = promise();
                    hubs.spawn(move || {
                        let work = || thread::sleep(A_WHILE);
                        if on_the_pool {
                            hub().threadpool().run(work)
                        } else {
                            work()
                        }
                        promise.set(7);
                    });
                    assert_eq!(result.get().unwrap(), 7);
                }
            },
            succeeds,
        ),
        case(
            "main waits for workers that leave, beside other processes that take all cores",
            || {
                let load: Vec<_> = (0..2 * thread::available_parallelism().map_or(1, usize::from))
                    .map(|_| Command::new("sh").args(["-c", LOAD]).spawn().unwrap())
                    .collect();
                for _ in 0..5 {
                    hub();
                    let pool = ThreadPool::builder().priority(Priority::Low).max_threads(3).build();
                    let jobs: Vec<_> =
                        (0..3).map(|_| pool.spawn(|| thread::sleep(Duration::from_millis(1)), ())).collect();
                    jobs.into_iter().for_each(|job| job.get().unwrap());
                    assert!(pool.shutdown(None));
                }
                for mut process in load {
                    let _ = process.kill(); // it may have ended
                    process.wait().unwrap();
                }
            },
            succeeds,
        ),
        case(
            "hubs that hand an item round never report",
            || {
                let hubs = Hubs::start(3, Hub::builder()).unwrap();
                let ring: Vec<_> = (0..3).map(|_| greenroom::queue::Channel::new()).collect();
                for place in 0..3 {
                    let (from, to) = (ring[place].clone(), ring[(place + 1) % 3].clone());
                    hubs.spawn(move || from.iter().try_for_each(|round: u32| to.put(round)));
                }
                let start = Instant::now();
                while start.elapsed() < A_WHILE {
                    ring[0].put(1).unwrap();
                    ring[0].get().unwrap();
                }
                ring.iter().for_each(|channel| channel.close());
            },
            succeeds,
        ),
        case(
            "a hub that can't tell waits, and says so in the log once",
            || {
                log::set_logger(&Print).unwrap();
                log::set_max_level(log::LevelFilter::Warn);
                for _ in 0..2 {
                    let (promise, result) = promise();
                    let thread = thread::spawn(move || {
                        thread::sleep(A_WHILE);
                        promise.set(7);
                    });
                    assert_eq!(result.get().unwrap(), 7);
                    thread.join().unwrap();
                    hub();
                }
            },
            |ended| {
                succeeds(ended);
                let lines: Vec<_> = ended.stdout.lines().collect();
                assert_eq!(lines.len(), 1, "{lines:?}");
                has(lines[0], "a hub waits with nothing of its own to wake it");
                has(lines[0], "main waits for ");
            },
        ),
    ]
}

struct Print;

impl log::Log for Print {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        println!("{}", record.args());
    }

    fn flush(&self) {}
}
