//! Address space, as every Unix gives it.

use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::OnceLock;

/// Bytes in a page: 4,096 on x86-64, up to 65,536 elsewhere.
#[inline]
pub(crate) fn page_size() -> usize {
    static SIZE: OnceLock<usize> = OnceLock::new();
    *SIZE.get_or_init(|| {
        // SAFETY: sysconf reads a constant of the system and touches no memory of ours.
        let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        usize::try_from(size).expect("every Unix knows its page size")
    })
}

/// Maps `bytes` of private zeros, readable and writable, with `extra` flags; returns the lowest address.
pub(super) fn map(bytes: usize, extra: libc::c_int) -> io::Result<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | extra;
    // SAFETY: the kernel picks the place (no MAP_FIXED), so no mapping that exists is touched.
    let start = unsafe { libc::mmap(ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    Ok(start as usize)
}

/// Gives address space back to the kernel.
///
/// # Safety
///
/// `range` is whole pages that [`reserve`](super::reserve) returned, and nobody uses them any more.
pub(crate) unsafe fn release(range: Range<usize>) {
    // SAFETY: the caller owns these pages and has no pointer into them left.
    let refused = unsafe { libc::munmap(range.start as *mut libc::c_void, range.len()) };
    // ENOMEM is possible: to unmap the middle of a mapping splits it. Then the pages stay, unused, which harms nobody.
    debug_assert!(refused == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::ENOMEM));
}

/// Makes the pages of `range` fault on every access, by page protection. Splits the mapping in up to three.
///
/// # Safety
///
/// As for [`guard`](super::guard).
pub(super) unsafe fn protect(range: Range<usize>) -> io::Result<()> {
    // SAFETY: the caller owns these pages and has no reference into them.
    let refused = unsafe { libc::mprotect(range.start as *mut libc::c_void, range.len(), libc::PROT_NONE) };
    if refused != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Passes advice on `range` to the kernel.
///
/// # Safety
///
/// `range` is whole pages that [`reserve`](super::reserve) returned, and the caller can bear what the advice does.
pub(super) unsafe fn advise(range: Range<usize>, advice: libc::c_int) -> io::Result<()> {
    // SAFETY: the caller vouches for the pages and for the effect.
    let refused = unsafe { libc::madvise(range.start as *mut libc::c_void, range.len(), advice) };
    if refused != 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
