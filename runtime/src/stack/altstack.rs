//! A stack for signal handlers.

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use crate::sys;

/// Room for handlers, beyond what the kernel pushes.
const ROOM: usize = 32 << 10;

/// This thread's alternate signal stack: where the fault handler runs, as the stack that overflowed has no room for it.
///
/// Threads that Rust started have one from the standard library. Those that others started haven't.
#[derive(Debug)]
pub(crate) struct AltStack {
    /// The mapping: a guard page, and above it what the kernel was told.
    pages: Range<usize>,
    /// It is this thread's, and no other can take it back.
    _not_send: PhantomData<*mut ()>,
}

impl AltStack {
    /// Installs one on this thread; `None` if it has one, or if the kernel refuses it.
    pub(crate) fn ensure() -> Option<AltStack> {
        if current().ss_flags & libc::SS_DISABLE == 0 {
            return None;
        }
        let guard = sys::page_size();
        let bytes = (guard + sys::signal_frame_size() + ROOM).next_multiple_of(guard);
        let start = sys::reserve(bytes).ok()?;
        let stack = AltStack { pages: start..start + bytes, _not_send: PhantomData };
        // SAFETY: the first page of our mapping, which nobody knows of yet.
        unsafe { sys::guard(start..start + guard) }.ok()?;
        let usable = libc::stack_t { ss_sp: (start + guard) as *mut libc::c_void, ss_flags: 0, ss_size: bytes - guard };
        // SAFETY: `usable` describes memory that is ours until `drop` has taken it back from the kernel.
        let refused = unsafe { libc::sigaltstack(&usable, ptr::null_mut()) };
        (refused == 0).then_some(stack)
    }
}

impl Drop for AltStack {
    /// Takes it back, so that the thread has none again.
    fn drop(&mut self) {
        if self.pages.contains(&(current().ss_sp as usize)) {
            let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: self.pages.len() };
            // SAFETY: disabling reads only `none`. `!Send` makes this the thread that it was installed on.
            if unsafe { libc::sigaltstack(&none, ptr::null_mut()) } != 0 {
                // A handler is running on it right now: it has to stay.
                return;
            }
        }
        // SAFETY: our mapping, and this thread's handlers run elsewhere from here on.
        unsafe { sys::release(self.pages.clone()) };
    }
}

/// What the kernel has as this thread's alternate stack.
fn current() -> libc::stack_t {
    let mut now = MaybeUninit::uninit();
    // SAFETY: only asks; `now` has room for the answer.
    let refused = unsafe { libc::sigaltstack(ptr::null(), now.as_mut_ptr()) };
    assert_eq!(refused, 0, "asking for the alternate signal stack can't fail");
    // SAFETY: the call succeeded, so it has filled `now`.
    unsafe { now.assume_init() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installs_one_only_where_there_is_none_and_takes_it_back() {
        std::thread::spawn(|| {
            assert!(AltStack::ensure().is_none(), "the standard library has installed one");
            let none = libc::stack_t { ss_sp: ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 1 << 16 };
            let mut before = MaybeUninit::uninit();
            // SAFETY: both arguments are valid; the thread's old stack is put back below.
            assert_eq!(unsafe { libc::sigaltstack(&none, before.as_mut_ptr()) }, 0);

            let ours = AltStack::ensure().unwrap();
            assert_eq!(current().ss_flags & libc::SS_DISABLE, 0);
            assert!(current().ss_size >= ROOM + sys::signal_frame_size());
            assert!(AltStack::ensure().is_none());
            drop(ours);
            assert_ne!(current().ss_flags & libc::SS_DISABLE, 0);

            // SAFETY: what the standard library had installed, and frees itself.
            assert_eq!(unsafe { libc::sigaltstack(before.as_ptr(), ptr::null_mut()) }, 0);
        })
        .join()
        .unwrap();
    }
}
