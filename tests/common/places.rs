//! Where code can wait: every kind of thread, and of greenlet.

use greenroom::{ThreadPool, hub, kill_all, spawn, try_hub};

use super::parks::places::yield_loop;
use super::{begun, forever};

/// Where one waits: runs on a thread of its own.
pub(crate) type Place = fn(&'static str, Box<dyn FnOnce() + Send>);

pub(crate) const PLACES: [(&str, Place); 6] = [
    ("plain thread", |what, wait| {
        wait();
        assert!(try_hub().is_none(), "{what} made a hub");
    }),
    ("main alone", |_, wait| {
        hub();
        wait();
    }),
    ("main with others", |_, wait| {
        let others = [begun(forever), begun(yield_loop)];
        wait();
        kill_all(&others);
    }),
    ("greenlet alone", |_, wait| spawn(wait).join().unwrap()),
    ("greenlet with others", |_, wait| {
        let others = [begun(forever), begun(yield_loop)];
        spawn(wait).join().unwrap();
        kill_all(&others);
    }),
    ("worker", |what, wait| {
        ThreadPool::new(1).run(|| {
            wait();
            assert!(try_hub().is_none(), "{what} made a hub");
        });
    }),
];
