//! What needs a process of its own: ends that take the process along, deadlocks (which are proved by counting threads, and
//! a test harness has some), variables of the environment, and what is written to standard output and error.
//!
//! Each case is two functions. The first runs in a process started for it, on its main thread, with no other thread beside
//! it; the second looks at how that process ended. A process that hangs is killed after half a minute.

#![allow(clippy::print_stdout)]

use std::cell::OnceCell;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, panic_any};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};
use std::{env, ffi::OsStr, fs, mem, ptr};

use greenroom::queue::{Channel, PriorityQueue, Queue};
use greenroom::{
    AsyncResult, Builder, Greenlet, Hub, Promise, ThreadPool, hub, join_all, on_big_stack, promise, sleep, spawn,
    timeout, yield_now,
};
use greenroom_pool::Pool;
use libtest_mimic::{Arguments, Completion, Failed, Trial};

#[path = "processes/several.rs"]
mod several;

/// Names the case that the process was started for.
const CASE: &str = "GREENROOM_TEST_CASE";

/// Longer than the hub takes to look for a deadlock several times.
const A_WHILE: Duration = Duration::from_millis(300);

/// The end that this has comes from elsewhere.
const FOR_EVER: Duration = Duration::MAX;

struct Case {
    name: &'static str,
    variables: Vec<(&'static str, &'static OsStr)>,
    run: fn(),
    check: fn(&Ended),
    /// It waits for a report that only comes where the kernel counts threads.
    is_deadlock: bool,
}

/// Whether the hub can prove a deadlock here.
const COUNTS_THREADS: bool = cfg!(all(target_os = "linux", not(greenroom_fallback)));

/// How a process ended.
struct Ended {
    status: ExitStatus,
    stdout: String,
    stderr: String,
}

fn case(name: &'static str, run: fn(), check: fn(&Ended)) -> Case {
    Case { name, variables: Vec::new(), run, check, is_deadlock: false }
}

/// A case whose run ends with the report of a deadlock.
fn deadlock(name: &'static str, run: fn(), check: fn(&Ended)) -> Case {
    Case { is_deadlock: true, ..case(name, run, check) }
}

impl Case {
    fn with(mut self, name: &'static str, value: &'static str) -> Case {
        self.variables.push((name, OsStr::new(value)));
        self
    }
}

fn main() -> ExitCode {
    let of_several = several::deadlocks().into_iter().chain(several::no_deadlocks()).collect();
    let cases =
        [overflows(), deadlocks(), no_deadlocks(), of_several, variables(), refused_threads(), silence(), bombs()];
    let mut cases = cases.into_iter().flatten();
    if let Some(name) = env::var_os(CASE) {
        let case = cases.find(|case| name == case.name).expect("a case of that name");
        leave_no_core();
        (case.run)();
        return ExitCode::SUCCESS;
    }
    // What a check has to say is said in the list of failures.
    std::panic::set_hook(Box::new(|_| ()));
    let trials = cases.map(|case| {
        Trial::ignorable_test(case.name, move || {
            if case.is_deadlock && !COUNTS_THREADS {
                return Ok(Completion::ignored_with("nobody counts the threads here, so no deadlock is proved"));
            }
            test(&case).map(|()| Completion::Completed)
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn test(case: &Case) -> Result<(), Failed> {
    let mut command = Command::new(env::current_exe()?);
    for name in ["GREENROOM_THREADS", "GREENROOM_STACK_KIB", "RUST_BACKTRACE", "RUST_MIN_STACK"] {
        command.env_remove(name);
    }
    command.env(CASE, case.name).envs(case.variables.iter().copied());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;

    let start = Instant::now();
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if start.elapsed() > Duration::from_secs(30) => {
                child.kill()?;
                child.wait()?;
                break None;
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    // Neither is as much as a pipe holds, so it can be read after the end.
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().expect("piped").read_to_string(&mut stdout)?;
    child.stderr.take().expect("piped").read_to_string(&mut stderr)?;
    let told = format!("\nstdout: {stdout}\nstderr: {stderr}");
    let Some(status) = status else {
        return Err(format!("still running after half a minute{told}").into());
    };
    let checked = catch_unwind(AssertUnwindSafe(|| (case.check)(&Ended { status, stdout, stderr })));
    checked.map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a check failed");
        format!("{status}: {text}{told}").into()
    })
}

// Checks

fn succeeds(ended: &Ended) {
    assert!(ended.status.success(), "it failed");
}

fn killed_by(ended: &Ended, signal: i32) {
    assert_eq!(ended.status.signal(), Some(signal), "it ended otherwise");
}

/// The process panicked on main with a text that contains all of these.
fn panics_with(ended: &Ended, texts: &[&str]) {
    assert_eq!(ended.status.code(), Some(101), "it did not panic");
    for text in texts {
        assert!(ended.stderr.contains(text), "no {text:?}");
    }
}

// What processes do

fn leave_no_core() {
    let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `none` is valid and only read.
    unsafe { libc::setrlimit(libc::RLIMIT_CORE, &none) };
}

/// Uses up any stack.
fn dive(depth: usize) -> usize {
    let frame = black_box([depth; 32]);
    if depth == usize::MAX { 0 } else { dive(depth + 1) + frame[depth % 32] }
}

fn segfault() {
    // SAFETY: none. It is the fault that the case is about.
    unsafe { black_box(ptr::without_provenance_mut::<u8>(8)).write_volatile(1) };
}

/// Runs `f`, which can never end, and returns what the hub said about it.
fn report_of<T>(f: impl FnOnce() -> T) -> String {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(_) => panic!("it ended"),
        Err(panic) => *panic.downcast::<String>().expect("a report is a text"),
    }
}

#[track_caller]
fn has(report: &str, text: &str) {
    assert!(report.contains(text), "no {text:?} in {report:?}");
}

/// A result that will never be set: its promise is kept. Makes the hub: a thread without one would just block.
fn never() -> (Promise<()>, AsyncResult<()>) {
    hub();
    promise()
}

// Overflows and faults

/// One line of ours, ending in the advice, and an abort. What it says of the greenlet, the process has said before.
fn tells_overflow(ended: &Ended) {
    killed_by(ended, libc::SIGABRT);
    let (greenlet, size) = ended.stdout.split_once(" … ").expect("the process has said both");
    let advice = "bytes; spawn it with Builder::stack_size, or run the deep call in on_big_stack\n";
    let line = &ended.stderr;
    assert_eq!(line.lines().count(), 1, "that isn't one line");
    assert!(line.starts_with(&format!("greenroom: {greenlet}")), "another greenlet");
    assert!(line.ends_with(&format!(" overflowed its stack of {size} {advice}")), "another size, or no advice");
}

/// What the line will say, for a greenlet that is spawned in the line after the call's.
#[track_caller]
fn foretell(greenlet: &str, size: usize) {
    let line = Location::caller().line() + 1;
    print!("{greenlet} (spawned at {}:{line}: … {size}", file!());
    io::stdout().flush().unwrap();
}

/// The same for main.
fn foretell_main(size: usize) {
    print!("the main greenlet … {size}");
    io::stdout().flush().unwrap();
}

fn overflows() -> Vec<Case> {
    vec![
        case(
            "an overflow names the greenlet and where it was spawned",
            || {
                foretell("greenlet 1", 256 << 10);
                let _ = spawn(|| dive(0)).join();
            },
            tells_overflow,
        ),
        case(
            "an overflow names the greenlet's own name and stack size",
            || {
                foretell("greenlet 1 \"deep\"", 64 << 10);
                let greenlet = Builder::new().name("deep").stack_size(64 << 10).spawn(|| dive(0));
                let _ = greenlet.unwrap().join();
            },
            tells_overflow,
        ),
        case(
            "the overflow is that of the greenlet that runs, not of one that waits",
            || {
                let waiting = Builder::new().name("waiting").spawn(|| sleep(FOR_EVER));
                foretell("greenlet 2 \"deep\"", 256 << 10);
                let deep = Builder::new().name("deep").spawn(|| {
                    yield_now();
                    on_big_stack(1 << 20, || ());
                    dive(0)
                });
                let _ = (deep.unwrap().join(), waiting);
            },
            tells_overflow,
        ),
        case(
            "an overflow of a big stack tells the size of that",
            || {
                foretell("greenlet 1", 1 << 20);
                let _ = spawn(|| on_big_stack(1 << 20, || dive(0))).join();
            },
            tells_overflow,
        ),
        case(
            "an overflow of a big stack on main tells that",
            || {
                foretell_main(128 << 10);
                hub();
                on_big_stack(128 << 10, || dive(0));
            },
            tells_overflow,
        ),
        case(
            "an overflow of a big stack without a hub tells that",
            || {
                foretell_main(128 << 10);
                on_big_stack(128 << 10, || dive(0));
            },
            tells_overflow,
        ),
        case(
            "an overflow on a second thread names its greenlet",
            || {
                thread::spawn(|| {
                    hub();
                    foretell("greenlet 1", 256 << 10);
                    let _ = spawn(|| dive(0)).join();
                })
                .join()
                .unwrap();
            },
            tells_overflow,
        ),
        case(
            "an overflow of main's own stack is left to the standard library",
            || {
                spawn(|| ()).join().unwrap();
                dive(0);
            },
            |ended| {
                killed_by(ended, libc::SIGABRT);
                assert!(ended.stderr.contains("has overflowed its stack") && !ended.stderr.contains("greenroom:"));
            },
        ),
        case(
            "a worker's overflow is left to the standard library",
            || {
                ThreadPool::new(1).run(|| dive(0));
            },
            |ended| {
                killed_by(ended, libc::SIGABRT);
                assert!(ended.stderr.contains("has overflowed its stack") && !ended.stderr.contains("greenroom: "));
            },
        ),
        case(
            "a fault that is no overflow kills by its own signal",
            || spawn(segfault).join().unwrap(),
            |ended| {
                killed_by(ended, libc::SIGSEGV);
                assert_eq!(ended.stderr, "", "it wrote");
            },
        ),
        case(
            "a fault that is no overflow goes to the handler before",
            || {
                install_handler();
                let greenlet = spawn(|| {
                    segfault();
                    unreachable!();
                });
                greenlet.join().unwrap();
            },
            |ended| {
                assert_eq!(ended.status.code(), Some(42));
                assert_eq!(ended.stderr, "the handler before\n", "it wrote something else");
            },
        ),
        case(
            "an overflow doesn't go to the handler before",
            || {
                install_handler();
                foretell("greenlet 1", 256 << 10);
                let _ = spawn(|| dive(0)).join();
            },
            tells_overflow,
        ),
    ]
}

/// A handler that tells that it was called for the fault of `segfault`, and exits with 42.
fn install_handler() {
    extern "C" fn handler(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        let text = "the handler before\n";
        // SAFETY: the kernel's siginfo is valid; write and _exit may be called in a handler.
        unsafe {
            if (*info).si_addr() as usize == 8 {
                libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
            }
            libc::_exit(42);
        }
    }
    // SAFETY: all zero is a valid action, of which the fields that count are set; the handler has SA_SIGINFO's signature.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(_, _, _) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, ptr::null_mut()), 0);
    }
}

// Deadlocks

const NOBODY: &str = ", and no greenlet, thread or timer is left that could wake it";

fn deadlocks() -> Vec<Case> {
    vec![
        deadlock(
            "main alone waits for a promise that is kept",
            || {
                let (_promise, result) = never();
                let _ = result.get();
            },
            |ended| panics_with(ended, &["this would block forever: main waits for async result", NOBODY]),
        ),
        deadlock(
            "main joins a greenlet that waits for ever",
            || {
                let (_promise, result) = never();
                let line = line!() + 1;
                let stuck = Builder::new().name("stuck").spawn(move || result.get()).unwrap();
                let id = stuck.id();
                let report = report_of(|| stuck.join());
                has(&report, &format!("this would block forever: main waits for join of greenlet {id}"));
                has(&report, &format!("greenlet {id} \"stuck\" (spawned at {}:{line}:", file!()));
                has(&report, ") waits for async result");
            },
            succeeds,
        ),
        deadlock(
            "nobody is left to put, to get, to do the last task",
            || {
                // Without one, it would be a thread that waits.
                hub();
                let (empty, full, channel) = (Queue::<u32>::unbounded(), Queue::bounded(1), Channel::<u32>::new());
                full.put(7).unwrap();
                has(&report_of(|| empty.get()), &format!("main waits for get from a queue{NOBODY}"));
                has(&report_of(|| empty.peek()), &format!("main waits for get from a queue{NOBODY}"));
                has(&report_of(|| empty.iter().next()), &format!("main waits for get from a queue{NOBODY}"));
                has(&report_of(|| full.put(8)), &format!("main waits for put to a queue{NOBODY}"));
                has(&report_of(|| channel.put(8)), &format!("main waits for put to a queue{NOBODY}"));
                has(&report_of(|| full.join(None)), &format!("main waits for join of a queue{NOBODY}"));
                // Who gave up has left the lines.
                assert_eq!((full.get(), full.try_get().ok(), empty.try_put(1)), (Ok(7), None, Ok(())));
                assert_eq!((empty.get(), channel.try_get().ok()), (Ok(1), None));
            },
            succeeds,
        ),
        deadlock(
            "greenlets on both sides of queues wait for each other",
            || {
                let (first, second) = (Queue::<u32>::bounded(1), PriorityQueue::<u32>::bounded(1));
                second.put(7).unwrap();
                let (from, to) = (first.clone(), second.clone());
                let getter = spawn(move || to.put(from.get().unwrap()));
                let (from, to) = (first.clone(), second.clone());
                let putter = spawn(move || to.put(8).map(|()| from.put(9)));
                let report = report_of(|| getter.wait());
                let line = |id| report.lines().find(|line| line.contains(&format!("greenlet {id} ("))).unwrap();
                has(line(getter.id()), "waits for get from a queue");
                has(line(putter.id()), "waits for put to a queue");
            },
            succeeds,
        ),
        deadlock(
            "the report names all who wait, each with its reason",
            || {
                let (_promise, result) = never();
                let stuck: Vec<_> = vec![
                    spawn(move || drop(result.get())),
                    spawn(|| sleep(FOR_EVER)),
                    spawn(|| {
                        let (_promise, result) = never();
                        let inner = spawn(move || drop(result.get()));
                        inner.wait();
                    }),
                ];
                let report = report_of(|| hub().join(None));
                assert_eq!(report.lines().count(), 5, "{report}");
                has(&report, "main waits for join of the hub");
                has(&report, &format!("greenlet {} (spawned at", stuck[0].id()));
                has(&report, &format!("waits for sleep {FOR_EVER:?}"));
                has(&report, &format!("greenlet {} (spawned at", stuck[2].id()));
                assert_eq!(report.matches("waits for join of greenlet").count(), 1, "{report}");
                assert_eq!(report.matches("waits for async result").count(), 2, "{report}");
                assert_eq!(report.matches(file!()).count(), 4, "{report}");
            },
            succeeds,
        ),
        deadlock(
            "a ring of joins",
            || {
                let ring: Rc<Vec<OnceCell<Greenlet<()>>>> = Rc::new((0..3).map(|_| OnceCell::new()).collect());
                for place in 0..3 {
                    let others = Rc::clone(&ring);
                    let greenlet = spawn(move || others[(place + 1) % 3].get().unwrap().wait());
                    ring[place].set(greenlet).unwrap();
                }
                let ids: Vec<_> = ring.iter().map(|greenlet| greenlet.get().unwrap().id()).collect();
                let report = report_of(|| ring[0].get().unwrap().wait());
                for (id, next) in [(ids[0], ids[1]), (ids[1], ids[2]), (ids[2], ids[0])] {
                    let line = report.lines().find(|line| line.contains(&format!("greenlet {id} (")));
                    has(line.unwrap(), &format!("waits for join of greenlet {next}"));
                }
            },
            succeeds,
        ),
        deadlock(
            "a greenlet that joins itself",
            || {
                let own = Rc::new(OnceCell::<Greenlet<()>>::new());
                let me = Rc::clone(&own);
                own.set(spawn(move || me.get().unwrap().wait())).unwrap();
                let id = own.get().unwrap().id();
                let report = report_of(|| own.get().unwrap().wait());
                assert_eq!(report.matches(&format!("join of greenlet {id}")).count(), 2, "{report}");
            },
            succeeds,
        ),
        deadlock(
            "main goes on after the report, and the next one comes too",
            || {
                for _ in 0..3 {
                    let (_promise, result) = never();
                    let stuck = spawn(move || drop(result.get()));
                    has(&report_of(|| stuck.wait()), "this would block forever");
                    stuck.kill();
                    let (promise, result) = promise();
                    spawn(move || promise.set(7));
                    assert_eq!(result.get().unwrap(), 7);
                    sleep(Duration::from_millis(1));
                    assert_eq!(spawn(|| 7).join().unwrap(), 7);
                }
            },
            succeeds,
        ),
        deadlock(
            "the report comes although workers idle",
            || {
                let pool = ThreadPool::new(3);
                for _ in 0..3 {
                    let all = (0..10).map(|_| {
                        let pool = pool.clone();
                        spawn(move || pool.run(|| thread::sleep(Duration::from_millis(2))))
                    });
                    join_all(all.collect::<Vec<_>>());
                    hub().threadpool().run(|| ());
                    let (_promise, result) = never();
                    has(&report_of(|| result.get()), NOBODY);
                }
                assert_eq!(pool.stats().threads, 3);
            },
            succeeds,
        ),
        deadlock(
            "the report comes after workers have left",
            || {
                let pool = ThreadPool::from(Pool::builder().keep_alive(Duration::from_millis(1)).build());
                pool.run(|| ());
                while pool.stats().threads > 0 {
                    sleep(Duration::from_millis(1));
                }
                let (_promise, result) = never();
                has(&report_of(|| result.get()), NOBODY);
            },
            succeeds,
        ),
        deadlock(
            "the report comes after the last job, which didn't help",
            || {
                let (promise, result) = never();
                spawn(move || {
                    hub().threadpool().run(|| thread::sleep(A_WHILE));
                    mem::forget(promise);
                });
                has(&report_of(|| result.get()), NOBODY);
            },
            succeeds,
        ),
        deadlock(
            "the report comes after a thread has ended that could have helped",
            || {
                let (promise, result) = never();
                thread::spawn(move || {
                    thread::sleep(A_WHILE);
                    mem::forget(promise);
                });
                has(&report_of(|| result.get()), NOBODY);
            },
            succeeds,
        ),
        deadlock(
            "the report comes after the last timer, which didn't help",
            || {
                let (_promise, result) = never();
                spawn(|| sleep(A_WHILE));
                has(&report_of(|| result.get()), NOBODY);
            },
            succeeds,
        ),
        deadlock(
            "main sleeps for ever by itself",
            || {
                hub();
                has(&report_of(|| sleep(FOR_EVER)), &format!("main waits for sleep {FOR_EVER:?}{NOBODY}"));
            },
            succeeds,
        ),
        deadlock(
            "main waits for ever inside of an endless timeout",
            || {
                let (_promise, result) = never();
                has(&report_of(|| timeout(FOR_EVER, || result.get())), NOBODY);
            },
            succeeds,
        ),
        deadlock(
            "destructors run while the report unwinds, and may wait",
            || {
                struct Waits;
                impl Drop for Waits {
                    fn drop(&mut self) {
                        sleep(Duration::from_millis(1));
                        assert_eq!(hub().threadpool().run(|| 7), 7);
                        println!("dropped");
                    }
                }
                let (_promise, result) = never();
                let _waits = Waits;
                let _ = result.get();
            },
            |ended| {
                panics_with(ended, &[NOBODY]);
                assert_eq!(ended.stdout, "dropped\n");
            },
        ),
        deadlock(
            "the report comes when no thread can be had",
            || {
                assert_eq!(ThreadPool::new(1).run(here), here());
                hub();
                has(&report_of(|| sleep(FOR_EVER)), NOBODY);
            },
            succeeds,
        )
        .with("RUST_MIN_STACK", HUGE),
    ]
}

fn no_deadlocks() -> Vec<Case> {
    vec![
        case("no report while main's own job runs", || hub().threadpool().run(|| thread::sleep(A_WHILE)), succeeds),
        case(
            "no report while a job runs that wakes main",
            || {
                let (promise, result) = promise();
                spawn(move || {
                    hub().threadpool().run(move || {
                        thread::sleep(A_WHILE);
                        promise.set(7);
                    })
                });
                assert_eq!(result.get().unwrap(), 7);
            },
            succeeds,
        ),
        case(
            "no report while a job queues behind another",
            || {
                let pool = ThreadPool::new(1);
                let jobs = (0..3).map(|_| {
                    let pool = pool.clone();
                    spawn(move || pool.run(|| thread::sleep(A_WHILE / 3)))
                });
                join_all(jobs.collect::<Vec<_>>()).into_iter().for_each(|ended| ended.unwrap());
            },
            succeeds,
        ),
        case(
            "no report while a timer is armed",
            || {
                let (promise, result) = promise();
                spawn(move || {
                    sleep(A_WHILE);
                    promise.set(7);
                });
                assert_eq!(result.get().unwrap(), 7);
            },
            succeeds,
        ),
        case(
            "no report inside of a timeout, which ends the wait",
            || {
                let (_promise, result) = never();
                assert!(timeout(A_WHILE, || result.get()).is_err());
            },
            succeeds,
        ),
        case(
            "no report while a thread lives that wakes main",
            || {
                let (promise, result) = promise();
                thread::spawn(move || {
                    thread::sleep(A_WHILE);
                    promise.set(7);
                });
                assert_eq!(result.get().unwrap(), 7);
            },
            succeeds,
        ),
        case(
            "no report while a thread lives that puts, or gets",
            || {
                let (there, back) = (Queue::bounded(1), Queue::bounded(1));
                let (from, to) = (there.clone(), back.clone());
                thread::spawn(move || {
                    thread::sleep(A_WHILE);
                    to.put(from.get().unwrap()).unwrap();
                });
                there.put(6).unwrap();
                there.put(7).unwrap();
                assert_eq!(back.get(), Ok(6));
            },
            succeeds,
        ),
        case(
            "no report while a thread lives that sends work",
            || {
                let (handle, (promise, result)) = (hub().handle(), promise());
                thread::spawn(move || {
                    thread::sleep(A_WHILE);
                    handle.spawn(move || promise.set(7));
                });
                assert_eq!(result.get().unwrap(), 7);
            },
            succeeds,
        ),
        case(
            "no report while another thread's hub sleeps",
            || {
                let (promise, result) = promise();
                thread::spawn(move || {
                    spawn(|| sleep(A_WHILE)).join().unwrap();
                    promise.set(7);
                });
                assert_eq!(result.get().unwrap(), 7);
            },
            succeeds,
        ),
        case(
            "no report although wakes come from threads that end at once",
            || {
                for _ in 0..300 {
                    let (promise, result) = promise();
                    thread::spawn(move || {
                        thread::sleep(Duration::from_millis(1));
                        promise.set(7)
                    });
                    assert_eq!(result.get().unwrap(), 7);
                }
            },
            succeeds,
        ),
        case(
            "no report although workers come and go",
            || {
                let pool = ThreadPool::from(Pool::builder().keep_alive(Duration::ZERO).build());
                let start = Instant::now();
                while start.elapsed() < Duration::from_secs(3) {
                    // About as long as the hub waits before it looks.
                    let (promise, result) = promise();
                    let pool = pool.clone();
                    spawn(move || {
                        pool.run(|| {
                            thread::sleep(Duration::from_micros(9_900));
                            promise.set(7);
                        })
                    });
                    assert_eq!(result.get().unwrap(), 7);
                }
            },
            succeeds,
        ),
    ]
}

// Variables

fn make_hub() {
    hub();
}

fn variables() -> Vec<Case> {
    macro_rules! refused {
        ($name:literal, $value:literal) => {
            case(concat!($name, " can't be ", stringify!($value)), make_hub, |ended| {
                panics_with(ended, &[$name, stringify!($value), "must be a whole number from"])
            })
            .with($name, $value)
        };
    }
    let mut cases = vec![
        refused!("GREENROOM_THREADS", "0"),
        refused!("GREENROOM_THREADS", "-1"),
        refused!("GREENROOM_THREADS", "ten"),
        refused!("GREENROOM_THREADS", ""),
        refused!("GREENROOM_THREADS", "1.5"),
        refused!("GREENROOM_THREADS", "99999999999999999999"),
        refused!("GREENROOM_THREADS", "65536"),
        refused!("GREENROOM_STACK_KIB", "0"),
        refused!("GREENROOM_STACK_KIB", "3"),
        refused!("GREENROOM_STACK_KIB", "64k"),
        refused!("GREENROOM_STACK_KIB", "16777217"),
        case(
            "GREENROOM_THREADS is obeyed, and the builder wins over it",
            || {
                assert_eq!(hub().threadpool().max_threads(), 3);
                let built = thread::spawn(|| {
                    let hub = Hub::builder().threads(2).install().unwrap();
                    hub.threadpool().max_threads()
                });
                assert_eq!(built.join().unwrap(), 2);
            },
            succeeds,
        )
        .with("GREENROOM_THREADS", "3"),
        case(
            "GREENROOM_THREADS takes as many as a pool can have",
            || assert!(hub().threadpool().max_threads() >= 10_000),
            succeeds,
        )
        .with("GREENROOM_THREADS", "10000"),
        case(
            "GREENROOM_STACK_KIB is obeyed",
            || {
                foretell("greenlet 1", 64 << 10);
                let _ = spawn(|| dive(0)).join();
            },
            tells_overflow,
        )
        .with("GREENROOM_STACK_KIB", "64"),
        case(
            "the builder's stack size wins over GREENROOM_STACK_KIB",
            || {
                Hub::builder().stack_size(128 << 10).install().unwrap();
                foretell("greenlet 1", 128 << 10);
                let _ = spawn(|| dive(0)).join();
            },
            tells_overflow,
        )
        .with("GREENROOM_STACK_KIB", "64"),
        case(
            "a variable that can't be read is an error under the builder too",
            || drop(Hub::builder().threads(2).install()),
            |ended| panics_with(ended, &["GREENROOM_THREADS", "\"many\""]),
        )
        .with("GREENROOM_THREADS", "many"),
        case("without a hub nobody reads the variables", || assert_eq!(ThreadPool::new(1).run(|| 7), 7), succeeds)
            .with("GREENROOM_THREADS", "many"),
    ];
    let mut not_utf8 = case("GREENROOM_THREADS can't be what isn't UTF-8", make_hub, |ended| {
        panics_with(ended, &["GREENROOM_THREADS", "\\xFF"]);
    });
    not_utf8.variables.push(("GREENROOM_THREADS", OsStr::from_bytes(b"\xFF")));
    cases.push(not_utf8);
    cases
}

// Threads that the system refuses

/// More than there is address space: the system refuses every thread with such a stack.
const HUGE: &str = "1152921504606846976";

fn here() -> ThreadId {
    thread::current().id()
}

/// Lets the process have no more address space than it has now, and a little for the heap.
fn limit_memory() -> libc::rlimit {
    // SAFETY: both only fill or read the limit that they are given.
    unsafe {
        let mut before: libc::rlimit = mem::zeroed();
        assert_eq!(libc::getrlimit(libc::RLIMIT_AS, &mut before), 0);
        let pages: u64 = fs::read_to_string("/proc/self/statm").unwrap().split(' ').next().unwrap().parse().unwrap();
        let bytes = pages * u64::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap() + (1 << 20);
        let limit = libc::rlimit { rlim_cur: bytes, ..before };
        assert_eq!(libc::setrlimit(libc::RLIMIT_AS, &limit), 0);
        before
    }
}

fn refused_threads() -> Vec<Case> {
    vec![
        case(
            "a job runs on the caller when no thread can be had",
            || {
                assert!(thread::Builder::new().spawn(|| ()).is_err(), "the system refuses threads");
                let pool = ThreadPool::new(2);
                assert_eq!(pool.run(here), here());
                let inner = pool.clone();
                assert_eq!(spawn(move || inner.run(here)).join().unwrap(), here());
                let sums = join_all((0..100).map(|n: u64| {
                    let pool = pool.clone();
                    spawn(move || pool.apply(|n: &u64| n + 1, (&n,)))
                }));
                assert_eq!(sums.into_iter().map(Result::unwrap).sum::<u64>(), 5050);
                assert_eq!(pool.run(|| pool.run(|| 7)), 7);
                let panic = catch_unwind(AssertUnwindSafe(|| pool.run(|| panic_any(7_u8)))).unwrap_err();
                assert!(panic.is::<u8>());
                assert_eq!((pool.stats().threads, pool.stats().queued), (0, 0));
            },
            succeeds,
        )
        .with("RUST_MIN_STACK", HUGE),
        case(
            "jobs that are spawned, mapped and read one by one run on the caller when no thread can be had",
            || {
                let pool = ThreadPool::builder().max_threads(2).queue_limit(1).build();
                assert_eq!(pool.spawn(here, ()).get().unwrap(), here());
                assert!(pool.spawn(|| panic_any(7_u8), ()).get().is_err());
                assert_eq!(pool.map(|n| (n, here()), 0..3), [0, 1, 2].map(|n| (n, here())));
                assert!(pool.imap(|n| n, 0..10, 3).map(Result::unwrap).eq(0..10));
                assert_eq!(pool.imap_unordered(|n| n, 0..10, 3).map(Result::unwrap).sum::<u64>(), 45);
                let (same, inner) = (pool.clone(), pool.clone());
                let nested = pool.spawn(move || inner.spawn(|| 7, ()).get().unwrap(), ());
                assert_eq!(nested.get().unwrap(), 7);
                let theirs = spawn(move || same.map(|n| same.map(|m| n * m, 0..3), 0..3).concat());
                assert_eq!(theirs.join().unwrap(), [0, 0, 0, 0, 1, 2, 0, 2, 4]);

                pool.set_max_threads(0);
                let (cancelled, queued) = (pool.spawn(|| unreachable!(), ()), pool.clone());
                assert!(cancelled.cancel() && cancelled.get().map(|()| 0).is_err());
                let queued = spawn(move || queued.spawn(here, ()));
                yield_now();
                pool.set_max_threads(1);
                assert_eq!(queued.join().unwrap().get().unwrap(), here());
                assert!(pool.join(None) && pool.shutdown(None));
            },
            succeeds,
        )
        .with("RUST_MIN_STACK", HUGE),
        case(
            "a job that waits blocks its caller's hub when no thread can be had, and nothing is lost by it",
            || {
                let pool = ThreadPool::new(1);
                let ticker = spawn(|| (0..5).for_each(|_| sleep(Duration::from_millis(1))));
                let waits = spawn(move || {
                    let start = Instant::now();
                    pool.run(|| {
                        yield_now();
                        sleep(Duration::from_millis(20));
                        assert!(timeout(Duration::from_millis(1), || sleep(FOR_EVER)).is_err());
                        assert_eq!(pool.run(|| 7), 7);
                    });
                    start.elapsed()
                });
                assert!(waits.join().unwrap() >= Duration::from_millis(20));
                ticker.join().unwrap();
            },
            succeeds,
        )
        .with("RUST_MIN_STACK", HUGE),
        case(
            "a job that spawns and joins runs on the caller when no thread can be had",
            || {
                let pool = ThreadPool::new(1);
                assert_eq!(pool.run(|| spawn(|| 7).join().unwrap()), 7);
                assert_eq!(spawn(move || pool.run(|| spawn(|| 7).join().unwrap())).join().unwrap(), 7);
            },
            succeeds,
        )
        .with("RUST_MIN_STACK", HUGE),
        case(
            "a job that runs on another caller isn't reached by that caller's timeout",
            || {
                let pool = ThreadPool::new(1);
                let (stands_in, theirs) = (pool.clone(), pool.clone());
                let ours = spawn(move || {
                    let job = || {
                        // Until the other one's job is queued behind, and the time is over.
                        while stands_in.stats().queued == 0 {
                            thread::yield_now();
                        }
                        thread::sleep(Duration::from_millis(10));
                    };
                    timeout(Duration::from_millis(5), || stands_in.run(job))
                });
                let thread = thread::Builder::new().stack_size(1 << 20).spawn(move || {
                    while theirs.stats().running == 0 {
                        thread::yield_now();
                    }
                    theirs.run(|| sleep(Duration::from_millis(5)));
                });
                let _ = ours.join().expect("nothing panicked");
                thread.unwrap().join().expect("nothing panicked in the other thread");
            },
            succeeds,
        )
        .with("RUST_MIN_STACK", HUGE),
        case(
            "with a worker alive jobs queue when no second thread can be had, and start one when it can",
            || {
                let pool = ThreadPool::new(2);
                let worker = pool.run(here);
                spawn(|| ()).join().unwrap();
                let before = limit_memory();
                assert!(thread::Builder::new().spawn(|| ()).is_err(), "the system refuses threads");
                let jobs = |time: Duration| {
                    let pool = pool.clone();
                    let run = move || {
                        let pool = pool.clone();
                        spawn(move || {
                            pool.run(|| {
                                thread::sleep(time);
                                here()
                            })
                        })
                    };
                    join_all((0..8).map(|_| run()).collect::<Vec<_>>())
                };
                for ran_on in jobs(Duration::from_millis(5)) {
                    assert_eq!(ran_on.unwrap(), worker);
                }
                assert_eq!((pool.stats().threads, pool.stats().queued), (1, 0));
                // SAFETY: `before` is valid and only read.
                assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &before) }, 0);
                assert!(jobs(Duration::from_millis(50)).into_iter().any(|ran_on| ran_on.unwrap() != worker));
                assert_eq!(pool.stats().threads, 2);
            },
            succeeds,
        ),
    ]
}

// Silence

fn is_silent(ended: &Ended) {
    succeeds(ended);
    assert_eq!((&*ended.stdout, &*ended.stderr), ("", ""), "it wrote");
}

/// What the standard library's hook writes about one panic of that text, and nothing else.
fn tells_one_panic(ended: &Ended, thread: &str, text: &str) {
    succeeds(ended);
    assert_eq!(ended.stdout, "");
    let lines: Vec<&str> = ended.stderr.lines().filter(|line| !line.is_empty()).collect();
    assert!(lines[0].starts_with(&format!("thread '{thread}'")) && lines[0].contains(" panicked at "), "{lines:?}");
    assert_eq!(lines[1], text);
    assert!(lines[2].starts_with("note: run with `RUST_BACKTRACE=1`"), "{lines:?}");
    assert_eq!(lines.len(), 3, "{lines:?}");
}

fn silence() -> Vec<Case> {
    vec![
        case(
            "a program that uses everything writes nothing",
            || {
                let pool = hub().threadpool();
                let all = (0..10).map(|n| {
                    let pool = pool.clone();
                    spawn(move || {
                        yield_now();
                        sleep(Duration::from_micros(n));
                        let _ = timeout(Duration::from_millis(1), || sleep(FOR_EVER));
                        on_big_stack(1 << 20, || pool.run(|| 7))
                    })
                });
                join_all(all.collect::<Vec<_>>()).into_iter().for_each(|ended| assert_eq!(ended.unwrap(), 7));
                spawn(|| sleep(FOR_EVER)).kill();
                let parked = spawn(|| sleep(FOR_EVER));
                yield_now();
                parked.kill();
                drop(spawn(|| sleep(FOR_EVER)));
                let (promise, result) = promise();
                promise.set(7);
                assert_eq!(result.get().unwrap(), 7);
                assert_eq!(thread::spawn(|| spawn(|| 7).join().unwrap()).join().unwrap(), 7);
                assert!(Hub::builder().install().is_err());
                hub().shutdown();
                assert!(Builder::new().spawn(|| ()).is_err());
            },
            is_silent,
        ),
        case(
            "a panic that its joiner sees is told by the hook alone",
            || assert!(spawn(|| panic!("seen")).join().unwrap_err().is_panic()),
            |ended| tells_one_panic(ended, "main", "seen"),
        ),
        case(
            "a panic that nobody sees is told by the hook alone",
            || {
                drop(spawn(|| panic!("unseen")));
                hub().join(None);
            },
            |ended| tells_one_panic(ended, "main", "unseen"),
        ),
        case(
            "a panic of a job is told once, where it happened",
            || {
                let pool = hub().threadpool();
                assert!(spawn(move || pool.run(|| panic!("in the job"))).join().unwrap_err().is_panic());
            },
            |ended| tells_one_panic(ended, "greenroom-pool-1", "in the job"),
        ),
        case(
            "a panic of a detached greenlet's job is told once",
            || {
                drop(spawn(|| hub().threadpool().run(|| panic!("in the job"))));
                hub().join(None);
            },
            |ended| tells_one_panic(ended, "greenroom-pool-1", "in the job"),
        ),
        case(
            "main may return while greenlets are parked and workers idle",
            || {
                let pool = hub().threadpool();
                drop(spawn(move || {
                    pool.run(|| ());
                    sleep(FOR_EVER);
                }));
                hub().join(Some(Duration::from_millis(20)));
            },
            is_silent,
        ),
        case(
            "main may return while jobs run and queue",
            || {
                let pool = ThreadPool::new(1);
                for _ in 0..3 {
                    let pool = pool.clone();
                    drop(spawn(move || pool.run(|| thread::sleep(Duration::from_secs(3600)))));
                }
                sleep(Duration::from_millis(20));
                assert_eq!((pool.stats().running, pool.stats().queued), (1, 2));
            },
            is_silent,
        ),
    ]
}

// Destructors that panic while a kill unwinds: of values that the killed code itself never had in its hands

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("bomb"));
    }
}

fn bombs() -> Vec<Case> {
    vec![
        case(
            "a result whose destructor panics is dropped with its killed caller, and nothing breaks",
            || {
                let is_running = Arc::new(AtomicBool::new(false));
                let running = Arc::clone(&is_running);
                let victim = spawn(move || {
                    drop(hub().threadpool().run(|| {
                        running.store(true, SeqCst);
                        thread::sleep(Duration::from_millis(20));
                        Bomb
                    }));
                });
                while !is_running.load(SeqCst) {
                    yield_now();
                }
                victim.kill();
                assert!(victim.join().is_err());
                assert_eq!(hub().threadpool().run(|| 7), 7);
            },
            is_silent,
        ),
        case(
            "an argument whose destructor panics is dropped with its killed caller, and nothing breaks",
            || {
                let pool = ThreadPool::new(0);
                let victim = spawn(move || pool.apply(|_: Bomb| (), (Bomb,)));
                yield_now();
                victim.kill();
                assert!(victim.join().is_err());
                assert_eq!(hub().threadpool().run(|| 7), 7);
            },
            is_silent,
        ),
        case(
            "a job whose destructor panics is dropped with its caller, killed in line at a full queue, and nothing breaks",
            || {
                let pool = ThreadPool::from(Pool::builder().max_threads(0).queue_limit(1).build());
                let first = pool.clone();
                spawn(move || first.run(|| ()));
                let bomb = Bomb;
                let victim = spawn(move || pool.run(move || drop(bomb)));
                yield_now();
                victim.kill();
                assert!(victim.join().is_err());
            },
            is_silent,
        ),
        case(
            "an on_error handler that replaces itself and whose capture panics when it is dropped",
            || {
                for _ in 0..3 {
                    let bomb = Bomb;
                    hub().on_error(move |_, _| {
                        let _ = &bomb;
                        hub().on_error(|_, _| ());
                    });
                    drop(spawn(|| std::panic::resume_unwind(Box::new("part of the test"))));
                    hub().join(None);
                    sleep(Duration::from_millis(1));
                    assert_eq!(hub().stats().greenlets, 0);
                    assert_eq!(spawn(|| 7).join().unwrap(), 7);
                }
            },
            is_silent,
        ),
        case(
            "an item whose destructor panics is dropped with its killed getter, and nothing breaks",
            || {
                let queue = Queue::<Bomb>::unbounded();
                let other = queue.clone();
                let victim = spawn(move || drop(other.get()));
                yield_now();
                // It is on its way when the queue is closed.
                assert!(queue.put(Bomb).is_ok());
                queue.close_now();
                victim.kill();
                assert!(victim.join().is_err());
                assert!(queue.is_empty() && queue.join(None) && queue.get().is_err());
            },
            is_silent,
        ),
        case(
            "an item whose destructor panics is dropped with its killed putter, and nothing breaks",
            || {
                let channel = Channel::<Bomb>::new();
                let other = channel.clone();
                let victim = spawn(move || drop(other.put(Bomb)));
                yield_now();
                victim.kill();
                assert!(victim.join().is_err());
                assert!(channel.try_get().is_err());
                channel.close();
                assert!(channel.get().is_err());
            },
            is_silent,
        ),
    ]
}
