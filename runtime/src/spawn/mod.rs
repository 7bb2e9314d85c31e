//! Spawning greenlets, and what one does with them afterwards.
//!
//! * this file: `spawn`, `spawn_later`.
//! * `builder`: the same with a name and a stack size.
//! * `handle`: `Greenlet`.
//! * `many`: joining and killing several.

mod builder;
mod handle;
mod many;

use std::panic::Location;
use std::time::{Duration, Instant};

pub use builder::Builder;
pub use handle::Greenlet;
pub(crate) use handle::kill_here;
pub use many::{join_all, kill_all};

use crate::greenlet::core::Core;
use crate::hub;

/// Starts a greenlet that runs `f` on this thread's hub, making the hub if there is none. It begins when the code that
/// runs parks or yields, never before; what it returns goes to whoever joins it.
///
/// `f` needs no `Send`: a greenlet never leaves its thread. Dropping the handle detaches the greenlet. What has not ended when the
/// thread's main returns is not run any more: end with [`Hub::join`](crate::Hub::join) or [`Hub::shutdown`](crate::Hub::shutdown).
///
/// In a job of a pool, and on a thread that only passes by, it makes a hub that nobody runs: the greenlet gets its turn when that thread
/// parks the next time, if it ever does. From there start it on a hub that runs, by [`HubHandle::spawn`](crate::HubHandle::spawn).
///
/// Doesn't park.
///
/// # Panics
///
/// When the hub is shutting down or has been shut down ([`Builder::spawn`] gives an error instead), and as
/// [`hub()`](crate::hub()) does.
///
/// ```
/// let words = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
/// let theirs = words.clone();
/// let greenlet = greenroom::spawn(move || {
///     theirs.borrow_mut().push("then the greenlet");
///     42
/// });
/// words.borrow_mut().push("first the spawner");
/// assert_eq!(greenlet.join().unwrap(), 42);
/// assert_eq!(*words.borrow(), ["first the spawner", "then the greenlet"]);
/// ```
#[track_caller]
pub fn spawn<F, T>(f: F) -> Greenlet<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    start(None, None, Location::caller(), None, f).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// `spawn` on behalf of somebody else, whose place in the source the reports are to name.
pub(crate) fn spawn_at<F, T>(site: &'static Location<'static>, f: F) -> Greenlet<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    start(None, None, site, None, f).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// Starts a greenlet that begins after `after`, unless it is killed before: then it never runs. A time that overflows
/// the clock never comes.
///
/// Doesn't park. Panics as [`spawn`].
///
/// ```
/// use std::time::Duration;
///
/// let late = greenroom::spawn_later(Duration::from_millis(1), || "late");
/// assert_eq!(late.join().unwrap(), "late");
///
/// let never = greenroom::spawn_later(Duration::from_secs(3600), || unreachable!());
/// never.kill();
/// ```
#[track_caller]
pub fn spawn_later<F, T>(after: Duration, f: F) -> Greenlet<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    start(None, None, Location::caller(), Some(after), f).unwrap_or_else(|refusal| panic!("{refusal}"))
}

// Inlined, so that what `spawn` leaves out costs nothing.
#[inline(always)]
fn start<F, T>(
    name: Option<Box<str>>,
    stack_size: Option<usize>,
    site: &'static Location<'static>,
    after: Option<Duration>,
    f: F,
) -> Result<Greenlet<T>, &'static str>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    // SAFETY: used in this call only.
    let hub = unsafe { hub::peek_or_make() };
    if let Some(refusal) = hub.refuses_spawn() {
        return Err(refusal);
    }
    let id = hub.next_id();
    let start = after.map(|after| Instant::now().checked_add(after));
    Ok(Greenlet::new(hub.add(|| Core::new(id, name, site, stack_size), f, start)))
}
