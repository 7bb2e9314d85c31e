//! Values of which each greenlet has its own: [`greenlet_local!`](crate::greenlet_local).

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::ptr;
use std::rc::Rc;

use crate::greenlet::current;
use crate::greenlet::locals::Local;

/// Declares values of which each greenlet has its own, as `std::thread_local!` does for threads. Each is made when its greenlet
/// first uses it, and dropped when that ends.
///
/// ```
/// use std::cell::Cell;
/// use greenroom::{greenlet_local, spawn, yield_now};
///
/// greenlet_local! {
///     /// How far this greenlet has got.
///     static STEPS: Cell<u32> = Cell::new(0);
/// }
///
/// let walkers: Vec<_> = (1..=3)
///     .map(|steps| {
///         spawn(move || {
///             for _ in 0..steps {
///                 STEPS.set(STEPS.get() + 1);
///                 yield_now();
///             }
///             STEPS.get()
///         })
///     })
///     .collect();
/// let steps: Vec<_> = walkers.into_iter().map(|walker| walker.join().unwrap()).collect();
/// assert_eq!(steps, [1, 2, 3]);
/// assert_eq!(STEPS.get(), 0); // main's own
/// ```
#[macro_export]
macro_rules! greenlet_local {
    () => {};
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $init:expr; $($rest:tt)*) => {
        $crate::greenlet_local! { $(#[$attribute])* $visibility static $name: $type = $init }
        $crate::greenlet_local! { $($rest)* }
    };
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty = $init:expr) => {
        $(#[$attribute])*
        $visibility static $name: $crate::local::LocalKey<$type> = $crate::local::LocalKey::new({
            fn init() -> $type {
                $init
            }
            init
        });
    };
}

/// A key declared by [`greenlet_local!`](crate::greenlet_local).
///
/// Main's values are those of its thread; threads without a hub have theirs as well, among them the workers of pools, so a job sees
/// those of its worker. They are dropped when the thread ends.
///
/// A greenlet's values are dropped on its own stack when its body has ended, however that was, and before anybody who joins it
/// goes on. Their destructors may park and use other keys. A panic in one goes to [`Hub::on_error`](crate::Hub::on_error), and the
/// others are dropped all the same. A key whose value was dropped is gone in that greenlet.
pub struct LocalKey<T: 'static> {
    init: fn() -> T,
}

/// The key's value was dropped already: a destructor asked that runs while its greenlet or thread ends.
///
/// ```
/// use std::cell::Cell;
/// use greenroom::{greenlet_local, spawn};
///
/// struct Asks;
/// impl Drop for Asks {
///     fn drop(&mut self) {
///         assert!(OWN.try_with(|_| ()).is_err());
///     }
/// }
///
/// greenlet_local!(static OWN: Asks = Asks);
/// spawn(|| OWN.with(|_| ())).join().unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError(());

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the greenlet-local value was dropped already, since its greenlet or thread is ending: use try_with there",
        )
    }
}

impl Error for AccessError {}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn new(init: fn() -> T) -> LocalKey<T> {
        LocalKey { init }
    }

    /// Calls `f` with this greenlet's value, making it first if there is none. Doesn't park by itself.
    ///
    /// # Panics
    ///
    /// When the value was dropped already; see [`try_with`](LocalKey::try_with). A panic while it is made comes out, and there is
    /// no value then.
    ///
    /// ```
    /// greenroom::greenlet_local!(static NAME: String = String::from("nobody"));
    /// assert_eq!(NAME.with(String::len), 6);
    /// ```
    #[track_caller]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Ok(result) => result,
            Err(error) => panic!("{error}"),
        }
    }

    /// The same, with an error in place of the panic.
    ///
    /// # Errors
    ///
    /// [`AccessError`] when the value was dropped already.
    ///
    /// ```
    /// greenroom::greenlet_local!(static NUMBER: u32 = 7);
    /// assert_eq!(NUMBER.try_with(|number| *number), Ok(7));
    /// ```
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        // The value stays for as long as it is used, whatever `f` does.
        let value = current::with(|core| {
            let key = ptr::from_ref(self).addr();
            let known = core.locals.get(key).unwrap_or_else(|| {
                core.locals.add(key, Rc::new((self.init)()));
                core.locals.get(key).unwrap_or(Local::Gone)
            });
            match known {
                Local::Value(value) => Ok(value),
                Local::Gone => Err(AccessError(())),
            }
        })?;
        Ok(f(of_type(&*value)))
    }
}

fn of_type<T: 'static>(value: &dyn Any) -> &T {
    value.downcast_ref().expect("a key makes values of its own type only")
}

impl<T: 'static> LocalKey<Cell<T>> {
    /// Copies the value out. Panics as [`with`](LocalKey::with).
    ///
    /// ```
    /// use std::cell::Cell;
    ///
    /// greenroom::greenlet_local!(static NUMBER: Cell<u32> = Cell::new(7));
    /// assert_eq!(NUMBER.get(), 7);
    /// ```
    #[track_caller]
    pub fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.with(Cell::get)
    }

    /// Sets the value. Panics as [`with`](LocalKey::with).
    #[track_caller]
    pub fn set(&'static self, value: T) {
        self.with(|cell| cell.set(value));
    }

    /// Takes the value and leaves the default. Panics as [`with`](LocalKey::with).
    #[track_caller]
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(Cell::take)
    }

    /// Sets the value and gives the one before. Panics as [`with`](LocalKey::with).
    #[track_caller]
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> LocalKey<RefCell<T>> {
    /// Calls `f` with the borrowed value. Panics as [`with`](LocalKey::with) and as `RefCell::borrow`.
    ///
    /// ```
    /// use std::cell::RefCell;
    ///
    /// greenroom::greenlet_local!(static WORDS: RefCell<Vec<&'static str>> = RefCell::default());
    /// WORDS.with_borrow_mut(|words| words.push("green"));
    /// assert_eq!(WORDS.with_borrow(Vec::len), 1);
    /// ```
    #[track_caller]
    pub fn with_borrow<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.with(|cell| f(&cell.borrow()))
    }

    /// Calls `f` with the mutably borrowed value. Panics as [`with`](LocalKey::with) and as `RefCell::borrow_mut`.
    #[track_caller]
    pub fn with_borrow_mut<R>(&'static self, f: impl FnOnce(&mut T) -> R) -> R {
        self.with(|cell| f(&mut cell.borrow_mut()))
    }

    /// Sets the value. Panics as [`with_borrow_mut`](LocalKey::with_borrow_mut).
    #[track_caller]
    pub fn set(&'static self, value: T) {
        self.replace(value);
    }

    /// Takes the value and leaves the default. Panics as [`with_borrow_mut`](LocalKey::with_borrow_mut).
    #[track_caller]
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(RefCell::take)
    }

    /// Sets the value and gives the one before. Panics as [`with_borrow_mut`](LocalKey::with_borrow_mut).
    #[track_caller]
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}
