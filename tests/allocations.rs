//! How often the common calls allocate, on all threads together, once they have warmed up.
//!
//! One test alone, so that no other allocates meanwhile. The table: `cargo test --test allocations -- --nocapture`.

#![allow(clippy::print_stdout)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use greenroom::queue::{Channel, LifoQueue, PriorityQueue, Queue};
use greenroom::{Greenlet, ThreadPool, hub, join_all, promise, sleep, spawn, timeout, yield_now};

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, and a count.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: passes everything on to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, SeqCst);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, SeqCst);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, SeqCst);
        // SAFETY: the caller's promise, passed on.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, passed on.
        unsafe { System.dealloc(old, layout) }
    }
}

/// Operations to warm up with.
const BEFORE: usize = 1_000;
/// Operations that are counted.
const COUNTED: usize = 5_000;
/// Allocations among them that are nobody's fault: what a thread needs for its first sleep, which on a busy machine may
/// come late, and lists that grow to their size.
const ONCE: usize = COUNTED / 100;

/// The table, and what in it is more than promised.
#[derive(Default)]
struct Table(Vec<String>);

impl Table {
    /// A row: what `COUNTED` operations allocate. `promised`: how much each may at most.
    fn row(&mut self, what: &str, promised: Option<usize>, allocations: usize) {
        let each = allocations as f64 / COUNTED as f64;
        let promised = promised.map_or(String::from("-"), |promised| {
            if allocations > promised * COUNTED + ONCE {
                self.0.push(format!("{what}: {allocations} allocations in {COUNTED}, {promised} promised for each"));
            }
            promised.to_string()
        });
        println!("{what:44} {each:8.4} {promised:>9}");
    }

    /// A row for an operation that one does over and over.
    fn count(&mut self, what: &str, promised: Option<usize>, mut operation: impl FnMut()) {
        (0..BEFORE).for_each(|_| operation());
        let before = ALLOCATIONS.load(SeqCst);
        (0..COUNTED).for_each(|_| operation());
        let allocations = ALLOCATIONS.load(SeqCst) - before;
        self.row(what, promised, allocations);
    }

    /// A row for an operation that consumes what was made before, uncounted.
    fn count_on<T>(
        &mut self,
        what: &str,
        promised: Option<usize>,
        mut make: impl FnMut() -> T,
        mut operation: impl FnMut(T),
    ) {
        (0..BEFORE).map(|_| make()).collect::<Vec<_>>().into_iter().for_each(&mut operation);
        let made: Vec<T> = (0..COUNTED).map(|_| make()).collect();
        let before = ALLOCATIONS.load(SeqCst);
        made.into_iter().for_each(operation);
        let allocations = ALLOCATIONS.load(SeqCst) - before;
        self.row(what, promised, allocations);
    }

    /// A row for an operation that `greenlets` greenlets do at once, `COUNTED` times together.
    fn count_in(
        &mut self,
        what: &str,
        promised: Option<usize>,
        greenlets: usize,
        operation: impl Fn() + Clone + 'static,
    ) {
        /// Parks until all are here.
        fn meet(arrived: &Cell<usize>, all: usize) {
            arrived.set(arrived.get() + 1);
            while arrived.get() < all {
                yield_now();
            }
        }
        let (warm, through) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let all: Vec<Greenlet<(usize, usize)>> = (0..greenlets)
            .map(|_| {
                let (operation, warm, through) = (operation.clone(), Rc::clone(&warm), Rc::clone(&through));
                spawn(move || {
                    (0..BEFORE / greenlets).for_each(|_| operation());
                    meet(&warm, greenlets);
                    let before = ALLOCATIONS.load(SeqCst);
                    (0..COUNTED / greenlets).for_each(|_| operation());
                    meet(&through, greenlets);
                    (before, ALLOCATIONS.load(SeqCst))
                })
            })
            .collect();
        let counts: Vec<_> = join_all(all).into_iter().map(Result::unwrap).collect();
        // From the first that went on after the warming up to the first that saw all of them through.
        let before = counts.iter().map(|counts| counts.0).min().unwrap();
        let after = counts.iter().map(|counts| counts.1).min().unwrap();
        self.row(what, promised, after - before);
    }
}

/// A pool all of whose threads have started.
fn started_pool(threads: usize) -> ThreadPool {
    let (pool, barrier) = (ThreadPool::new(threads), Arc::new(Barrier::new(threads)));
    let all = (0..threads).map(|_| {
        let (pool, barrier) = (pool.clone(), Arc::clone(&barrier));
        spawn(move || pool.run(|| _ = barrier.wait()))
    });
    join_all(all.collect::<Vec<_>>()).into_iter().for_each(|ended| ended.unwrap());
    pool
}

const AN_HOUR: Duration = Duration::from_secs(3600);

#[test]
fn the_common_calls_allocate_no_more_than_promised() {
    let mut table = Table::default();
    println!("{:44} {:>8} {:>9}", "allocations for each", "counted", "promised");

    apply(&mut table);
    time(&mut table);
    greenlets(&mut table);
    results(&mut table);
    queues(&mut table);

    assert!(table.0.is_empty(), "{}", table.0.join("\n"));
}

fn apply(table: &mut Table) {
    let pool = started_pool(10);
    let run = {
        let pool = pool.clone();
        move || {
            let text = [7_u8; 32];
            black_box(pool.apply(|text: &[u8], n: usize| text.len() + n, (&text[..], 5)));
        }
    };
    table.count_in("apply, one greenlet", Some(0), 1, run.clone());
    table.count_in("apply, 100 greenlets on 10 threads", Some(0), 100, run.clone());
    table.count("apply, main", Some(0), &run);
    table.count("apply, main, under a timeout", Some(0), || timeout(AN_HOUR, &run).unwrap());
    thread::scope(|scope| {
        scope.spawn(|| table.count("apply, a thread without a hub", Some(0), &run));
    });
    let inline = pool.clone();
    table.count("apply on the pool's own worker", Some(0), || inline.run(|| inline.run(|| ())));
    hub().set_threadpool(pool);
    table.count("offload, main", Some(0), || greenroom::offload(|| (), ()));
    table.count("threadpool().apply, main", Some(0), || hub().threadpool().apply(|| (), ()));
}

fn time(table: &mut Table) {
    table.count_in("yield_now, two greenlets", Some(0), 2, yield_now);
    table.count("yield_now, main", Some(0), yield_now);
    table.count_in("sleep(1 µs), 100 greenlets", Some(0), 100, || sleep(Duration::from_micros(1)));
    table.count("sleep(1 µs), main", Some(0), || sleep(Duration::from_micros(1)));
    table.count("timeout that is over in time, nothing parks", Some(0), || timeout(AN_HOUR, || ()).unwrap());
    table.count("timeout that is over in time, around a sleep", Some(0), || {
        timeout(AN_HOUR, || sleep(Duration::from_micros(1))).unwrap();
    });
    table.count("two timeouts, one in the other", Some(0), || {
        timeout(AN_HOUR, || timeout(AN_HOUR, yield_now)).unwrap().unwrap();
    });
    table.count("timeout that elapses", None, || {
        timeout(Duration::from_nanos(1), || sleep(AN_HOUR)).unwrap_err();
    });
}

fn greenlets(table: &mut Table) {
    table.count("spawn, detached, and its run", Some(1), || {
        drop(spawn(|| ()));
        yield_now();
    });
    table.count("spawn + join", Some(1), || spawn(|| ()).join().unwrap());
    table.count("spawn + join of one that parks", Some(1), || {
        spawn(|| sleep(Duration::from_micros(1))).join().unwrap();
    });
    let ended = || {
        let greenlet = spawn(|| ());
        yield_now();
        greenlet
    };
    table.count_on("join of one that has ended", Some(0), ended, |greenlet| greenlet.join().unwrap());
    let parked = || {
        let greenlet = spawn(|| sleep(AN_HOUR));
        yield_now();
        greenlet
    };
    table.count_on("kill of a parked one", None, parked, |greenlet| greenlet.kill());
}

fn results(table: &mut Table) {
    table.count("promise, set, get", Some(1), || {
        let (promise, result) = promise();
        promise.set(7);
        assert_eq!(result.get().unwrap(), 7);
    });
    table.count("promise, spawn, get, set by the greenlet", None, || {
        let (promise, result) = promise();
        drop(spawn(move || promise.set(7)));
        assert_eq!(result.get().unwrap(), 7);
    });
    let handle = hub().handle();
    table.count("HubHandle::spawn, get", None, || handle.spawn(|| ()).get().unwrap());
}

fn queues(table: &mut Table) {
    let (queue, stack, smallest) = (Queue::bounded(1), LifoQueue::bounded(1), PriorityQueue::bounded(1));
    let through = queue.clone();
    table.count("put + get, Queue(1)", Some(0), move || {
        through.put(7).unwrap();
        assert_eq!(through.get(), Ok(7));
    });
    table.count("put + get, LifoQueue(1) and PriorityQueue(1)", Some(0), || {
        stack.put(7).unwrap();
        smallest.put(8).unwrap();
        assert_eq!((stack.get(), smallest.get()), (Ok(7), Ok(8)));
    });
    table.count("get that times out, Queue(1)", Some(0), || {
        queue.get_timeout(Duration::from_nanos(1)).unwrap_err();
    });
    // One more on the other side, for whom those who are counted wait.
    let echo = |from: &Queue<u32>, to: &Queue<u32>| {
        let (from, to) = (from.clone(), to.clone());
        move || from.iter().for_each(|item| to.put(item).unwrap())
    };
    let (there, back) = (Queue::bounded(1), Queue::bounded(1));
    let greenlet = spawn(echo(&there, &back));
    let (to, from) = (there.clone(), back.clone());
    table.count("there and back, Queue(1), parked getters", Some(0), move || {
        to.put(7).unwrap();
        assert_eq!(from.get(), Ok(7));
    });
    there.close();
    greenlet.join().unwrap();
    let (there, back) = (Queue::bounded(1), Queue::bounded(1));
    let thread = thread::spawn(echo(&there, &back));
    let (to, from) = (there.clone(), back.clone());
    table.count("there and back, Queue(1), a thread", Some(0), move || {
        to.put(7).unwrap();
        assert_eq!(from.get(), Ok(7));
    });
    there.close();
    thread.join().unwrap();
    let full = Queue::bounded(1);
    full.put(0).unwrap();
    let other = full.clone();
    let putter = spawn(move || while other.put(7).is_ok() {});
    table.count("get, Queue(1), parked putter", Some(0), || {
        full.get().unwrap();
        yield_now();
    });
    full.close();
    putter.join().unwrap();
    let channel = Channel::new();
    let other = channel.clone();
    let getter = spawn(move || other.iter().count());
    table.count("put, Channel, parked getter", Some(0), || channel.put(7).unwrap());
    channel.close();
    getter.join().unwrap();
    let crowded = Queue::bounded(1);
    table.count_in("put + get, Queue(1), 100 greenlets", Some(0), 100, move || {
        crowded.put(7).unwrap();
        yield_now();
        crowded.get().unwrap();
    });
}
