//! For code that is shared between a process with a hub and one without.

use super::Call;
use crate::hub::try_hub;

/// Runs `f` where it stalls nobody. On a thread with a hub, in a greenlet or on main, that is the hub's pool, and it parks
/// as [`ThreadPool::apply`](crate::ThreadPool::apply) does; on a pool's worker or a plain thread it is a plain call. Never
/// makes a hub. A panic of `f` comes back as one.
///
/// ```
/// fn hash_password(password: &str) -> usize {
///     greenroom::offload(|password: &str| password.len(), (password,))
/// }
///
/// assert_eq!(hash_password("in a batch job"), 14);
/// assert!(greenroom::try_hub().is_none());
///
/// let request = greenroom::spawn(|| hash_password("in a service"));
/// assert_eq!(request.join().unwrap(), 12);
/// assert_eq!(greenroom::hub().threadpool().stats().threads, 1);
/// ```
pub fn offload<F, A>(f: F, args: A) -> F::Output
where
    F: Call<A> + Send,
    A: Send,
    F::Output: Send,
{
    match try_hub() {
        Some(hub) if !greenroom_pool::in_worker() => hub.threadpool().apply(f, args),
        _ => f.call(args),
    }
}
