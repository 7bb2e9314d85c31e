//! Each in a process of its own, which most of them crash.

use super::*;
use crate::stack::{AltStack, StackPool, child};
use corosensei::{Coroutine, CoroutineResult};
use std::hint::black_box;

/// Runs a test in a child: `$body` there, and here `$check` on how it ended.
macro_rules! in_child {
    ($test:ident, $body:block, $check:expr) => {
        #[test]
        fn $test() {
            match child::run(module_path!(), stringify!($test)) {
                None => $body,
                Some(output) => ($check)(output),
            }
        }
    };
}

/// Uses up any stack, in frames of a few hundred bytes.
fn dive(depth: usize) -> usize {
    let frame = black_box([depth; 32]);
    if depth == usize::MAX { 0 } else { dive(depth + 1) + frame[depth % 32] }
}

/// Runs `body` on a stack of 64 KiB, as the greenlet 17 called "login".
fn in_greenlet(body: impl FnOnce() + 'static) {
    install();
    let pool = StackPool::new(64 << 10);
    let stack = pool.take().unwrap();
    let note = Note { bounds: Cell::new(stack.bounds()), id: 17, name: Some("login".into()), site: Location::caller() };
    let mut coroutine = Coroutine::<(), (), (), _>::with_stack(stack, move |_, ()| body());
    // SAFETY: the note is this frame's, which takes it back below.
    unsafe { publish(&note) };
    assert!(matches!(coroutine.resume(()), CoroutineResult::Return(())));
    // SAFETY: null.
    unsafe { publish(ptr::null()) };
    pool.give(coroutine.into_stack());
}

/// Makes `handler` what the process did on SIGSEGV before us.
fn handle_before(handler: usize, flags: c_int) {
    let mut before = action(libc::SIGSEGV);
    before.sa_sigaction = handler;
    before.sa_flags = flags;
    // SAFETY: the callers pass a handler of the signature that the flags ask for, or SIG_DFL.
    assert_eq!(unsafe { libc::sigaction(libc::SIGSEGV, &before, ptr::null_mut()) }, 0);
}

fn segfault() {
    // SAFETY: none: it is the fault that the test is about, in a process of its own.
    unsafe { black_box(ptr::without_provenance_mut::<u8>(8)).write_volatile(1) };
}

fn say(text: &str) {
    // SAFETY: the text is valid for its length.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

fn is_our_line(stderr: &str) -> bool {
    stderr.contains("greenroom: greenlet 17 \"login\" (spawned at ")
        && stderr.contains(&format!("{}:", file!()))
        && stderr.contains(" overflowed its stack of 65536 bytes; spawn it with Builder::stack_size")
}

in_child! {
    an_overflow_is_named_and_aborts,
    { in_greenlet(|| _ = black_box(dive(0))) },
    |output| assert!(is_our_line(&child::killed_by(&output, libc::SIGABRT)))
}

in_child! {
    a_frame_larger_than_the_guard_page_cant_jump_over_it,
    {
        in_greenlet(|| {
            let frame = black_box([1u8; 100 << 10]);
            assert_eq!(frame[black_box(5)], 1);
        })
    },
    |output| assert!(is_our_line(&child::killed_by(&output, libc::SIGABRT)))
}

in_child! {
    a_thread_without_an_alternate_stack_is_given_one,
    {
        let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 1 << 16 };
        // SAFETY: takes the standard library's alternate stack from this thread, as a foreign thread has none.
        assert_eq!(unsafe { libc::sigaltstack(&none, ptr::null_mut()) }, 0);
        let _ours = AltStack::ensure().unwrap();
        in_greenlet(|| _ = black_box(dive(0)));
    },
    |output| assert!(is_our_line(&child::killed_by(&output, libc::SIGABRT)))
}

in_child! {
    the_guard_of_a_stack_whose_pages_were_given_back_still_faults,
    {
        install();
        let pool = StackPool::new(1 << 20);
        let stack = pool.take_sized(128 << 20).unwrap();
        pool.give(stack);
        assert_eq!(pool.stats().cold, 1);
        let again = pool.take_sized(128 << 20).unwrap();
        // SAFETY: none: this address has to fault.
        unsafe { (again.bounds().guard as *mut u8).write_volatile(1) };
    },
    |output| _ = child::killed_by(&output, if cfg!(target_os = "macos") { libc::SIGBUS } else { libc::SIGSEGV })
}

in_child! {
    the_threads_own_overflow_is_still_the_standard_librarys,
    {
        in_greenlet(|| ());
        black_box(dive(0));
    },
    |output| {
        let stderr = child::killed_by(&output, libc::SIGABRT);
        assert!(stderr.contains("has overflowed its stack") && !stderr.contains("greenroom:"), "{stderr}");
    }
}

in_child! {
    a_fault_elsewhere_kills_as_before,
    {
        handle_before(libc::SIG_DFL, 0);
        in_greenlet(segfault);
    },
    |output| assert!(!child::killed_by(&output, libc::SIGSEGV).contains("greenroom:"))
}

in_child! {
    a_fault_elsewhere_goes_to_the_handler_before,
    {
        extern "C" fn before(_: c_int, info: *mut siginfo_t, _: *mut c_void) {
            // SAFETY: the kernel's siginfo, passed on.
            if unsafe { (*info).si_addr() } as usize == 8 {
                say("the handler before");
            }
            // SAFETY: may be called in a handler.
            unsafe { libc::_exit(42) };
        }
        handle_before(before as *const () as usize, libc::SA_SIGINFO | libc::SA_ONSTACK);
        in_greenlet(segfault);
    },
    |output: std::process::Output| {
        assert_eq!(output.status.code(), Some(42), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("the handler before"));
    }
}

in_child! {
    a_handler_that_wants_one_call_gets_one,
    {
        extern "C" fn before(_: c_int) {
            say("once");
        }
        handle_before(before as *const () as usize, libc::SA_RESETHAND | libc::SA_ONSTACK);
        in_greenlet(segfault);
    },
    |output| assert_eq!(child::killed_by(&output, libc::SIGSEGV).matches("once").count(), 1)
}

in_child! {
    a_signal_that_was_sent_kills_at_the_first_time,
    {
        handle_before(libc::SIG_DFL, 0);
        // SAFETY: sends a signal, to this thread.
        in_greenlet(|| _ = unsafe { libc::raise(libc::SIGSEGV) });
    },
    |output| _ = child::killed_by(&output, libc::SIGSEGV)
}

in_child! {
    a_signal_that_was_ignored_still_is,
    {
        handle_before(libc::SIG_IGN, 0);
        // SAFETY: sends a signal, to this thread.
        in_greenlet(|| _ = unsafe { libc::raise(libc::SIGSEGV) });
    },
    |output| child::succeeded(&output)
}
