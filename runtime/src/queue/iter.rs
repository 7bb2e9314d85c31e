//! Getting until the queue is closed.

use super::error::GetError;

/// What the iterators need of a queue. Nobody outside can name it.
pub trait Source {
    type Item;

    fn next(&self) -> Result<Self::Item, GetError>;
}

/// The items of a queue, until it is closed and empty: what `iter` of a queue gives. `next` parks as `get` does.
#[derive(Clone, Copy, Debug)]
#[must_use = "an iterator does nothing until it is used"]
pub struct Iter<'a, Q>(pub(super) &'a Q);

/// The items of a queue, until it is closed and empty; keeps a handle of the queue. `next` parks as `get` does.
#[derive(Clone, Debug)]
#[must_use = "an iterator does nothing until it is used"]
pub struct IntoIter<Q>(pub(super) Q);

impl<Q: Source> Iterator for Iter<'_, Q> {
    type Item = Q::Item;

    fn next(&mut self) -> Option<Q::Item> {
        self.0.next().ok()
    }
}

impl<Q: Source> Iterator for IntoIter<Q> {
    type Item = Q::Item;

    fn next(&mut self) -> Option<Q::Item> {
        self.0.next().ok()
    }
}
