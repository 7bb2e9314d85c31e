//! The stacks of one hub.

use std::cell::{Cell, RefCell};
use std::io;

use super::Stack;
use super::shelf::Shelf;
use crate::sys;

/// How many bytes of stacks may be warm. Counted at full size, so it also bounds what deep calls left resident.
const WARM_BUDGET: usize = 64 << 20;

/// How many bytes of top pages cool stacks may keep: 16,384 stacks where a page is 4 KiB.
const COOL_BUDGET: usize = 64 << 20;

/// How many stacks of the default size may be warm whatever their size.
const WARM_AT_LEAST: usize = 4;

/// Smallest stack, its guard page included (more where pages are larger than 4 KiB: a guard and three of them).
pub(crate) const MIN_SIZE: usize = 16 << 10;

/// Lends stacks and takes them back: the ones given back last are lent first.
#[derive(Debug)]
pub(crate) struct StackPool {
    /// Stacks of the default size.
    usual: RefCell<Shelf>,
    /// Other sizes, in the order in which they were first asked for; no two of the same, none the default.
    others: RefCell<Vec<Shelf>>,
    /// Bytes of the warm stacks on all shelves.
    warm_bytes: Cell<usize>,
    /// Bytes of the cool stacks' top pages on all shelves.
    cool_bytes: Cell<usize>,
}

/// What a pool holds, in stacks of all sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stats {
    /// Stacks lent and not given back, leaked ones among them.
    pub(crate) in_use: usize,
    /// Stacks given back that kept their pages.
    pub(crate) warm: usize,
    /// Stacks given back whose pages went to the kernel, all of them or all but the top one.
    pub(crate) cold: usize,
    /// Slabs reserved. (Guards made by page protection split them into more mappings than this.)
    pub(crate) mappings: usize,
    /// Address space of the slabs; memory only where it was touched.
    pub(crate) mapped_bytes: usize,
}

impl StackPool {
    /// A pool whose [`take`](Self::take) lends stacks of `default_size` bytes, rounded as in
    /// [`take_sized`](Self::take_sized). Reserves nothing yet.
    pub(crate) fn new(default_size: usize) -> StackPool {
        // A size that can't be rounded becomes one that no kernel grants, so that `take` reports it.
        let size = slot_size(default_size).unwrap_or(1 << (usize::BITS - 1));
        StackPool {
            usual: RefCell::new(Shelf::new(size)),
            others: RefCell::new(Vec::new()),
            warm_bytes: Cell::new(0),
            cool_bytes: Cell::new(0),
        }
    }

    /// Lends a stack of the default size.
    ///
    /// # Errors
    ///
    /// `OutOfMemory` if the kernel refuses even one stack's address space, or its guard page. Those lent before are not
    /// affected, and those given back can be taken again.
    #[inline]
    pub(crate) fn take(&self) -> io::Result<Stack> {
        self.take_from(&mut self.usual.borrow_mut())
    }

    /// Lends a stack of at least `bytes`, its guard page included: at least [`MIN_SIZE`], and rounded up to a power of
    /// two of whole pages, so that there are few sizes and each is soon met again.
    ///
    /// # Errors
    ///
    /// As [`take`](Self::take); `InvalidInput` if `bytes` can't be rounded up.
    pub(crate) fn take_sized(&self, bytes: usize) -> io::Result<Stack> {
        let size = slot_size(bytes).ok_or_else(|| {
            let why = format!("a stack of {bytes} bytes is larger than address space");
            io::Error::new(io::ErrorKind::InvalidInput, why)
        })?;
        if size == self.usual.borrow().size {
            return self.take();
        }
        let mut others = self.others.borrow_mut();
        let index = others.iter().position(|shelf| shelf.size == size).unwrap_or_else(|| {
            others.push(Shelf::new(size));
            others.len() - 1
        });
        self.take_from(&mut others[index])
    }

    /// Takes a stack back. It stays as it is while that is within the budget; else its pages go to the kernel.
    ///
    /// # Panics
    ///
    /// If the stack is of a size that this pool never lent. (One of another pool with the same sizes goes unnoticed
    /// here; greenlets never change hubs.)
    #[inline]
    pub(crate) fn give(&self, stack: Stack) {
        let size = stack.size();
        let mut usual = self.usual.borrow_mut();
        if size == usual.size {
            let few = usual.warm.len() < WARM_AT_LEAST;
            self.put(&mut usual, stack, few);
        } else {
            let mut others = self.others.borrow_mut();
            let shelf = others.iter_mut().find(|shelf| shelf.size == size).expect("a stack that this pool lent");
            self.put(shelf, stack, false);
        }
    }

    /// What the pool holds now. Walks the slabs, of which there are a few dozen at most.
    pub(crate) fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        for shelf in std::iter::once(&*self.usual.borrow()).chain(&*self.others.borrow()) {
            let (mappings, mapped_bytes) = shelf.mapped();
            stats.in_use += shelf.in_use();
            stats.warm += shelf.warm.len();
            stats.cold += shelf.cool.len() + shelf.cold.len();
            stats.mappings += mappings;
            stats.mapped_bytes += mapped_bytes;
        }
        stats
    }

    /// Takes the best stack that `shelf` has.
    #[inline]
    fn take_from(&self, shelf: &mut Shelf) -> io::Result<Stack> {
        match shelf.warm.pop() {
            Some(stack) => {
                self.warm_bytes.set(self.warm_bytes.get() - stack.size());
                Ok(stack)
            }
            None => self.take_next_best(shelf),
        }
    }

    /// A stack that isn't warm: cool, else cold, else new.
    #[cold]
    fn take_next_best(&self, shelf: &mut Shelf) -> io::Result<Stack> {
        if let Some(stack) = shelf.cool.pop() {
            self.cool_bytes.set(self.cool_bytes.get() - sys::page_size());
            return Ok(stack);
        }
        if let Some(stack) = shelf.cold.pop() {
            return Ok(stack);
        }
        shelf.carve().map_err(|error| {
            let why = format!("no memory for a stack of {} bytes: {error}", shelf.size);
            io::Error::new(io::ErrorKind::OutOfMemory, why)
        })
    }

    /// Puts `stack` on its shelf, warm if `few` or if the budget allows it.
    #[inline]
    fn put(&self, shelf: &mut Shelf, stack: Stack, few: bool) {
        let warm_bytes = self.warm_bytes.get() + stack.size();
        if few || warm_bytes <= WARM_BUDGET {
            self.warm_bytes.set(warm_bytes);
            shelf.warm.push(stack);
        } else {
            self.put_away(shelf, stack);
        }
    }

    /// Puts `stack` on its shelf, cool if the budget allows it, else cold.
    #[cold]
    fn put_away(&self, shelf: &mut Shelf, stack: Stack) {
        let cool_bytes = self.cool_bytes.get() + sys::page_size();
        if cool_bytes <= COOL_BUDGET {
            self.cool_bytes.set(cool_bytes);
            shelf.cool(stack);
        } else {
            shelf.chill(stack);
        }
    }
}

/// The size of the stack that is lent for `bytes`, or `None` if it overflows.
fn slot_size(bytes: usize) -> Option<usize> {
    bytes.max(MIN_SIZE).max(4 * sys::page_size()).checked_next_power_of_two()
}
