//! What a hub tells of itself.

use super::inner::Inner;

/// What a hub has done so far and what it holds, from [`Hub::stats`](crate::Hub::stats).
///
/// ```
/// let before = greenroom::hub().stats();
/// greenroom::spawn(|| greenroom::yield_now()).join().unwrap();
/// let after = greenroom::hub().stats();
/// assert_eq!(after.spawned - before.spawned, 1);
/// assert_eq!(after.resumes - before.resumes, 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HubStats {
    /// Greenlets that have not ended; main doesn't count.
    pub greenlets: usize,
    /// Greenlets that can run now, main among them.
    pub ready: usize,
    /// Deadlines under way: sleeps, timeouts, delayed starts.
    pub timers: usize,
    /// Greenlets spawned so far, links and calls of [`HubHandle::spawn`](crate::HubHandle::spawn) among them.
    pub spawned: u64,
    /// How often a greenlet was resumed.
    pub resumes: u64,
    /// How often the hub went to sleep in the kernel.
    pub sleeps: u64,
    /// Stacks that greenlets run on or are parked on.
    pub stacks_in_use: usize,
    /// Stacks kept for the next greenlets.
    pub stacks_cached: usize,
    /// Bytes of address space reserved for stacks; memory is used only for the pages that are touched.
    pub stack_bytes_reserved: usize,
}

impl Inner {
    pub(super) fn stats(&self) -> HubStats {
        let stacks = self.stacks.stats();
        HubStats {
            greenlets: self.live(),
            ready: self.ready.len(),
            timers: self.timers.borrow().len(),
            spawned: self.spawned.get(),
            resumes: self.resumes.get(),
            sleeps: self.sleeps.get(),
            stacks_in_use: stacks.in_use,
            stacks_cached: stacks.warm + stacks.cold,
            stack_bytes_reserved: stacks.mapped_bytes,
        }
    }
}
