//! Waiting awake for a moment, where that is cheaper than falling asleep.
//!
//! Waking a thread costs the kernel several microseconds, on both sides. A wait that ends within a moment is cheaper awake; a
//! longer one is not, and a thread that spins on a core that others need costs them as much. So one spins only on a
//! core to spare, for a bounded moment, and only if that paid the last time: each time it didn't, the next trial is twice as
//! far away.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

use crate::census::jobs;

/// At most `2 ** FARTHEST - 1` waits are slept through before the next trial.
const FARTHEST: u32 = 6;

/// How often one looks before each further look gives way to whoever wants this core: it may be the one that is waited for.
const LOOKS: u32 = 50;

/// Threads of each role that spin now, in the whole process.
static SPINNING: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// How many threads can run at once.
pub(crate) fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A worker, for a job.
    Worker,
    /// Who has handed out jobs, for what comes of them.
    Master,
}

impl Role {
    fn spinning(self) -> &'static AtomicUsize {
        &SPINNING[self as usize]
    }

    /// How many cores are taken by threads other than this one and those of its role that spin.
    fn cores_taken(self) -> usize {
        let busy = jobs();
        match self {
            // Who submits the next job runs as well.
            Role::Worker => busy + 1,
            // A job that was submitted just now is still queued, and a worker that spins is about to take it.
            Role::Master => busy.max(Role::Worker.spinning().load(SeqCst)),
        }
    }
}

/// Whether spinning pays, by what it was worth the last times: one for each kind of wait.
///
/// ```
/// use greenroom_pool::{Role, Spin};
///
/// let spin = Spin::new();
/// let mut looks = 0;
/// let seen = spin.until(Role::Master, || { looks += 1; looks == 3 });
/// assert!(seen || looks < 3); // it may have declined, as on a machine with one core
/// ```
#[derive(Debug, Default)]
pub struct Spin {
    /// How many waits to sleep through before the next trial.
    skip: AtomicU32,
    /// How many trials in a row were in vain, up to `FARTHEST`.
    vain: AtomicU32,
}

impl Spin {
    /// The longest time that a thread spins: about what falling asleep and being woken cost, so that who spins in vain pays
    /// twice at most.
    pub const MOMENT: Duration = Duration::from_micros(20);

    /// One that tries at the first wait.
    pub const fn new() -> Spin {
        Spin { skip: AtomicU32::new(0), vain: AtomicU32::new(0) }
    }

    /// Looks until `seen` says so, if that is likely to be soon and there is a core to spare beside the jobs of all pools and those
    /// that spin already. Returns whether it was seen; false may mean that it wasn't even looked for. Doesn't sleep; takes [`MOMENT`](Self::MOMENT) at most, unless the kernel takes the core away.
    pub fn until(&self, role: Role, mut seen: impl FnMut() -> bool) -> bool {
        let skip = self.skip.load(Relaxed);
        if skip > 0 {
            self.skip.store(skip - 1, Relaxed);
            return false;
        }
        let Some(_core) = Core::take(role) else { return false };
        let start = Instant::now();
        for look in 0.. {
            if seen() {
                self.vain.store(0, Relaxed);
                return true;
            }
            if look < LOOKS {
                std::hint::spin_loop();
            } else if start.elapsed() < Self::MOMENT {
                thread::yield_now();
            } else {
                break;
            }
        }
        let vain = (self.vain.load(Relaxed) + 1).min(FARTHEST);
        self.vain.store(vain, Relaxed);
        self.skip.store((1 << vain) - 1, Relaxed);
        false
    }
}

/// A core to spin on.
struct Core(Role);

impl Core {
    fn take(role: Role) -> Option<Core> {
        let spinning = role.spinning().fetch_add(1, SeqCst);
        let core = Core(role);
        (role.cores_taken() + spinning < cores()).then_some(core)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.0.spinning().fetch_sub(1, SeqCst);
    }
}
