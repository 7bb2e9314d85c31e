//! What differs between kernels.

use std::time::Duration;

pub(crate) use kernel::CpuClock;

#[cfg(all(target_os = "linux", not(greenroom_fallback)))]
mod kernel {
    use super::Duration;

    /// How much CPU time a thread has used, to be read by any thread.
    #[derive(Debug)]
    pub(crate) struct CpuClock(libc::clockid_t);

    impl CpuClock {
        pub(crate) fn of_this_thread() -> Option<CpuClock> {
            let mut id = 0;
            // SAFETY: the thread that runs exists, and the place for the answer is ours.
            let error = unsafe { libc::pthread_getcpuclockid(libc::pthread_self(), &mut id) };
            (error == 0).then_some(CpuClock(id))
        }

        /// None once the thread has ended.
        pub(crate) fn read(&self) -> Option<Duration> {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the place for the answer is ours; any id may be asked for.
            let error = unsafe { libc::clock_gettime(self.0, &mut time) };
            // The kernel keeps both within their ranges.
            (error == 0).then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
        }
    }
}

#[cfg(not(all(target_os = "linux", not(greenroom_fallback))))]
mod kernel {
    use super::Duration;

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
    }
}
