//! Values of which each greenlet has its own.

mod common;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

use common::{Count, Trace, begun, forever, is_ended_early, ms, panic_with, within_a_minute};
use greenroom::{greenlet_local, hub, join_all, scope, sleep, spawn, timeout, try_hub, yield_now};

greenlet_local! {
    static NUMBER: Cell<u32> = Cell::new(0);
    static WORDS: RefCell<Vec<&'static str>> = RefCell::new(Vec::new());
    /// What is done when the greenlet ends.
    static AT_END: RefCell<Vec<common::OnDrop>> = RefCell::default();
    static OTHER_END: RefCell<Vec<common::OnDrop>> = RefCell::default()
}

/// `f` runs when this greenlet's values are dropped.
fn at_end(f: impl FnOnce() + 'static) {
    AT_END.with_borrow_mut(|list| list.push(common::on_drop(f)));
}

#[test]
fn each_greenlet_and_main_have_their_own() {
    NUMBER.set(100);
    let all: Vec<_> = (0..10)
        .map(|number| {
            spawn(move || {
                assert_eq!(NUMBER.replace(number), 0);
                yield_now();
                NUMBER.get()
            })
        })
        .collect();
    let numbers: Vec<_> = join_all(all).into_iter().map(Result::unwrap).collect();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    assert_eq!(NUMBER.take(), 100);
}

#[test]
fn the_forms_for_cells_and_ref_cells() {
    WORDS.with_borrow_mut(|words| words.push("a"));
    assert_eq!(WORDS.replace(vec!["b"]), ["a"]);
    WORDS.set(vec!["c", "d"]);
    assert_eq!(WORDS.with_borrow(|words| words.len()), 2);
    assert_eq!(WORDS.take(), ["c", "d"]);
    NUMBER.set(3);
    assert_eq!((NUMBER.replace(4), NUMBER.take(), NUMBER.get()), (3, 4, 0));
    assert!(format!("{NUMBER:?}").starts_with("LocalKey"));
}

#[test]
fn main_keeps_its_own_when_it_gets_a_hub() {
    within_a_minute(|| {
        NUMBER.set(5);
        assert!(try_hub().is_none());
        hub();
        assert_eq!(NUMBER.get(), 5);
    });
}

#[test]
fn threads_and_workers_have_their_own_and_get_no_hub() {
    within_a_minute(|| {
        NUMBER.set(1);
        thread::spawn(|| {
            assert_eq!(NUMBER.replace(2), 0);
            assert!(try_hub().is_none());
        })
        .join()
        .unwrap();
        let pool = greenroom::ThreadPool::new(1);
        assert_eq!(pool.run(|| NUMBER.replace(3)), 0);
        assert_eq!(pool.run(|| NUMBER.get()), 3);
        assert_eq!(NUMBER.get(), 1);
    });
}

#[test]
fn they_are_made_on_first_use_only() {
    static MADE: AtomicUsize = AtomicUsize::new(0);
    greenlet_local!(static COUNTED: usize = MADE.fetch_add(1, SeqCst));
    spawn(|| ()).join().unwrap();
    assert_eq!(MADE.load(SeqCst), 0);
    spawn(|| COUNTED.with(|_| COUNTED.with(|_| ()))).join().unwrap();
    assert_eq!(MADE.load(SeqCst), 1);
}

#[test]
fn they_are_dropped_before_a_joiner_goes_on_however_the_greenlet_ends() {
    within_a_minute(|| {
        let dropped = Count::new();
        let count = || {
            let dropped = dropped.clone();
            move || at_end(move || dropped.add())
        };
        let (a, b, c, d) = (count(), count(), count(), count());
        spawn(a).join().unwrap();
        assert_eq!(dropped.get(), 1);
        let panics = spawn(move || {
            b();
            panic_with("part of the test");
        });
        assert!(panics.join().unwrap_err().is_panic());
        assert_eq!(dropped.get(), 2);
        let killed = begun(move || {
            c();
            forever();
        });
        killed.kill();
        assert_eq!(dropped.get(), 3);
        scope(|s| drop(s.spawn(d)));
        yield_now();
        assert_eq!(dropped.get(), 4);
    });
}

#[test]
fn those_of_a_thread_are_dropped_at_its_end() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    for with_hub in [false, true] {
        thread::spawn(move || {
            if with_hub {
                hub();
            }
            at_end(|| {
                // Its destructor may park.
                sleep(ms(1));
                DROPPED.fetch_add(1, SeqCst);
            });
        })
        .join()
        .unwrap();
    }
    assert_eq!(DROPPED.load(SeqCst), 2);
}

#[test]
fn their_destructors_may_park_and_a_kill_does_not_cut_them_short() {
    within_a_minute(|| {
        let dropped = Count::new();
        let count = dropped.clone();
        let greenlet = spawn(move || {
            at_end(move || {
                sleep(ms(5));
                count.add();
            });
        });
        yield_now();
        assert!(!greenlet.is_finished());
        greenlet.kill();
        assert_eq!(dropped.get(), 1);
        greenlet.join().unwrap();
    });
}

#[test]
fn their_destructors_may_use_other_keys_which_are_dropped_too() {
    let trace = Trace::new();
    let (first, second) = (trace.clone(), trace.clone());
    spawn(move || {
        at_end(move || {
            first.add("first");
            OTHER_END.with_borrow_mut(|list| list.push(common::on_drop(move || second.add("second"))));
            assert!(AT_END.try_with(|_| ()).is_err());
            assert!(is_ended_early(|| AT_END.with(|_| ())));
        });
    })
    .join()
    .unwrap();
    assert_eq!(trace.take(), ["first", "second"]);
}

#[test]
fn a_destructor_that_panics_is_reported_once_and_the_others_run() {
    within_a_minute(|| {
        let (seen, dropped) = (Count::new(), Count::new());
        let count = seen.clone();
        hub().on_error(move |_, payload| {
            assert_eq!(common::text_of(payload), "part of the test");
            count.add();
        });
        let count = dropped.clone();
        let value = spawn(move || {
            at_end(|| panic_with("part of the test"));
            OTHER_END.with_borrow_mut(|list| list.push(count.on_drop()));
            7
        });
        assert_eq!(value.join().unwrap(), 7);
        assert_eq!((seen.get(), dropped.get()), (1, 1));
    });
}

#[test]
fn an_init_that_is_ended_leaves_nothing() {
    within_a_minute(|| {
        greenlet_local!(static SLOW: u32 = {
            sleep(ms(NUMBER.get().into()));
            NUMBER.get()
        });
        spawn(|| {
            NUMBER.set(3_600_000);
            assert!(timeout(ms(1), || SLOW.with(|_| ())).is_err());
            NUMBER.set(1);
            assert_eq!(SLOW.with(|number| *number), 1);
        })
        .join()
        .unwrap();
    });
}

#[test]
fn a_value_stays_while_it_is_used_across_parks() {
    within_a_minute(|| {
        let event = Rc::new(greenroom::sync::Event::new());
        let theirs = Rc::clone(&event);
        let user = begun(move || {
            WORDS.with(|words| {
                words.borrow_mut().push("before");
                theirs.wait();
                words.borrow_mut().push("after");
                words.borrow().clone()
            })
        });
        // Others make theirs meanwhile.
        join_all((0..100).map(|number| spawn(move || NUMBER.set(number))).collect::<Vec<_>>());
        event.set();
        assert_eq!(user.join().unwrap(), ["before", "after"]);
    });
}

#[test]
fn ten_thousand_greenlets_with_their_own() {
    within_a_minute(|| {
        let dropped = Count::new();
        let all: Vec<_> = (0..10_000)
            .map(|number| {
                let count = dropped.clone();
                spawn(move || {
                    NUMBER.set(number);
                    at_end(move || count.add());
                    yield_now();
                    assert_eq!(NUMBER.get(), number);
                })
            })
            .collect();
        join_all(all).into_iter().for_each(|ended| ended.unwrap());
        assert_eq!(dropped.get(), 10_000);
    });
}
