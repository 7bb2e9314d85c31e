//! What happens where the kernel says no, and how much of it is used: each in a process of its own.

use super::*;
use crate::stack::child;

/// Pages of address space and pages in memory of this process.
fn pages() -> [usize; 2] {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let mut fields = statm.split(' ').map(|field| field.parse().unwrap());
    [(); 2].map(|()| fields.next().unwrap())
}

/// Bytes of this process that are in memory.
fn resident() -> usize {
    pages()[1] * sys_page()
}

#[test]
fn a_hundred_thousand_stacks_need_a_page_each_and_few_mappings() {
    const COUNT: usize = 100_000;
    let Some(output) = child::run(module_path!(), "a_hundred_thousand_stacks_need_a_page_each_and_few_mappings") else {
        let before = resident();
        let pool = StackPool::new(USUAL);
        let mut stacks = Vec::new();
        for _ in 0..COUNT {
            match pool.take() {
                Ok(stack) => stacks.push(stack),
                // Guards by page protection run into vm.max_map_count, and that's an error like any other.
                Err(error) => {
                    assert!(!crate::sys::guards_are_advice());
                    assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
                    assert!(error.to_string().contains("vm.max_map_count"), "{error}");
                    assert!(stacks.len() > 20_000);
                    break;
                }
            }
            write(stacks.last().unwrap().bounds().base - 1, 1);
        }
        if stacks.len() == COUNT {
            let stats = pool.stats();
            assert!(stats.mappings < 20 && stats.mapped_bytes < 3 * COUNT * USUAL, "{stats:?}");
            // A page each, and some bytes for our own list of them.
            assert!(resident() - before < COUNT * (sys_page() + 128));
        }
        return stacks.into_iter().for_each(|stack| pool.give(stack));
    };
    child::succeeded(&output);
}

#[cfg(not(greenroom_fallback))]
#[test]
fn recycled_stacks_hold_no_more_than_the_budgets() {
    const COUNT: usize = 40_000;
    let name = "recycled_stacks_hold_no_more_than_the_budgets";
    let Some(output) = child::run(module_path!(), name) else {
        let before = resident();
        let pool = StackPool::new(USUAL);
        for _ in 0..2 {
            let stacks: Vec<Stack> = (0..COUNT).map(|_| pool.take().unwrap()).collect();
            for stack in &stacks {
                write(stack.bounds().base - 1, 1);
                write(stack.bounds().base - 3 * sys_page(), 1);
            }
            assert!(resident() - before >= 2 * COUNT * sys_page());
            stacks.into_iter().for_each(|stack| pool.give(stack));
            let stats = pool.stats();
            assert_eq!([stats.warm, stats.cold, stats.in_use], [256, COUNT - 256, 0]);
            // The cool ones' pages, two of each warm one, and our own list of them.
            assert!(resident() - before < (64 << 20) + 512 * sys_page() + COUNT * 128);
        }
        return;
    };
    child::succeeded(&output);
}

#[test]
fn where_address_space_ends_there_is_an_error_and_the_pool_still_works() {
    let name = "where_address_space_ends_there_is_an_error_and_the_pool_still_works";
    let Some(output) = child::run(module_path!(), name) else {
        let pool = StackPool::new(USUAL);
        let first = pool.take().unwrap();
        let now = (pages()[0] * sys_page()) as libc::rlim_t;
        let limit = libc::rlimit { rlim_cur: now + (100 << 20), rlim_max: libc::RLIM_INFINITY };
        // SAFETY: reads `limit`; this process is the test's own.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);

        let error = pool.take_sized(512 << 20).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
        assert!(error.to_string().contains(&(512 << 20).to_string()), "{error}");

        // Smaller and smaller slabs, until not one stack fits.
        let mut stacks = vec![first];
        let error = loop {
            match pool.take() {
                Ok(stack) => stacks.push(stack),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory);
        assert!(stacks.len() * USUAL > 90 << 20, "{} stacks", stacks.len());
        pool.give(stacks.pop().unwrap());
        let stack = pool.take().unwrap();
        write(stack.bounds().limit, 1);
        pool.give(stack);
        return stacks.into_iter().for_each(|stack| pool.give(stack));
    };
    child::succeeded(&output);
}

#[test]
fn locked_memory_is_guarded_as_well() {
    let Some(output) = child::run(module_path!(), "locked_memory_is_guarded_as_well") else {
        // SAFETY: concerns what this process maps from here on, and is undone below.
        if unsafe { libc::mlockall(libc::MCL_FUTURE | libc::MCL_ONFAULT) } == 0 {
            let pool = StackPool::new(USUAL);
            let stacks: Vec<Stack> = (0..300).map_while(|_| pool.take().ok()).collect();
            assert!(!stacks.is_empty());
            for stack in &stacks {
                write(stack.bounds().limit, 1);
            }
            stacks.into_iter().for_each(|stack| pool.give(stack));
            assert_eq!(pool.stats().in_use, 0);
            // SAFETY: as above.
            assert_eq!(unsafe { libc::munlockall() }, 0);
        }
        return;
    };
    child::succeeded(&output);
}
