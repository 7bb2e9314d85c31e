//! Kill: where it reaches a greenlet, what runs meanwhile, and who learns of it.

#[macro_use]
mod common;

use std::cell::{Cell, RefCell};
use std::panic::{catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::parks::{Park, Prepare, stubborn};
use common::*;
use greenroom::{
    Greenlet, Outcome, ThreadPool, hub, join_all, kill_all, on_big_stack, promise, sleep, spawn, spawn_later, timeout,
    yield_now,
};
use greenroom_pool::Pool;

// A kill ends every kind of park.

/// The destructors run, the code behind the park doesn't, and everybody learns of it.
fn dies(place: Park) {
    let (dropped, passed) = (Count::new(), Count::new());
    let (guard, past) = (dropped.on_drop(), passed.clone());
    let greenlet = Rc::new(begun(move || {
        let _guard = guard;
        place();
        past.add();
    }));
    (0..5).for_each(|_| yield_now());
    assert!(!greenlet.is_finished());
    assert_eq!(dropped.get(), 0);
    let shared = Rc::clone(&greenlet);
    let waiter = begun(move || {
        shared.wait();
        shared.is_finished()
    });
    greenlet.kill();
    assert!(greenlet.is_finished());
    assert_eq!((dropped.get(), passed.get()), (1, 0));
    assert!(waiter.join().unwrap());
    assert!(join_shared(greenlet).unwrap_err().is_killed());
}

each_park!(a_kill_ends, crate::dies);

/// It is there before the park.
fn dies_at_the_park(place: Park) {
    let trace = Trace::new();
    let inside = trace.clone();
    let greenlet = with_own_handle(move |me| {
        let _guard = inside.on_drop("dropped");
        me.request_kill();
        inside.add("goes on");
        place();
        inside.add("passed");
    });
    greenlet.wait();
    assert_eq!(trace.take(), ["goes on", "dropped"]);
    assert!(join_shared(greenlet).unwrap_err().is_killed());
}

each_park!(a_pending_kill_ends, crate::dies_at_the_park);

/// Another greenlet of the thread is in the middle of unwinding, so that `thread::panicking()` says yes to all.
fn dies_beside_one_that_unwinds(place: Park) {
    let (other, keep) = parked_in_its_destructor();
    dies(place);
    dies_at_the_park(place);
    assert!(!other.is_finished());
    drop(keep);
    other.wait();
}

each_park!(a_kill_beside_one_that_unwinds_ends, crate::dies_beside_one_that_unwinds);

/// The body catches the unwinding, and parks there again.
fn meets_it_again(place: Park) {
    let trace = Trace::new();
    let inside = trace.clone();
    let greenlet = begun(move || {
        for _ in 0..3 {
            assert!(is_ended_early(place));
            inside.add("swallowed");
        }
        place();
        inside.add("passed");
    });
    greenlet.kill();
    assert_eq!(trace.take(), ["swallowed"; 3]);
    assert!(greenlet.join().unwrap_err().is_killed());
}

each_park!(a_swallowed_kill_comes_again_in, crate::meets_it_again);

fn meets_it_again_beside_one_that_unwinds(place: Park) {
    let (other, keep) = parked_in_its_destructor();
    meets_it_again(place);
    drop(keep);
    other.wait();
}

each_park!(a_swallowed_kill_comes_again_beside_one_that_unwinds_in, crate::meets_it_again_beside_one_that_unwinds);

#[test]
fn one_that_has_unwound_before_another_does_can_still_be_killed() {
    within_a_minute(|| {
        let unwinds: [fn(); 3] = [
            || assert_eq!(timeout(ms(1), || is_ended_early(forever)), Ok(true)),
            || assert!(timeout(ms(1), forever).is_err()),
            || {
                assert!(is_ended_early(|| {
                    let _slow = on_drop(|| sleep(ms(1)));
                    panic_with("caught");
                }));
            },
        ];
        for unwinds in unwinds {
            let has_unwound = Rc::new(Cell::new(false));
            let done = Rc::clone(&has_unwound);
            let greenlet = spawn(move || {
                unwinds();
                done.set(true);
                (0..10).for_each(|_| yield_now());
                forever();
            });
            while !has_unwound.get() {
                yield_now();
            }
            let (other, keep) = parked_in_its_destructor();
            (0..10).for_each(|_| yield_now());
            greenlet.kill();
            assert!(greenlet.join().unwrap_err().is_killed());
            drop(keep);
            other.wait();
        }
    });
}

#[test]
fn a_destructor_may_kill_and_await_one_that_swallows() {
    within_a_minute(|| {
        let greenlet = begun(|| (0..3).filter(|_| is_ended_early(forever)).count());
        let parent = begun(move || {
            let _guard = on_drop(move || {
                greenlet.kill();
                assert_eq!(greenlet.join().unwrap(), 3);
            });
            forever();
        });
        parent.kill();
        assert!(parent.join().unwrap_err().is_killed());
    });
}

// Destructors that park run to their end.

/// What `prepare` prepares is waited for in a destructor of `body`, which is told that it is prepared and ends early.
struct InDestructor {
    ended: Rc<Cell<Option<bool>>>,
    began: Rc<Cell<bool>>,
    greenlet: Greenlet<()>,
}

impl InDestructor {
    fn of(prepare: Prepare, body: impl FnOnce() + 'static) -> InDestructor {
        let (ended, began) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(false)));
        let prepared = Rc::new(Cell::new(false));
        let greenlet = {
            let (ended, began, prepared) = (Rc::clone(&ended), Rc::clone(&began), Rc::clone(&prepared));
            spawn(move || {
                let wait = prepare();
                let _guard = on_drop(move || {
                    began.set(true);
                    ended.set(Some(wait()));
                });
                prepared.set(true);
                body();
            })
        };
        while !prepared.get() {
            yield_now();
        }
        InDestructor { ended, began, greenlet }
    }

    fn await_destructor(&self) {
        while !self.began.get() {
            sleep(Duration::from_micros(100));
        }
    }
}

fn destructor_ends(prepare: Prepare) {
    let it = InDestructor::of(prepare, forever);
    it.greenlet.kill();
    assert_eq!(it.ended.get(), Some(true));
    assert!(it.greenlet.join().unwrap_err().is_killed());
}

each_wait!(a_killed_one_waits_in_its_destructor_for, crate::destructor_ends);

/// Killed again and again while it is in its destructor.
fn destructor_ends_whoever_kills(prepare: Prepare) {
    let it = InDestructor::of(prepare, forever);
    it.greenlet.request_kill();
    it.await_destructor();
    let greenlet = Rc::new(it.greenlet);
    let killers: Vec<_> = (0..3)
        .map(|_| {
            let greenlet = Rc::clone(&greenlet);
            begun(move || {
                greenlet.kill();
                greenlet.is_finished()
            })
        })
        .collect();
    greenlet.kill();
    assert_eq!(it.ended.get(), Some(true));
    assert!(join_all(killers).into_iter().all(|killer| killer.unwrap()));
    assert!(join_shared(greenlet).unwrap_err().is_killed());
}

each_wait!(one_killed_many_times_waits_in_its_destructor_for, crate::destructor_ends_whoever_kills);

fn destructor_ends_beside_one_that_unwinds(prepare: Prepare) {
    let (other, keep) = parked_in_its_destructor();
    destructor_ends(prepare);
    destructor_ends_whoever_kills(prepare);
    drop(keep);
    other.wait();
}

each_wait!(
    beside_one_that_unwinds_a_killed_one_waits_in_its_destructor_for,
    crate::destructor_ends_beside_one_that_unwinds
);

/// A panic of its own brought it there, then a kill comes.
fn destructor_of_a_panicking_one_ends(prepare: Prepare) {
    let it = InDestructor::of(prepare, || panic_with("its own"));
    it.await_destructor();
    it.greenlet.kill();
    assert_eq!(it.ended.get(), Some(true));
    let payload = it.greenlet.join().unwrap_err().into_panic();
    assert_eq!(text_of(&*payload), "its own");
}

each_wait!(a_panicking_one_is_killed_and_waits_in_its_destructor_for, crate::destructor_of_a_panicking_one_ends);

/// Another one is in the middle of unwinding when it panics.
fn destructor_of_a_panicking_one_ends_beside_one_that_unwinds(prepare: Prepare) {
    let (other, keep) = parked_in_its_destructor();
    let it = InDestructor::of(prepare, || panic_with("its own"));
    it.greenlet.wait();
    assert_eq!(it.ended.get(), Some(true));
    let payload = it.greenlet.join().unwrap_err().into_panic();
    assert_eq!(text_of(&*payload), "its own");
    main_unwinds(prepare);
    drop(keep);
    other.wait();
}

each_wait!(
    beside_one_that_unwinds_a_panicking_one_waits_in_its_destructor_for,
    crate::destructor_of_a_panicking_one_ends_beside_one_that_unwinds
);

/// It never began: what it captured is dropped, and that is not cut short by a second kill.
fn captures_are_dropped_in_peace(prepare: Prepare) {
    let (ended, began) = (Rc::new(Cell::new(None)), Rc::new(Cell::new(false)));
    let wait = prepare();
    let guard = {
        let (ended, began) = (Rc::clone(&ended), Rc::clone(&began));
        on_drop(move || {
            began.set(true);
            ended.set(Some(wait()));
        })
    };
    let greenlet = spawn(move || {
        let _guard = guard;
        unreachable!("it is killed before");
    });
    greenlet.request_kill();
    while !began.get() {
        yield_now();
    }
    greenlet.kill();
    assert_eq!(ended.get(), Some(true));
    assert!(greenlet.join().unwrap_err().is_killed());
}

each_wait!(one_killed_twice_before_it_began_drops_its_captures, crate::captures_are_dropped_in_peace);

/// Main unwinds, and its destructor waits for greenlets that are killed, time out and panic meanwhile.
fn main_unwinds(prepare: Prepare) {
    let ended = Rc::new(Cell::new(None));
    let wait = prepare();
    let note = Rc::clone(&ended);
    assert!(is_ended_early(move || {
        let _guard = on_drop(move || note.set(Some(wait())));
        panic_with("main's own");
    }));
    assert_eq!(ended.get(), Some(true));
}

each_wait!(main_waits_in_a_destructor_for, crate::main_unwinds);

#[test]
fn a_destructor_at_the_normal_end_of_a_scope_is_interrupted_like_any_code() {
    within_a_minute(|| {
        let trace = Trace::new();
        let inside = trace.clone();
        let greenlet = begun(move || {
            let _first = inside.on_drop("first");
            drop(on_drop(forever));
            inside.add("passed");
        });
        greenlet.kill();
        assert_eq!(trace.take(), ["first"]);
        assert!(greenlet.join().unwrap_err().is_killed());
    });
}

#[test]
fn destructors_that_kill_the_next_go_down_the_whole_chain() {
    within_a_minute(|| {
        let trace = Trace::new();
        let mut next: Option<Greenlet<()>> = None;
        for i in 0..50 {
            let (child, trace) = (next.take(), trace.clone());
            next = Some(begun(move || {
                let _guard = on_drop(move || {
                    if let Some(child) = child {
                        child.kill();
                        assert!(child.is_finished());
                    }
                    trace.add(format!("{i}"));
                });
                forever();
            }));
        }
        next.unwrap().kill();
        assert_eq!(trace.take(), (0..50).map(|i| i.to_string()).collect::<Vec<_>>());
    });
}

// Before the beginning, after the end, oneself.

#[test]
fn one_killed_before_it_began_never_runs_and_drops_its_captures() {
    within_a_minute(|| {
        let (ran, dropped, linked) = (Count::new(), Count::new(), Count::new());
        let (inside, guard) = (ran.clone(), dropped.on_drop());
        let greenlet = spawn(move || {
            let _guard = guard;
            inside.add();
        });
        let link = linked.clone();
        greenlet.link(move |outcome| {
            assert_eq!(*outcome, Outcome::Killed);
            link.add();
        });
        greenlet.kill();
        assert_eq!((ran.get(), dropped.get()), (0, 1));
        greenlet.kill();
        assert!(greenlet.kill_timeout(Duration::ZERO));
        greenlet.request_kill();
        assert!(hub().join(None));
        assert_eq!((ran.get(), dropped.get(), linked.get()), (0, 1, 1));
        assert!(greenlet.join().unwrap_err().is_killed());
    });
}

#[test]
fn one_killed_before_its_time_never_runs() {
    within_a_minute(|| {
        let dropped = Count::new();
        for after in [Duration::ZERO, ms(1), LONG, Duration::MAX] {
            let guard = dropped.on_drop();
            let greenlet = spawn_later(after, move || {
                let _guard = guard;
                unreachable!("it is killed before");
            });
            greenlet.kill();
            assert!(greenlet.join().unwrap_err().is_killed());
        }
        assert_eq!(dropped.get(), 4);
        assert_eq!(hub().stats().timers, 0);
        sleep(ms(5));
        assert_eq!(hub().stats().greenlets, 0);
    });
}

#[test]
fn one_that_waits_for_a_stack_is_killed_without_one() {
    within_a_minute(|| {
        let other = begun(forever);
        let dropped = Count::new();
        let guard = dropped.on_drop();
        // More than any kernel gives, so that it waits until others give theirs back.
        let body = move || drop(guard);
        let greenlet = greenroom::Builder::new().stack_size(1 << 60).spawn(body).unwrap();
        yield_now();
        greenlet.kill();
        assert_eq!(dropped.get(), 1);
        assert!(greenlet.join().unwrap_err().is_killed());
        assert!(!other.is_finished());
        other.kill();
    });
}

#[test]
fn captures_that_panic_when_dropped_unrun_are_the_panic_of_their_greenlet() {
    within_a_minute(|| {
        let guard = on_drop(|| panic_with("captured"));
        let greenlet = spawn(move || drop(guard));
        greenlet.kill();
        let payload = greenlet.join().unwrap_err().into_panic();
        assert_eq!(text_of(&*payload), "captured");
        assert_eq!(spawn(|| 1).join().unwrap(), 1);
    });
}

#[test]
fn killing_one_that_has_ended_returns_at_once_and_leaves_its_value() {
    within_a_minute(|| {
        let greenlet = begun(|| "value");
        let bystander = Count::new();
        let ran = bystander.clone();
        let other = spawn(move || ran.add());
        greenlet.kill();
        assert!(greenlet.kill_timeout(LONG));
        greenlet.request_kill();
        kill_all([&greenlet, &greenlet]);
        assert_eq!(bystander.get(), 0, "nothing of that parked");
        assert_eq!(greenlet.join().unwrap(), "value");
        other.join().unwrap();
    });
}

#[test]
fn killing_oneself_unwinds_at_the_call() {
    within_a_minute(|| {
        let ways: [fn(&Greenlet<()>); 4] =
            [Greenlet::kill, |me| _ = me.kill_timeout(LONG), |me| kill_all([me]), |me| kill_all([me, me])];
        for kill in ways {
            let trace = Trace::new();
            let inside = trace.clone();
            let greenlet = with_own_handle(move |me| {
                let _guard = inside.on_drop("dropped");
                inside.add("begun");
                kill(&me);
                inside.add("passed");
            });
            assert!(join_shared(greenlet).unwrap_err().is_killed());
            assert_eq!(trace.take(), ["begun", "dropped"]);
        }
    });
}

#[test]
fn one_that_swallows_its_own_kill_unwinds_at_the_next_and_at_its_next_park() {
    within_a_minute(|| {
        let trace = Trace::new();
        let inside = trace.clone();
        let greenlet = with_own_handle(move |me| {
            assert!(is_ended_early(|| me.kill()));
            inside.add("once");
            assert!(is_ended_early(|| me.kill()));
            inside.add("twice");
            yield_now();
            inside.add("passed");
        });
        assert!(join_shared(greenlet).unwrap_err().is_killed());
        assert_eq!(trace.take(), ["once", "twice"]);
    });
}

#[test]
fn a_destructor_of_a_dying_one_that_kills_it_again_goes_on() {
    within_a_minute(|| {
        let ways: [fn(&Greenlet<()>); 4] = [
            Greenlet::request_kill,
            |me| assert!(!me.kill_timeout(Duration::ZERO)),
            |me| kill_all([me, me]),
            Greenlet::kill,
        ];
        for kill in ways {
            let trace = Trace::new();
            let inside = trace.clone();
            let greenlet = with_own_handle(move |me| {
                let _guard = on_drop(move || {
                    kill(&me);
                    inside.add("went on");
                });
                forever();
            });
            yield_now();
            greenlet.kill();
            assert_eq!(trace.take(), ["went on"]);
            assert!(join_shared(greenlet).unwrap_err().is_killed());
        }
    });
}

// Pending kills.

#[test]
fn a_requested_kill_does_not_wait_and_arrives_at_the_next_park() {
    within_a_minute(|| {
        let trace = Trace::new();
        let inside = trace.clone();
        let greenlet = begun(move || {
            let _guard = inside.on_drop("dropped");
            forever();
        });
        greenlet.request_kill();
        greenlet.request_kill();
        assert!(!greenlet.is_finished());
        trace.add("requested");
        assert!(greenlet.join().unwrap_err().is_killed());
        assert_eq!(trace.take(), ["requested", "dropped"]);
    });
}

#[test]
fn one_that_does_not_park_any_more_gives_its_value() {
    within_a_minute(|| {
        let greenlet = with_own_handle(|me| {
            me.request_kill();
            42
        });
        assert_eq!(join_shared(greenlet).unwrap(), 42);
    });
}

#[test]
fn one_that_resists_is_not_dead_in_time_and_the_kill_stays_pending() {
    within_a_minute(|| {
        let (promise, result) = promise::<()>();
        let greenlet = begun(move || {
            let _resists = on_drop(move || result.wait());
            forever();
        });
        for _ in 0..3 {
            assert!(!greenlet.kill_timeout(ms(2)));
            assert!(!greenlet.kill_timeout(Duration::ZERO));
            assert!(!greenlet.is_finished());
        }
        promise.set(());
        greenlet.wait();
        assert!(greenlet.kill_timeout(Duration::ZERO));
        assert!(greenlet.join().unwrap_err().is_killed());
    });
}

#[test]
fn one_that_swallows_a_thousand_kills_can_still_give_its_value() {
    within_a_minute(|| {
        let greenlet = begun(|| (0..1_000).filter(|_| is_ended_early(forever)).count());
        greenlet.kill();
        assert_eq!(greenlet.join().unwrap(), 1_000);
    });
}

#[test]
fn a_kill_swallowed_and_kept_comes_again() {
    within_a_minute(|| {
        let greenlet = begun(|| {
            let kept: Vec<_> = (0..3).map(|_| catch_unwind(forever).unwrap_err()).collect();
            forever();
            drop(kept);
        });
        greenlet.kill();
        assert!(greenlet.join().unwrap_err().is_killed());
    });
}

#[test]
fn a_kill_caught_and_resumed_is_still_a_kill() {
    within_a_minute(|| {
        let trace = Trace::new();
        let inside = trace.clone();
        let greenlet = begun(move || {
            if let Err(payload) = catch_unwind(forever) {
                inside.add("cleans up");
                resume_unwind(payload);
            }
        });
        greenlet.kill();
        assert_eq!(trace.take(), ["cleans up"]);
        assert!(greenlet.join().unwrap_err().is_killed());
    });
}

#[test]
fn a_panic_in_place_of_a_swallowed_kill_is_a_panic() {
    within_a_minute(|| {
        let greenlet = begun(|| {
            assert!(is_ended_early(forever));
            panic_with("its own");
        });
        greenlet.kill();
        let payload = greenlet.join().unwrap_err().into_panic();
        assert_eq!(text_of(&*payload), "its own");
    });
}

#[test]
fn a_kill_passes_through_timeouts() {
    within_a_minute(|| {
        let trace = Trace::new();
        let inside = trace.clone();
        let greenlet = begun(move || {
            let result = timeout(LONG, || {
                let _guard = inside.on_drop("dropped");
                timeout(Duration::ZERO, || 1).unwrap();
                forever();
            });
            inside.add(format!("passed: {result:?}"));
        });
        greenlet.kill();
        assert_eq!(trace.take(), ["dropped"]);
        assert!(greenlet.join().unwrap_err().is_killed());
        assert_eq!(hub().stats().timers, 0);
    });
}

#[test]
fn a_kill_beats_a_timeout_and_a_wake_of_the_same_turn() {
    within_a_minute(|| {
        let (promise, result) = promise();
        let trace = Trace::new();
        let inside = trace.clone();
        let greenlet = begun(move || {
            let got = timeout(ms(20), || result.get().unwrap());
            inside.add(format!("passed: {got:?}"));
        });
        spin(ms(30));
        promise.set(1);
        greenlet.kill();
        assert!(trace.take().is_empty());
        assert!(greenlet.join().unwrap_err().is_killed());
    });
}

// Several.

#[test]
fn of_two_that_kill_each_other_one_dies_and_the_other_goes_on() {
    within_a_minute(|| {
        let trace = Trace::new();
        let slots = Rc::new(RefCell::new(Vec::<Rc<Greenlet<()>>>::new()));
        for (me, other) in [(0, 1), (1, 0)] {
            let (trace, all) = (trace.clone(), Rc::clone(&slots));
            slots.borrow_mut().push(Rc::new(spawn(move || {
                yield_now();
                let other = Rc::clone(&all.borrow()[other]);
                other.kill();
                trace.add(format!("{me} killed the other"));
                yield_now();
                trace.add(format!("{me} goes on"));
            })));
        }
        assert!(hub().join(None));
        assert_eq!(trace.take(), ["0 killed the other", "0 goes on"]);
        assert!(slots.borrow().iter().all(|greenlet| greenlet.is_finished()));
    });
}

/// Greenlets in a ring: when one dies, its destructor does `kill` to the next.
fn ring(size: usize, kill: fn(&Greenlet<()>)) -> Vec<Rc<Greenlet<()>>> {
    let all = Rc::new(RefCell::new(Vec::<Rc<Greenlet<()>>>::new()));
    for i in 0..size {
        let others = Rc::clone(&all);
        let greenlet = begun(move || {
            let _guard = on_drop(move || {
                let next = Rc::clone(&others.borrow()[(i + 1) % size]);
                kill(&next);
            });
            forever();
        });
        all.borrow_mut().push(Rc::new(greenlet));
    }
    all.borrow().clone()
}

#[test]
fn a_ring_of_destructors_that_request_kills_dies() {
    within_a_minute(|| {
        for size in 1..=5 {
            let all = ring(size, Greenlet::request_kill);
            all[size - 1].kill();
            all.iter().for_each(|greenlet| greenlet.wait());
        }
        assert_eq!(hub().stats().greenlets, 0);
    });
}

#[test]
fn a_ring_of_destructors_that_kill_for_a_time_dies() {
    within_a_minute(|| {
        for size in 2..=4 {
            let all = ring(size, |next| _ = next.kill_timeout(ms(2)));
            all[0].kill();
            all.iter().for_each(|greenlet| greenlet.wait());
        }
    });
}

#[test]
fn two_killed_at_once_that_wait_for_each_other_both_die() {
    within_a_minute(|| {
        let slot = Rc::new(RefCell::new(None::<Rc<Greenlet<()>>>));
        let later = Rc::clone(&slot);
        let first = Rc::new(begun(move || {
            yield_now();
            let other = later.borrow().clone().unwrap();
            other.wait();
        }));
        let other = Rc::clone(&first);
        let second = Rc::new(begun(move || other.wait()));
        *slot.borrow_mut() = Some(Rc::clone(&second));
        yield_now();
        kill_all([&*first, &*second]);
        assert!(first.is_finished() && second.is_finished());
    });
}

#[test]
fn killing_all_takes_everybody_duplicates_and_dead_ones_too() {
    within_a_minute(|| {
        kill_all::<()>([]);
        let dropped = Count::new();
        let mut all: Vec<Greenlet<()>> = Vec::new();
        for _ in 0..20 {
            let guard = dropped.on_drop();
            all.push(begun(move || {
                let _guard = guard;
                forever();
            }));
        }
        all.push(stubborn());
        all.push(begun(|| ()));
        all.push(spawn(|| unreachable!("it is killed before")));
        all.push(spawn_later(LONG, || unreachable!("it is killed before")));
        kill_all(all.iter().chain(&all).chain(all.iter().rev()));
        assert!(all.iter().all(Greenlet::is_finished));
        assert_eq!(dropped.get(), 20);
        assert_eq!(hub().stats().greenlets, 0);
    });
}

#[test]
fn killing_all_kills_the_caller_last() {
    within_a_minute(|| {
        let trace = Trace::new();
        let all = Rc::new(RefCell::new(Vec::<Rc<Greenlet<()>>>::new()));
        let (inside, listed) = (trace.clone(), Rc::clone(&all));
        let caller = spawn(move || {
            let _guard = inside.on_drop("caller");
            yield_now();
            let listed = listed.borrow().clone();
            kill_all(listed.iter().chain(&listed).map(|greenlet| &**greenlet));
            inside.add("passed");
        });
        all.borrow_mut().push(Rc::new(caller));
        for name in ["first", "second"] {
            let inside = trace.clone();
            let other = spawn(move || {
                let _guard = inside.on_drop(name);
                let _slow = on_drop(|| sleep(ms(5)));
                forever();
            });
            all.borrow_mut().push(Rc::new(other));
        }
        let caller = Rc::clone(&all.borrow()[0]);
        caller.wait();
        assert_eq!(trace.take(), ["first", "second", "caller"]);
    });
}

#[test]
fn several_killers_all_wait_for_the_death() {
    within_a_minute(|| {
        let victim = Rc::new(stubborn());
        let killers: Vec<_> = (0..10)
            .map(|_| {
                let victim = Rc::clone(&victim);
                spawn(move || {
                    victim.kill();
                    victim.is_finished()
                })
            })
            .collect();
        assert!(join_all(killers).into_iter().all(|killer| killer.unwrap()));
    });
}

#[test]
fn a_killer_that_is_killed_or_times_out_leaves_the_kill_pending() {
    within_a_minute(|| {
        let resists = || {
            let (promise, result) = promise::<()>();
            let victim = begun(move || {
                let _resists = on_drop(move || result.wait());
                forever();
            });
            (Rc::new(victim), promise)
        };

        let (victim, keep) = resists();
        let killed = Rc::clone(&victim);
        let killer = begun(move || killed.kill());
        killer.kill();
        assert!(!victim.is_finished());
        drop(keep);
        assert!(join_shared(victim).unwrap_err().is_killed());

        let (victim, keep) = resists();
        assert!(timeout(ms(1), || victim.kill()).is_err());
        assert!(!victim.is_finished());
        drop(keep);
        assert!(join_shared(victim).unwrap_err().is_killed());
    });
}

#[test]
fn joiners_of_a_killed_one_wake_in_order() {
    within_a_minute(|| {
        let trace = Trace::new();
        let greenlet = Rc::new(begun(forever));
        for i in 0..100 {
            let (trace, greenlet) = (trace.clone(), Rc::clone(&greenlet));
            begun(move || {
                greenlet.wait();
                trace.add(i.to_string());
            });
        }
        greenlet.kill();
        assert!(hub().join(None));
        assert_eq!(trace.take(), (0..100).map(|i| i.to_string()).collect::<Vec<_>>());
    });
}

#[test]
fn a_waiter_that_is_killed_leaves_the_line_for_the_others() {
    within_a_minute(|| {
        let (promise, result) = promise();
        let (result, woken) = (Rc::new(result), Count::new());
        let waiters: Vec<_> = (0..30)
            .map(|_| {
                let (result, woken) = (Rc::clone(&result), woken.clone());
                begun(move || {
                    result.wait();
                    woken.add();
                })
            })
            .collect();
        kill_all(waiters.iter().step_by(3));
        assert_eq!(woken.get(), 0);
        waiters[1].request_kill();
        promise.set(());
        waiters[2].request_kill();
        assert!(hub().join(None));
        assert_eq!(woken.get(), 18, "ten were killed before, one just before and one just after the wake");
    });
}

// Jobs on the pool.

/// A greenlet that runs `job` on the pool, and is killed while the job waits for `go_on`.
fn killed_while_its_job_runs<R: Send + 'static>(
    guard: OnDrop,
    job: impl FnOnce() -> R + Send + 'static,
) -> (Greenlet<()>, Arc<AtomicBool>) {
    let (has_begun, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (begin, may_go_on) = (Arc::clone(&has_begun), Arc::clone(&go_on));
    let greenlet = spawn(move || {
        let _guard = guard;
        hub().threadpool().run(move || {
            begin.store(true, Ordering::SeqCst);
            while !may_go_on.load(Ordering::SeqCst) {
                thread::sleep(ms(1));
            }
            job()
        });
        unreachable!("it is killed while the job runs");
    });
    while !has_begun.load(Ordering::SeqCst) {
        sleep(ms(1));
    }
    greenlet.request_kill();
    (greenlet, go_on)
}

#[test]
fn a_job_that_runs_is_waited_for_before_anything_unwinds() {
    within_a_minute(|| {
        let ended = Arc::new(AtomicBool::new(false));
        let (end, dropped) = (Arc::clone(&ended), Count::new());
        let (greenlet, go_on) = killed_while_its_job_runs(dropped.on_drop(), move || end.store(true, Ordering::SeqCst));
        assert!(!greenlet.kill_timeout(ms(2)));
        assert_eq!(dropped.get(), 0, "not before the job is done");
        go_on.store(true, Ordering::SeqCst);
        greenlet.kill();
        assert!(ended.load(Ordering::SeqCst));
        assert_eq!(dropped.get(), 1);
        assert!(greenlet.join().unwrap_err().is_killed());
    });
}

#[test]
fn a_job_of_a_killed_one_goes_on_using_what_it_borrows() {
    within_a_minute(|| {
        let has_begun = Arc::new(AtomicBool::new(false));
        let begin = Arc::clone(&has_begun);
        let greenlet = spawn(move || {
            let mut buffer = vec![0u8; 1 << 16];
            hub().threadpool().run(|| {
                begin.store(true, Ordering::SeqCst);
                for i in 0..20 {
                    thread::sleep(ms(1));
                    buffer.fill(i);
                    assert!(buffer.iter().all(|&byte| byte == i));
                }
            });
        });
        while !has_begun.load(Ordering::SeqCst) {
            sleep(Duration::from_micros(100));
        }
        greenlet.kill();
        assert!(greenlet.is_finished());
    });
}

#[test]
fn the_result_of_a_job_that_nobody_waits_for_any_more_is_dropped() {
    struct Note(Arc<AtomicBool>);
    impl Drop for Note {
        fn drop(&mut self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    within_a_minute(|| {
        let dropped = Arc::new(AtomicBool::new(false));
        let note = Note(Arc::clone(&dropped));
        let (greenlet, go_on) = killed_while_its_job_runs(on_drop(|| ()), move || note);
        go_on.store(true, Ordering::SeqCst);
        greenlet.kill();
        assert!(dropped.load(Ordering::SeqCst));
    });
}

#[test]
fn a_job_that_panics_after_its_caller_was_killed_leaves_it_killed() {
    within_a_minute(|| {
        let (greenlet, go_on) = killed_while_its_job_runs(on_drop(|| ()), || -> () { panic_with("too late") });
        go_on.store(true, Ordering::SeqCst);
        greenlet.kill();
        assert!(greenlet.join().unwrap_err().is_killed());
    });
}

#[test]
fn a_job_that_is_queued_is_taken_back_although_every_worker_is_busy() {
    within_a_minute(|| {
        let pool = ThreadPool::new(1);
        let release = Arc::new(AtomicBool::new(false));
        let (busy, released) = (pool.clone(), Arc::clone(&release));
        let blocker = begun(move || {
            busy.run(|| {
                while !released.load(Ordering::SeqCst) {
                    thread::sleep(ms(1));
                }
            });
        });
        while pool.stats().running == 0 {
            sleep(ms(1));
        }
        let dropped = Count::new();
        let (queue, guard) = (pool.clone(), dropped.on_drop());
        let queued = begun(move || {
            let _guard = guard;
            queue.run::<()>(|| unreachable!("it is taken back"));
        });
        queued.kill();
        assert_eq!(dropped.get(), 1);
        assert!(!blocker.is_finished());
        release.store(true, Ordering::SeqCst);
        blocker.join().unwrap();
        assert_eq!(pool.run(|| 7), 7);
    });
}

#[test]
fn room_in_a_queue_that_was_meant_for_a_killed_one_goes_to_the_next() {
    within_a_minute(|| {
        let pool = Pool::builder().max_threads(1).queue_limit(1).build();
        let release = Arc::new(AtomicBool::new(false));
        let job = |release: Option<Arc<AtomicBool>>| {
            let pool = ThreadPool::from(pool.clone());
            begun(move || {
                pool.run(|| {
                    while release.as_ref().is_some_and(|release| !release.load(Ordering::SeqCst)) {
                        thread::sleep(ms(1));
                    }
                });
            })
        };
        let running = job(Some(Arc::clone(&release)));
        while pool.stats().running == 0 {
            sleep(ms(1));
        }
        let [queued, first, second] = [job(None), job(None), job(None)];
        // The worker makes room while this hub doesn't look.
        release.store(true, Ordering::SeqCst);
        assert!(pool.join(None));
        first.request_kill();
        second.join().unwrap();
        assert!(first.join().unwrap_err().is_killed());
        running.join().unwrap();
        queued.join().unwrap();
    });
}

// What is left behind.

#[test]
fn a_killed_one_gives_back_what_it_borrowed() {
    within_a_minute(|| {
        let shared = Rc::new(RefCell::new(0));
        let borrowed = Rc::clone(&shared);
        let greenlet = begun(move || {
            let _borrow = borrowed.borrow_mut();
            forever();
        });
        assert!(shared.try_borrow().is_err());
        greenlet.kill();
        assert!(shared.try_borrow().is_ok());
        assert_eq!(Rc::strong_count(&shared), 1);
    });
}

#[test]
fn after_a_kill_the_thread_is_not_panicking() {
    within_a_minute(|| {
        let greenlet = begun(|| {
            assert!(is_ended_early(forever));
            assert!(!thread::panicking());
            forever();
        });
        greenlet.kill();
        assert!(!thread::panicking());
        assert!(!spawn(thread::panicking).join().unwrap());
    });
}

#[test]
fn a_kill_leaves_no_timer_and_no_stack_in_use() {
    within_a_minute(|| {
        let sleepers: Vec<_> = (0..100)
            .map(|i| {
                begun(move || {
                    let _ = timeout(LONG, || on_big_stack(1 << 16, || sleep(LONG + ms(i))));
                })
            })
            .collect();
        assert_eq!(hub().stats().timers, 100);
        assert_eq!(hub().stats().stacks_in_use, 200);
        kill_all(&sleepers);
        let stats = hub().stats();
        assert_eq!((stats.timers, stats.stacks_in_use, stats.greenlets), (0, 0, 0));
    });
}

#[test]
fn a_sleep_beside_a_kill_still_takes_its_time() {
    within_a_minute(|| {
        let sleeper = begun(|| {
            let start = Instant::now();
            sleep(ms(30));
            start.elapsed()
        });
        let other = begun(forever);
        other.kill();
        kill_all([&stubborn(), &begun(forever)]);
        assert!(sleeper.join().unwrap() >= ms(30));
    });
}
