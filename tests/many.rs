//! A hundred thousand greenlets: parked at once, each with a guard page and a value on its stack; and one after the other,
//! on a handful of stacks.
//!
//! What they cost: `cargo test --release --test many -- --nocapture`.

#![allow(clippy::print_stdout)]

use std::cell::Cell;
use std::fs;
use std::hint::black_box;
use std::io::{self, Write};
use std::rc::Rc;

use greenroom::{hub, join_all, promise, spawn, yield_now};

const MANY: usize = 100_000;

/// As many as fit into `vm.max_map_count` when each guard page splits a mapping.
const FEWER: usize = 10_000;

/// What the kernel does when a guard is to be installed without splitting the mapping; before Linux 6.13 it refuses.
fn guards_are_cheap() -> bool {
    /// `MADV_GUARD_INSTALL`
    const GUARD: libc::c_int = 102;
    if cfg!(greenroom_fallback) || !cfg!(target_os = "linux") {
        return false;
    }
    // SAFETY: a mapping of our own, put where the kernel likes, that nobody else knows of and that is gone in the end.
    unsafe {
        let bytes = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
        let page = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        let done = libc::madvise(page, bytes, GUARD) == 0;
        libc::munmap(page, bytes);
        done
    }
}

/// Bytes of memory that the process has, where the kernel tells.
fn resident() -> Option<usize> {
    let pages: usize = fs::read_to_string("/proc/self/statm").ok()?.split(' ').nth(1)?.parse().ok()?;
    // SAFETY: only asks for a constant.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * usize::try_from(page).ok()?)
}

fn mappings() -> Option<usize> {
    fs::read_to_string("/proc/self/maps").ok().map(|maps| maps.lines().count())
}

/// Different in each greenlet, and large enough to be on the stack.
fn value(number: usize) -> [usize; 16] {
    std::array::from_fn(|place| number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ place)
}

#[test]
fn a_hundred_thousand_parked_at_once_wake_with_what_they_had() {
    let many = if guards_are_cheap() {
        MANY
    } else {
        // Not through `println!`, which the harness keeps to itself.
        let told = writeln!(
            io::stderr(),
            "SKIPPED: {MANY} greenlets parked at once; here each guard page splits a mapping, so it is {FEWER}"
        );
        told.expect("standard error takes a line");
        FEWER
    };
    let (promise, result) = promise();
    let (result, arrived) = (Rc::new(result), Rc::new(Cell::new(0)));
    yield_now();

    let before = (resident(), mappings());
    let greenlets: Vec<_> = (0..many)
        .map(|number| {
            let (result, arrived) = (Rc::clone(&result), Rc::clone(&arrived));
            spawn(move || {
                let mut mine = value(number);
                black_box(&mut mine);
                arrived.set(arrived.get() + 1);
                result.wait();
                black_box(&mut mine) == &value(number)
            })
        })
        .collect();
    while arrived.get() < many {
        yield_now();
    }
    let after = (resident(), mappings());
    let stats = hub().stats();
    assert_eq!((stats.greenlets, stats.stacks_in_use), (many, many));

    if let (Some(before), Some(after)) = (before.0, after.0) {
        println!("{many} parked greenlets: {} resident bytes each", after.saturating_sub(before) / many);
    }
    if let (Some(before), Some(after)) = (before.1, after.1) {
        println!("{many} parked greenlets: {} more mappings", after.saturating_sub(before));
        // Slabs, and the heap.
        assert!(many == FEWER || after - before < 1_000, "{} mappings for {many} stacks", after - before);
    }

    promise.set(());
    assert!(join_all(greenlets).into_iter().all(|ended| ended.unwrap()), "a value on a stack has changed");
    assert_eq!(hub().stats().stacks_in_use, 0);

    // Most of what their stacks took is the kernel's again or waits for the next ones: a second crowd takes no more.
    let reserved = hub().stats().stack_bytes_reserved;
    let again: Vec<_> = (0..many).map(|_| spawn(yield_now)).collect();
    assert!(join_all(again).into_iter().all(|ended| ended.is_ok()));
    assert_eq!(hub().stats().stack_bytes_reserved, reserved);
}

#[test]
fn a_hundred_thousand_short_ones_take_a_handful_of_stacks() {
    let most = Rc::new(Cell::new(0));
    let greenlets: Vec<_> = (0..MANY)
        .map(|_| {
            let most = Rc::clone(&most);
            spawn(move || most.set(most.get().max(hub().stats().stacks_in_use)))
        })
        .collect();
    assert_eq!(hub().stats().stacks_in_use, 0, "a stack is taken at the first run");
    assert!(join_all(greenlets).into_iter().all(|ended| ended.is_ok()));
    let stats = hub().stats();
    assert_eq!((stats.stacks_in_use, most.get()), (0, 1));
    assert!(stats.stacks_cached <= 8, "{} stacks", stats.stacks_cached);
    assert!(stats.stack_bytes_reserved <= 64 << 20, "{} bytes of address space", stats.stack_bytes_reserved);
}

#[test]
fn those_that_yield_take_as_many_stacks_as_there_are_greenlets_between_begin_and_end() {
    const AT_ONCE: usize = 100;
    for _ in 0..MANY / AT_ONCE {
        join_all((0..AT_ONCE).map(|_| spawn(yield_now)));
    }
    assert!(hub().stats().stacks_cached <= AT_ONCE + 8, "{:?}", hub().stats());
}
