//! The wake protocols under the model checker:
//! `RUSTFLAGS="--cfg loom" cargo test -p greenroom --release --lib models`

use std::sync::Arc;

use loom::thread;

use super::atomic::{AtomicBool, Ordering};
use super::{Bell, Door, Home, Settled, WaitCell, Waiter};

fn door() -> Arc<Door> {
    let (calls, _) = crossbeam_channel::unbounded();
    Door::new(calls, Bell::silent())
}

/// All interleavings with up to three preemptions; more take hours and have found nothing more.
fn model(f: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(f);
}

/// The hub's side of the protocol: announce, look again, sleep. Returns the keys.
fn collect(door: &Door, wanted: usize) -> Vec<usize> {
    let (mut keys, mut rings, mut announced) = (Vec::new(), 0, 0);
    loop {
        keys.extend(door.collect());
        if keys.len() == wanted {
            return keys;
        }
        door.announce_sleep();
        announced += 1;
        if door.is_quiet() {
            rings += door.bell().sleep();
        }
        door.awake();
        assert!(rings <= announced, "rung more than once a sleep");
    }
}

fn parked(door: &Arc<Door>, key: usize) -> (Arc<WaitCell>, u64) {
    let cell = WaitCell::new(Home::Hub(Arc::clone(door)));
    let epoch = cell.begin(key);
    assert!(cell.arm(epoch));
    (cell, epoch)
}

/// Two threads wake two greenlets of a hub that goes to sleep: both arrive.
#[test]
fn no_wake_is_lost_to_a_hub_that_goes_to_sleep() {
    model(|| {
        let door = door();
        let threads: Vec<_> = (1..=2)
            .map(|key| {
                let (cell, epoch) = parked(&door, key);
                let waiter = Waiter::new(&cell, epoch);
                thread::spawn(move || assert!(waiter.wake()))
            })
            .collect();
        let mut keys = collect(&door, 2);
        keys.sort_unstable();
        assert_eq!(keys, [1, 2]);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// A wake races with the park it is meant for: either the park doesn't happen, or the hub gets the key, once.
#[test]
fn a_wake_before_during_or_after_the_park_counts_once() {
    model(|| {
        let door = door();
        let cell = WaitCell::new(Home::Hub(Arc::clone(&door)));
        let epoch = cell.begin(7);
        let waiters = [Waiter::new(&cell, epoch), Waiter::new(&cell, epoch)];
        let threads = waiters.map(|waiter| thread::spawn(move || waiter.wake()));
        if cell.arm(epoch) {
            assert_eq!(collect(&door, 1), [7]);
        }
        assert_eq!(cell.settle(epoch), Settled::Notified);
        let woke = threads.map(|thread| thread.join().unwrap());
        // The second wake may come before the owner settled (refused) or after (counted for the next park).
        assert!(woke[0] || woke[1]);
        assert!(door.is_quiet(), "made ready twice");
    });
}

/// The hub's own timer and a foreign wake race for a parked greenlet: one of them makes it ready.
#[test]
fn a_deadline_and_a_wake_make_ready_once() {
    model(|| {
        let door = door();
        let (cell, epoch) = parked(&door, 3);
        let waiter = Waiter::new(&cell, epoch);
        let thread = thread::spawn(move || waiter.wake());
        if cell.kick(epoch) {
            assert_eq!(cell.settle(epoch), Settled::Kicked);
            let woken_later = thread.join().unwrap();
            let late = if woken_later { Settled::Notified } else { Settled::Untouched };
            assert_eq!(cell.settle(epoch), late);
            assert!(door.is_quiet());
        } else {
            assert_eq!(collect(&door, 1), [3]);
            assert_eq!(cell.settle(epoch), Settled::Notified);
            assert!(thread.join().unwrap());
        }
    });
}

/// What is done before a wake is seen by an owner that a deadline has brought back, or the wake counts for its next park: it
/// never parks for something that has happened without being woken.
#[test]
fn what_is_done_before_a_wake_is_seen_after_a_kick_or_wakes_again() {
    model(|| {
        let door = door();
        let (cell, epoch) = parked(&door, 3);
        let waiter = Waiter::new(&cell, epoch);
        let done = Arc::new(AtomicBool::new(false));
        let theirs = Arc::clone(&done);
        let thread = thread::spawn(move || {
            theirs.store(true, Ordering::Release);
            waiter.wake();
        });
        if cell.kick(epoch) {
            assert_eq!(cell.settle(epoch), Settled::Kicked);
            if !done.load(Ordering::Acquire) && cell.arm(epoch) {
                assert_eq!(collect(&door, 1), [3]);
                cell.settle(epoch);
                assert!(done.load(Ordering::Acquire));
            }
        }
        thread.join().unwrap();
    });
}

/// A waiter of an earlier wait does nothing to the next one on the same cell.
#[test]
fn a_stale_waiter_wakes_nobody() {
    model(|| {
        let door = door();
        let cell = WaitCell::new(Home::Hub(Arc::clone(&door)));
        let first = cell.begin(1);
        let stale = Waiter::new(&cell, first);
        let thread = thread::spawn(move || stale.wake());
        let second = cell.begin(1);
        assert!(cell.arm(second), "a stale wake reached the next wait");
        thread.join().unwrap();
        assert!(cell.is_parked(second));
        assert!(door.is_quiet());
    });
}

/// What is delivered to a hub that ends meanwhile is dropped, not leaked (cells hold the door, and the door the cells).
#[test]
fn a_closed_door_keeps_nothing() {
    model(|| {
        let door = door();
        let (cell, epoch) = parked(&door, 1);
        let waiter = Waiter::new(&cell, epoch);
        let thread = thread::spawn(move || waiter.wake());
        door.close();
        thread.join().unwrap();
        assert!(door.is_quiet());
        assert_eq!(Arc::strong_count(&cell), 1);
    });
}
