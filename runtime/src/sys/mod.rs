//! The few calls that differ between kernels, each with its fallback.
//!
//! Everything above this folder is the same on every Unix. What a kernel does better than the common denominator is
//! behind one set of names, chosen here and nowhere else:
//!
//! | name | Linux | elsewhere |
//! |---|---|---|
//! | [`reserve`] | no swap accounting, no huge pages | plain `mmap` |
//! | [`discard`] | `MADV_DONTNEED`: gone at once | `MADV_FREE`: gone when the kernel wants them |
//! | [`guard`] | `MADV_GUARD_INSTALL`, else `mprotect` | `mprotect` |
//! | [`signal_frame_size`] | asked of the kernel | a constant |
//! | [`thread_count`] | from procfs | unknown |
//! | [`ShortSlice`] | `sched_setattr` | none |
//! | [`Alarm`] | a timerfd | none; the poll's own milliseconds |
//!
//! `memory.rs` holds what needs no such choice. `RUSTFLAGS="--cfg greenroom_fallback"` forces the right-hand column on
//! Linux too, so that one machine tests both.

mod memory;

pub(crate) use memory::{page_size, release};

cfg_select! {
    all(target_os = "linux", not(greenroom_fallback)) => {
        mod linux;
        mod timerfd;
        pub(crate) use linux::{ShortSlice, discard, guard, reserve, signal_frame_size, thread_count};
        #[cfg(test)]
        pub(crate) use linux::guards_are_advice;
        pub(crate) use timerfd::Alarm;
    }
    _ => {
        mod fallback;
        pub(crate) use fallback::{Alarm, ShortSlice, discard, guard, reserve, signal_frame_size, thread_count};
        #[cfg(test)]
        pub(crate) use fallback::guards_are_advice;
    }
}
