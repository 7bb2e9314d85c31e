//! A job of known length, which computes all the while.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How fast this machine computes.
pub(crate) struct Pace {
    steps_per_second: f64,
}

impl Pace {
    /// That of the fastest of several trials: what slows one down is somebody else's.
    pub(crate) fn calibrated() -> Pace {
        const TRIALS: usize = 20;
        let trial = Work { steps: 500_000 };
        let times = (0..TRIALS).map(|_| {
            let start = Instant::now();
            trial.run();
            start.elapsed()
        });
        let fastest = times.min().expect("there are trials").max(Duration::from_nanos(1));
        Pace { steps_per_second: trial.steps as f64 / fastest.as_secs_f64() }
    }

    /// A job that takes so long.
    pub(crate) fn work(&self, length: Duration) -> Work {
        Work { steps: (self.steps_per_second * length.as_secs_f64()) as u64 }
    }
}

/// A number of steps, each of which needs the one before.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    steps: u64,
}

impl Work {
    /// Counts its steps and never looks at a clock: it takes the longer the more often it has to give way.
    pub(crate) fn run(self) {
        let mut state: u64 = black_box(0x9e37_79b9_7f4a_7c15);
        for _ in 0..self.steps {
            // A xorshift, of which no compiler can tell the end without going there.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        black_box(state);
    }
}
