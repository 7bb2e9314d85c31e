//! The poll: where a hub sleeps.

use std::io;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};

use crate::sys::Alarm;
use crate::wake::Bell;

/// Another thread rang.
const BELL: Token = Token(0);
/// A deadline is due.
const ALARM: Token = Token(1);

/// See the module.
pub(crate) struct Reactor {
    poll: Poll,
    /// Room for what one poll reports.
    events: Events,
    /// A timer finer than the poll's milliseconds, where the kernel has one.
    alarm: Option<Alarm>,
}

impl Reactor {
    /// A reactor and the bell that ends its sleep.
    pub(crate) fn new() -> io::Result<(Reactor, Bell)> {
        let poll = Poll::new()?;
        let bell = Bell::new(poll.registry(), BELL)?;
        let alarm = Alarm::new(poll.registry(), ALARM);
        Ok((Reactor { poll, events: Events::with_capacity(256), alarm }, bell))
    }

    /// Sleeps until the bell rings, the deadline has passed, or `at_most` is over; it may return earlier.
    pub(crate) fn sleep(&mut self, deadline: Option<Instant>, at_most: Option<Duration>) {
        let mut timeout = at_most;
        if let Some(deadline) = deadline {
            match &mut self.alarm {
                Some(alarm) => alarm.set(deadline),
                // The poll rounds up to whole milliseconds: late, never busy.
                None => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    timeout = Some(timeout.map_or(left, |timeout| timeout.min(left)));
                }
            }
        }
        // An interrupted poll is an early return; the callers loop. No other error is possible for a poll that exists.
        let _ = self.poll.poll(&mut self.events, timeout);
    }
}
