//! Greenlets that borrow from whoever spawns them.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::Duration;

use crate::greenlet::current;
use crate::greenlet::outcome::JoinError;
use crate::greenlet::roster::Roster;
use crate::greenlet::unwind;
use crate::hub;
use crate::park::{Enlisted, Wait, Watch, Watcher};
use crate::reason::Reason;
use crate::{Builder, Greenlet, GreenletId};

/// Runs `f`, in which greenlets can be spawned that borrow what lives outside of the call, and returns what `f` returns when
/// all of them have ended. As `std::thread::scope`.
///
/// Parks until the last one has ended, also those that `f` did not join. However the caller leaves, it leaves after them: if it
/// is killed, times out or panics, they are killed, and it unwinds when they are dead. A destructor of theirs that parks for
/// ever keeps it for ever; a line in the log says so.
///
/// # Panics
///
/// With the panic of a greenlet that nobody joined; of several, the first one's. And as [`Greenlet::join`], on main, when the
/// greenlets can never end: they are killed first.
///
/// ```
/// let words = vec!["green", "room"];
/// let mut longest = 0;
/// let total: usize = greenroom::scope(|s| {
///     s.spawn(|| longest = words.iter().map(|word| word.len()).max().unwrap());
///     let lengths: Vec<_> = words.iter().map(|word| s.spawn(|| word.len())).collect();
///     lengths.into_iter().map(|length| length.join().unwrap()).sum()
/// });
/// assert_eq!((total, longest), (9, 5));
/// ```
///
/// What they borrow must outlive the scope:
///
/// ```compile_fail
/// greenroom::scope(|s| {
///     let local = String::from("dies with the closure");
///     s.spawn(|| println!("{local}"));
/// });
/// ```
///
/// And no handle leaves it:
///
/// ```compile_fail
/// let handle = greenroom::scope(|s| s.spawn(|| 1));
/// ```
#[track_caller]
pub fn scope<'env, F, R>(f: F) -> R
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
{
    let behind = current::with(|core| {
        assert!(
            !core.is_scheduler(),
            "scope in the hub's own loop, which can't wait: a logger or Waker of this thread called it"
        );
        usize::from(core.is_greenlet()) + core.behind()
    });
    let shared =
        Rc::new(Shared { roster: Roster::new(behind, None), panics: RefCell::default(), ends: Cell::new(false) });
    let scope = Scope { shared, scope: PhantomData, env: PhantomData };
    // Whatever comes out of here, the greenlets have ended before anybody else sees it.
    let result = catch_unwind(AssertUnwindSafe(|| {
        let value = f(&scope);
        scope.shared.join();
        value
    }));
    match result {
        Ok(value) => match scope.shared.first_panic() {
            None => value,
            Some(payload) => resume_unwind(payload),
        },
        Err(payload) => {
            scope.shared.end();
            scope.shared.first_panic().into_iter().for_each(unwind::drop_payload);
            current::with(|core| unwind::resume(core, payload))
        }
    }
}

/// Where greenlets that borrow are spawned; what the closure given to [`scope`] gets.
///
/// A greenlet may use it too, to spawn others:
///
/// ```
/// let mut names = [String::from("a"), String::from("b")];
/// let (first, second) = names.split_at_mut(1);
/// greenroom::scope(|s| {
///     s.spawn(|| {
///         s.spawn(|| second[0].push('!'));
///         first[0].push('?');
///     });
/// });
/// assert_eq!(names, ["a?", "b!"]);
/// ```
pub struct Scope<'scope, 'env: 'scope> {
    shared: Rc<Shared>,
    /// Invariant, as in std: a shorter lifetime would let greenlets borrow what dies before the scope ends.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// What the scope and its handles share.
struct Shared {
    roster: Rc<Roster>,
    /// Panics that nobody has asked for, in order.
    panics: RefCell<Vec<(GreenletId, Box<dyn Any + Send>)>>,
    /// The caller unwinds: who is spawned now is killed before it begins.
    ends: Cell<bool>,
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a greenlet that may borrow whatever outlives the scope. It begins when the code that runs parks or yields, as
    /// with [`spawn`](crate::spawn()). Doesn't park.
    ///
    /// # Panics
    ///
    /// As [`spawn`](crate::spawn()).
    ///
    /// ```
    /// let numbers = [1, 2, 3];
    /// let sum = greenroom::scope(|s| s.spawn(|| numbers.iter().sum::<i32>()).join().unwrap());
    /// assert_eq!(sum, 6);
    /// ```
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedGreenlet<'scope, T>
    where
        F: FnOnce() -> T + 'scope,
        T: 'scope,
    {
        match Builder::new().spawn_scoped(self, f) {
            Ok(greenlet) => greenlet,
            Err(refusal) => panic!("{refusal}"),
        }
    }
}

impl Builder {
    /// Starts the greenlet in a [`scope`], as [`Scope::spawn`] does.
    ///
    /// # Errors
    ///
    /// As [`spawn`](Builder::spawn).
    ///
    /// ```
    /// let numbers = [1, 2, 3];
    /// let sum = greenroom::scope(|s| {
    ///     let adder = greenroom::Builder::new().name("adder").spawn_scoped(s, || numbers.iter().sum::<i32>())?;
    ///     Ok::<_, std::io::Error>(adder.join().unwrap())
    /// })?;
    /// assert_eq!(sum, 6);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_scoped<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        f: F,
    ) -> io::Result<ScopedGreenlet<'scope, T>>
    where
        F: FnOnce() -> T + 'scope,
        T: 'scope,
    {
        let shared = &scope.shared;
        let value = Rc::new(Cell::new(None));
        let body: Box<dyn FnOnce() + 'scope> = Box::new({
            let (value, shared) = (Rc::clone(&value), Rc::clone(shared));
            move || match catch_unwind(AssertUnwindSafe(f)) {
                Ok(result) => value.set(Some(result)),
                Err(payload) if unwind::is_ours(&*payload) => resume_unwind(payload),
                Err(payload) => {
                    let id = current::with(|core| core.id());
                    shared.panics.borrow_mut().push((id, payload));
                }
            }
        });
        // SAFETY: the lifetime is all that changes. A greenlet's body is consumed, by its run or by a kill before it, before
        // the greenlet has ended and leaves the roster; and `scope` neither returns nor unwinds before the roster is empty,
        // whatever happens (see `join` and `end`). If the thread ends with the scope's caller parked in it, the caller's
        // frame stays in place for ever, as the body does. What the body leaves behind is `()`; its value is in `value`,
        // which the body gives up with all else that it holds, and the handle can't outlive 'scope. Both stay on this thread.
        let body: Box<dyn FnOnce() + 'static> = unsafe { std::mem::transmute(body) };
        let greenlet = self.spawn(body)?;
        greenlet.belong_to(&shared.roster);
        if shared.ends.get() {
            greenlet.request_kill();
        }
        Ok(ScopedGreenlet { greenlet, value, shared: Rc::clone(shared), scope: PhantomData })
    }
}

impl Shared {
    /// Waits for all; unwinds if the caller is interrupted, or if it would be for ever.
    fn join(&self) {
        if self.roster.len() == 0 {
            return;
        }
        let wait = Wait::new();
        while self.roster.len() > 0 {
            let _enlisted = Enlisted::new(&self.roster.waiters, &wait);
            let _ = wait.park(Reason::Scope, None);
        }
    }

    /// Kills all and waits until they are dead, whatever happens.
    fn end(&self) {
        self.ends.set(true);
        let mut told = false;
        while self.roster.len() > 0 {
            let waited = catch_unwind(AssertUnwindSafe(|| {
                let wait = Wait::new();
                let _enlisted = Enlisted::new(&self.roster.waiters, &wait);
                hub::with_current(|hub| {
                    current::with(|me| hub.into_iter().for_each(|hub| hub.kill_members(&self.roster, me)));
                });
                wait.park_shielded(Reason::Scope);
            }));
            let Err(report) = waited else { continue };
            unwind::drop_payload(report);
            if !told {
                told = true;
                // A logger may do anything.
                let log = catch_unwind(|| {
                    log::error!(
                        "a scope can't be left: its greenlets were killed, but their destructors wait for ever"
                    );
                });
                log.map_or_else(unwind::drop_payload, drop);
            }
        }
    }

    fn take_panic(&self, id: GreenletId) -> Option<Box<dyn Any + Send>> {
        let mut panics = self.panics.borrow_mut();
        let place = panics.iter().position(|(of, _)| *of == id)?;
        Some(panics.remove(place).1)
    }

    /// The first panic that nobody asked for; the others are dropped.
    fn first_panic(&self) -> Option<Box<dyn Any + Send>> {
        let mut panics = self.panics.take().into_iter().map(|(_, payload)| payload);
        let first = panics.next();
        panics.for_each(unwind::drop_payload);
        first
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("greenlets", &self.shared.roster.len()).finish_non_exhaustive()
    }
}

/// A greenlet of a [`scope`]. Its methods are those of [`Greenlet`]. Dropping it, or forgetting it, leaves the greenlet to the
/// scope.
///
/// ```
/// greenroom::scope(|s| {
///     let sleeper = s.spawn(|| greenroom::sleep(std::time::Duration::MAX));
///     sleeper.kill();
///     assert!(sleeper.join().unwrap_err().is_killed());
/// });
/// ```
pub struct ScopedGreenlet<'scope, T> {
    greenlet: Greenlet<()>,
    /// What the body returned.
    value: Rc<Cell<Option<T>>>,
    shared: Rc<Shared>,
    scope: PhantomData<&'scope ()>,
}

impl<T> ScopedGreenlet<'_, T> {
    /// Waits for the end and gives the value; see [`Greenlet::join`].
    ///
    /// # Errors
    ///
    /// [`JoinError`] when it panicked (the payload is in it; the scope doesn't panic for it any more) or was killed.
    ///
    /// ```
    /// let result = greenroom::scope(|s| s.spawn(|| std::panic::resume_unwind(Box::new(1))).join());
    /// assert!(result.is_err_and(|error: greenroom::JoinError| error.is_panic()));
    /// ```
    pub fn join(self) -> Result<T, JoinError> {
        self.wait();
        self.take()
    }

    /// The same, waiting at most `d`; see [`Greenlet::join_timeout`]. `Err(self)`: it has not ended.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// greenroom::scope(|s| {
    ///     let slow = s.spawn(|| greenroom::sleep(Duration::from_millis(20)));
    ///     let slow = slow.join_timeout(Duration::from_millis(1)).unwrap_err();
    ///     slow.join().unwrap();
    /// });
    /// ```
    pub fn join_timeout(self, d: Duration) -> Result<Result<T, JoinError>, Self> {
        if self.wait_timeout(d) { Ok(self.take()) } else { Err(self) }
    }

    /// Waits for the end; see [`Greenlet::wait`].
    pub fn wait(&self) {
        self.greenlet.wait();
    }

    /// Waits for the end for at most `d`; see [`Greenlet::wait_timeout`].
    pub fn wait_timeout(&self, d: Duration) -> bool {
        self.greenlet.wait_timeout(d)
    }

    /// Whether it has ended. Doesn't park.
    pub fn is_finished(&self) -> bool {
        self.greenlet.is_finished()
    }

    /// Kills it and waits until it is dead; see [`Greenlet::kill`].
    pub fn kill(&self) {
        self.greenlet.kill();
    }

    /// The same, waiting at most `d`; see [`Greenlet::kill_timeout`].
    pub fn kill_timeout(&self, d: Duration) -> bool {
        self.greenlet.kill_timeout(d)
    }

    /// Kills it without waiting for its end. Doesn't park.
    pub fn request_kill(&self) {
        self.greenlet.request_kill();
    }

    /// Its id.
    pub fn id(&self) -> GreenletId {
        self.greenlet.id()
    }

    /// The name its [`Builder`] gave it.
    pub fn name(&self) -> Option<&str> {
        self.greenlet.name()
    }

    fn take(self) -> Result<T, JoinError> {
        if let Some(value) = self.value.take() {
            return Ok(value);
        }
        if let Some(payload) = self.shared.take_panic(self.id()) {
            return Err(JoinError::panicked(payload));
        }
        match self.greenlet.join() {
            Err(error) => Err(error),
            Ok(()) => unreachable!("a body that returns leaves its value or its panic"),
        }
    }
}

impl<T> Watch for ScopedGreenlet<'_, T> {
    fn watch(&self, watcher: &Watcher) -> bool {
        self.greenlet.watch(watcher)
    }

    fn unwatch(&self, watcher: &Watcher) {
        self.greenlet.unwatch(watcher);
    }
}

impl<T> fmt::Debug for ScopedGreenlet<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedGreenlet")
            .field("id", &self.id())
            .field("name", &self.name())
            .field("finished", &self.is_finished())
            .finish()
    }
}
