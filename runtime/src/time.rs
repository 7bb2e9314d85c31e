//! Sleeping, yielding, timeouts.

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use crate::greenlet::core::Core;
use crate::greenlet::current;
use crate::greenlet::unwind::{self, Interrupt};
use crate::hub::{self, Inner, hub};
use crate::park::{Enlisted, Wait};
use crate::reason::Reason;

/// How long a greenlet may run before [`checkpoint`] makes way for others.
const SLICE: Duration = Duration::from_millis(1);

/// Parks for `d`, finer than a millisecond where the kernel can (Linux: microseconds); other greenlets run meanwhile.
/// Never shorter. A time that overflows the clock never ends. Zero yields, as [`yield_now`] does.
///
/// On a thread without a hub it blocks that thread, and makes no hub.
///
/// ```
/// use std::time::{Duration, Instant};
///
/// let start = Instant::now();
/// greenroom::sleep(Duration::from_micros(300));
/// assert!(start.elapsed() >= Duration::from_micros(300));
/// ```
pub fn sleep(d: Duration) {
    if d.is_zero() {
        return yield_now();
    }
    sleep_for(d, Instant::now().checked_add(d));
}

/// Parks until `t`; a `t` that has passed yields. Otherwise as [`sleep`].
///
/// ```
/// use std::time::{Duration, Instant};
///
/// let t = Instant::now() + Duration::from_micros(300);
/// greenroom::sleep_until(t);
/// assert!(Instant::now() >= t);
/// ```
pub fn sleep_until(t: Instant) {
    match t.checked_duration_since(Instant::now()) {
        Some(left) if !left.is_zero() => sleep_for(left, Some(t)),
        _ => yield_now(),
    }
}

fn sleep_for(d: Duration, deadline: Option<Instant>) {
    let wait = Wait::new();
    while !wait.park(Reason::Sleep(d), deadline).timed_out() {}
}

/// Lets every other ready greenlet run once; gevent's `sleep(0)`. On a thread without a hub it yields the thread.
///
/// ```
/// use std::{cell::RefCell, rc::Rc};
///
/// let trace = Rc::new(RefCell::new(Vec::new()));
/// for name in ["1", "2"] {
///     let trace = Rc::clone(&trace);
///     greenroom::spawn(move || {
///         trace.borrow_mut().push(format!("{name}A"));
///         greenroom::yield_now();
///         trace.borrow_mut().push(format!("{name}B"));
///     });
/// }
/// greenroom::hub().join(None);
/// assert_eq!(*trace.borrow(), ["1A", "2A", "1B", "2B"]);
/// ```
// Inlined whole, so that the switch is a call on the hub's side and its return on ours: a return of our own after the
// switch would find another greenlet's address in the processor's return stack, twice a yield (measured: 33 ns, then 15).
#[inline(always)]
pub fn yield_now() {
    // Not through the closures of `with`, which would not be inlined.
    // SAFETY: both are used in this call only, and the code that runs outlives it.
    match unsafe { (hub::peek(), current::peek()) } {
        (Some(hub), Some(core)) => yield_on(hub, core),
        _ => yield_elsewhere(),
    }
}

/// Without a hub, or as the first thing that the thread's main does with it.
#[cold]
fn yield_elsewhere() {
    hub::with_current(|hub| match hub {
        Some(hub) => current::with(|core| yield_on(hub, core)),
        None => {
            std::thread::yield_now();
            current::with(|core| deliver(core, unwind::is_unwinding(core, 0)));
        }
    });
}

#[inline(always)]
fn yield_on(hub: &Inner, core: &Core) {
    let unwinding = hub.is_unwinding(core);
    if core.may_be_interrupted() {
        deliver(core, unwinding);
    }
    hub.make_ready(core);
    // It is ready, so no deadlock can be found.
    let _ = hub.switch_out(core, unwinding);
    if core.may_be_interrupted() {
        deliver(core, unwinding);
    }
}

/// Lets everybody who is ready go first, as `yield_now`, but raises nothing: what the caller has done is done. Where there is
/// no hub, and in the hub's loop, it does nothing.
#[inline(always)]
pub(crate) fn give_way() {
    // SAFETY: both are used in this call only, and the code that runs outlives it.
    if let (Some(hub), Some(core)) = unsafe { (hub::peek(), current::peek()) }
        && !core.is_scheduler()
    {
        hub.make_ready(core);
        // It is ready, so no deadlock can be found.
        let _ = hub.switch_out(core, hub.is_unwinding(core));
    }
}

/// Raises what is due.
#[cold]
fn deliver(core: &Core, unwinding: bool) {
    if !unwinding && core.is_kill_due() {
        unwind::raise(core, Interrupt::Kill);
    }
    if core.has_scopes()
        && let Some(id) = core.take_expired(Instant::now(), unwinding)
    {
        unwind::raise(core, Interrupt::Elapsed(id));
    }
}

/// Parks until nothing else is ready: every other greenlet waits for time, another thread or a pool job. Makes a hub.
///
/// ```
/// use std::{cell::Cell, rc::Rc};
///
/// let steps = Rc::new(Cell::new(0));
/// let counter = Rc::clone(&steps);
/// greenroom::spawn(move || {
///     for _ in 0..100 {
///         counter.set(counter.get() + 1);
///         greenroom::yield_now();
///     }
/// });
/// greenroom::idle();
/// assert_eq!(steps.get(), 100);
/// ```
pub fn idle() {
    let hub = hub();
    let wait = Wait::new();
    let _enlisted = Enlisted::new(hub.inner().idlers(), &wait);
    // Only the hub wakes idlers, and each once.
    let _ = wait.park(Reason::Idle, None);
}

/// For loops that compute: yields if the greenlet has run for a millisecond since it was resumed, else costs a reading of
/// the clock (some 20 ns). The clock starts at the first checkpoint after the resume. Without a hub it does nothing.
///
/// ```
/// let mut sum = 0u64;
/// for i in 0..1_000_000 {
///     sum += i;
///     if i % 1_000 == 0 {
///         greenroom::checkpoint();
///     }
/// }
/// assert_eq!(sum, 499_999_500_000);
/// ```
#[inline]
pub fn checkpoint() {
    hub::with_current(|hub| {
        if let Some(hub) = hub {
            let now = Instant::now();
            if now.duration_since(hub.slice_start(now)) >= SLICE {
                hub.end_turn();
                yield_now();
                hub.new_slice();
            }
        }
    });
}

/// The time of a [`timeout`] was over before its body was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the timeout has elapsed")
    }
}

impl Error for Elapsed {}

/// Runs `f`, but at most for `d`: a park inside that lasts longer, or begins later, unwinds back to here. Works in
/// greenlets, on main and on plain threads; makes no hub.
///
/// It can't interrupt code that doesn't park: a body that ends late without having parked late gives its value. A job that
/// already runs on a pool is waited for. A duration that overflows the clock is no limit. Timeouts nest: each catches
/// its own end only.
///
/// # Errors
///
/// [`Elapsed`]; the body's destructors have run.
///
/// ```
/// use std::time::Duration;
/// use greenroom::{sleep, timeout};
///
/// assert_eq!(timeout(Duration::from_secs(1), || 42), Ok(42));
/// assert!(timeout(Duration::from_millis(1), || sleep(Duration::MAX)).is_err());
///
/// // The outer one is shorter: its Elapsed passes through the inner one.
/// let outer = timeout(Duration::from_millis(1), || timeout(Duration::from_secs(9), || sleep(Duration::MAX)));
/// assert!(outer.is_err());
/// ```
pub fn timeout<T>(d: Duration, f: impl FnOnce() -> T) -> Result<T, Elapsed> {
    let Some(deadline) = Instant::now().checked_add(d) else {
        return Ok(f());
    };
    current::with(|core| {
        let was_unwinding = hub::with_current(|hub| match hub {
            Some(hub) => hub.is_unwinding(core),
            None => unwind::is_unwinding(core, 0),
        });
        let id = core.push_scope(deadline, was_unwinding);
        let result = catch_unwind(AssertUnwindSafe(f));
        core.pop_scope(id);
        match result {
            Ok(value) => Ok(value),
            Err(payload) if unwind::is_raised(&*payload, core, Interrupt::Elapsed(id)) => Err(Elapsed(())),
            Err(payload) => resume_unwind(payload),
        }
    })
}
