//! Recognises a greenlet that has overflowed its stack, says so in one line, and aborts.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::panic::Location;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering, compiler_fence};
use std::sync::{Once, OnceLock};

use libc::{c_int, c_void, siginfo_t};

use super::Bounds;
use super::report::Line;

/// The faults that a guard page can raise: the first on Linux and FreeBSD, the second too on macOS.
const SIGNALS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// What was installed before, in the order of [`SIGNALS`]. Set before the handler can run.
static PREVIOUS: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

thread_local! {
    /// The note of the greenlet that runs on this thread, or null.
    ///
    /// Constant at the start and without a destructor, so that reading it in a handler neither allocates nor registers
    /// anything. An atomic because the handler may interrupt any instruction of this thread.
    static RUNNING: AtomicPtr<Note> = const { AtomicPtr::new(ptr::null_mut()) };
}

/// What the fault handler reads about the greenlet that runs.
#[derive(Debug)]
pub(crate) struct Note {
    /// Its stack; all zero while it has none of ours.
    pub(crate) bounds: Cell<Bounds>,
    /// Its id; 0 for the main greenlet.
    pub(crate) id: u64,
    /// Its name, if it was given one.
    pub(crate) name: Option<Box<str>>,
    /// Where it was spawned.
    pub(crate) site: &'static Location<'static>,
}

/// Says who runs on this thread from now on; null for nobody.
///
/// # Safety
///
/// `note` is null, or valid until this thread has published another. Its bounds are set before, not after.
#[inline]
pub(crate) unsafe fn publish(note: *const Note) {
    // The handler runs on this thread: only the compiler could show it the note before what is in it.
    compiler_fence(Ordering::Release);
    RUNNING.with(|running| running.store(note.cast_mut(), Ordering::Relaxed));
}

/// Installs the fault handler, once per process. A fault that isn't an overflow still goes to the handler before it.
pub(crate) fn install() {
    static INSTALL: Once = Once::new();
    INSTALL.call_once(|| {
        let previous = PREVIOUS.get_or_init(|| SIGNALS.map(action));
        for (signal, previous) in SIGNALS.into_iter().zip(previous) {
            let mut ours = *previous;
            ours.sa_sigaction = on_fault as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
            // The mask, SA_NODEFER and SA_RESTART stay the previous handler's, which runs inside ours. Ours needs
            // neither: without SA_NODEFER a fault in it ends the process as it would have without us.
            ours.sa_flags &= libc::SA_NODEFER | libc::SA_RESTART;
            ours.sa_flags |= libc::SA_SIGINFO | libc::SA_ONSTACK;
            // SAFETY: `ours` is a whole action with a handler of the signature that SA_SIGINFO stands for.
            let refused = unsafe { libc::sigaction(signal, &ours, ptr::null_mut()) };
            debug_assert_eq!(refused, 0, "both signals can be handled");
        }
    });
}

/// What the kernel does on `signal` now.
fn action(signal: c_int) -> libc::sigaction {
    let mut now = MaybeUninit::zeroed();
    // SAFETY: only asks; `now` has room for the answer.
    let refused = unsafe { libc::sigaction(signal, ptr::null(), now.as_mut_ptr()) };
    debug_assert_eq!(refused, 0, "both signals can be handled");
    // SAFETY: filled by the call; all zero, the default action, is valid too.
    unsafe { now.assume_init() }
}

/// The handler. On the alternate stack, in the middle of anything: no allocation, no lock, no panic.
extern "C" fn on_fault(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo for as long as the handler runs.
    let info_ref = unsafe { &*info };
    if is_fault(info_ref) {
        // SAFETY: as above; a fault has an address.
        let address = unsafe { info_ref.si_addr() } as usize;
        let note = RUNNING.with(|running| running.load(Ordering::Relaxed));
        // SAFETY: the publisher keeps it valid, and can't change it while its thread is in here.
        if let Some(note) = unsafe { note.as_ref() }.filter(|note| note.bounds.get().guards(address)) {
            report(note);
        }
    }
    forward(signal, info, context);
}

/// Whether the processor raised it, and not somebody with `kill`: only then there is an address.
fn is_fault(info: &siginfo_t) -> bool {
    // Codes of faults are small. Those of senders (`SI_USER` and its kin) are zero or below on Linux, far above on BSDs.
    (1..0x1_0000).contains(&info.si_code)
}

/// Writes the line, and aborts.
fn report(note: &Note) -> ! {
    let line = Line::overflow(note);
    let text = line.as_bytes();
    // SAFETY: the buffer is valid for its length. One attempt: there is nobody to tell that it failed.
    unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
    // SAFETY: abort may be called in a handler.
    unsafe { libc::abort() }
}

/// Does what would have happened without us.
fn forward(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let index = SIGNALS.iter().position(|&ours| ours == signal);
    let Some((previous, index)) = PREVIOUS.get().zip(index) else { return };
    let previous = &previous[index];
    // SAFETY: the kernel's siginfo.
    let fault = is_fault(unsafe { &*info });
    match previous.sa_sigaction {
        // Nobody can ignore a fault, so there the kernel takes the default too.
        libc::SIG_IGN if !fault => {}
        libc::SIG_DFL | libc::SIG_IGN => {
            restore_default(signal);
            // A fault repeats when this handler returns. A signal that was sent doesn't; this one comes then.
            if !fault {
                // SAFETY: sends a signal, to this thread.
                unsafe { libc::raise(signal) };
            }
        }
        handler => {
            // A handler that asked to be called once may count on that: it returns, and the fault shall repeat.
            if previous.sa_flags & libc::SA_RESETHAND != 0 {
                restore_default(signal);
            }
            if previous.sa_flags & libc::SA_SIGINFO != 0 {
                // SAFETY: SA_SIGINFO says that the address is a function of this signature.
                let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) =
                    unsafe { std::mem::transmute(handler) };
                handler(signal, info, context);
            } else {
                // SAFETY: without SA_SIGINFO it is a function of this one.
                let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
                handler(signal);
            }
        }
    }
}

/// Lets the kernel handle `signal` from here on.
fn restore_default(signal: c_int) {
    // SAFETY: all zero is the default action, with no flags and an empty mask.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `default` is a whole action, and sigaction may be called in a handler.
    unsafe { libc::sigaction(signal, &default, ptr::null_mut()) };
}

#[cfg(test)]
mod tests;
