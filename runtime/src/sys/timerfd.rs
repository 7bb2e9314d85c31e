//! An alarm from a timerfd: wakes the poll at a deadline finer than the poll's own milliseconds.

use std::cell::Cell;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::time::{Duration, Instant};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};

/// A readiness event at a deadline.
///
/// Nobody reads the descriptor: the registration is edge triggered, each expiry is an edge, and arming resets the count
/// of expiries. High-resolution, and exempt from the timer slack that the kernel adds to the poll's own timeout.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// The timerfd; closing it ends its registration.
    timer: OwnedFd,
    /// The deadline of the last `set`; once it has passed, the timer has fired and is idle.
    armed: Cell<Option<Instant>>,
}

impl Alarm {
    /// An alarm that makes polls of `registry` return an event with `token`; `None` if the kernel refuses one.
    pub(crate) fn new(registry: &Registry, token: Token) -> Option<Alarm> {
        // SAFETY: makes a descriptor, touches no memory of ours.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK | libc::TFD_CLOEXEC) };
        if fd < 0 {
            return None;
        }
        // SAFETY: the descriptor is new, open, and nobody else's.
        let timer = unsafe { OwnedFd::from_raw_fd(fd) };
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE).ok()?;
        Some(Alarm { timer, armed: Cell::new(None) })
    }

    /// Fires at `deadline` and not at the one set before; at once if it has passed.
    ///
    /// Setting the deadline that it is already waiting for costs a clock read and no system call.
    pub(crate) fn set(&self, deadline: Instant) {
        let left = deadline.saturating_duration_since(Instant::now());
        if self.armed.get() == Some(deadline) && !left.is_zero() {
            return;
        }
        // Zero would disarm.
        let left = left.max(Duration::from_nanos(1));
        let spec = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec {
                // Centuries ahead the exact second is nobody's concern; the kernel clamps to the end of its clock.
                tv_sec: libc::time_t::try_from(left.as_secs()).unwrap_or(libc::time_t::MAX),
                tv_nsec: left.subsec_nanos().into(),
            },
        };
        // Relative, as std doesn't tell what an `Instant` is on the kernel's clock. It can only be late, by the time
        // that this thread is off the processor between the clock read and here, and never early.
        // SAFETY: the descriptor is a timerfd, `spec` is valid and read only during the call.
        let refused = unsafe { libc::timerfd_settime(self.timer.as_raw_fd(), 0, &spec, ptr::null_mut()) };
        debug_assert_eq!(refused, 0, "a timerfd takes every normalised time");
        self.armed.set(Some(deadline));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::{Events, Poll};

    const TOKEN: Token = Token(7);

    fn poll_for(poll: &mut Poll, limit: Duration) -> usize {
        let mut events = Events::with_capacity(8);
        poll.poll(&mut events, Some(limit)).unwrap();
        events.iter().filter(|event| event.token() == TOKEN).count()
    }

    #[test]
    fn every_expiry_is_one_event_without_a_read() {
        let mut poll = Poll::new().unwrap();
        let alarm = Alarm::new(poll.registry(), TOKEN).unwrap();
        for micros in [1, 50, 100, 300, 900, 2_500, 1, 1] {
            let deadline = Instant::now() + Duration::from_micros(micros);
            alarm.set(deadline);
            assert_eq!(poll_for(&mut poll, Duration::from_secs(5)), 1);
            assert!(Instant::now() >= deadline, "early");
            assert_eq!(poll_for(&mut poll, Duration::ZERO), 0, "one edge per expiry");
        }
    }

    #[test]
    fn an_expiry_that_nobody_polled_for_is_not_lost_and_not_doubled() {
        let mut poll = Poll::new().unwrap();
        let alarm = Alarm::new(poll.registry(), TOKEN).unwrap();
        for _ in 0..3 {
            alarm.set(Instant::now() + Duration::from_micros(1));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(poll_for(&mut poll, Duration::from_secs(5)), 1);
        assert_eq!(poll_for(&mut poll, Duration::ZERO), 0);
    }

    #[test]
    fn arming_again_takes_the_first_deadline_back() {
        let mut poll = Poll::new().unwrap();
        let alarm = Alarm::new(poll.registry(), TOKEN).unwrap();
        alarm.set(Instant::now() + Duration::from_millis(5));
        let later = Instant::now() + Duration::from_millis(60);
        alarm.set(later);
        assert_eq!(poll_for(&mut poll, Duration::from_millis(20)), 0);
        alarm.set(later);
        assert_eq!(poll_for(&mut poll, Duration::from_secs(5)), 1);
        assert!(Instant::now() >= later);
    }

    #[test]
    fn a_deadline_in_the_past_fires_at_once_and_each_time() {
        let mut poll = Poll::new().unwrap();
        let alarm = Alarm::new(poll.registry(), TOKEN).unwrap();
        let past = Instant::now();
        for _ in 0..3 {
            alarm.set(past);
            assert_eq!(poll_for(&mut poll, Duration::from_secs(5)), 1);
        }
    }

    #[test]
    fn a_deadline_centuries_ahead_is_taken() {
        let mut poll = Poll::new().unwrap();
        let alarm = Alarm::new(poll.registry(), TOKEN).unwrap();
        alarm.set(Instant::now() + Duration::from_secs(1 << 40));
        assert_eq!(poll_for(&mut poll, Duration::ZERO), 0);
    }
}
