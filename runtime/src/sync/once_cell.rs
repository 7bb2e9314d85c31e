//! A value that is set once.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use super::event::Event;
use super::permits::Permits;
use crate::reason::Reason;

/// Turns to initialize, once there is nothing left to initialize: nobody waits for one any more.
const PLENTY: usize = usize::MAX / 2;

/// `std::sync::OnceLock` for greenlets and threads alike: whoever waits for another's initialization parks, and the one that
/// initializes may park too.
///
/// ```
/// use greenroom::sync::OnceCell;
///
/// static CONFIG: OnceCell<String> = OnceCell::new();
///
/// let load = || {
///     CONFIG.get_or_init(|| {
///         greenroom::sleep(std::time::Duration::from_millis(1));
///         String::from("loaded once")
///     })
/// };
/// let first = greenroom::spawn(load);
/// let second = greenroom::spawn(load);
/// assert!(std::ptr::eq(first.join().unwrap(), second.join().unwrap()));
/// ```
pub struct OnceCell<T> {
    /// Set by the one whose turn it is.
    value: OnceLock<T>,
    /// The turn to initialize: one permit, `PLENTY` more when there is a value.
    turns: Permits,
    /// Set when there is a value.
    is_there: Event,
}

impl<T> OnceCell<T> {
    /// An empty one.
    ///
    /// ```
    /// static NAME: greenroom::sync::OnceCell<String> = greenroom::sync::OnceCell::new();
    /// assert!(NAME.get().is_none());
    /// ```
    pub const fn new() -> OnceCell<T> {
        OnceCell { value: OnceLock::new(), turns: Permits::new(1, usize::MAX), is_there: Event::new() }
    }

    /// The value, if it is there. Doesn't park.
    ///
    /// ```
    /// assert_eq!(greenroom::sync::OnceCell::from(1).get(), Some(&1));
    /// ```
    pub fn get(&self) -> Option<&T> {
        self.value.get()
    }

    /// The value, if it is there, to change. Doesn't park: `&mut self` proves that nobody initializes it.
    ///
    /// ```
    /// let mut cell = greenroom::sync::OnceCell::from(1);
    /// *cell.get_mut().unwrap() += 1;
    /// assert_eq!(cell.into_inner(), Some(2));
    /// ```
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut()
    }

    /// Sets the value. Parks while somebody else initializes it; afterwards there is a value.
    ///
    /// # Errors
    ///
    /// `Err(value)`: there is one already.
    ///
    /// ```
    /// let cell = greenroom::sync::OnceCell::new();
    /// assert_eq!(cell.set(1), Ok(()));
    /// assert_eq!(cell.set(2), Err(2));
    /// ```
    pub fn set(&self, value: T) -> Result<(), T> {
        let mut value = Some(value);
        self.get_or_init(|| match value.take() {
            Some(value) => value,
            None => unreachable!("it is initialized once"),
        });
        value.map_or(Ok(()), Err)
    }

    /// The value; if there is none, what `f` returns becomes it. Parks while somebody else initializes it. If `f` unwinds, by a
    /// panic, kill or timeout, the cell stays empty, and the next in line initializes it.
    ///
    /// # Panics
    ///
    /// If `f` does. With "this would block forever", on main, when nothing can ever end another's initialization; `f` that asks
    /// the same cell waits for itself.
    ///
    /// ```
    /// let cell = greenroom::sync::OnceCell::new();
    /// assert_eq!(cell.get_or_init(|| 1), &1);
    /// assert_eq!(cell.get_or_init(|| 2), &1);
    /// ```
    pub fn get_or_init(&self, f: impl FnOnce() -> T) -> &T {
        match self.init(None, || Ok::<T, std::convert::Infallible>(f())) {
            Some(Ok(value)) => value,
            None => unreachable!("without a deadline it waits for its turn"),
        }
    }

    /// The same, but waits at most `d` for somebody else's initialization. `None`: it lasted longer, and `f` wasn't called.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let cell = greenroom::sync::OnceCell::new();
    /// assert_eq!(cell.get_or_init_timeout(Duration::ZERO, || 1), Some(&1));
    /// ```
    pub fn get_or_init_timeout(&self, d: Duration, f: impl FnOnce() -> T) -> Option<&T> {
        match self.init(Some(d), || Ok::<T, std::convert::Infallible>(f()))? {
            Ok(value) => Some(value),
        }
    }

    /// The same as [`get_or_init`](OnceCell::get_or_init) for an `f` that can fail.
    ///
    /// # Errors
    ///
    /// What `f` returns; the cell stays empty then, and the next in line initializes it.
    ///
    /// ```
    /// let cell = greenroom::sync::OnceCell::new();
    /// assert!(cell.get_or_try_init(|| "x".parse::<u32>()).is_err());
    /// assert_eq!(cell.get_or_try_init(|| "1".parse::<u32>()), Ok(&1));
    /// ```
    pub fn get_or_try_init<E>(&self, f: impl FnOnce() -> Result<T, E>) -> Result<&T, E> {
        match self.init(None, f) {
            Some(result) => result,
            None => unreachable!("without a deadline it waits for its turn"),
        }
    }

    /// Parks until there is a value.
    ///
    /// # Panics
    ///
    /// With "this would block forever", on main, when nobody can ever set it.
    ///
    /// ```
    /// static CELL: greenroom::sync::OnceCell<u32> = greenroom::sync::OnceCell::new();
    /// std::thread::spawn(|| CELL.set(1));
    /// assert_eq!(CELL.wait(), &1);
    /// ```
    pub fn wait(&self) -> &T {
        loop {
            if let Some(value) = self.get() {
                return value;
            }
            self.is_there.wait_for(Reason::OnceCell, None);
        }
    }

    /// The same for at most `d`. `None`: there was none in time.
    ///
    /// ```
    /// let cell = greenroom::sync::OnceCell::<u32>::new();
    /// assert!(cell.wait_timeout(std::time::Duration::from_millis(1)).is_none());
    /// ```
    pub fn wait_timeout(&self, d: Duration) -> Option<&T> {
        if self.get().is_none() {
            self.is_there.wait_for(Reason::OnceCell, Some(d));
        }
        self.get()
    }

    /// Takes the value out; the cell is empty again.
    ///
    /// ```
    /// let mut cell = greenroom::sync::OnceCell::from(1);
    /// assert_eq!(cell.take(), Some(1));
    /// assert_eq!(cell.get(), None);
    /// ```
    pub fn take(&mut self) -> Option<T> {
        std::mem::take(self).into_inner()
    }

    /// The value, if it is there.
    ///
    /// ```
    /// assert_eq!(greenroom::sync::OnceCell::from(1).into_inner(), Some(1));
    /// ```
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// `None`: somebody else's initialization lasts longer than the time.
    fn init<E>(&self, timeout: Option<Duration>, f: impl FnOnce() -> Result<T, E>) -> Option<Result<&T, E>> {
        if let Some(value) = self.get() {
            return Some(Ok(value));
        }
        if !self.turns.acquire(1, Reason::OnceCell, timeout) {
            return self.get().map(Ok);
        }
        let _turn = Turn(&self.turns);
        if let Some(value) = self.get() {
            return Some(Ok(value));
        }
        let value = match f() {
            Ok(value) => value,
            Err(error) => return Some(Err(error)),
        };
        // It is empty, and nobody else's turn: this stores the value, and waits for nobody.
        let value = self.value.get_or_init(|| value);
        self.turns.release(PLENTY);
        self.is_there.set();
        Some(Ok(value))
    }
}

/// The turn, given to the next in line at the end.
struct Turn<'a>(&'a Permits);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.release(1);
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> OnceCell<T> {
        OnceCell::new()
    }
}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> OnceCell<T> {
        let cell = OnceCell::new();
        // It is empty, so it takes the value.
        let _ = cell.set(value);
        cell
    }
}

impl<T: Clone> Clone for OnceCell<T> {
    fn clone(&self) -> OnceCell<T> {
        self.get().map_or_else(OnceCell::new, |value| OnceCell::from(value.clone()))
    }
}

impl<T: PartialEq> PartialEq for OnceCell<T> {
    fn eq(&self, other: &OnceCell<T>) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceCell<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(value) => f.debug_tuple("OnceCell").field(value).finish(),
            None => f.debug_tuple("OnceCell").field(&format_args!("<empty>")).finish(),
        }
    }
}
