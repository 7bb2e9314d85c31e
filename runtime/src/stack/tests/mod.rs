//! What a pool promises about memory: apart, guarded, writable, counted, given back.

use proptest::prelude::*;

use super::pool::{MIN_SIZE, Stats};
use super::*;

#[cfg(target_os = "linux")]
mod limits;

/// The default of greenlets.
const USUAL: usize = 256 << 10;

fn write(address: usize, byte: u8) {
    // SAFETY: only called for addresses in the usable part of a stack that the test holds.
    unsafe { (address as *mut u8).write_volatile(byte) };
}

fn read(address: usize) -> u8 {
    // SAFETY: as above.
    unsafe { (address as *const u8).read_volatile() }
}

fn sys_page() -> usize {
    crate::sys::page_size()
}

/// Pages of `range` that are in memory.
#[cfg(target_os = "linux")]
fn resident_pages(range: Range<usize>) -> usize {
    let mut pages = vec![0u8; range.len() / sys_page()];
    // SAFETY: asks about mapped pages; there is one byte of room per page.
    let refused = unsafe { libc::mincore(range.start as *mut libc::c_void, range.len(), pages.as_mut_ptr()) };
    assert_eq!(refused, 0);
    pages.iter().filter(|&&page| page & 1 == 1).count()
}

#[derive(Clone, Debug)]
enum Step {
    Take,
    TakeSized(usize),
    /// Give back one of those held, counted from the oldest.
    Give(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Take),
        3 => prop_oneof![0..3 * MIN_SIZE, Just(USUAL), Just(32 << 20)].prop_map(Step::TakeSized),
        4 => any::<prop::sample::Index>().prop_map(|index| Step::Give(index.index(64))),
    ]
}

proptest! {
    #[test]
    fn stacks_are_apart_aligned_writable_and_counted(steps in prop::collection::vec(step(), 1..150)) {
        let pool = StackPool::new(USUAL);
        let mut held: Vec<(Stack, u8)> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            let asked = match step {
                Step::Take => USUAL,
                Step::TakeSized(bytes) => bytes,
                Step::Give(_) if held.is_empty() => continue,
                Step::Give(index) => {
                    let (stack, mark) = held.remove(index % held.len());
                    prop_assert_eq!(read(stack.bounds().limit), mark);
                    prop_assert_eq!(read(stack.bounds().base - 1), mark);
                    pool.give(stack);
                    prop_assert_eq!(pool.stats().in_use, held.len());
                    continue;
                }
            };
            let stack = if matches!(step, Step::Take) { pool.take() } else { pool.take_sized(asked) }.unwrap();
            let Bounds { guard, limit, base } = stack.bounds();
            prop_assert_eq!([guard % sys_page(), limit % sys_page(), base % sys_page()], [0; 3]);
            prop_assert_eq!(limit - guard, sys_page());
            prop_assert_eq!(stack.size(), base - guard);
            let least = asked.max(MIN_SIZE).max(4 * sys_page());
            prop_assert!(stack.size().is_power_of_two() && (least..2 * least).contains(&stack.size()));
            for (other, _) in &held {
                prop_assert!(base <= other.bounds().guard || other.bounds().base <= guard);
            }
            // Each keeps its own mark at both ends until it goes back: nobody else writes there.
            let mark = number as u8;
            write(limit, mark);
            write(base - 1, mark);
            held.push((stack, mark));
            prop_assert_eq!(pool.stats().in_use, held.len());
        }
        let Stats { warm, cold, mapped_bytes, .. } = pool.stats();
        let all = held.len() + warm + cold;
        for (stack, _) in held.drain(..) {
            pool.give(stack);
        }
        let after = pool.stats();
        prop_assert_eq!([after.in_use, after.warm + after.cold, after.mapped_bytes], [0, all, mapped_bytes]);
    }
}

#[test]
fn the_stack_given_back_last_is_lent_first() {
    let pool = StackPool::new(USUAL);
    let stacks = [(); 3].map(|()| pool.take().unwrap());
    let order = stacks.each_ref().map(Stack::bounds);
    for stack in stacks {
        pool.give(stack);
    }
    let again = [(); 3].map(|()| pool.take().unwrap());
    assert_eq!(again.each_ref().map(Stack::bounds), [order[2], order[1], order[0]]);
}

#[test]
fn slabs_start_small_and_double() {
    let pool = StackPool::new(USUAL);
    assert_eq!(pool.stats(), Stats::default());
    let stacks: Vec<Stack> = (0..64 + 128 + 1).map(|_| pool.take().unwrap()).collect();
    let stats = pool.stats();
    assert_eq!([stats.in_use, stats.mappings, stats.mapped_bytes], [193, 3, (16 + 32 + 64) << 20]);
    stacks.into_iter().for_each(|stack| pool.give(stack));
}

#[test]
fn slabs_are_unmapped_with_the_pool_unless_a_stack_is_out() {
    let mapped = |bounds: Bounds| {
        // SAFETY: advice that does nothing; it fails where nothing is mapped.
        unsafe { libc::madvise(bounds.limit as *mut libc::c_void, sys_page(), libc::MADV_NORMAL) == 0 }
    };
    // So large that what tests in parallel map meanwhile doesn't reach down to the bottom of the hole.
    let pool = StackPool::new(1 << 30);
    let (out, back) = (pool.take().unwrap(), pool.take().unwrap());
    let (out_at, back_at) = (out.bounds(), back.bounds());
    pool.give(back);
    assert!(mapped(out_at) && mapped(back_at));
    drop(pool);
    assert!(mapped(out_at) && !mapped(back_at));
    write(out_at.limit, 1);
    drop(out);
    assert!(mapped(out_at), "a stack that is dropped is leaked");
}

#[cfg(target_os = "linux")]
#[test]
fn a_stack_costs_nothing_before_it_is_touched() {
    let pool = StackPool::new(USUAL);
    let stack = pool.take().unwrap();
    assert_eq!(resident_pages(stack.bounds().usable()), 0);
    write(stack.bounds().base - 1, 1);
    assert_eq!(resident_pages(stack.bounds().usable()), 1);
    pool.give(stack);
}

#[test]
fn beyond_the_budget_only_the_top_page_is_kept() {
    let pool = StackPool::new(USUAL);
    let stacks: Vec<Stack> = (0..300).map(|_| pool.take().unwrap()).collect();
    for stack in &stacks {
        write(stack.bounds().base - 1, 1);
        write(stack.bounds().limit, 1);
    }
    let last = stacks[299].bounds();
    stacks.into_iter().for_each(|stack| pool.give(stack));
    let stats = pool.stats();
    assert_eq!([stats.warm, stats.cold, stats.in_use], [256, 44, 0]);
    // The fallback's MADV_FREE keeps them until memory is short.
    #[cfg(all(target_os = "linux", not(greenroom_fallback)))]
    {
        assert_eq!(resident_pages(last.usable()), 1);
        assert_eq!(read(last.base - 1), 1);
        assert_eq!(read(last.limit), 0);
    }
    // They are lent again once the warm ones are out.
    let stacks: Vec<Stack> = (0..300).map(|_| pool.take().unwrap()).collect();
    assert!(stacks.iter().any(|stack| stack.bounds() == last));
    assert_eq!(pool.stats().mappings, stats.mappings);
    stacks.into_iter().for_each(|stack| pool.give(stack));
}

#[test]
fn the_budget_is_one_for_all_sizes() {
    let pool = StackPool::new(USUAL);
    let (large, larger) = (pool.take_sized(48 << 20).unwrap(), pool.take_sized(128 << 20).unwrap());
    pool.give(larger);
    assert_eq!(pool.stats().cold, 1, "alone over the budget");
    pool.give(large);
    assert_eq!([pool.stats().warm, pool.stats().cold], [1, 1]);
    // The budget is used up, but a few of the default size stay warm anyway.
    let stacks = [(); 6].map(|()| pool.take().unwrap());
    stacks.into_iter().for_each(|stack| pool.give(stack));
    assert_eq!([pool.stats().warm, pool.stats().cold], [1 + 4, 1 + 2]);
}

#[test]
fn a_size_that_overflows_is_named() {
    let pool = StackPool::new(usize::MAX);
    let error = pool.take_sized(usize::MAX - 1).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains(&(usize::MAX - 1).to_string()), "{error}");
    // As a default size it shows as soon as a stack is taken, and other sizes still work.
    assert_eq!(pool.take().unwrap_err().kind(), std::io::ErrorKind::OutOfMemory);
    pool.give(pool.take_sized(1).unwrap());
}
