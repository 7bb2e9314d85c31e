//! What the tests share.
//!
//! * this file: the watchdog, counts, traces, destructors that do something.
//! * `parks`: every kind of park, as macros that make a test for each.
//! * `places`: every kind of thread and greenlet that waits.
//! * `crowd`: many of them at once, at random, for a time.
//! * `jobs`: what holds jobs up, and counts what goes into them.

#![allow(dead_code, unused_macros, reason = "each test program uses a part of it")]

pub(crate) mod crowd;
pub(crate) mod jobs;
#[macro_use]
pub(crate) mod parks;
pub(crate) mod places;

use std::cell::{Cell, OnceCell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::{Rc, Weak};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use greenroom::{Greenlet, JoinError, Promise, promise, sleep, spawn, yield_now};

/// Runs a test on a thread of its own, so with a hub of its own, to the end of that hub. A test that hangs fails after a
/// minute.
pub(crate) fn within_a_minute(test: impl FnOnce() + Send + 'static) {
    let name = thread::current().name().unwrap_or("test").to_owned();
    let body = thread::Builder::new().name(name).spawn(test).unwrap();
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || done.send(body.join()));
    match is_done.recv_timeout(Duration::from_secs(60)) {
        Ok(Ok(())) => {}
        Ok(Err(payload)) => resume_unwind(payload),
        Err(RecvTimeoutError::Timeout) => panic!("hangs: a wake was lost, or something waits for ever"),
        Err(RecvTimeoutError::Disconnected) => unreachable!("the joiner sends"),
    }
}

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// Parks until it is interrupted.
pub(crate) fn forever() {
    sleep(Duration::MAX);
}

/// Computes until `t`: nothing else of this thread runs.
pub(crate) fn spin_until(t: Instant) {
    while Instant::now() < t {
        std::hint::spin_loop();
    }
}

/// Computes for `d`.
pub(crate) fn spin(d: Duration) {
    spin_until(Instant::now() + d);
}

/// What `set_up` makes in less than `limit`, before the first of its deadlines is over: on a busy machine it is tried again.
pub(crate) fn set_up_within<T>(limit: Duration, mut set_up: impl FnMut() -> T) -> T {
    loop {
        let start = Instant::now();
        let made = set_up();
        if start.elapsed() < limit {
            return made;
        }
    }
}

/// A greenlet that has run to its first park.
#[track_caller]
pub(crate) fn begun<T: 'static>(f: impl FnOnce() -> T + 'static) -> Greenlet<T> {
    let greenlet = spawn(f);
    yield_now();
    greenlet
}

/// A greenlet whose body gets its own handle.
pub(crate) fn with_own_handle<T: 'static>(f: impl FnOnce(Rc<Greenlet<T>>) -> T + 'static) -> Rc<Greenlet<T>> {
    let slot = Rc::new(OnceCell::<Weak<Greenlet<T>>>::new());
    let own = Rc::clone(&slot);
    let greenlet = Rc::new(spawn(move || f(own.get().and_then(Weak::upgrade).unwrap())));
    slot.set(Rc::downgrade(&greenlet)).unwrap();
    greenlet
}

/// Joins what several hold, once the others are gone.
pub(crate) fn join_shared<T>(greenlet: Rc<Greenlet<T>>) -> Result<T, JoinError> {
    greenlet.wait();
    Rc::into_inner(greenlet).expect("nobody else holds the handle any more").join()
}

/// A greenlet that is parked in the middle of unwinding, and the promise that keeps it there.
pub(crate) fn parked_in_its_destructor() -> (Greenlet<()>, Promise<()>) {
    let (promise, result) = promise();
    let greenlet = begun(move || {
        let _guard = on_drop(move || result.wait());
        forever();
    });
    greenlet.request_kill();
    yield_now();
    (greenlet, promise)
}

/// Runs `f`, which a kill, timeout or panic may end; returns whether one did.
pub(crate) fn is_ended_early(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Panics with `text`, past the panic hook: what is part of a test needs no report.
pub(crate) fn panic_with(text: &'static str) -> ! {
    resume_unwind(Box::new(text))
}

/// The text of a panic.
pub(crate) fn text_of(payload: &(dyn std::any::Any + Send)) -> &str {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "no text",
    }
}

/// A number that several greenlets count up.
#[derive(Clone, Default)]
pub(crate) struct Count(Rc<Cell<usize>>);

impl Count {
    pub(crate) fn new() -> Count {
        Count::default()
    }

    pub(crate) fn add(&self) {
        self.0.set(self.0.get() + 1);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.get()
    }

    /// Something that counts when it is dropped.
    pub(crate) fn on_drop(&self) -> OnDrop {
        let count = self.clone();
        on_drop(move || count.add())
    }
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Trace(Rc<RefCell<Vec<String>>>);

impl Trace {
    pub(crate) fn new() -> Trace {
        Trace::default()
    }

    pub(crate) fn add(&self, what: impl Into<String>) {
        self.0.borrow_mut().push(what.into());
    }

    pub(crate) fn len(&self) -> usize {
        self.0.borrow().len()
    }

    /// All so far; begins anew.
    pub(crate) fn take(&self) -> Vec<String> {
        self.0.take()
    }

    /// Something that is traced when it is dropped.
    pub(crate) fn on_drop(&self, what: impl Into<String>) -> OnDrop {
        let (trace, what) = (self.clone(), what.into());
        on_drop(move || trace.add(what))
    }
}

/// Its destructor does something.
pub(crate) struct OnDrop(Option<Box<dyn FnOnce()>>);

pub(crate) fn on_drop(f: impl FnOnce() + 'static) -> OnDrop {
    OnDrop(Some(Box::new(f)))
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(f) = self.0.take() {
            f();
        }
    }
}
