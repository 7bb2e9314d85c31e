//! What the runtime itself costs: switching, spawning, sleeping, timeouts, kills, and an empty job on the pool, beside what
//! two threads need to wake each other through the kernel.
//!
//! ```console
//! cargo bench --bench runtime
//! cargo bench --bench runtime -- --measurement-time 1 apply
//! ```

use std::hint::black_box;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, SamplingMode, Throughput};
use greenroom::{Greenlet, ThreadPool, hub, join_all, promise, sleep, spawn, timeout, yield_now};

const AN_HOUR: Duration = Duration::from_secs(3600);

fn main() {
    // Not on the first use that is measured.
    hub();
    let mut criterion = Criterion::default().configure_from_args();
    switching(criterion.benchmark_group("switch"));
    spawning(criterion.benchmark_group("spawn"));
    spawning_at_once(criterion.benchmark_group("spawn at once"));
    time(criterion.benchmark_group("time"));
    kill(criterion.benchmark_group("kill"));
    apply(criterion.benchmark_group("offload"));
    criterion.final_summary();
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn switching(mut group: Group<'_>) {
    // From one greenlet straight to the other; main is parked.
    group.bench_function("yield, two greenlets", |bencher| {
        bencher.iter_custom(|yields| {
            let each = yields.div_ceil(2);
            let pair = [(), ()].map(|()| spawn(move || (0..each).for_each(|_| yield_now())));
            let start = Instant::now();
            join_all(pair);
            start.elapsed().mul_f64(yields as f64 / (2 * each) as f64)
        });
    });
    group.bench_function("promise to a greenlet and back", |bencher| {
        bencher.iter(|| {
            let (promise, result) = promise();
            drop(spawn(move || promise.set(7)));
            result.get().expect("it is set")
        });
    });
}

fn spawning(mut group: Group<'_>) {
    group.bench_function("spawn + join, one at a time", |bencher| {
        bencher.iter(|| spawn(|| black_box(7)).join().expect("it returns"));
    });
}

fn spawning_at_once(mut group: Group<'_>) {
    const MANY: u64 = 100_000;
    group.throughput(Throughput::Elements(MANY)).sampling_mode(SamplingMode::Flat).sample_size(10);
    group.bench_function("spawn + join, 100,000 at once", |bencher| {
        bencher.iter(|| {
            let all: Vec<Greenlet<u64>> = (0..MANY).map(|number| spawn(move || number)).collect();
            all.into_iter().map(|greenlet| greenlet.join().expect("it returns")).sum::<u64>()
        });
    });
}

fn time(mut group: Group<'_>) {
    // What is measured is how much longer it took.
    group.bench_function("sleep(100 µs): overshoot", |bencher| {
        let sleep_for = Duration::from_micros(100);
        bencher.iter_custom(|sleeps| {
            let overshoot = |_| {
                let start = Instant::now();
                sleep(sleep_for);
                start.elapsed() - sleep_for
            };
            (0..sleeps).map(overshoot).sum()
        });
    });
    group.bench_function("timeout around nothing", |bencher| {
        bencher.iter(|| timeout(AN_HOUR, || black_box(7)));
    });
    // Armed when the join parks, taken back when the greenlet ends: less `spawn + join` it is what a timeout costs.
    group.bench_function("timeout around spawn + join", |bencher| {
        bencher.iter(|| timeout(AN_HOUR, || spawn(|| black_box(7)).join()));
    });
}

fn kill(mut group: Group<'_>) {
    let parked = || {
        let greenlet = spawn(|| sleep(AN_HOUR));
        yield_now();
        greenlet
    };
    group.bench_function("kill of a parked greenlet", |bencher| {
        bencher.iter_batched(parked, |greenlet| greenlet.kill(), BatchSize::SmallInput);
    });
}

fn apply(mut group: Group<'_>) {
    let pool = ThreadPool::new(1);
    group.bench_function("apply of nothing, main", |bencher| bencher.iter(|| pool.apply(|| (), ())));
    group.bench_function("eventfd there and back, two threads", |bencher| {
        let far_end = FarEnd::start();
        bencher.iter(|| far_end.ping());
    });
    group.bench_function("apply of nothing, a thread without a hub", |bencher| {
        thread::scope(|scope| {
            scope.spawn(|| bencher.iter(|| pool.apply(|| (), ())));
        });
    });
    group.bench_function("apply of nothing, 100 greenlets on 10 threads", |bencher| {
        let pool = ThreadPool::new(10);
        bencher.iter_custom(|jobs| {
            let start = Instant::now();
            let share = move |greenlet| jobs / 100 + u64::from(greenlet < jobs % 100);
            join_all((0..100).map(|greenlet| {
                let pool = pool.clone();
                spawn(move || (0..share(greenlet)).for_each(|_| pool.apply(|| (), ())))
            }));
            start.elapsed()
        });
    });
}

/// A thread that answers each ping with a pong: what a hand-over to another thread that sleeps costs at least.
struct FarEnd {
    ping: EventFd,
    pong: EventFd,
    thread: Option<thread::JoinHandle<()>>,
}

impl FarEnd {
    fn start() -> FarEnd {
        let (ping, pong) = (EventFd::new(), EventFd::new());
        let (theirs, ours) = (ping.clone(), pong.clone());
        let answer = move || {
            while theirs.wait() < END {
                ours.ring(1);
            }
        };
        FarEnd { ping, pong, thread: Some(thread::spawn(answer)) }
    }

    fn ping(&self) {
        self.ping.ring(1);
        self.pong.wait();
    }
}

impl Drop for FarEnd {
    fn drop(&mut self) {
        self.ping.ring(END);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it only waits and rings");
        }
    }
}

/// No ping, but the end.
const END: u64 = 1000;

/// A counter in the kernel; waiting for it to be more than zero blocks.
struct EventFd(OwnedFd);

impl EventFd {
    fn new() -> EventFd {
        // SAFETY: makes a descriptor, touches no memory.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        assert!(fd >= 0, "the kernel refused an eventfd: {}", std::io::Error::last_os_error());
        // SAFETY: the descriptor is new and nobody else's.
        EventFd(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    fn clone(&self) -> EventFd {
        EventFd(self.0.try_clone().expect("a descriptor more"))
    }

    fn ring(&self, count: u64) {
        // SAFETY: writes the eight bytes of `count`, as an eventfd wants them.
        let written = unsafe { libc::write(self.0.as_raw_fd(), (&raw const count).cast(), 8) };
        assert_eq!(written, 8);
    }

    fn wait(&self) -> u64 {
        let mut count = 0_u64;
        // SAFETY: reads eight bytes into `count`, as an eventfd gives them.
        let read = unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
        assert_eq!(read, 8);
        count
    }
}
