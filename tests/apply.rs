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

    fn counts(&self) -> (usize, usize) {
        (self.blank.load(SeqCst), self.written.load(SeqCst))
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
fn call(
    pool: &ThreadPool,
    book: &Arc<Book>,
    first: impl FnOnce() + Send,
    how: impl for<'p, 'b> FnOnce(&ThreadPool, Job<'p, 'b>) -> Ticket,
) {
    let mut paper = Paper::new(book);
    let ticket = Ticket::new(book);
    let result = how(pool, Job { paper: &mut paper, ticket, first: Box::new(first) });
    assert_eq!(result.state.get(), ALIVE);
    paper.check_alive();
}
