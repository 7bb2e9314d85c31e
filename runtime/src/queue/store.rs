//! In which order items come out.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// What a queue keeps its items in.
pub(super) trait Store: Default {
    type Item;

    fn push(&mut self, item: Self::Item);

    /// Puts back the item that was the `number`-th to go out, as far as the order knows of that.
    fn put_back(&mut self, number: u64, item: Self::Item);

    fn pop(&mut self) -> Option<Self::Item>;

    fn len(&self) -> usize;
}

/// The oldest first.
pub(super) struct Fifo<T> {
    items: VecDeque<T>,
    /// What came back, which is older than all else, in the order in which it had gone out.
    back: VecDeque<(u64, T)>,
}

/// The newest first.
pub(super) struct Lifo<T>(Vec<T>);

/// The smallest first; the order of equal ones is unspecified.
pub(super) struct Smallest<T>(BinaryHeap<Upside<T>>);

/// `BinaryHeap` gives the greatest first.
struct Upside<T>(T);

impl<T> Default for Fifo<T> {
    fn default() -> Fifo<T> {
        Fifo { items: VecDeque::new(), back: VecDeque::new() }
    }
}

impl<T> Default for Lifo<T> {
    fn default() -> Lifo<T> {
        Lifo(Vec::new())
    }
}

impl<T: Ord> Default for Smallest<T> {
    fn default() -> Smallest<T> {
        Smallest(BinaryHeap::new())
    }
}

impl<T> Store for Fifo<T> {
    type Item = T;

    fn push(&mut self, item: T) {
        self.items.push_back(item);
    }

    fn put_back(&mut self, number: u64, item: T) {
        let place = self.back.partition_point(|(other, _)| *other < number);
        self.back.insert(place, (number, item));
    }

    #[inline]
    fn pop(&mut self) -> Option<T> {
        match self.back.pop_front() {
            Some((_, item)) => Some(item),
            None => self.items.pop_front(),
        }
    }

    #[inline]
    fn len(&self) -> usize {
        self.items.len() + self.back.len()
    }
}

impl<T> Store for Lifo<T> {
    type Item = T;

    fn push(&mut self, item: T) {
        self.0.push(item);
    }

    fn put_back(&mut self, _: u64, item: T) {
        self.0.push(item);
    }

    fn pop(&mut self) -> Option<T> {
        self.0.pop()
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T: Ord> Store for Smallest<T> {
    type Item = T;

    fn push(&mut self, item: T) {
        self.0.push(Upside(item));
    }

    fn put_back(&mut self, _: u64, item: T) {
        self.push(item);
    }

    fn pop(&mut self) -> Option<T> {
        self.0.pop().map(|item| item.0)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T: Ord> Ord for Upside<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.cmp(&self.0)
    }
}

impl<T: Ord> PartialOrd for Upside<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> PartialEq for Upside<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T: Ord> Eq for Upside<T> {}
