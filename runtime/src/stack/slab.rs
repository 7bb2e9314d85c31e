//! One big reservation of address space, cut into stacks.

use std::io;
use std::marker::PhantomData;

use super::{Bounds, Stack};
use crate::sys;

/// Stacks of one size, side by side; the lowest page of each is its guard, so there is one between any two neighbours.
///
/// There is no `Drop`: a slab that is forgotten stays mapped, which is what a suspended coroutine on it needs.
#[derive(Debug)]
pub(super) struct Slab {
    /// Lowest address of the reservation.
    start: usize,
    /// Bytes reserved, a multiple of the stack size.
    bytes: usize,
    /// Bytes from `start` that have become stacks; a multiple of the stack size, at most `bytes`.
    carved: usize,
}

impl Slab {
    /// Reserves `bytes`; where the kernel refuses, half of it, and so on down to one stack.
    ///
    /// Both sizes are powers of two in whole pages, and `stack_size <= bytes`.
    pub(super) fn reserve(mut bytes: usize, stack_size: usize) -> io::Result<Slab> {
        loop {
            match sys::reserve(bytes) {
                Ok(start) => return Ok(Slab { start, bytes, carved: 0 }),
                Err(_) if bytes > stack_size => bytes /= 2,
                Err(error) => return Err(error),
            }
        }
    }

    /// Cuts off the next stack and guards it; `index` is what the stack shall remember as its slab.
    ///
    /// If the kernel refuses the guard the memory stays uncut, to be tried again.
    pub(super) fn carve(&mut self, stack_size: usize, index: u32) -> io::Result<Stack> {
        debug_assert!(!self.is_used_up());
        let guard = self.start + self.carved;
        let bounds = Bounds { guard, limit: guard + sys::page_size(), base: guard + stack_size };
        // SAFETY: whole pages of our reservation that no stack has had yet, so nobody has a reference into them.
        unsafe { sys::guard(bounds.guard..bounds.limit)? };
        self.carved += stack_size;
        Ok(Stack { bounds, slab: index, _not_send: PhantomData })
    }

    /// Whether it has no memory left to cut a stack from.
    pub(super) fn is_used_up(&self) -> bool {
        self.carved == self.bytes
    }

    /// Bytes of address space.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that have become stacks.
    pub(super) fn carved(&self) -> usize {
        self.carved
    }

    /// Gives the address space back.
    ///
    /// # Safety
    ///
    /// No stack that was cut from it exists any more, except inside the caller, who won't use it.
    pub(super) unsafe fn release(self) {
        // SAFETY: the reservation is ours, whole, and the caller vouches that nobody runs on it.
        unsafe { sys::release(self.start..self.start + self.bytes) };
    }
}
