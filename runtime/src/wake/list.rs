//! Who waits for something, oldest first; anyone can leave from the middle in constant time.

use std::sync::Arc;

use slab::Slab;

use super::{WaitCell, Waiter};

/// No neighbour.
const END: usize = usize::MAX;

/// The place of `lone`.
const LONE: usize = usize::MAX - 1;

/// A first-in-first-out list of waiters. A waiter that was taken out by `pop` is not in the list any more: that is how
/// one that gives up learns that it was handed something. With each waiter stands what it waits for, if that differs from
/// one to the other.
pub(crate) struct WaitList<T = ()> {
    /// The oldest, if the list was empty when it came: most lists never hold a second one, and allocate nothing.
    lone: Option<(Waiter, T)>,
    /// All others; their places are reused, so a list that has reached its size allocates nothing.
    nodes: Slab<Node<T>>,
    /// The oldest node, or `END`.
    first: usize,
    /// The newest node, or `END`.
    last: usize,
}

struct Node<T> {
    waiter: Waiter,
    what: T,
    before: usize,
    after: usize,
}

impl WaitList {
    /// Adds a waiter behind all others; returns its place, for `remove`.
    #[inline]
    pub(crate) fn push(&mut self, waiter: Waiter) -> usize {
        self.push_for(waiter, ())
    }
}

impl<T> WaitList<T> {
    pub(crate) const fn new() -> WaitList<T> {
        WaitList { lone: None, nodes: Slab::new(), first: END, last: END }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.lone.is_none() && self.first == END
    }

    /// Adds a waiter behind all others, with what it waits for; returns its place, for `remove`.
    #[inline]
    pub(crate) fn push_for(&mut self, waiter: Waiter, what: T) -> usize {
        if self.is_empty() {
            self.lone = Some((waiter, what));
            return LONE;
        }
        let place = self.nodes.insert(Node { waiter, what, before: self.last, after: END });
        match self.last {
            END => self.first = place,
            last => self.nodes[last].after = place,
        }
        self.last = place;
        place
    }

    /// The oldest, and what it waits for.
    #[inline]
    pub(crate) fn first(&self) -> Option<(&Waiter, &T)> {
        match &self.lone {
            Some((waiter, what)) => Some((waiter, what)),
            None => self.nodes.get(self.first).map(|node| (&node.waiter, &node.what)),
        }
    }

    /// Takes out the oldest.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Waiter> {
        self.pop_for().map(|(waiter, _)| waiter)
    }

    /// Takes out the oldest, with what it waits for.
    #[inline]
    pub(crate) fn pop_for(&mut self) -> Option<(Waiter, T)> {
        if let Some(lone) = self.lone.take() {
            return Some(lone);
        }
        match self.first {
            END => None,
            first => Some(self.unlink(first)),
        }
    }

    /// Takes out those of whom nobody is left whom they could wake. Returns how many there were.
    pub(crate) fn discard_lost(&mut self) -> usize {
        let lost = |node: &Node<T>| node.waiter.is_lost();
        let places: Vec<_> = self.nodes.iter().filter(|(_, node)| lost(node)).map(|(place, _)| place).collect();
        places.iter().for_each(|&place| drop(self.unlink(place)));
        places.len() + usize::from(self.lone.take_if(|(waiter, _)| waiter.is_lost()).is_some())
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
    #[inline]
    pub(crate) fn remove(&mut self, place: usize, cell: &Arc<WaitCell>, epoch: u64) -> bool {
        // The place may be somebody else's by now.
        if place == LONE {
            return self.lone.take_if(|(waiter, _)| waiter.is_of(cell, epoch)).is_some();
        }
        let there = self.nodes.get(place).is_some_and(|node| node.waiter.is_of(cell, epoch));
        if there {
            self.unlink(place);
        }
        there
    }

    fn unlink(&mut self, place: usize) -> (Waiter, T) {
        let node = self.nodes.remove(place);
        match node.before {
            END => self.first = node.after,
            before => self.nodes[before].after = node.after,
        }
        match node.after {
            END => self.last = node.before,
            after => self.nodes[after].before = node.before,
        }
        (node.waiter, node.what)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;
    use crate::wake::Home;

    #[derive(Clone, Debug)]
    enum Step {
        Push,
        Pop,
        /// Somebody leaves: the n-th of all that ever came, in or not.
        Remove(prop::sample::Index),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => Just(Step::Push),
            2 => Just(Step::Pop),
            2 => any::<prop::sample::Index>().prop_map(Step::Remove),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        #[test]
        fn is_a_queue_from_which_anyone_can_leave(steps in steps()) {
            let mut list = WaitList::new();
            let mut model = VecDeque::new();
            let mut all = Vec::new();
            for step in steps {
                match step {
                    Step::Push => {
                        let cell = WaitCell::new(Home::Thread(std::thread::current()));
                        let epoch = cell.begin(0);
                        let place = list.push_for(Waiter::new(&cell, epoch), all.len());
                        model.push_back(all.len());
                        all.push((cell, epoch, place));
                    }
                    Step::Pop => {
                        let popped = list.pop();
                        let expected = model.pop_front();
                        prop_assert_eq!(list.is_empty(), model.is_empty());
                        prop_assert_eq!(list.first().map(|(_, n)| *n), model.front().copied());
                        prop_assert_eq!(popped.is_some(), expected.is_some());
                        if let (Some(waiter), Some(n)) = (popped, expected) {
                            let (cell, epoch, _) = &all[n];
                            prop_assert!(waiter.is_of(cell, *epoch));
                        }
                    }
                    Step::Remove(index) => {
                        if !all.is_empty() {
                            let n = index.index(all.len());
                            let (cell, epoch, place) = &all[n];
                            let was_in = model.contains(&n);
                            prop_assert_eq!(list.remove(*place, cell, *epoch), was_in);
                            model.retain(|&m| m != n);
                        }
                    }
                }
            }
        }
    }
}
