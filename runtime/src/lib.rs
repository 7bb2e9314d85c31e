//! Green threads with gevent's programming model: plain blocking-looking code, no `async`, no coloured functions.
//!
//! A *hub* runs on each OS thread that wants one; *greenlets* run on it one at a time, and each keeps its own stack. What
//! would stall the hub (a password hash, a compression, a blocking library) goes to a pool of OS threads:
//! `hub().threadpool().apply(f, args)` parks the calling greenlet alone, and all others go on.
//!
//! ```
//! use std::time::Duration;
//! use greenroom::{hub, sleep, spawn, timeout};
//!
//! // No runtime to start: main is a greenlet too, and runs the others while it waits.
//! let ticker = spawn(|| {
//!     for _ in 0..3 {
//!         sleep(Duration::from_millis(1));
//!     }
//!     "ticked"
//! });
//!
//! // Off the hub, with a borrow of what lies here; the ticker goes on.
//! let password = String::from("correct horse");
//! let sum = hub().threadpool().apply(|p: &str| p.bytes().map(u64::from).sum::<u64>(), (&password[..],));
//! assert_eq!(sum, 1331);
//!
//! assert_eq!(ticker.join().unwrap(), "ticked");
//! assert!(timeout(Duration::from_millis(5), || sleep(Duration::MAX)).is_err());
//! ```
//!
//! # What blocks what
//!
//! Everything here that waits *parks*: the greenlet stops and its hub runs others. On main the hub's loop runs
//! meanwhile. On a thread without a hub (a pool's worker, a plain thread) the same calls block that thread, and no hub is
//! made by accident. Code that never parks stalls its hub: give it to [`ThreadPool::apply`], or let it call
//! [`checkpoint`].
//!
//! # When nothing moves any more
//!
//! If main waits, and nothing that is left can ever wake anybody, the wait ends in a panic, "this would block forever", which names
//! each greenlet that waits, what for, and where it was spawned. That takes a proof that nobody is left. A thread that isn't a
//! hub's or a pool's might always be about to call in, so with such a thread in the process the wait goes on, and the same
//! table goes to the program's [`log`] once, as a warning. Install a logger if you have such threads.
//!
//! # Limits
//!
//! * A greenlet stays on its thread, so `Rc` and thread-locals are sound in it, and one hub uses one core. [`Hubs`] starts
//!   several.
//! * When main returns, or its thread ends, greenlets that have not ended don't run any more: neither do their destructors, nor links.
//!   End with [`Hub::join`] or [`Hub::shutdown`]. A greenlet that is left parked inside of `LocalKey::with` of a std thread-local, and
//!   has lent what it borrows there to a job or a scoped thread that still runs, is the one case that is not sound: that memory
//!   goes with the thread. End the hub first.
//! * Main becomes a greenlet by the first `hub()` or `spawn`; before that it is a thread like others, whose waits block it, and no
//!   deadlock of it is reported.
//! * A `RefCell` borrow or a `std::sync::Mutex` guard held across a park is still held while others run; a second greenlet
//!   that takes the same std mutex blocks the thread that could release it. The lock of std's stdout is re-entrant per
//!   thread, so per hub.
//! * Kill and timeout unwind. They run destructors, and can't cross a frame of C: there they abort, as any panic does. A
//!   `catch_unwind` in a body catches them; a kill comes again at the next park. A body that returns all the same is joined as `Ok`.
//! * `std::thread::panicking()` is per thread. A destructor that parks while its greenlet unwinds shows `true` to the
//!   greenlets that run meanwhile.
//! * Greenroom needs unwinding: with `panic = "abort"` it doesn't compile.
//! * `fork` without `exec` in a process with a hub is not supported.
//! * Unix only, with Linux on x86-64 and aarch64 first; elsewhere coarser timers and no deadlock report.

#[cfg(panic = "abort")]
compile_error!("greenroom needs panic = \"unwind\": kill and timeout are delivered by unwinding");

mod big_stack;
#[doc = include_str!("coming_from_gevent.md")]
pub mod coming_from_gevent {}
mod ending;
mod greenlet;
pub mod group;
mod hub;
mod hubs;
pub mod local;
mod park;
pub mod queue;
mod reactor;
mod reason;
mod result;
mod scope;
mod send;
mod spawn;
mod stack;
pub mod stall;
pub mod sync;
mod sys;
pub mod threadpool;
mod time;
mod timer;
mod wait;
mod wake;

pub use big_stack::on_big_stack;
pub use greenlet::GreenletId;
pub use greenlet::outcome::{JoinError, Outcome};
pub use greenroom_pool::{Admission, Histogram, PoolStats, Priority, probe};
pub use hub::{AlreadyRunning, GreenletInfo, Hub, HubBuilder, HubStats, hub, try_hub};
pub use hubs::Hubs;
pub use result::{AsyncResult, Promise, TaskError, promise};
pub use scope::{Scope, ScopedGreenlet, scope};
pub use send::HubHandle;
pub use spawn::{Builder, Greenlet, join_all, kill_all, spawn, spawn_later};
#[doc(inline)]
pub use threadpool::{ApplyError, Call, ThreadPool, ThreadPoolBuilder, offload};
pub use time::{Elapsed, checkpoint, idle, sleep, sleep_until, timeout, yield_now};
pub use wait::{IWait, Waitable, iwait, wait};

/// Whether the code that runs is a greenlet, main not counted.
///
/// ```
/// assert!(!greenroom::in_greenlet());
/// assert!(greenroom::spawn(greenroom::in_greenlet).join().unwrap());
/// ```
pub fn in_greenlet() -> bool {
    greenlet::current::with(|core| !core.is_main())
}

/// The README's example is a test too.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
