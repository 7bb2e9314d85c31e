//! How a greenlet ended.

use std::any::Any;
use std::error::Error;
use std::fmt;

/// How a greenlet ended; what a link gets to see.
///
/// ```
/// use greenroom::Outcome;
///
/// let greenlet = greenroom::spawn(|| 1);
/// greenlet.link(|outcome| assert_eq!(*outcome, Outcome::Value));
/// greenlet.wait();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Its body returned.
    Value,
    /// Its body panicked.
    Panicked,
    /// It was killed, before its body began or at a park.
    Killed,
}

/// Why a greenlet has no value: it panicked or was killed.
///
/// ```
/// let greenlet = greenroom::spawn(|| greenroom::sleep(std::time::Duration::MAX));
/// greenroom::yield_now();
/// greenlet.kill();
/// let error = greenlet.join().unwrap_err();
/// assert!(error.is_killed());
/// assert_eq!(error.to_string(), "the greenlet was killed");
/// ```
pub struct JoinError(Option<Box<dyn Any + Send>>);

impl JoinError {
    pub(crate) fn killed() -> JoinError {
        JoinError(None)
    }

    pub(crate) fn panicked(payload: Box<dyn Any + Send>) -> JoinError {
        JoinError(Some(payload))
    }

    /// Whether the greenlet was killed.
    pub fn is_killed(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the greenlet panicked.
    pub fn is_panic(&self) -> bool {
        self.0.is_some()
    }

    /// The payload of the panic, for `std::panic::resume_unwind`, or to look for a `&str` or `String`.
    ///
    /// # Panics
    ///
    /// When the greenlet was killed: there is no payload. Ask [`is_panic`](JoinError::is_panic) first.
    ///
    /// ```
    /// let error = greenroom::spawn(|| std::panic::resume_unwind(Box::new(7))).join().unwrap_err();
    /// assert_eq!(error.into_panic().downcast_ref::<i32>(), Some(&7));
    /// ```
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send> {
        self.0.expect("the greenlet was killed, it has no panic payload: ask is_panic() first")
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("the greenlet was killed"),
            Some(payload) => write!(f, "the greenlet panicked: {}", panic_message(&**payload)),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str("JoinError(killed)"),
            Some(payload) => write!(f, "JoinError(panicked: {:?})", panic_message(&**payload)),
        }
    }
}

impl Error for JoinError {}

/// The text of a panic, where it has one.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "a payload without text"
    }
}
