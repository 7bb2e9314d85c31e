//! Queues between greenlets, hubs, pool workers and plain threads.
//!
//! | | order | room |
//! |---|---|---|
//! | [`Queue`] | the oldest first | bounded or not |
//! | [`LifoQueue`] | the newest first | bounded or not |
//! | [`PriorityQueue`] | the smallest first | bounded or not |
//! | [`Channel`] | the oldest first | none: a `put` waits for its `get` |
//!
//! All of them have the same methods, are `Send` and `Sync` if their items are `Send`, and give the same queue when cloned.
//!
//! # What holds for all of them
//!
//! * What waits here parks: a greenlet alone, main with its hub's loop running meanwhile, a thread without a hub as a thread,
//!   and it gets no hub from that.
//! * *First come, first served*, among those who put and among those who get. What can be had at once is had, even with a
//!   zero timeout or after the time is over. `Duration::MAX`, and whatever else overflows the clock, is no limit.
//! * *No item gets lost.* An item that was handed to somebody who is killed, or leaves by an outer timeout, in the same moment
//!   goes to the next, before all that came after it. A `put` that fails gives its item back, and has not put it.
//! * After `close` nothing can be put; what is in the queue can still be got, then `get` fails as well, and an iterator ends. A queue
//!   doesn't close by itself when those who put are gone, as a channel of `std::sync::mpsc` does: close it.
//! * `task_done` and `join` count: an item that was put is unfinished until somebody calls `task_done` for it. Who may be killed
//!   or panic in between calls it in a destructor. `join` takes a limit, or `None`.
//!
//! # Panics
//!
//! All that wait panic on main, with "this would block forever", when nothing can ever end the wait.

// How the files share the work (README.md beside this file argues why no item gets lost):
//
// * `queues`: the four types, with the same methods.
// * `shared`: one queue, whatever its order: what happens under its lock, and who parks.
// * `store`: the three orders.
// * `slot`: the place through which an item goes from hand to hand.
// * `error`, `iter`: what the calls give.

mod error;
mod iter;
mod queues;
mod shared;
mod slot;
mod store;

pub use error::{GetError, PutError, TaskDoneError};
pub use iter::{IntoIter, Iter};
pub use queues::{Channel, LifoQueue, PriorityQueue, Queue};
