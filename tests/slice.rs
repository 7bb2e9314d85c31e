//! The hub's short slice: what the scheduler is asked for, and that it is undone. Linux alone can be asked.
#![cfg(all(target_os = "linux", not(greenroom_fallback)))]

use std::mem::{MaybeUninit, size_of};
use std::thread;
use std::time::Duration;

use greenroom::{Hub, Priority, ThreadPool, hub, spawn};

/// Policy, niceness and slice of the current thread.
fn scheduling() -> (u32, i32, u64) {
    let mut attributes = MaybeUninit::<libc::sched_attr>::zeroed();
    // SAFETY: the place has room for what the kernel fills in; all zero is a value too.
    let attributes = unsafe {
        let size = size_of::<libc::sched_attr>();
        assert_eq!(libc::syscall(libc::SYS_sched_getattr, 0, attributes.as_mut_ptr(), size, 0), 0);
        attributes.assume_init()
    };
    (attributes.sched_policy, attributes.sched_nice, attributes.sched_runtime)
}

fn on_a_thread(test: impl FnOnce() + Send + 'static) {
    thread::spawn(test).join().unwrap();
}

#[test]
fn a_hub_has_a_short_slice_until_it_ends_and_nothing_else_changes() {
    on_a_thread(|| {
        let (policy, nice, slice) = scheduling();
        let hub = hub();
        // A kernel without slices says 0, and nothing happens.
        assert_eq!(scheduling(), (policy, nice, slice.min(100_000)));
        spawn(|| ()).join().unwrap();
        hub.shutdown();
        assert_eq!(scheduling(), (policy, nice, slice));
    });
}

#[test]
fn the_builder_turns_it_off_or_takes_another() {
    on_a_thread(|| {
        let before = scheduling();
        Hub::builder().slice(Duration::ZERO).install().unwrap();
        assert_eq!(scheduling(), before);
    });
    on_a_thread(|| {
        let (.., slice) = scheduling();
        Hub::builder().slice(Duration::from_micros(500)).install().unwrap();
        assert_eq!(scheduling().2, slice.min(500_000));
    });
    // A longer one than the thread has isn't taken.
    on_a_thread(|| {
        let before = scheduling();
        Hub::builder().slice(Duration::from_secs(1)).install().unwrap();
        assert_eq!(scheduling(), before);
    });
}

#[test]
fn workers_do_not_inherit_it() {
    on_a_thread(|| {
        let (policy, nice, slice) = scheduling();
        hub();
        let workers = ThreadPool::builder().priority(Priority::Same).build().run(scheduling);
        assert_eq!(workers, (policy, nice, slice));
        let (_, nicer, slice_of_low) = ThreadPool::new(1).run(scheduling);
        assert_eq!((nicer, slice_of_low), ((nice + 10).min(19), slice));
    });
}
