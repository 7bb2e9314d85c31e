//! Joining and killing several greenlets.

use super::Greenlet;
use super::handle::kill_here;
use crate::greenlet::current;
use crate::greenlet::outcome::JoinError;

/// Joins all, in order; parks until the last has ended.
///
/// ```
/// let squares = greenroom::join_all((0..4).map(|i| greenroom::spawn(move || i * i)).collect::<Vec<_>>());
/// assert_eq!(squares.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [0, 1, 4, 9]);
/// ```
///
/// # Panics
///
/// As [`Greenlet::join`].
pub fn join_all<T>(it: impl IntoIterator<Item = Greenlet<T>>) -> Vec<Result<T, JoinError>> {
    let all: Vec<_> = it.into_iter().collect();
    all.into_iter().map(Greenlet::join).collect()
}

/// Kills all at once and parks until they are dead. Duplicates are harmless. If the caller is among them, the others die
/// first, then it unwinds.
///
/// ```
/// let sleepers: Vec<_> = (0..3).map(|_| greenroom::spawn(|| greenroom::sleep(std::time::Duration::MAX))).collect();
/// greenroom::kill_all(&sleepers);
/// assert!(sleepers.iter().all(|sleeper| sleeper.is_finished()));
/// ```
///
/// # Panics
///
/// As [`Greenlet::join`].
pub fn kill_all<'a, T: 'a>(it: impl IntoIterator<Item = &'a Greenlet<T>>) {
    let is_me = |greenlet: &&Greenlet<T>| current::with(|me| std::ptr::eq(me, greenlet.core()));
    let (me, others): (Vec<_>, Vec<_>) = it.into_iter().partition(is_me);
    others.iter().for_each(|greenlet| greenlet.request_kill());
    others.iter().for_each(|greenlet| greenlet.wait());
    for greenlet in me {
        greenlet.request_kill();
        kill_here(greenlet.core());
    }
}
