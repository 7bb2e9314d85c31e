//! What ends a hub's sleep.

use std::io;

use mio::{Registry, Token};

/// An eventfd (or what the kernel has instead) in the hub's poll.
#[cfg(not(loom))]
pub(crate) struct Bell(mio::Waker);

#[cfg(not(loom))]
impl Bell {
    pub(crate) fn new(registry: &Registry, token: Token) -> io::Result<Bell> {
        mio::Waker::new(registry, token).map(Bell)
    }

    pub(super) fn ring(&self) {
        // A counter that is full leaves the eventfd readable, which is all that is wanted; no other error can come back.
        let _ = self.0.wake();
    }
}

/// The same for the model checker: what is rung before the sleep ends the sleep.
#[cfg(loom)]
pub(crate) struct Bell {
    /// How often it was rung since the last sleep.
    rung: loom::sync::Mutex<usize>,
    /// Signalled after every change of `rung`.
    changed: loom::sync::Condvar,
}

#[cfg(loom)]
impl Bell {
    pub(crate) fn new(_: &Registry, _: Token) -> io::Result<Bell> {
        Ok(Bell::silent())
    }

    pub(super) fn silent() -> Bell {
        Bell { rung: loom::sync::Mutex::new(0), changed: loom::sync::Condvar::new() }
    }

    pub(super) fn ring(&self) {
        *self.rung.lock().unwrap() += 1;
        self.changed.notify_one();
    }

    /// The poll: sleeps until rung, and returns how often it was.
    pub(super) fn sleep(&self) -> usize {
        let mut rung = self.rung.lock().unwrap();
        while *rung == 0 {
            rung = self.changed.wait(rung).unwrap();
        }
        std::mem::take(&mut rung)
    }
}
