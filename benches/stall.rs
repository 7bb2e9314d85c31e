//! The stall: how long a ticker of 5 ms waits at most beside password hashes.
//!
//! What is measured isn't how long the work takes but the longest gap between two ticks while it runs: directly on the hub,
//! where the gap is the hash, and offloaded, 1, 2, 10 and 40 at once.
//!
//! ```console
//! cargo bench --bench stall
//! ```

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode};
use greenroom::stall::TickGaps;
use greenroom::{join_all, offload, spawn};
use sha2::Sha256;

/// How often the ticker wants to run.
const INTERVAL: Duration = Duration::from_millis(5);

/// Django 4.2's number of iterations, and the key that CPython derives from "pw" and "salt". Without optimisation that would
/// take seconds, so there it is fewer.
const ITERATIONS: u32 = if cfg!(debug_assertions) { 4_096 } else { 600_000 };
const KEY: &str = if cfg!(debug_assertions) {
    "5131450a01e6fdc6de870d65ce2c4cc42085230bbfdc630b0e42d25c429d0609"
} else {
    "c86b4470512980eda8569b4e5fa554530b297570b45ff140f6bc5a340485188b"
};

fn hash() -> [u8; 32] {
    pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(black_box(b"pw"), b"salt", ITERATIONS)
}

/// A time of a hash that gives a wrong key means nothing.
fn check_key() {
    let key: String = hash().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(key, KEY, "PBKDF2 in {ITERATIONS} iterations gave a wrong key");
}

fn offloaded(jobs: usize) {
    let all: Vec<_> = (0..jobs).map(|_| spawn(|| offload(hash, ()))).collect();
    for ended in join_all(all) {
        black_box(ended.expect("hashing does not panic"));
    }
}

fn longest_gaps(rounds: u64, work: impl Fn()) -> Duration {
    (0..rounds).map(|_| TickGaps::measure(INTERVAL, &work).max).sum()
}

fn main() {
    check_key();
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    let mut group = criterion.benchmark_group("stall");
    // One round is a sample, however long it takes.
    group.sampling_mode(SamplingMode::Flat);
    group.warm_up_time(Duration::from_millis(1)).measurement_time(Duration::from_secs(1));
    group.bench_function("direct", |bencher| {
        bencher.iter_custom(|rounds| longest_gaps(rounds, || _ = black_box(hash())));
    });
    for jobs in [1, 2, 10, 40] {
        group.bench_with_input(BenchmarkId::new("offloaded", jobs), &jobs, |bencher, &jobs| {
            bencher.iter_custom(|rounds| longest_gaps(rounds, || offloaded(jobs)));
        });
    }
    group.finish();
    criterion.final_summary();
}
