//! Who waits for something, oldest first; anyone can leave from the middle in constant time.

use std::sync::Arc;

use slab::Slab;

use super::{WaitCell, Waiter};

/// No neighbour.
const END: usize = usize::MAX;

/// A first-in-first-out list of waiters. A waiter that was taken out by `pop` is not in the list any more: that is how
/// one that gives up learns that it was handed something.
pub(crate) struct WaitList {
    /// The entries; their places are reused, so a list that has reached its size allocates nothing.
    nodes: Slab<Node>,
    /// The oldest, or `END`.
    first: usize,
    /// The newest, or `END`.
    last: usize,
}

struct Node {
    waiter: Waiter,
    before: usize,
    after: usize,
}

impl WaitList {
    pub(crate) const fn new() -> WaitList {
        WaitList { nodes: Slab::new(), first: END, last: END }
    }

    /// Adds a waiter behind all others; returns its place, for `remove`.
    pub(crate) fn push(&mut self, waiter: Waiter) -> usize {
        let place = self.nodes.insert(Node { waiter, before: self.last, after: END });
        match self.last {
            END => self.first = place,
            last => self.nodes[last].after = place,
        }
        self.last = place;
        place
    }

    /// Takes out the oldest.
    pub(crate) fn pop(&mut self) -> Option<Waiter> {
        match self.first {
            END => None,
            first => Some(self.unlink(first)),
        }
    }

    /// Takes out all and wakes them, oldest first. Returns how many took the wake.
    pub(crate) fn wake_all(&mut self) -> usize {
        let mut woken = 0;
        while let Some(waiter) = self.pop() {
            woken += usize::from(waiter.wake());
        }
        woken
    }

    /// Takes out the waiter of that wait, if it is still at its place. False: somebody took it out, and it was or will
    /// be woken.
    pub(crate) fn remove(&mut self, place: usize, cell: &Arc<WaitCell>, epoch: u64) -> bool {
        // The place may be somebody else's by now.
        let there = self.nodes.get(place).is_some_and(|node| node.waiter.is_of(cell, epoch));
        if there {
            self.unlink(place);
        }
        there
    }

    fn unlink(&mut self, place: usize) -> Waiter {
        let node = self.nodes.remove(place);
        match node.before {
            END => self.first = node.after,
            before => self.nodes[before].after = node.after,
        }
        match node.after {
            END => self.last = node.before,
            after => self.nodes[after].before = node.before,
        }
        node.waiter
    }
}
