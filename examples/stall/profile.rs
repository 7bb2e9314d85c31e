//! Profiles: how a hub and its pool can be set up.

use std::thread;
use std::time::Duration;

use greenroom::{Hub, ThreadPool};
use greenroom_pool::{Admission, Pool, Priority};

/// One way to set up a hub and its pool.
pub(crate) struct Profile {
    pub(crate) name: &'static str,
    /// In words.
    pub(crate) about: &'static str,
    /// Of the hub's thread: whether it is short.
    short_slice: bool,
    /// `None`: what a hub has without settings.
    pool: Option<(Admission, Priority)>,
}

pub(crate) const AS_GEVENT: &str = "as gevent";
pub(crate) const DEFAULT: &str = "default";

/// From what gevent has to all there is.
pub(crate) const PROFILES: [Profile; 6] = [
    Profile {
        name: AS_GEVENT,
        about: "threads that all run at once, and nothing else",
        short_slice: false,
        pool: Some((Admission::Plain, Priority::Same)),
    },
    Profile {
        name: "slice",
        about: "as gevent, and the hub's thread asks for a short slice",
        short_slice: true,
        pool: Some((Admission::Plain, Priority::Same)),
    },
    Profile {
        name: "low priority",
        about: "as gevent, and the pool's threads are 10 steps nicer",
        short_slice: false,
        pool: Some((Admission::Plain, Priority::Low)),
    },
    Profile {
        name: "cores only",
        about: "as gevent, but a hash begins when there is a core for it",
        short_slice: false,
        pool: Some((Admission::CpuAware, Priority::Same)),
    },
    Profile { name: DEFAULT, about: "what a hub has without settings", short_slice: true, pool: None },
    Profile {
        name: "idle priority",
        about: "slice, cores only, and the pool gets what nobody else wants",
        short_slice: true,
        pool: Some((Admission::CpuAware, Priority::Idle)),
    },
];

impl Profile {
    /// Runs `f` on a thread with a hub of this profile.
    ///
    /// The calling thread must have no hub: threads inherit its slice.
    pub(crate) fn run<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        thread::scope(|scope| {
            let on_hub = || {
                self.install();
                f()
            };
            let thread = scope.spawn(on_hub);
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn install(&self) {
        let builder = Hub::builder();
        let builder = if self.short_slice { builder } else { builder.slice(Duration::ZERO) };
        let hub = builder.install().expect("the thread is new");
        if let Some((admission, priority)) = self.pool {
            let pool = Pool::builder().max_threads(hub.threadpool().max_threads());
            hub.set_threadpool(ThreadPool::from(pool.admission(admission).priority(priority).build()));
        }
    }
}
