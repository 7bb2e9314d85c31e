//! What differs between kernels.

use std::time::Duration;

use crate::priority::Priority;

pub(crate) use kernel::{CpuClock, be_worker, niceness};

#[cfg(all(target_os = "linux", not(greenroom_fallback)))]
mod kernel {
    use std::fs::File;
    use std::io::Read;
    use std::mem::MaybeUninit;

    use super::{Duration, Priority};

    /// How much nicer a thread of low priority is than the one that made its pool.
    const NICER: i32 = 10;

    /// How nice the current thread is.
    pub(crate) fn niceness() -> i32 {
        // SAFETY: numbers only; 0 is the thread that asks. An error is -1, and so is a niceness: it can't be told, and need not.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
    }

    /// Gives the current thread, which a pool has started, that priority, next to the niceness of the one that made the pool: what has
    /// started this one may be a worker itself. And the usual slice, since what has started it may have a short one. What the
    /// kernel refuses stays as it was.
    pub(crate) fn be_worker(priority: Priority, base: i32) {
        let mut attributes = MaybeUninit::<libc::sched_attr>::zeroed();
        let size = size_of::<libc::sched_attr>();
        // SAFETY: the place has room for `size` bytes, of which the kernel fills in what it knows; all zero is a value too.
        let mut attributes = unsafe {
            if libc::syscall(libc::SYS_sched_getattr, 0, attributes.as_mut_ptr(), size, 0) != 0 {
                return;
            }
            attributes.assume_init()
        };
        if !matches!(attributes.sched_policy as i32, libc::SCHED_OTHER | libc::SCHED_BATCH) {
            return; // realtime, or idle already
        }
        attributes.sched_runtime = 0;
        match priority {
            Priority::Same => {}
            Priority::Low => attributes.sched_nice = (base + NICER).min(19).max(attributes.sched_nice),
            Priority::Idle => attributes.sched_policy = libc::SCHED_IDLE as u32,
        }
        // SAFETY: the attributes are read only.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    }

    /// How much CPU time a thread has used, and whether it wants more, to be read by any thread.
    #[derive(Debug)]
    pub(crate) struct CpuClock {
        id: libc::clockid_t,
        /// What the kernel says of the thread.
        stat: String,
    }

    impl CpuClock {
        pub(crate) fn of_this_thread() -> Option<CpuClock> {
            let mut id = 0;
            // SAFETY: the thread that runs exists, and the place for the answer is ours.
            let error = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut id) };
            // SAFETY: it takes nothing and gives a number.
            let thread = unsafe { libc::gettid() };
            (error == 0).then(|| CpuClock { id, stat: format!("/proc/self/task/{thread}/stat") })
        }

        /// None once the thread has ended.
        pub(crate) fn read(&self) -> Option<Duration> {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the place for the answer is ours; any id may be asked for.
            let error = unsafe { libc::clock_gettime(self.id, &mut time) };
            // The kernel keeps both within their ranges.
            (error == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
        }

        /// Whether the thread runs or would if it had a core. No if that can't be told.
        pub(crate) fn wants_core(&self) -> bool {
            // "12 (name) R 1 …": the name has 15 bytes at most, and may hold anything.
            let mut start = [0; 64];
            let read = File::open(&self.stat).and_then(|mut stat| stat.read(&mut start)).unwrap_or(0);
            let after_name = start[..read].iter().rposition(|&byte| byte == b')');
            after_name.is_some_and(|end| start[end..].starts_with(b") R"))
        }
    }
}

#[cfg(not(all(target_os = "linux", not(greenroom_fallback))))]
mod kernel {
    use super::{Duration, Priority};

    /// There is no portable way to lower one thread.
    pub(crate) fn be_worker(_: Priority, _: i32) {}

    pub(crate) fn niceness() -> i32 {
        0
    }

    /// Not to be had on this kernel.
    #[derive(Debug)]
    pub(crate) enum CpuClock {}

    impl CpuClock {
        pub(crate) fn of_this_thread() -> Option<CpuClock> {
            None
        }

        pub(crate) fn read(&self) -> Option<Duration> {
            match *self {}
        }

        pub(crate) fn wants_core(&self) -> bool {
            match *self {}
        }
    }
}

#[cfg(all(test, target_os = "linux", not(greenroom_fallback)))]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    #[test]
    fn a_clock_tells_whether_its_thread_computes_or_sleeps() {
        let (sender, clocks) = channel();
        let (release, released) = channel::<()>();
        let sleeper = thread::spawn(move || {
            sender.send(CpuClock::of_this_thread().unwrap()).unwrap();
            let _ = released.recv();
        });
        let asleep = clocks.recv().unwrap();
        let mut looks = (0..1000).map(|_| {
            thread::sleep(Duration::from_millis(1));
            (asleep.read().unwrap(), asleep.wants_core())
        });
        let (first, _) = looks.next().unwrap();
        assert!(looks.any(|(_, wants_core)| !wants_core));
        assert!(asleep.read().unwrap() - first < Duration::from_millis(500));
        let here = CpuClock::of_this_thread().unwrap();
        let before = here.read().unwrap();
        while here.read().unwrap() - before < Duration::from_millis(2) {}
        assert!(here.wants_core());
        drop(release);
        sleeper.join().unwrap();
        assert!(!asleep.wants_core() && asleep.read().is_none_or(|after| after >= first));
    }
}
