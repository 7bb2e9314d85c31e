//! Why an item could not be put or got.

use std::error::Error;
use std::fmt;

/// An item could not be put; it is in the error.
///
/// ```
/// use greenroom::queue::{PutError, Queue};
///
/// let queue = Queue::bounded(1);
/// queue.put("first").unwrap();
/// let error = queue.try_put("second").unwrap_err();
/// assert_eq!(error, PutError::Full("second"));
/// assert_eq!(error.into_inner(), "second");
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum PutError<T> {
    /// There was no room, at once or in time. For a [`Channel`](super::Channel): nobody took it.
    Full(T),
    /// The queue is closed.
    Closed(T),
}

impl<T> PutError<T> {
    /// The item.
    pub fn into_inner(self) -> T {
        match self {
            PutError::Full(item) | PutError::Closed(item) => item,
        }
    }

    /// Whether there was no room.
    pub fn is_full(&self) -> bool {
        matches!(self, PutError::Full(_))
    }

    /// Whether the queue is closed.
    pub fn is_closed(&self) -> bool {
        matches!(self, PutError::Closed(_))
    }
}

// An item need not be `Debug` for `unwrap`.
impl<T> fmt::Debug for PutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_full() { "Full(..)" } else { "Closed(..)" })
    }
}

impl<T> fmt::Display for PutError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PutError::Full(_) => "the queue is full: the item was not put",
            PutError::Closed(_) => "the queue is closed: the item was not put",
        })
    }
}

impl<T> Error for PutError<T> {}

/// Why there is no item.
///
/// ```
/// use greenroom::queue::{GetError, Queue};
///
/// let queue = Queue::<()>::unbounded();
/// assert_eq!(queue.try_get(), Err(GetError::Empty));
/// queue.close();
/// assert_eq!(queue.get(), Err(GetError::Closed));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GetError {
    /// There was none, at once or in time.
    Empty,
    /// There is none, and the queue is closed: there never will be.
    Closed,
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GetError::Empty => "the queue is empty",
            GetError::Closed => "the queue is closed and empty",
        })
    }
}

impl Error for GetError {}

/// `task_done` was called more often than items were put.
///
/// ```
/// let error = greenroom::queue::Queue::<()>::unbounded().task_done().unwrap_err();
/// assert!(error.to_string().starts_with("task_done called too often"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskDoneError(pub(super) ());

impl fmt::Display for TaskDoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("task_done called too often: every item that was put is done already; call it once per item got")
    }
}

impl Error for TaskDoneError {}
