//! Memory for greenlets: stacks with guard pages, recycled, and a report when one overflows.
//!
//! `README.md` beside this file argues the design. The files, from the bottom up:
//!
//! * `slab.rs`: one big reservation of address space, cut into stacks of one size as they are asked for.
//! * `shelf.rs`: all slabs of one size, and the stacks that came back: *warm* as they were left, *cool* with their top
//!   page only, or *cold* with none.
//! * `pool.rs`: the hub's [`StackPool`], a shelf per size and the byte budgets that decide who stays warm or cool.
//! * `overflow.rs`: the fault handler that recognises a guard page, with `report.rs` for the line it writes and
//!   `altstack.rs` for the stack it runs on.

use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::ops::Range;

mod altstack;
mod overflow;
mod pool;
mod report;
mod shelf;
mod slab;

#[cfg(test)]
mod child;
#[cfg(test)]
mod tests;

pub(crate) use altstack::AltStack;
pub(crate) use overflow::{Note, install, publish};
pub(crate) use pool::StackPool;

/// Where a stack lies: `guard < limit < base`, in whole pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The lowest address: that of the guard page, which faults.
    pub(crate) guard: usize,
    /// The end of the guard page: the lowest address that can be used.
    pub(crate) limit: usize,
    /// The end of the stack, where it starts to grow downwards.
    pub(crate) base: usize,
}

impl Bounds {
    /// Whether `address` is in the guard page. Never, for the bounds of no stack (all zero).
    fn guards(&self, address: usize) -> bool {
        (self.guard..self.limit).contains(&address)
    }

    /// Bytes of address space, the guard page among them.
    fn size(&self) -> usize {
        self.base - self.guard
    }

    /// The pages that can be used.
    fn usable(&self) -> Range<usize> {
        self.limit..self.base
    }
}

/// One stack, on loan from the [`StackPool`] that it must be given back to.
///
/// One that is dropped instead is leaked, with its slab: something suspended may still lie on it, so nothing but the
/// pool's owner can know that it is free.
#[derive(Debug)]
#[must_use = "a stack that isn't given back is never used again"]
pub(crate) struct Stack {
    /// Inside the slab that `slab` names, and nobody else's while this value lives.
    bounds: Bounds,
    /// Index among the slabs of its size in its pool.
    slab: u32,
    /// Its pool is one thread's.
    _not_send: PhantomData<*mut ()>,
}

impl Stack {
    /// Where it lies.
    #[inline]
    pub(crate) fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Bytes of address space, the guard page among them: what was asked for, rounded up.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.bounds.size()
    }
}

// SAFETY: the memory is this value's alone and stays mapped for as long as the value exists; its lowest page is a guard
// page; the rest is a page at least, thus no less than `MIN_STACK_SIZE`; both ends are page aligned.
unsafe impl corosensei::stack::Stack for Stack {
    #[inline]
    fn base(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.bounds.base).expect("memory is never mapped at the end of address space")
    }

    #[inline]
    fn limit(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.bounds.guard).expect("memory is never mapped at address zero")
    }
}
