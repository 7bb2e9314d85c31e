//! What offloading costs: by the length of a job, by how many greenlets offload at once, and in throughput of hashes.
//!
//! ```console
//! cargo bench --bench offload
//! cargo bench --bench offload -- --measurement-time 1 hashes
//! ```

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, SamplingMode, Throughput};
use greenroom::{ThreadPool, hub, join_all, spawn};
use greenroom_pool::{Admission, Pool, Priority};
use sha2::Sha256;

#[path = "../examples/offload_cost/work.rs"]
mod work;

use work::{Pace, Work};

/// Of the pool with other settings than the default ones, and as many plain threads.
const THREADS: usize = 10;

fn main() {
    // Not on the first use that is measured.
    hub();
    let mut criterion = Criterion::default().configure_from_args();
    one_job(criterion.benchmark_group("offload one job"));
    greenlets(criterion.benchmark_group("offload nothing, greenlets at once"));
    hashes(criterion.benchmark_group("hashes"));
    criterion.final_summary();
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

/// One after the other: the round trip, next to the bare job.
fn one_job(mut group: Group<'_>) {
    group.sample_size(20);
    let pace = Pace::calibrated();
    for (name, length) in [("nothing", 0), ("1 µs", 1), ("10 µs", 10), ("100 µs", 100), ("1 ms", 1_000)] {
        let work = pace.work(Duration::from_micros(length));
        group.bench_with_input(BenchmarkId::new("inline", name), &work, |bencher, &work| bencher.iter(|| work.run()));
        group.bench_with_input(BenchmarkId::new("offloaded", name), &work, |bencher, &work| {
            let pool = hub().threadpool();
            bencher.iter(|| pool.apply(Work::run, (work,)));
        });
    }
}

/// The time of one job, when so many greenlets offload one after the other each.
fn greenlets(mut group: Group<'_>) {
    group.sample_size(20).throughput(Throughput::Elements(1));
    for number in [1, 10, 100, 1_000] {
        group.bench_with_input(BenchmarkId::from_parameter(number), &number, |bencher, &number| {
            bencher.iter_custom(|jobs| {
                let pool = hub().threadpool();
                let share = move |greenlet| jobs / number + u64::from(greenlet < jobs % number);
                let start = Instant::now();
                join_all((0..number).map(|greenlet| {
                    let pool = pool.clone();
                    spawn(move || (0..share(greenlet)).for_each(|_| pool.apply(|| (), ())))
                }));
                start.elapsed()
            });
        });
    }
}

/// A batch of short hashes: what settings of the pool cost those who only want them done.
fn hashes(mut group: Group<'_>) {
    const BATCH: u32 = 40;
    group.throughput(Throughput::Elements(BATCH.into())).sampling_mode(SamplingMode::Flat).sample_size(20);
    group.bench_function("pool, default settings", |bencher| {
        let pool = hub().threadpool();
        bencher.iter(|| on_pool(&pool, BATCH));
    });
    group.bench_function("pool, plain admission, same priority", |bencher| {
        let pool = Pool::builder().max_threads(THREADS).admission(Admission::Plain).priority(Priority::Same).build();
        let pool = ThreadPool::from(pool);
        bencher.iter(|| on_pool(&pool, BATCH));
    });
    group.bench_function("plain threads", |bencher| bencher.iter(|| on_threads(BATCH)));
}

/// Far fewer iterations than passwords need, so that a batch takes milliseconds.
fn hash() -> [u8; 32] {
    pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(black_box(b"pw"), b"salt", 2_000)
}

/// Each in a greenlet of its own.
fn on_pool(pool: &ThreadPool, batch: u32) {
    let greenlets = (0..batch).map(|_| {
        let pool = pool.clone();
        spawn(move || pool.apply(hash, ()))
    });
    for ended in join_all(greenlets) {
        black_box(ended.expect("hashing does not panic"));
    }
}

/// Fresh ones, which take the next hash as long as there is one.
fn on_threads(batch: u32) {
    let taken = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while taken.fetch_add(1, Relaxed) < batch {
                    black_box(hash());
                }
            });
        }
    });
}
