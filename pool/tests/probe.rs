//! The probe for parallelism: what it runs and what it tells. The times themselves are the machine's affair.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use greenroom_pool::probe::{Verdict, parallel_speedup};

fn spin(rounds: u64) {
    black_box((0..rounds).fold(0, |sum: u64, n| sum.rotate_left(5) ^ black_box(n)));
}

#[test]
fn the_work_runs_in_sequence_here_and_then_once_on_each_thread() {
    let seen = Mutex::new(Vec::new());
    let speedup = parallel_speedup(3, || seen.lock().unwrap().push(thread::current().id()));
    let seen = seen.into_inner().unwrap();
    let here = thread::current().id();
    assert_eq!(seen.len(), 6);
    assert!(seen[..3].iter().all(|&id| id == here));
    assert!(seen[3..].iter().all(|&id| id != here));
    assert!(seen[3] != seen[4] && seen[4] != seen[5] && seen[3] != seen[5]);
    assert_eq!(speedup.threads, 3);
    assert!(speedup.cores >= 1);
}

#[test]
fn the_ratio_is_that_of_the_times() {
    let speedup = parallel_speedup(2, || spin(200_000));
    let expected = speedup.sequential.as_secs_f64() / speedup.parallel.as_secs_f64();
    assert!((speedup.ratio - expected).abs() < 1e-9);
    let text = speedup.to_string();
    assert!(text.contains("2 threads") && text.contains(&speedup.verdict.to_string()), "{text}");
}

#[test]
fn work_under_one_lock_is_serial() {
    let lock = Mutex::new(());
    let serial = || {
        let _held = lock.lock().unwrap();
        spin(1_000_000);
    };
    // A busy machine may slow the first half down; it can't do so every time.
    assert!((0..50).any(|_| parallel_speedup(4, serial).verdict == Verdict::Serial));
}

#[test]
fn a_panic_in_sequence_comes_back() {
    let outcome = catch_unwind(|| parallel_speedup(2, || resume_unwind(Box::new(7))));
    assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&7));
}

#[test]
fn a_panic_on_a_thread_comes_back_after_the_others_have_ended() {
    let (calls, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        let call = calls.fetch_add(1, SeqCst);
        if call == 3 {
            resume_unwind(Box::new("third"));
        }
        spin(100_000);
        ended.fetch_add(1, SeqCst);
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| parallel_speedup(3, work)));
    assert_eq!(outcome.unwrap_err().downcast_ref(), Some(&"third"));
    assert_eq!(ended.load(SeqCst), 5);
}

#[test]
#[should_panic(expected = "at least 1 thread")]
fn no_threads_measure_nothing() {
    parallel_speedup(0, || ());
}
