//! The hub: the loop that runs one thread's greenlets.
//!
//! * `inner`: what a hub is made of.
//! * `life`: starting, resuming, killing and ending greenlets.
//! * `turn`: the loop.
//! * `asleep`: which hubs of the process sleep with nothing of their own to wake them.
//! * `deadlock`: the proof that nothing can ever wake main, and the report.
//! * `builder`, `stats`, `info`: what the public `Hub` takes and tells.
//!
//! A thread has at most one hub, found through a thread-local pointer. The thread's own stack is the *main greenlet*:
//! when it parks, it runs the loop until it is woken.

mod asleep;
mod builder;
mod deadlock;
mod info;
mod inner;
mod life;
mod stats;
mod turn;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::marker::PhantomData;
use std::ptr;
use std::rc::Rc;

pub use builder::{AlreadyRunning, HubBuilder};
pub use info::GreenletInfo;
pub(crate) use inner::{Inner, Stage};
pub use stats::HubStats;

use builder::Config;

thread_local! {
    /// This thread's hub, or null. Valid while not null: `OWNER` holds it, and clears this first.
    static HUB: Cell<*const Inner> = const { Cell::new(ptr::null()) };
    /// Keeps the hub until the thread ends.
    static OWNER: Owner = const { Owner(RefCell::new(None)) };
}

struct Owner(RefCell<Option<Rc<Inner>>>);

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(inner) = self.0.take() {
            HUB.set(ptr::null());
            inner.end();
        }
    }
}

/// This thread's hub, without making one and without counting references.
#[inline]
pub(crate) fn with_current<R>(f: impl FnOnce(Option<&Inner>) -> R) -> R {
    // SAFETY: the thread goes on until `f` has returned.
    f(unsafe { peek() })
}

/// This thread's hub, made on first use, as a reference.
///
/// # Safety
///
/// As `peek`.
#[inline(always)]
pub(crate) unsafe fn peek_or_make<'a>() -> &'a Inner {
    if HUB.get().is_null() {
        hub();
    }
    // SAFETY: the caller's promise; `hub` has made one or has panicked.
    unsafe { &*HUB.get() }
}

/// This thread's hub, if it has one, as a reference.
///
/// # Safety
///
/// Not to be used after the code that asks has returned.
#[inline(always)]
pub(crate) unsafe fn peek<'a>() -> Option<&'a Inner> {
    // SAFETY: null, or `OWNER` holds the hub until this thread ends.
    unsafe { HUB.get().as_ref() }
}

/// Makes this thread's hub. The thread must have none.
fn install(config: Config) -> Hub {
    let inner = Inner::new(config);
    let owned = OWNER.try_with(|owner| *owner.0.borrow_mut() = Some(Rc::clone(&inner)));
    if owned.is_err() {
        inner.end();
        panic!("this thread is ending: it can't get a hub any more");
    }
    HUB.set(Rc::as_ptr(&inner));
    Hub::of(inner)
}

/// This thread's hub, made on first use with what the environment says ([`HubBuilder`] lists the variables).
///
/// # Panics
///
/// When a `GREENROOM_…` variable can't be read (the text names it), when the kernel refuses the poll or its descriptors,
/// and in a thread that is already ending.
///
/// ```
/// let hub = greenroom::hub();
/// let sum = hub.threadpool().apply(|a: u32, b: u32| a + b, (1, 2));
/// assert_eq!(sum, 3);
/// ```
pub fn hub() -> Hub {
    try_hub().unwrap_or_else(|| match Config::from_environment() {
        Ok(config) => install(config),
        Err(error) => panic!("{error}"),
    })
}

/// This thread's hub, if it has one. Never makes one.
///
/// ```
/// assert!(greenroom::try_hub().is_none());
/// greenroom::hub();
/// assert!(greenroom::try_hub().is_some());
/// ```
pub fn try_hub() -> Option<Hub> {
    // `OWNER` isn't touched before there is a hub: so it is made after the thread's own core, and ends before it.
    if HUB.get().is_null() {
        return None;
    }
    OWNER.try_with(|owner| owner.0.borrow().clone()).ok().flatten().map(Hub::of)
}

/// A thread's event loop and the greenlets on it. Cloning gives the same hub; it never leaves its thread
/// ([`handle`](Hub::handle) gives what other threads may hold).
///
/// ```compile_fail
/// let hub = greenroom::hub();
/// std::thread::spawn(move || hub.stats()); // a hub isn't Send
/// ```
#[derive(Clone)]
pub struct Hub {
    inner: Rc<Inner>,
    /// States what the `Rc` implies.
    not_send: PhantomData<*mut ()>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Hub {
    fn of(inner: Rc<Inner>) -> Hub {
        Hub { inner, not_send: PhantomData }
    }

    /// Settings for this thread's hub, to be made before its first use.
    ///
    /// ```
    /// let hub = greenroom::Hub::builder().stack_size(64 * 1024).threads(4).install()?;
    /// assert_eq!(hub.threadpool().max_threads(), 4);
    /// # Ok::<(), greenroom::AlreadyRunning>(())
    /// ```
    pub fn builder() -> HubBuilder {
        HubBuilder::default()
    }

    /// What to do with a panic that nobody can see: of a greenlet whose handle is dropped without joining it, and of
    /// links. `f` runs once for each, on the stack of the greenlet or of the one who dropped the handle, and gets the
    /// panic's payload. The default writes an error to the program's [`log`].
    ///
    /// A panic in `f` itself is written to the log.
    ///
    /// ```
    /// use std::{cell::Cell, rc::Rc};
    ///
    /// let seen = Rc::new(Cell::new(0));
    /// let counter = Rc::clone(&seen);
    /// let hub = greenroom::hub();
    /// hub.on_error(move |greenlet, payload| {
    ///     assert_eq!(greenlet.name(), Some("fragile"));
    ///     assert_eq!(payload.downcast_ref::<&str>(), Some(&"broken"));
    ///     counter.set(counter.get() + 1);
    /// });
    /// drop(greenroom::Builder::new().name("fragile").spawn(|| panic!("broken")));
    /// hub.join(None);
    /// assert_eq!(seen.get(), 1);
    /// ```
    pub fn on_error(&self, f: impl Fn(&GreenletInfo, &(dyn Any + Send)) + 'static) {
        self.inner.set_on_error(Rc::new(f));
    }

    /// What the hub has done so far and what it holds.
    ///
    /// ```
    /// greenroom::spawn(|| ());
    /// let hub = greenroom::hub();
    /// assert_eq!(hub.stats().greenlets, 1);
    /// hub.join(None);
    /// assert_eq!(hub.stats().greenlets, 0);
    /// ```
    pub fn stats(&self) -> HubStats {
        self.inner.stats()
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }
}
