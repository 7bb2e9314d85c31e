//! One deep call on a stack of its own.

use corosensei::on_stack;

use crate::greenlet::core::Core;
use crate::greenlet::current;
use crate::hub;
use crate::stack::{self, AltStack, Bounds, Stack, StackPool};

/// Calls `f` on a stack of `bytes` bytes (rounded up to a power of two of pages; memory is used for the pages that are
/// touched), and returns what it returns: for one deep recursion in a greenlet whose own stack is small. `f` may park; a
/// panic, a kill or a timeout passes through. Doesn't park itself. Works in greenlets, on main and on plain threads; makes
/// no hub.
///
/// # Panics
///
/// When the kernel refuses the memory; the text says how much was asked for.
///
/// ```
/// fn depth(n: u64) -> u64 {
///     if n == 0 { 0 } else { 1 + std::hint::black_box(depth(n - 1)) }
/// }
///
/// let deep = greenroom::spawn(|| greenroom::on_big_stack(64 << 20, || depth(100_000)));
/// assert_eq!(deep.join().unwrap(), 100_000);
/// ```
pub fn on_big_stack<T>(bytes: usize, f: impl FnOnce() -> T) -> T {
    hub::with_current(|hub| match hub {
        Some(hub) => run(hub.stacks(), bytes, f),
        None => {
            stack::install();
            let _alt_stack = AltStack::ensure();
            run(&StackPool::new(bytes), bytes, f)
        }
    })
}

fn run<T>(pool: &StackPool, bytes: usize, f: impl FnOnce() -> T) -> T {
    let stack = pool.take_sized(bytes).unwrap_or_else(|error| panic!("on_big_stack: {error}"));
    current::with(|core| {
        let mut lent = Lent { pool, core, outer: core.note.bounds.replace(stack.bounds()), stack: Some(stack) };
        match &mut lent.stack {
            Some(stack) => on_stack(stack, f),
            None => unreachable!("the stack is given back in the destructor"),
        }
    })
}

/// The stack in use; given back, and the overflow report told, on every path.
struct Lent<'a> {
    pool: &'a StackPool,
    core: &'a Core,
    /// Where the code ran before.
    outer: Bounds,
    /// `Some` until the destructor.
    stack: Option<Stack>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.core.note.bounds.set(self.outer);
        if let Some(stack) = self.stack.take() {
            self.pool.give(stack);
        }
    }
}
