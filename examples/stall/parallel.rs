//! What is worth offloading: work that runs in parallel on threads.

use std::hint::black_box;
use std::sync::Mutex;

use greenroom::probe::{Speedup, parallel_speedup};

use crate::hash::Hash;

/// How much faster a number of runs is on as many threads than one after the other.
pub(crate) struct Speedups {
    /// Of the hash, which shares nothing.
    pub(crate) pbkdf2: Speedup,
    /// Of a loop that holds one lock, as code that runs under an interpreter's global lock does.
    pub(crate) locked: Speedup,
}

/// Probes of each kind, interleaved; the one with the middle ratio counts.
const PROBES: usize = 3;

impl Speedups {
    pub(crate) fn probe(threads: u16, hash: Hash) -> Speedups {
        let threads = usize::from(threads);
        let lock = Mutex::new(());
        let mut pbkdf2 = vec![];
        let mut locked = vec![];
        for _ in 0..PROBES {
            pbkdf2.push(parallel_speedup(threads, || {
                hash.run().expect("the key was right before");
            }));
            locked.push(parallel_speedup(threads, || {
                let _held = lock.lock();
                spin(hash.iterations());
            }));
        }
        Speedups { pbkdf2: middle(pbkdf2), locked: middle(locked) }
    }
}

fn middle(mut speedups: Vec<Speedup>) -> Speedup {
    speedups.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    speedups.swap_remove(speedups.len() / 2)
}

/// Takes about as long as a hash of so many iterations.
fn spin(iterations: u32) {
    for step in 0..u64::from(iterations) * 100 {
        black_box(step);
    }
}
