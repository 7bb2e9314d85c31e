//! Greenlets that borrow: what the scope gives, and that nothing it lent is used after it.

mod common;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

use common::{LONG, within_a_minute};
use greenroom::sync::Event;
use greenroom::{Builder, ScopedGreenlet, hub, in_greenlet, scope, sleep, spawn, timeout, try_hub, yield_now};

const SHORT: Duration = Duration::from_millis(5);

/// Writes down that it was dropped, after parking a while, in what was borrowed.
struct Note<'a>(&'a Cell<usize>);

impl Drop for Note<'_> {
    fn drop(&mut self) {
        for _ in 0..3 {
            yield_now();
        }
        self.0.set(self.0.get() + 1);
    }
}

fn caught<R>(f: impl FnOnce() -> R) -> Box<dyn Any + Send> {
    catch_unwind(AssertUnwindSafe(f)).err().expect("it should have panicked")
}

#[test]
fn greenlets_borrow_read_and_write() {
    let words = ["a".to_owned(), "bc".to_owned()];
    let mut count = 0;
    let sum: usize = scope(|s| {
        s.spawn(|| count += 1);
        let lengths: Vec<_> = words.iter().map(|word| s.spawn(move || word.len())).collect();
        lengths.into_iter().map(|length| length.join().unwrap()).sum()
    });
    assert_eq!((sum, count), (3, 1));
}

#[test]
fn it_returns_after_those_that_nobody_joined() {
    let done = Cell::new(0);
    scope(|s| {
        for milliseconds in [3, 1, 2] {
            let done = &done;
            s.spawn(move || {
                sleep(Duration::from_millis(milliseconds));
                done.set(done.get() + 1);
            });
        }
    });
    assert_eq!(done.get(), 3);
}

#[test]
fn an_empty_one_makes_no_hub() {
    std::thread::spawn(|| {
        assert_eq!(scope(|_| 7), 7);
        assert!(try_hub().is_none());
    })
    .join()
    .unwrap();
}

#[test]
fn a_handle_that_is_forgotten_or_dropped_changes_nothing() {
    let done = Cell::new(0);
    scope(|s| {
        forget(s.spawn(|| {
            sleep(SHORT);
            done.set(done.get() + 1);
        }));
        drop(s.spawn(|| {
            sleep(SHORT);
            done.set(done.get() + 1);
        }));
    });
    assert_eq!(done.get(), 2);
}

#[test]
fn what_a_greenlet_returns_is_dropped_before_the_scope_ends() {
    let dropped = Cell::new(0);
    scope(|s| {
        drop(s.spawn(|| Note(&dropped)));
        s.spawn(|| Note(&dropped)).join().map(drop).unwrap();
        let unread = s.spawn(|| Note(&dropped));
        unread.wait();
    });
    assert_eq!(dropped.get(), 3);
}

#[test]
fn greenlets_spawn_more_of_them() {
    fn spread<'scope>(s: &'scope greenroom::Scope<'scope, '_>, count: &'scope Cell<usize>, depth: usize) {
        count.set(count.get() + 1);
        for _ in 0..if depth < 4 { 3 } else { 0 } {
            s.spawn(move || {
                yield_now();
                spread(s, count, depth + 1);
            });
        }
    }
    let count = Cell::new(0);
    scope(|s| spread(s, &count, 0));
    assert_eq!(count.get(), 1 + 3 + 9 + 27 + 81);
}

#[test]
fn scopes_nest_in_greenlets_and_in_each_other() {
    let total = Cell::new(0);
    scope(|outer| {
        for number in 0..10 {
            let total = &total;
            outer.spawn(move || {
                let local = Cell::new(number);
                scope(|inner| {
                    inner.spawn(|| local.set(local.get() * 2));
                    inner.spawn(yield_now);
                });
                total.set(total.get() + local.get());
            });
        }
    });
    assert_eq!(total.get(), 90);
}

#[test]
fn a_panic_nobody_joined_comes_out_after_the_others_have_ended() {
    within_a_minute(|| {
        let done = Cell::new(false);
        let payload = caught(|| {
            scope(|s| {
                s.spawn(|| resume_unwind(Box::new("first")));
                s.spawn(|| resume_unwind(Box::new("second")));
                s.spawn(|| {
                    sleep(SHORT);
                    done.set(true);
                });
            });
        });
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"first"));
        assert!(done.get());
    });
}

#[test]
fn a_panic_that_was_joined_does_not_come_out() {
    let error = scope(|s| {
        s.spawn(|| {
            resume_unwind(Box::new(7));
        })
        .join()
    })
    .unwrap_err();
    assert_eq!(error.into_panic().downcast_ref::<i32>(), Some(&7));
}

#[test]
fn a_killed_greenlet_is_no_panic() {
    let dropped = Cell::new(0);
    scope(|s| {
        let sleeper = s.spawn(|| {
            let _note = Note(&dropped);
            sleep(LONG);
        });
        yield_now();
        sleeper.kill();
        assert!(sleeper.join().unwrap_err().is_killed());
        let unborn = s.spawn(|| unreachable!("it was killed before it began"));
        unborn.request_kill();
    });
    assert_eq!(dropped.get(), 1);
}

#[test]
fn a_caller_that_panics_leaves_after_its_greenlets_are_dead() {
    within_a_minute(|| {
        let (dropped, ran) = (Cell::new(0), Cell::new(false));
        let payload = caught(|| {
            scope(|s| {
                for _ in 0..10 {
                    s.spawn(|| {
                        let _note = Note(&dropped);
                        sleep(LONG);
                    });
                }
                yield_now();
                s.spawn(|| ran.set(true));
                resume_unwind(Box::new("caller"));
            });
        });
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"caller"));
        assert_eq!((dropped.get(), ran.get()), (10, false));
    });
}

#[test]
fn a_caller_that_is_killed_leaves_after_its_greenlets_are_dead() {
    within_a_minute(|| {
        for killed_in_the_body in [false, true] {
            let after = Rc::new(RefCell::new(Vec::new()));
            let caller = spawn({
                let after = Rc::clone(&after);
                move || {
                    let borrowed = Cell::new(0);
                    let _guard = Deferred(|| after.borrow_mut().push(borrowed.get()));
                    scope(|s| {
                        for _ in 0..5 {
                            s.spawn(|| {
                                let _note = Note(&borrowed);
                                sleep(LONG);
                            });
                        }
                        if killed_in_the_body {
                            sleep(LONG);
                        }
                    });
                }
            });
            yield_now();
            yield_now();
            caller.kill();
            assert_eq!(*after.borrow(), [5]);
            assert!(caller.join().unwrap_err().is_killed());
        }
    });
}

struct Deferred<F: FnMut()>(F);

impl<F: FnMut()> Drop for Deferred<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

#[test]
fn a_timeout_around_it_and_one_inside() {
    within_a_minute(|| {
        let dropped = Cell::new(0);
        let sleeper = |note: Note<'_>| {
            let _note = note;
            sleep(LONG);
        };
        let outside = timeout(SHORT, || {
            scope(|s| {
                s.spawn(|| sleeper(Note(&dropped)));
                s.spawn(|| sleeper(Note(&dropped)));
            });
        });
        assert!(outside.is_err());
        assert_eq!(dropped.get(), 2);
        scope(|s| {
            let inside = s.spawn(|| timeout(SHORT, || sleeper(Note(&dropped))).is_err());
            assert!(inside.join().unwrap());
        });
        assert_eq!(dropped.get(), 3);
    });
}

#[test]
fn a_greenlet_that_swallows_its_kill_is_killed_again() {
    within_a_minute(|| {
        let swallowed = Cell::new(0);
        let elapsed = timeout(SHORT, || {
            scope(|s| {
                s.spawn(|| {
                    for _ in 0..3 {
                        let _ = catch_unwind(|| sleep(LONG));
                        swallowed.set(swallowed.get() + 1);
                    }
                });
            });
        });
        assert!(elapsed.is_err());
        assert_eq!(swallowed.get(), 3);
    });
}

#[test]
fn a_greenlet_that_a_dying_one_spawns_never_runs() {
    within_a_minute(|| {
        struct Spawns<'s, 'e>(&'s greenroom::Scope<'s, 'e>, &'s Cell<usize>);

        impl Drop for Spawns<'_, '_> {
            fn drop(&mut self) {
                let (s, ran) = (self.0, self.1);
                s.spawn(move || ran.set(ran.get() + 1));
            }
        }

        let ran = Cell::new(0);
        let elapsed = timeout(SHORT, || {
            scope(|s| {
                let ran = &ran;
                s.spawn(move || {
                    let _spawns = Spawns(s, ran);
                    sleep(LONG);
                });
            });
        });
        assert!(elapsed.is_err());
        assert_eq!(ran.get(), 0);
    });
}

#[test]
fn the_parent_is_killed_by_its_own_greenlet() {
    within_a_minute(|| {
        let parent = Rc::new(RefCell::new(None::<greenroom::Greenlet<()>>));
        let dropped = Rc::new(Cell::new(0));
        let (handle, count) = (Rc::clone(&parent), Rc::clone(&dropped));
        *parent.borrow_mut() = Some(spawn(move || {
            let count = &*count;
            scope(|s| {
                s.spawn(|| {
                    let _note = Note(count);
                    let parent = handle.borrow_mut().take().unwrap();
                    parent.kill();
                });
                s.spawn(|| {
                    let _note = Note(count);
                    sleep(LONG);
                });
            });
        }));
        assert!(hub().join(None));
        assert_eq!(dropped.get(), 2);
    });
}

#[test]
fn a_shutdown_from_within_ends_the_greenlets_and_then_the_callers() {
    within_a_minute(|| {
        let order = Rc::new(RefCell::new(Vec::new()));
        let parent = spawn({
            let order = Rc::clone(&order);
            move || {
                let _last = Deferred(|| order.borrow_mut().push("parent"));
                scope(|s| {
                    s.spawn(|| {
                        let _sibling = Deferred(|| order.borrow_mut().push("sibling"));
                        sleep(LONG);
                    });
                    s.spawn(|| {
                        let _self = Deferred(|| order.borrow_mut().push("self"));
                        scope(|s| {
                            s.spawn(|| hub().shutdown());
                        });
                    });
                });
            }
        });
        let other = spawn({
            let order = Rc::clone(&order);
            move || {
                let _other = Deferred(|| order.borrow_mut().push("other"));
                sleep(LONG);
            }
        });
        parent.wait();
        assert!(other.is_finished());
        let mut order = order.borrow_mut();
        assert_eq!(order.split_off(2), ["self", "parent"]);
        order.sort_unstable();
        assert_eq!(*order, ["other", "sibling"]);
    });
}

#[test]
fn a_shutdown_by_somebody_else_ends_it() {
    within_a_minute(|| {
        let dropped = Rc::new(Cell::new(0));
        let count = Rc::clone(&dropped);
        spawn(move || {
            scope(|s| {
                for _ in 0..3 {
                    s.spawn(|| {
                        let _note = Note(&count);
                        sleep(LONG);
                    });
                }
            });
        });
        yield_now();
        yield_now();
        hub().shutdown();
        assert_eq!(dropped.get(), 3);
        // Afterwards it refuses as `spawn` does.
        let payload = caught(|| scope(|s| s.spawn(|| ()).join()));
        assert!(payload.downcast_ref::<String>().is_some_and(|text| text.contains("shut down")));
        scope(|s| assert!(Builder::new().spawn_scoped(s, || ()).is_err()));
    });
}

#[test]
fn handles_have_what_those_of_other_greenlets_have() {
    scope(|s| {
        let sleeper = Builder::new().name("sleeper").spawn_scoped(s, || sleep(LONG)).unwrap();
        assert_eq!(sleeper.name(), Some("sleeper"));
        assert!(!sleeper.is_finished() && !sleeper.wait_timeout(Duration::ZERO));
        let sleeper: ScopedGreenlet<'_, ()> = sleeper.join_timeout(Duration::from_millis(1)).unwrap_err();
        assert!(format!("{sleeper:?}").contains("sleeper"));
        sleeper.request_kill();
        assert!(sleeper.kill_timeout(LONG));
        assert!(sleeper.is_finished());
        assert!(s.spawn(in_greenlet).join().unwrap());
    });
}

#[test]
fn a_job_of_the_pool_borrows_through_a_greenlet() {
    within_a_minute(|| {
        let data = [1_u64, 2, 3];
        let sum: u64 = scope(|s| {
            let parts: Vec<_> =
                data.iter().map(|n| s.spawn(move || hub().threadpool().apply(|n: &u64| n * n, (n,)))).collect();
            parts.into_iter().map(|part| part.join().unwrap()).sum()
        });
        assert_eq!(sum, 14);
    });
}

#[test]
fn ten_thousand_of_them_leave_nothing_behind() {
    within_a_minute(|| {
        let event = Event::new();
        let count = Cell::new(0);
        scope(|s| {
            for _ in 0..10_000 {
                s.spawn(|| {
                    event.wait();
                    count.set(count.get() + 1);
                });
            }
            yield_now();
            event.set();
        });
        assert_eq!(count.get(), 10_000);
        assert_eq!(hub().stats().greenlets, 0);
    });
}
