//! The four public types. They differ in their store and in how they are made; the methods are written once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::error::{GetError, PutError, TaskDoneError};
use super::iter::{IntoIter, Iter, Source};
use super::shared::{Patience, Shared};
use super::store::{Fifo, Lifo, Smallest};

/// Items come out in the order in which they were put. Cloning gives the same queue.
///
/// ```
/// use greenroom::queue::Queue;
///
/// let queue = Queue::bounded(2);
/// let producer = greenroom::spawn({
///     let queue = queue.clone();
///     move || {
///         for number in 0..5 {
///             queue.put(number).unwrap(); // parks while two are in it
///         }
///         queue.close();
///     }
/// });
/// assert_eq!(queue.iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
/// producer.join().unwrap();
/// ```
///
/// What can't go to another thread can be queued on one thread:
///
/// ```compile_fail,E0277
/// use std::rc::Rc;
/// use greenroom::queue::Queue;
///
/// let queue = Queue::unbounded();
/// queue.put(Rc::new(1)).unwrap();
/// std::thread::spawn(move || queue.get());
/// ```
pub struct Queue<T>(Arc<Shared<Fifo<T>>>);

/// The item that was put last comes out first: a stack. Cloning gives the same queue.
///
/// ```
/// use greenroom::queue::LifoQueue;
///
/// let stack = LifoQueue::unbounded();
/// for number in 0..3 {
///     stack.put(number).unwrap();
/// }
/// stack.close();
/// assert_eq!(stack.into_iter().collect::<Vec<_>>(), [2, 1, 0]);
/// ```
pub struct LifoQueue<T>(Arc<Shared<Lifo<T>>>);

/// The smallest item comes out first; of equal ones, any. Cloning gives the same queue.
///
/// Items are compared while the queue is locked: a comparison must neither park nor use the queue.
///
/// ```
/// use greenroom::queue::PriorityQueue;
///
/// let queue = PriorityQueue::unbounded();
/// for job in [(3, "sweep"), (1, "put out the fire"), (2, "call home")] {
///     queue.put(job).unwrap();
/// }
/// assert_eq!(queue.get().unwrap(), (1, "put out the fire"));
/// ```
pub struct PriorityQueue<T: Ord>(Arc<Shared<Smallest<T>>>);

/// A rendezvous: it holds no item, `put` returns when somebody has got it. Cloning gives the same channel.
///
/// The getter goes on before the putter, if both are on one hub. An item whose getter is killed before it could run waits
/// in the channel for the next `get`.
///
/// ```
/// use greenroom::queue::Channel;
///
/// let channel = Channel::new();
/// let reader = greenroom::spawn({
///     let channel = channel.clone();
///     move || (channel.get().unwrap(), channel.get().unwrap())
/// });
/// channel.put("hello").unwrap();
/// channel.put("world").unwrap();
/// assert_eq!(reader.join().unwrap(), ("hello", "world"));
/// ```
pub struct Channel<T>(Arc<Shared<Fifo<T>>>);

macro_rules! constructors {
    ($name:ident, $store:ident $(, $bound:ident)?) => {
        impl<T $(: $bound)?> $name<T> {
            /// A queue that always has room: `put` never parks.
            ///
            /// ```
            #[doc = concat!("let queue = greenroom::queue::", stringify!($name), "::unbounded();")]
            /// queue.put(1).unwrap();
            /// assert_eq!(queue.capacity(), None);
            /// ```
            pub fn unbounded() -> $name<T> {
                $name(Arc::new(Shared::new(usize::MAX)))
            }

            /// A queue with room for `capacity` items: `put` parks while it is full.
            ///
            /// # Panics
            ///
            /// With 0: that is a [`Channel`].
            ///
            /// ```
            #[doc = concat!("let queue = greenroom::queue::", stringify!($name), "::bounded(1);")]
            /// queue.put(1).unwrap();
            /// assert!(queue.try_put(2).unwrap_err().is_full());
            /// ```
            #[track_caller]
            pub fn bounded(capacity: usize) -> $name<T> {
                assert!(
                    capacity > 0,
                    concat!(stringify!($name), "::bounded(0): a queue without room is a Channel: use Channel::new()")
                );
                $name(Arc::new(Shared::new(capacity)))
            }

            /// How many items it has room for; `None` is no limit. Doesn't park.
            pub fn capacity(&self) -> Option<usize> {
                Some(self.0.capacity()).filter(|&capacity| capacity < usize::MAX)
            }
        }
    };
}

constructors!(Queue, Fifo);
constructors!(LifoQueue, Lifo);
constructors!(PriorityQueue, Smallest, Ord);

impl<T> Channel<T> {
    /// A channel.
    ///
    /// ```
    /// let channel = greenroom::queue::Channel::new();
    /// assert!(channel.try_put("nobody waits for it").unwrap_err().is_full());
    /// ```
    pub fn new() -> Channel<T> {
        Channel(Arc::new(Shared::new(0)))
    }
}

impl<T> Default for Channel<T> {
    fn default() -> Channel<T> {
        Channel::new()
    }
}

macro_rules! methods {
    ($name:ident, $new:literal, $store:ident $(, $bound:ident)?) => {
        impl<T $(: $bound)?> $name<T> {
            /// Puts an item in. Parks until there is room, or, in a channel, until somebody gets it.
            ///
            /// # Errors
            ///
            /// [`PutError::Closed`], with the item.
            ///
            /// # Panics
            ///
            /// With "this would block forever", on main, when nothing can ever make room.
            ///
            /// ```
            /// use greenroom::queue::*;
            ///
            #[doc = concat!("let queue = ", stringify!($name), "::", $new, ";")]
            /// let getter = greenroom::spawn({
            ///     let queue = queue.clone();
            ///     move || queue.get().unwrap()
            /// });
            /// queue.put("item").unwrap();
            /// assert_eq!(getter.join().unwrap(), "item");
            /// ```
            #[inline]
            pub fn put(&self, item: T) -> Result<(), PutError<T>> {
                self.0.put(item, Patience::Some(None))
            }

            /// Puts an item in, if that can be done at once. Doesn't park.
            ///
            /// # Errors
            ///
            /// [`PutError::Full`] and [`PutError::Closed`], with the item.
            ///
            /// ```
            /// use greenroom::queue::*;
            ///
            #[doc = concat!("let queue = ", stringify!($name), "::", $new, ";")]
            /// queue.close();
            /// assert_eq!(queue.try_put(1), Err(PutError::Closed(1)));
            /// ```
            pub fn try_put(&self, item: T) -> Result<(), PutError<T>> {
                self.0.put(item, Patience::None)
            }

            /// Puts an item in; parks for at most `d`.
            ///
            /// # Errors
            ///
            /// [`PutError::Full`] when the time is over and [`PutError::Closed`], with the item.
            ///
            /// ```
            /// use greenroom::queue::*;
            ///
            #[doc = concat!("let queue = ", stringify!($name), "::", $new, ";")]
            /// greenroom::spawn({
            ///     let queue = queue.clone();
            ///     move || queue.get().unwrap()
            /// });
            /// queue.put_timeout(1, std::time::Duration::from_secs(5)).unwrap();
            /// ```
            pub fn put_timeout(&self, item: T, d: Duration) -> Result<(), PutError<T>> {
                self.0.put(item, Patience::Some(Some(d)))
            }

            /// Takes the next item out. Parks until there is one.
            ///
            /// # Errors
            ///
            /// [`GetError::Closed`]: it is closed and empty.
            ///
            /// # Panics
            ///
            /// With "this would block forever", on main, when nothing can ever be put.
            ///
            /// ```
            /// use greenroom::queue::*;
            ///
            #[doc = concat!("let queue = ", stringify!($name), "::", $new, ";")]
            /// std::thread::spawn({
            ///     let queue = queue.clone();
            ///     move || queue.put("from another thread").unwrap()
            /// });
            /// assert_eq!(queue.get().unwrap(), "from another thread");
            /// ```
            #[inline]
            pub fn get(&self) -> Result<T, GetError> {
                self.0.get(Patience::Some(None))
            }

            /// Takes the next item out, if there is one. Doesn't park.
            ///
            /// # Errors
            ///
            /// [`GetError::Empty`] and [`GetError::Closed`].
            ///
            /// ```
            /// use greenroom::queue::*;
            ///
            #[doc = concat!("let queue = ", stringify!($name), "::<i32>::", $new, ";")]
            /// assert_eq!(queue.try_get(), Err(GetError::Empty));
            /// ```
            pub fn try_get(&self) -> Result<T, GetError> {
                self.0.get(Patience::None)
            }

            /// Takes the next item out; parks for at most `d`.
            ///
            /// # Errors
            ///
            /// [`GetError::Empty`] when the time is over, and [`GetError::Closed`].
            ///
            /// ```
            /// use greenroom::queue::*;
            /// use std::time::Duration;
            ///
            #[doc = concat!("let queue = ", stringify!($name), "::<i32>::", $new, ";")]
            /// assert_eq!(queue.get_timeout(Duration::from_millis(1)), Err(GetError::Empty));
            /// ```
            pub fn get_timeout(&self, d: Duration) -> Result<T, GetError> {
                self.0.get(Patience::Some(Some(d)))
            }

            /// A copy of the item that the next [`get`](Self::get) would give; the item stays. Parks until there is one.
            ///
            /// While it is being copied it is out of the queue, without leaving room for another: somebody who tries to get it
            /// in that moment doesn't find it. From a channel, its `put` returns.
            ///
            /// # Errors
            ///
            /// [`GetError::Closed`]: it is closed and empty.
            ///
            /// # Panics
            ///
            /// As [`get`](Self::get).
            ///
            /// ```
            /// use greenroom::queue::*;
            ///
            #[doc = concat!("let queue = ", stringify!($name), "::", $new, ";")]
            /// greenroom::spawn({
            ///     let queue = queue.clone();
            ///     move || queue.put("item").unwrap()
            /// });
            /// assert_eq!(queue.peek().unwrap(), "item");
            /// assert_eq!(queue.get().unwrap(), "item");
            /// ```
            pub fn peek(&self) -> Result<T, GetError>
            where
                T: Clone,
            {
                self.0.peek()
            }

            /// How many items are in it; those whose `put` waits don't count. With other threads about it is old news at
            /// once. Doesn't park.
            ///
            /// ```
            /// use greenroom::queue::*;
            ///
            #[doc = concat!("assert_eq!(", stringify!($name), "::<i32>::", $new, ".len(), 0);")]
            /// ```
            pub fn len(&self) -> usize {
                self.0.len()
            }

            /// Whether no item is in it. Doesn't park.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Whether it has no room; a channel never has. Doesn't park.
            pub fn is_full(&self) -> bool {
                self.len() >= self.0.capacity()
            }

            /// Says that an item that was got is done with; [`join`](Self::join) waits for that. Doesn't park.
            ///
            /// # Errors
            ///
            /// [`TaskDoneError`] if it is called more often than items were put.
            ///
            /// ```
            /// use greenroom::queue::*;
            ///
            #[doc = concat!("let queue = ", stringify!($name), "::", $new, ";")]
            /// greenroom::spawn({
            ///     let queue = queue.clone();
            ///     move || queue.put("work").unwrap()
            /// });
            /// queue.get().unwrap();
            /// assert!(!queue.join(Some(std::time::Duration::ZERO)));
            /// queue.task_done().unwrap();
            /// assert!(queue.join(None));
            /// ```
            pub fn task_done(&self) -> Result<(), TaskDoneError> {
                self.0.task_done()
            }

            /// Parks until every item that was put is done, for at most `timeout`; returns whether it came to that.
            ///
            /// # Panics
            ///
            /// With "this would block forever", on main and without a limit, when nothing can ever call
            /// [`task_done`](Self::task_done).
            ///
            /// ```
            /// use greenroom::queue::*;
            ///
            #[doc = concat!("assert!(", stringify!($name), "::<i32>::", $new, ".join(None)); // nothing was ever put")]
            /// ```
            pub fn join(&self, timeout: Option<Duration>) -> bool {
                self.0.join(timeout)
            }

            /// Closes it: from now on `put` fails, also where it waits already, and `get` fails once it is empty. On a closed
            /// one it does nothing. Doesn't park.
            ///
            /// ```
            /// use greenroom::queue::*;
            ///
            #[doc = concat!("let queue = ", stringify!($name), "::<i32>::", $new, ";")]
            /// queue.close();
            /// assert!(queue.is_closed());
            /// assert_eq!(queue.get(), Err(GetError::Closed));
            /// ```
            pub fn close(&self) {
                self.0.close();
            }

            /// Closes it and drops what is in it, which counts as done: from now on `put` and `get` fail. Doesn't park, unless a
            /// destructor of an item does.
            ///
            /// ```
            /// use greenroom::queue::*;
            ///
            #[doc = concat!("let queue = ", stringify!($name), "::<i32>::", $new, ";")]
            /// queue.close_now();
            /// assert!(queue.join(None));
            /// ```
            pub fn close_now(&self) {
                self.0.close_now();
            }

            /// Whether it was closed. Doesn't park.
            pub fn is_closed(&self) -> bool {
                self.0.is_closed()
            }

            /// Gets items until it is closed and empty. `next` parks as [`get`](Self::get) does.
            ///
            /// ```
            /// use greenroom::queue::*;
            ///
            #[doc = concat!("let queue = ", stringify!($name), "::", $new, ";")]
            /// greenroom::spawn({
            ///     let queue = queue.clone();
            ///     move || {
            ///         (0..3).for_each(|number| queue.put(number).unwrap());
            ///         queue.close();
            ///     }
            /// });
            /// assert_eq!(queue.iter().sum::<i32>(), 3);
            /// ```
            pub fn iter(&self) -> Iter<'_, Self> {
                Iter(self)
            }
        }

        impl<T $(: $bound)?> Source for $name<T> {
            type Item = T;

            fn next(&self) -> Result<T, GetError> {
                self.get()
            }
        }

        impl<'a, T $(: $bound)?> IntoIterator for &'a $name<T> {
            type Item = T;
            type IntoIter = Iter<'a, $name<T>>;

            fn into_iter(self) -> Self::IntoIter {
                self.iter()
            }
        }

        impl<T $(: $bound)?> IntoIterator for $name<T> {
            type Item = T;
            type IntoIter = IntoIter<$name<T>>;

            fn into_iter(self) -> Self::IntoIter {
                IntoIter(self)
            }
        }

        impl<T $(: $bound)?> Clone for $name<T> {
            fn clone(&self) -> Self {
                $name(Arc::clone(&self.0))
            }
        }

        impl<T $(: $bound)?> fmt::Debug for $name<T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("len", &self.len())
                    .field("closed", &self.is_closed())
                    .finish_non_exhaustive()
            }
        }
    };
}

methods!(Queue, "unbounded()", Fifo);
methods!(LifoQueue, "unbounded()", Lifo);
methods!(PriorityQueue, "unbounded()", Smallest, Ord);
methods!(Channel, "new()", Fifo);
