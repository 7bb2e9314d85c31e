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

impl Speedups {
    pub(crate) fn probe(threads: u16, hash: Hash) -> Speedups {
        let threads = usize::from(threads);
        let lock = Mutex::new(());
        Speedups {
            pbkdf2: parallel_speedup(threads, || {
                hash.run().expect("the key was right before");
            }),
            locked: parallel_speedup(threads, || {
                let _held = lock.lock();
                spin(hash.iterations())
            }),
        }
    }
}

/// Takes about as long as a hash of so many iterations.
fn spin(iterations: u32) -> u64 {
    (0..u64::from(iterations) * 60).fold(1, |state, step| black_box(state ^ step))
}
