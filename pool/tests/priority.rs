//! What the kernel is told about a pool's threads. It can be asked on Linux only.
#![cfg(all(target_os = "linux", not(greenroom_fallback)))]

use std::fs;
use std::sync::mpsc::channel;

use greenroom_pool::{Pool, Priority};

/// Nice value and policy of the current thread: fields 19 and 41 of its `stat`, counted from 1, of which the first two are cut off.
fn scheduling() -> (i64, u64) {
    let stat = fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[19 - 3].parse().unwrap(), fields[41 - 3].parse().unwrap())
}

fn in_worker(priority: Priority) -> (i64, u64) {
    let pool = Pool::builder().max_threads(1).priority(priority).build();
    let (sender, receiver) = channel();
    pool.submit(move || sender.send(scheduling()).unwrap()).unwrap();
    receiver.recv().unwrap()
}

#[test]
fn a_worker_that_a_worker_has_started_is_no_nicer() {
    let pool = Pool::builder().max_threads(3).priority(Priority::Low).build();
    let (sender, receiver) = channel();
    let same = pool.clone();
    pool.submit(move || {
        let (inner, later) = (sender.clone(), same.clone());
        same.submit(move || {
            let last = inner.clone();
            later.submit(move || last.send(scheduling()).unwrap()).unwrap();
            inner.send(scheduling()).unwrap();
        })
        .unwrap();
        sender.send(scheduling()).unwrap();
    })
    .unwrap();
    let (nice, policy) = scheduling();
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [((nice + 10).min(19), policy); 3]);
}

#[test]
fn only_the_pools_own_threads_change() {
    const IDLE: u64 = 5;
    let (nice, policy) = scheduling();
    assert_eq!(in_worker(Priority::Same), (nice, policy));
    assert_eq!(in_worker(Priority::Low), ((nice + 10).min(19), policy));
    assert_eq!(in_worker(Priority::Idle), (nice, IDLE));
    assert_eq!(scheduling(), (nice, policy));
}
