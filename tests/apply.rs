//! What `apply` borrows stays good until the job is over, whatever ends the call and wherever the job is by then, and
//! what goes into a job or comes out of it is dropped once.
//!
//! The first half is a table: each state of a job (its caller waits for room, it is queued, it runs, it is done and its
//! caller hasn't been resumed) against each end (kill, timeout, the handle dropped, the pool shut down). The second half
//! rolls dice over the same.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use greenroom::{
    ApplyError, Builder, Elapsed, Greenlet, JoinError, ThreadPool, hub, join_all, sleep, spawn, timeout, try_hub,
    yield_now,
};
use greenroom_pool::{Pool, PoolStats};

/// How often each cell of the table is played.
const ROUNDS: usize = 30;

const MOMENT: Duration = Duration::from_millis(1);

/// Runs `test` on a thread of its own, and so with a hub of its own if it makes one. It has a minute.
fn watched(test: impl FnOnce() + Send + 'static) {
    let (done, is_done) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        let _done = done;
        test();
    });
    let timed_out = is_done.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout);
    assert!(!timed_out, "not done after a minute");
    if let Err(panic) = thread.join() {
        resume_unwind(panic);
    }
}

// What the jobs work on

/// What became of everything that took part.
#[derive(Default)]
struct Book {
    /// Papers that nobody wrote on.
    blank: AtomicUsize,
    /// Papers that were written from top to bottom.
    written: AtomicUsize,
    /// Papers that were dropped half written, or written after they were dropped.
    torn: AtomicUsize,
    /// Tickets made and not dropped.
    tickets: AtomicIsize,
    /// Tickets dropped twice.
    doubles: AtomicUsize,
    /// Jobs that began.
    began: AtomicUsize,
}

impl Book {
    #[track_caller]
    fn expect_clean(&self) {
        assert_eq!(self.torn.load(SeqCst), 0, "a job wrote to a frame that was gone");
        assert_eq!(self.tickets.load(SeqCst), 0, "an argument or a result leaked");
        assert_eq!(self.doubles.load(SeqCst), 0, "an argument or a result was dropped twice");
        assert_eq!(self.written.load(SeqCst), self.began.load(SeqCst), "a job that began was not waited for");
    }
}

const LINES: usize = 64;
const CANARY: u64 = 0xA5A5_5A5A_C3C3_3C3C;
const ALIVE: u64 = 0x600D_600D_600D_600D;
const GONE: u64 = 0xDEAD_DEAD_DEAD_DEAD;

/// Lies on the stack of the one who calls `apply`, and is written by the job.
struct Paper<'a> {
    top: [u64; 8],
    state: u64,
    lines: [u64; LINES],
    copy: Vec<u64>,
    bottom: [u64; 8],
    book: &'a Book,
}

impl<'a> Paper<'a> {
    fn new(book: &'a Book) -> Paper<'a> {
        Paper { top: [CANARY; 8], state: ALIVE, lines: [0; LINES], copy: Vec::new(), bottom: [CANARY; 8], book }
    }

    /// Slow enough to be overtaken.
    fn write(&mut self) {
        for line in 0..LINES {
            self.lines[line] = line as u64 + 1;
            self.copy.push(line as u64 + 1);
            if line % 16 == 0 {
                thread::yield_now();
            }
        }
        self.check_alive();
    }

    fn check_alive(&self) {
        let state = std::hint::black_box(self).state;
        if state != ALIVE || self.top != [CANARY; 8] || self.bottom != [CANARY; 8] {
            self.book.torn.fetch_add(1, SeqCst);
        }
    }
}

impl Drop for Paper<'_> {
    fn drop(&mut self) {
        self.check_alive();
        let whole: Vec<u64> = (1..=LINES as u64).collect();
        let became = if self.lines == [0; LINES] && self.copy.is_empty() {
            &self.book.blank
        } else if self.lines[..] == whole && self.copy == whole {
            &self.book.written
        } else {
            &self.book.torn
        };
        became.fetch_add(1, SeqCst);
        self.state = GONE;
        std::hint::black_box(self);
    }
}

/// An argument or a result that counts how often it is dropped.
struct Ticket {
    book: Arc<Book>,
    state: Cell<u64>,
}

impl Ticket {
    fn new(book: &Arc<Book>) -> Ticket {
        book.tickets.fetch_add(1, SeqCst);
        Ticket { book: Arc::clone(book), state: Cell::new(ALIVE) }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.book.tickets.fetch_sub(1, SeqCst);
        if self.state.replace(GONE) != ALIVE {
            self.book.doubles.fetch_add(1, SeqCst);
        }
    }
}

/// The call that all of this is about: borrows a paper from its own frame, sends a ticket, gets another.
fn call(pool: &ThreadPool, book: &Arc<Book>, first: impl FnOnce() + Send) {
    let mut paper = Paper::new(book);
    let work = |paper: &mut Paper<'_>, ticket: Ticket| {
        ticket.book.began.fetch_add(1, SeqCst);
        first();
        paper.write();
        Ticket::new(&ticket.book)
    };
    let result = pool.apply(work, (&mut paper, Ticket::new(book)));
    assert_eq!(result.state.get(), ALIVE);
}

/// Holds jobs up, as blocking code does, until it is opened.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        drop(self.0.1.wait_while(self.0.0.lock().unwrap(), |open| !*open).unwrap());
    }
}

/// Parks until the pool's numbers are as wanted.
fn until(pool: &Pool, wanted: impl Fn(&PoolStats) -> bool) {
    while !wanted(&pool.stats()) {
        sleep(Duration::from_micros(50));
    }
}

fn text_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a payload without text")
}

// The table

/// Where the job is when the end comes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    WaitsForRoom,
    Queued,
    Runs,
    /// The worker is through, and the caller hasn't been resumed.
    Done,
}

const STATES: [State; 4] = [State::WaitsForRoom, State::Queued, State::Runs, State::Done];

/// One job in one state, on a pool of one thread.
struct Scene {
    handle: Pool,
    book: Arc<Book>,
    /// What holds the job up, or the one before it.
    gate: Gate,
    /// Those who keep the pool busy.
    others: Vec<Greenlet<()>>,
    /// Until a test takes it.
    victim: Option<Greenlet<Result<(), Elapsed>>>,
    /// From just before it was spawned until it had parked.
    spawned: Duration,
}

impl Scene {
    /// Spawns the victim, with a time limit, and brings its job into that state. With a limit that is over early its job may
    /// never get there.
    fn new(state: State, limit: Duration) -> Scene {
        let room = if state == State::WaitsForRoom { 1 } else { 100 };
        let handle = Pool::builder().max_threads(1).queue_limit(room).build();
        let (pool, book, gate) = (ThreadPool::from(handle.clone()), Arc::new(Book::default()), Gate::default());
        let mut others = Vec::new();
        if matches!(state, State::WaitsForRoom | State::Queued) {
            let (pool, gate) = (pool.clone(), gate.clone());
            others.push(spawn(move || pool.run(|| gate.wait())));
            until(&handle, |stats| stats.running == 1 && stats.queued == 0);
        }
        if state == State::WaitsForRoom {
            let pool = pool.clone();
            others.push(spawn(move || pool.run(|| ())));
            until(&handle, |stats| stats.queued == 1);
        }
        let start = Instant::now();
        let victim = spawn({
            let (pool, book, gate) = (pool.clone(), Arc::clone(&book), gate.clone());
            let first = move || {
                if has_begun(state) {
                    gate.wait();
                }
            };
            move || timeout(limit, || call(&pool, &book, first))
        });
        yield_now();
        let spawned = start.elapsed();
        match state {
            State::WaitsForRoom => assert_eq!(handle.stats().queued, 2),
            State::Queued => assert_eq!(handle.stats().queued, 1),
            State::Runs => {
                while book.began.load(SeqCst) == 0 && !victim.is_finished() {
                    sleep(Duration::from_micros(50));
                }
            }
            // The victim is parked by now, and as main doesn't park it isn't resumed.
            State::Done => {
                gate.open();
                while handle.stats().completed == 0 && !victim.is_finished() {
                    thread::yield_now();
                }
            }
        }
        Scene { handle, book, gate, others, victim: Some(victim), spawned }
    }

    fn victim(&mut self) -> Greenlet<Result<(), Elapsed>> {
        self.victim.take().unwrap()
    }

    /// Lets everything come to its end. Returns how many papers stayed blank and how many were written.
    fn finish(self) -> (usize, usize) {
        self.gate.open();
        for other in self.others {
            let _ = other.join(); // cancelled by a shutdown, perhaps
        }
        assert!(hub().join(None));
        self.handle.join(None);
        self.book.expect_clean();
        (self.book.blank.load(SeqCst), self.book.written.load(SeqCst))
    }
}

/// Plays each state several times; `end` ends the call and returns whether the job must have run.
fn in_each_state(limit: Duration, end: impl Fn(State, &mut Scene) -> bool + Send + 'static) {
    watched(move || {
        for state in STATES.repeat(ROUNDS) {
            let mut scene = Scene::new(state, limit);
            let ran = usize::from(end(state, &mut scene));
            assert_eq!(scene.finish(), (1 - ran, ran), "{state:?}");
        }
    });
}

fn has_begun(state: State) -> bool {
    matches!(state, State::Runs | State::Done)
}

#[test]
fn a_kill_takes_back_what_has_not_begun_and_waits_for_what_has() {
    in_each_state(Duration::MAX, |state, scene| {
        let victim = scene.victim();
        if state == State::Runs {
            assert!(!victim.kill_timeout(MOMENT), "killed over a running job");
            assert!(!victim.kill_timeout(MOMENT), "killed over a running job, the second time");
            scene.gate.open();
        }
        victim.kill();
        assert!(victim.join().unwrap_err().is_killed(), "{state:?}");
        has_begun(state)
    });
}

#[test]
fn a_timeout_takes_back_what_has_not_begun_and_waits_for_what_has() {
    // Long enough for a worker to begin, as a rule.
    const LIMIT: Duration = Duration::from_millis(4);
    in_each_state(LIMIT, |state, scene| {
        let victim = scene.victim();
        match state {
            State::WaitsForRoom | State::Queued => victim.wait(),
            State::Runs => {
                sleep(LIMIT + MOMENT);
                assert_eq!(victim.is_finished(), scene.book.began.load(SeqCst) == 0);
                scene.gate.open();
            }
            State::Done => thread::sleep(LIMIT + MOMENT),
        }
        let in_time = victim.join().unwrap().is_ok();
        // What is done when the hub comes to look counts, even after the deadline.
        assert!(in_time == (state == State::Done) || scene.spawned > LIMIT, "{state:?}");
        scene.book.began.load(SeqCst) == 1
    });
}

#[test]
fn dropping_the_handle_changes_nothing() {
    in_each_state(Duration::MAX, |_, scene| {
        drop(scene.victim());
        true
    });
}

#[test]
fn a_pool_that_shuts_down_cancels_what_has_not_begun() {
    in_each_state(Duration::MAX, |state, scene| {
        let is_over = scene.handle.shutdown(Some(Duration::ZERO));
        assert!(!is_over || state == State::Done);
        if state == State::Runs {
            scene.gate.open();
        }
        match scene.victim().join() {
            Ok(ended) => {
                assert_eq!(ended, Ok(()));
                assert!(has_begun(state));
            }
            Err(error) => {
                let payload = error.into_panic();
                assert!(text_of(&*payload).contains("shut down"), "{}", text_of(&*payload));
                assert!(!has_begun(state));
            }
        }
        has_begun(state)
    });
}

#[test]
fn a_pool_shut_down_by_another_thread_does_the_same() {
    in_each_state(Duration::MAX, |state, scene| {
        let (handle, gate) = (scene.handle.clone(), scene.gate.clone());
        let closer = thread::spawn(move || {
            handle.shutdown(Some(Duration::ZERO));
            gate.open();
            handle.shutdown(None)
        });
        assert_eq!(scene.victim().join().is_ok(), has_begun(state));
        assert!(closer.join().unwrap());
        has_begun(state)
    });
}

#[test]
fn a_hub_that_shuts_down_takes_back_what_has_not_begun_and_waits_for_what_has() {
    struct Opener(Gate);
    impl Drop for Opener {
        fn drop(&mut self) {
            yield_now();
            self.0.open();
        }
    }
    for state in STATES.repeat(ROUNDS) {
        watched(move || {
            let mut scene = Scene::new(state, Duration::MAX);
            let victim = scene.victim();
            // Never begins, and lets the victim notice its kill before the gate opens.
            let opener = Opener(scene.gate.clone());
            scene.others.push(spawn(move || drop(opener)));
            hub().shutdown();
            assert!(victim.join().unwrap_err().is_killed());
            let ran = usize::from(has_begun(state));
            assert_eq!(scene.finish(), (1 - ran, ran), "{state:?}");
        });
    }
}

#[test]
fn a_thread_that_ends_leaks_its_greenlets_and_their_jobs_do_no_harm() {
    for state in STATES.repeat(ROUNDS) {
        let (handles, handle) = mpsc::channel();
        watched(move || {
            let Scene { handle, book, gate, others, victim, .. } = Scene::new(state, Duration::MAX);
            handles.send((handle, book, gate)).unwrap();
            std::mem::forget((others, victim));
        });
        let (handle, book, gate) = handle.recv().unwrap();
        // The stack of the thread is gone, those of its greenlets are not: the job borrows from one.
        assert_eq!(handle.stats().completed, u64::from(state == State::Done));
        gate.open();
        assert!(handle.join(None));
        assert_eq!(book.torn.load(SeqCst), 0);
        assert_eq!(book.began.load(SeqCst), 1, "{state:?}");
        assert_eq!(book.written.load(SeqCst) + book.blank.load(SeqCst), 0, "a leaked greenlet's destructors ran");
        assert!(handle.shutdown(None));
    }
}

#[test]
fn threads_that_end_over_and_over_with_jobs_under_way_do_no_harm() {
    watched(|| {
        let handle = Pool::builder().max_threads(3).build();
        let book = Arc::new(Book::default());
        for round in 0..200 {
            let (pool, book) = (ThreadPool::from(handle.clone()), Arc::clone(&book));
            let hub_thread = thread::spawn(move || {
                for _ in 0..5 {
                    let (pool, book) = (pool.clone(), Arc::clone(&book));
                    drop(spawn(move || call(&pool, &book, || spin(Duration::from_micros(round)))));
                }
                yield_now();
            });
            hub_thread.join().unwrap();
        }
        assert!(handle.join(None));
        assert_eq!(book.torn.load(SeqCst), 0);
        assert_eq!(book.began.load(SeqCst), 1_000);
    });
}

// The dice

/// The same rolls for the same seed.
struct Dice(u64);

impl Dice {
    /// Less than `sides`.
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 33) % sides
    }
}

fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Forty greenlets call a small pool with a small queue; kills, timeouts, dropped handles and shutdowns come as the dice
/// will have it.
fn play(seed: u64) {
    let mut dice = Dice(seed);
    let handle = Pool::builder().max_threads(1 + dice.roll(3) as usize).queue_limit(1 + dice.roll(8) as usize).build();
    let book = Arc::new(Book::default());
    let mut victims: Vec<_> = (0..40)
        .map(|_| {
            let (pool, book) = (ThreadPool::from(handle.clone()), Arc::clone(&book));
            let (calls, limit, work) = (1 + dice.roll(4), dice.roll(500), dice.roll(60));
            let limit = if dice.roll(3) == 0 { Duration::MAX } else { Duration::from_micros(limit) };
            spawn(move || {
                for _ in 0..calls {
                    let _ = timeout(limit, || call(&pool, &book, || spin(Duration::from_micros(work))));
                }
            })
        })
        .collect();
    for _ in 0..dice.roll(80) {
        let victim = dice.roll(victims.len() as u64) as usize;
        match dice.roll(6) {
            0 => victims[victim].request_kill(),
            1 if victims.len() > 1 => drop(victims.swap_remove(victim)),
            2 => victims[victim].kill(),
            3 => sleep(Duration::from_micros(dice.roll(100))),
            4 => spin(Duration::from_micros(dice.roll(50))),
            _ => yield_now(),
        }
    }
    if dice.roll(4) == 0 {
        handle.shutdown(Some(Duration::ZERO));
    }
    drop(victims);
    assert!(hub().join(None));
    assert!(handle.join(None));
    book.expect_clean();
}

#[test]
fn whatever_comes_when_it_will_nothing_is_torn_lost_or_dropped_twice() {
    watched(|| {
        hub().on_error(|_, payload| assert!(text_of(payload).contains("shut down"), "{}", text_of(payload)));
        let start = Instant::now();
        for seed in (0..).take_while(|_| start.elapsed() < Duration::from_secs(2)) {
            if let Err(panic) = catch_unwind(|| play(seed)) {
                panic!("seed {seed}: {}", text_of(&*panic));
            }
        }
    });
}

#[test]
fn the_same_with_several_hubs_on_one_pool() {
    watched(|| {
        let handle = Pool::builder().max_threads(2).queue_limit(4).build();
        let book = Arc::new(Book::default());
        let hubs: Vec<_> = (0..4)
            .map(|seed| {
                let (pool, book) = (ThreadPool::from(handle.clone()), Arc::clone(&book));
                thread::spawn(move || {
                    let mut dice = Dice(seed);
                    for _ in 0..60 {
                        let greenlets: Vec<_> = (0..10)
                            .map(|_| {
                                let (pool, book) = (pool.clone(), Arc::clone(&book));
                                let limit = Duration::from_micros(dice.roll(2_000));
                                spawn(move || timeout(limit, || call(&pool, &book, || ())))
                            })
                            .collect();
                        sleep(Duration::from_micros(dice.roll(300)));
                        greenlets[dice.roll(10) as usize].request_kill();
                        join_all(greenlets);
                    }
                })
            })
            .collect();
        hubs.into_iter().for_each(|hub| hub.join().unwrap());
        assert!(handle.join(None));
        book.expect_clean();
    });
}

// Where it is called

/// A pool of one thread that a job holds until the gate opens, so that what follows queues.
fn held_pool() -> (ThreadPool, Gate) {
    let handle = Pool::new(1);
    let gate = Gate::default();
    let held = gate.clone();
    handle.submit(move || held.wait()).unwrap();
    while handle.stats().running == 0 {
        thread::yield_now();
    }
    (ThreadPool::from(handle), gate)
}

/// Borrows, writes and returns, and is interrupted while queued.
fn use_everything() {
    let pool = ThreadPool::new(1);
    let mut list = vec![1, 2];
    let sum = pool.apply(
        |list: &mut Vec<u32>| {
            list.push(4);
            list.iter().sum::<u32>()
        },
        (&mut list,),
    );
    assert_eq!((sum, list), (7, vec![1, 2, 4]));

    let book = Arc::new(Book::default());
    let (held, gate) = held_pool();
    assert!(timeout(MOMENT, || call(&held, &book, || ())).is_err());
    assert_eq!(book.blank.load(SeqCst), 1);
    gate.open();
    call(&held, &book, || ());
    let late = timeout(MOMENT, || call(&held, &book, || thread::sleep(MOMENT * 3)));
    assert!(late.is_err() || book.written.load(SeqCst) == 2);
    book.expect_clean();
}

#[test]
fn on_main() {
    watched(|| {
        hub();
        use_everything();
    });
}

#[test]
fn in_a_greenlet() {
    watched(|| spawn(use_everything).join().unwrap());
}

#[test]
fn on_a_thread_without_a_hub_which_gets_none() {
    watched(|| {
        use_everything();
        assert!(try_hub().is_none());
    });
}

#[test]
fn on_a_worker_of_another_pool_which_gets_no_hub() {
    watched(|| {
        assert!(ThreadPool::new(1).run(|| {
            use_everything();
            try_hub().is_none()
        }));
    });
}

#[test]
fn in_a_destructor_while_a_kill_a_timeout_or_a_panic_unwinds() {
    struct Cleaner<'a>(&'a ThreadPool, Rc<Cell<u32>>);
    impl Drop for Cleaner<'_> {
        fn drop(&mut self) {
            let cleaned = &mut 0;
            self.0.apply(|cleaned: &mut u32| *cleaned += 1, (&mut *cleaned,));
            self.1.set(self.1.get() + *cleaned);
        }
    }
    watched(|| {
        let cleaned = Rc::new(Cell::new(0));
        let pool = ThreadPool::new(1);
        let busy = |end: fn()| {
            let (pool, cleaned) = (pool.clone(), Rc::clone(&cleaned));
            spawn(move || {
                let _cleaner = Cleaner(&pool, cleaned);
                end();
            })
        };
        let killed = busy(|| sleep(Duration::MAX));
        yield_now();
        killed.kill();
        assert!(killed.join().unwrap_err().is_killed());
        assert!(busy(|| panic_any(1)).join().unwrap_err().is_panic());
        let late = timeout(MOMENT, || {
            let _cleaner = Cleaner(&pool, Rc::clone(&cleaned));
            sleep(Duration::MAX);
        });
        assert!(late.is_err());
        assert_eq!(cleaned.get(), 3);
    });
}

#[test]
fn an_outer_timeout_passes_through_an_inner_one_around_a_job() {
    watched(|| {
        let (held, gate) = held_pool();
        let book = Arc::new(Book::default());
        let outer =
            timeout(MOMENT, || timeout(Duration::MAX / 2, || timeout(MOMENT * 5000, || call(&held, &book, || ()))));
        assert!(outer.is_err());
        gate.open();
        book.expect_clean();
    });
}

// What goes in and comes out

#[test]
fn nothing_at_all_and_much_at_once() {
    /// Without optimisation each frame on the way has several copies, and a worker's stack is 2 MiB.
    const SIZE: usize = if cfg!(debug_assertions) { 64 << 10 } else { 100 << 10 };
    #[derive(Debug, PartialEq)]
    struct Nothing;
    watched(|| {
        let pool = ThreadPool::new(1);
        // Each frame in between has a copy or two of it, unless they are optimised away.
        let greenlet = Builder::new().stack_size(16 << 20).spawn(move || {
            assert_eq!(pool.apply(|nothing: Nothing, ()| nothing, (Nothing, ())), Nothing);
            let mut many = [0_u8; SIZE];
            for (index, byte) in many.iter_mut().enumerate() {
                *byte = index as u8;
            }
            let turned = pool.apply(
                |mut many: [u8; SIZE]| {
                    many.reverse();
                    many
                },
                (many,),
            );
            assert!(turned.iter().rev().eq(many.iter()));
            // Captured instead of passed.
            assert_eq!(pool.run(move || many), many);
        });
        greenlet.unwrap().join().unwrap();
    });
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic_any("bomb");
    }
}

#[track_caller]
fn expect_bomb<T>(f: impl FnOnce() -> T) {
    match catch_unwind(AssertUnwindSafe(|| drop(f()))) {
        Err(payload) => assert_eq!(payload.downcast_ref::<&str>(), Some(&"bomb")),
        Ok(()) => panic!("no bomb went off"),
    }
}

#[test]
fn a_panicking_destructor_of_an_argument_is_a_panic_of_the_job() {
    watched(|| {
        let pool = ThreadPool::new(1);
        expect_bomb(|| pool.apply(drop, (Bomb,)));
        let captured = Bomb;
        expect_bomb(|| pool.run(move || drop(captured)));
        let error = pool.try_apply(drop, (Bomb,)).unwrap_err();
        assert!(matches!(error, ApplyError::Panicked(payload) if payload.is::<&str>()));
        assert_eq!(pool.run(|| 1), 1);
        assert_eq!(pool.stats().threads, 1);
    });
}

#[test]
fn a_panicking_destructor_of_a_job_that_was_not_taken_is_the_callers_panic() {
    watched(|| {
        let (pool, gate) = held_pool();
        let handle = Pool::builder().max_threads(0).queue_limit(1).build();
        let full = ThreadPool::from(handle.clone());
        handle.submit(|| ()).unwrap();
        expect_bomb(|| full.try_apply(|_: Bomb| (), (Bomb,)));
        handle.shutdown(None);
        expect_bomb(|| full.try_apply(|_: Bomb| (), (Bomb,)));

        // Cancelled while it queues.
        let handle = Pool::new(0);
        let closed = ThreadPool::from(handle.clone());
        let queued = spawn(move || expect_bomb(|| closed.try_apply(|_: Bomb| (), (Bomb,))));
        until(&handle, |stats| stats.queued == 1);
        handle.shutdown(None);
        queued.join().unwrap();
        gate.open();
        assert_eq!(pool.run(|| 1), 1);
    });
}

#[test]
fn a_panicking_destructor_of_a_result_is_the_callers_panic() {
    watched(|| {
        let pool = ThreadPool::new(1);
        expect_bomb(|| pool.run(|| Bomb));
        assert!(spawn(move || drop(pool.run(|| Bomb))).join().unwrap_err().is_panic());
    });
}

#[test]
fn a_panic_in_a_job_of_a_detached_greenlet_is_told_once() {
    watched(|| {
        let told = Rc::new(RefCell::new(Vec::new()));
        let heard = Rc::clone(&told);
        hub().on_error(move |_, payload| heard.borrow_mut().push(*payload.downcast_ref::<u8>().unwrap()));
        drop(spawn(|| hub().threadpool().run(|| panic_any(7_u8))));
        assert!(hub().join(None));
        assert_eq!(*told.borrow(), [7]);
    });
}

#[test]
fn a_body_that_catches_its_kill_gets_the_result_of_its_next_job_never() {
    watched(|| {
        let (pool, gate) = held_pool();
        let began = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&began);
        let stubborn = spawn(move || {
            for _ in 0..3 {
                let count = &count;
                let _ = catch_unwind(AssertUnwindSafe(|| pool.run(|| count.fetch_add(1, SeqCst))));
            }
        });
        yield_now();
        stubborn.kill();
        assert!(stubborn.join().is_ok(), "it caught them all");
        gate.open();
        assert_eq!(began.load(SeqCst), 0);
    });
}

// A full queue

#[test]
fn a_queue_for_one_serves_a_hundred_greenlets_in_order() {
    watched(|| {
        for round in 0..ROUNDS {
            let handle = Pool::builder().max_threads(1).queue_limit(1).build();
            let gate = Gate::default();
            let held = gate.clone();
            handle.submit(move || held.wait()).unwrap();
            until(&handle, |stats| stats.running == 1);
            let served = Arc::new(Mutex::new(Vec::new()));
            let greenlets: Vec<_> = (0..100)
                .map(|number| {
                    let (pool, served) = (ThreadPool::from(handle.clone()), Arc::clone(&served));
                    spawn(move || pool.run(|| served.lock().unwrap().push(number)))
                })
                .collect();
            yield_now();
            gate.open();
            join_all(greenlets).into_iter().for_each(|ended| ended.unwrap());
            assert_eq!(*served.lock().unwrap(), (0..100).collect::<Vec<_>>(), "round {round}");
        }
    });
}

#[test]
fn those_that_call_in_a_loop_do_not_overtake_one_that_waits_for_room() {
    /// Five greedy ones, at most: one that runs, one in the queue, those before it in the line.
    const GREEDY: u64 = 5;
    watched(|| {
        let handle = Pool::builder().max_threads(1).queue_limit(1).build();
        let (is_over, served) = (Rc::new(Cell::new(false)), Arc::new(AtomicUsize::new(0)));
        let greedy: Vec<_> = (0..GREEDY)
            .map(|number| {
                let (pool, is_over) = (ThreadPool::from(handle.clone()), Rc::clone(&is_over));
                let served = Arc::clone(&served);
                spawn(move || {
                    let mut dice = Dice(number);
                    while !is_over.get() {
                        let served = &served;
                        pool.run(|| {
                            served.fetch_add(1, SeqCst);
                            spin(Duration::from_micros(dice.roll(20)));
                        });
                    }
                })
            })
            .collect();
        until(&handle, |stats| stats.completed > 10);
        let mut most = 0;
        for _ in 0..300 {
            let pool = ThreadPool::from(handle.clone());
            let served = Arc::clone(&served);
            let modest = spawn(move || {
                let before = served.load(SeqCst);
                pool.run(|| served.load(SeqCst)) - before
            });
            most = most.max(modest.join().unwrap());
        }
        is_over.set(true);
        join_all(greedy);
        assert!(most <= 2 * GREEDY as usize, "overtaken {most} times");
    });
}

#[test]
fn a_place_in_the_line_for_room_goes_to_the_next_when_its_owner_is_killed() {
    watched(|| {
        for _ in 0..ROUNDS {
            let handle = Pool::builder().max_threads(1).queue_limit(1).build();
            let gate = Gate::default();
            let held = gate.clone();
            handle.submit(move || held.wait()).unwrap();
            until(&handle, |stats| stats.running == 1);
            let served = Arc::new(AtomicUsize::new(0));
            let mut waiting: Vec<_> = (0..20)
                .map(|_| {
                    let (pool, served) = (ThreadPool::from(handle.clone()), Arc::clone(&served));
                    spawn(move || pool.run(|| served.fetch_add(1, SeqCst)))
                })
                .collect();
            yield_now();
            gate.open();
            // The worker announces room to one after the other while they die.
            for victim in [1, 2, 5, 7, 8, 9, 12] {
                waiting[victim].request_kill();
                spin(Duration::from_micros(20));
            }
            let ended = join_all(waiting.drain(..));
            let killed = ended.iter().filter(|ended| ended.as_ref().is_err_and(JoinError::is_killed)).count();
            assert!(killed >= 7 && served.load(SeqCst) >= 13, "{killed} killed, {served:?} served");
        }
    });
}

#[test]
fn one_in_line_whose_hub_ends_or_does_not_run_keeps_nobody_out() {
    watched(|| {
        for leaks in [true, false] {
            let handle = Pool::builder().max_threads(1).queue_limit(1).build();
            let gate = Gate::default();
            let held = gate.clone();
            handle.submit(move || held.wait()).unwrap();
            until(&handle, |stats| stats.running == 1);
            handle.submit(|| ()).unwrap();
            let pool = ThreadPool::from(handle.clone());
            if leaks {
                let pool = pool.clone();
                thread::spawn(move || {
                    spawn(move || pool.run(|| ()));
                    yield_now();
                })
                .join()
                .unwrap();
            } else {
                let pool = pool.clone();
                spawn(move || pool.run(|| ()));
                yield_now();
            }
            assert_eq!(handle.stats().queued, 2);
            gate.open();
            // This hub doesn't run meanwhile.
            thread::spawn(move || pool.run(|| ())).join().unwrap();
            handle.join(None);
            assert_eq!(handle.stats().completed, 4);
        }
    });
}
