//! OS threads for blocking work.
//!
//! A thread that must stay responsive (an event loop, a user interface, a hub of green threads) can't make a call that
//! blocks: a password hash, a read of a slow disk, a name look-up in the C library. This crate makes such calls
//! elsewhere: a [`Pool`] starts OS threads when jobs need them, lets them go when they idle, and queues what is too
//! much at once.
//!
//! # What it does not do
//!
//! A job that has begun can't be stopped from outside; [`Pool::shutdown`] therefore takes a limit. The pool runs jobs
//! in parallel only as far as the work allows: if the work holds one lock, ten threads are no faster than one. Whether
//! it does can be measured with [`probe::parallel_speedup`]. And a pool of threads is no scheduler for computations
//! that are split into tiny tasks: handing a job over costs microseconds when the thread sleeps.
//!
//! # Example
//!
//! ```
//! use greenroom_pool::Pool;
//! use std::sync::mpsc;
//!
//! let pool = Pool::new(4);
//! let (answer, answers) = mpsc::channel();
//! for name in ["a", "b", "c"] {
//!     let answer = answer.clone();
//!     pool.submit(move || answer.send(name.to_uppercase()).unwrap())?;
//! }
//! let mut found: Vec<String> = answers.iter().take(3).collect();
//! found.sort();
//! assert_eq!(found, ["A", "B", "C"]);
//! assert!(pool.join(None));
//! # Ok::<(), greenroom_pool::Rejected>(())
//! ```
//!
//! # The parts
//!
//! | part | for |
//! |---|---|
//! | [`Pool`], [`PoolBuilder`] | threads on demand, a bounded queue, shutdown with a limit |
//! | [`lease`] | jobs that borrow from their caller's stack frame and cost no allocation |
//! | [`Registration`] | to be woken when nothing runs any more, or all workers have left |
//! | [`census()`] | a proof that no worker of any pool can do anything any more |
//! | [`probe`] | does this work run in parallel at all? |

mod admission;
mod builder;
mod census;
mod clock;
mod error;
mod job;
pub mod lease;
mod pool;
mod priority;
pub mod probe;
mod registration;
mod shared;
mod spin;
mod stats;
mod sys;

pub use admission::Admission;
pub use builder::PoolBuilder;
pub use census::{Census, census};
pub use error::Rejected;
pub use pool::{Pool, PoolId, in_worker};
pub use priority::Priority;
pub use registration::Registration;
pub use spin::{Role, Spin};
pub use stats::{Histogram, PoolStats};

/// The examples of the package's README, to be tested.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
