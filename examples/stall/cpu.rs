//! How much CPU time this process has used.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

/// User and system time of all threads so far, those that have ended included.
pub(crate) fn process_time() -> Duration {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `usage` is valid for one write of an rusage, which is all that getrusage does with it.
    let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) };
    assert_eq!(result, 0, "getrusage: {}", io::Error::last_os_error());
    // SAFETY: getrusage returned 0, so it has filled in `usage`.
    let usage = unsafe { usage.assume_init() };
    duration(usage.ru_utime) + duration(usage.ru_stime)
}

fn duration(time: libc::timeval) -> Duration {
    Duration::from_secs(unsigned(time.tv_sec)) + Duration::from_micros(unsigned(time.tv_usec))
}

/// The fields differ in type between systems.
fn unsigned(part: impl TryInto<u64>) -> u64 {
    part.try_into().unwrap_or_else(|_| panic!("time used is not negative"))
}
