//! One queue, whatever its order: how an item goes in and out, and who waits for that. README.md beside this file argues why
//! none gets lost.

use std::mem;
use std::panic::resume_unwind;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::error::{GetError, PutError, TaskDoneError};
use super::slot::{Slot, SlotRef};
use super::store::Store;
use crate::greenlet::outcome::JoinError;
use crate::greenlet::{current, unwind};
use crate::hub::Inner;
use crate::park::Wait;
use crate::reason::Reason;
use crate::time::give_way;
use crate::wake::{WaitList, Waiter};

/// What to do when it can't be done at once.
#[derive(Clone, Copy)]
pub(super) enum Patience {
    /// Give up.
    None,
    /// Park, with no limit or at most so long.
    Some(Option<Duration>),
}

/// See the module.
pub(super) struct Shared<S: Store> {
    /// Locked for moments only. No code of the user runs meanwhile, except comparisons of a priority queue.
    state: Mutex<State<S>>,
    /// The most items that may be in the store; 0 for a channel.
    capacity: usize,
}

struct State<S: Store> {
    store: S,
    stage: Stage,
    /// Who waits for an item; nobody while there is one.
    getters: WaitList<Getter<S::Item>>,
    /// Who waits for room, with an item each; nobody while there is room.
    putters: WaitList<SlotRef<Numbered<S::Item>>>,
    /// How many items that were put are not done.
    unfinished: usize,
    /// Who waits until all are done.
    joiners: WaitList,
    /// How many items are out of the store to be looked at, or on the way to somebody who will: their room is taken.
    looked_at: usize,
    /// How many items have gone out so that they may come back; each has its number, by which it finds its place again.
    gone_out: u64,
}

/// An item, and the number with which it has gone out.
type Numbered<T> = (u64, T);

/// What somebody waits for who waits for an item.
struct Getter<T> {
    slot: SlotRef<Numbered<T>>,
    intent: Intent,
}

/// A word of its own: a single byte among words makes whoever copies them wait for the store before.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
enum Intent {
    Takes,
    /// The item will come back.
    Looks,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Open,
    /// Nothing may be put.
    Closed,
    /// What comes back is dropped.
    Discarded,
}

/// A list that one can stand in.
#[derive(Clone, Copy)]
enum Line {
    Getters(Intent),
    Putters,
}

type Locked<'a, S> = MutexGuard<'a, State<S>>;

impl<S: Store> Shared<S> {
    pub(super) fn new(capacity: usize) -> Shared<S> {
        let state = State {
            store: S::default(),
            stage: Stage::Open,
            getters: WaitList::new(),
            putters: WaitList::new(),
            unfinished: 0,
            joiners: WaitList::new(),
            looked_at: 0,
            gone_out: 0,
        };
        Shared { state: Mutex::new(state), capacity }
    }

    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(super) fn len(&self) -> usize {
        let state = self.lock();
        state.store.len() + state.looked_at
    }

    pub(super) fn is_closed(&self) -> bool {
        self.lock().stage != Stage::Open
    }

    // Inlined with all that parks in it, for a return after a switch costs as much as the switch: the processor remembers who
    // called on another stack.
    #[inline(always)]
    pub(super) fn put(&self, item: S::Item, patience: Patience) -> Result<(), PutError<S::Item>> {
        let mut state = self.lock();
        if state.stage != Stage::Open {
            drop(state);
            return Err(PutError::Closed(item));
        }
        // An item that is to be looked at needs room, as it comes back.
        let may_hand_over = self.capacity == 0 || self.has_room(&state) || !state.is_next_a_looker();
        if may_hand_over && let Some((getter, what)) = pop_live(&mut state.getters) {
            state.unfinished += 1;
            state.fill(what, item);
            drop(state);
            getter.wake();
            if self.capacity == 0 {
                // Who gets it goes on first.
                give_way();
            }
            return Ok(());
        }
        if self.has_room(&state) {
            state.unfinished += 1;
            state.store.push(item);
            return Ok(());
        }
        match patience {
            Patience::None => {
                drop(state);
                Err(PutError::Full(item))
            }
            Patience::Some(timeout) => self.wait_to_put(state, item, timeout),
        }
    }

    #[inline(always)]
    pub(super) fn get(&self, patience: Patience) -> Result<S::Item, GetError> {
        let mut state = self.lock();
        if let Some(item) = state.store.pop() {
            let putter = self.refill(&mut state);
            drop(state);
            if let Some(putter) = putter {
                putter.wake();
            }
            return Ok(item);
        }
        if self.capacity == 0
            && let Some((putter, item)) = state.take_from_putter()
        {
            drop(state);
            putter.wake();
            return Ok(item);
        }
        match patience {
            _ if state.is_over() => Err(GetError::Closed),
            Patience::None => Err(GetError::Empty),
            Patience::Some(timeout) => self.wait_to_get(state, timeout, Intent::Takes).map(|(_, item)| item),
        }
    }

    /// A copy of the item that the next `get` would give. While it is copied it is out of the queue, but its room isn't free.
    pub(super) fn peek(&self) -> Result<S::Item, GetError>
    where
        S::Item: Clone,
    {
        let mut state = self.lock();
        let mut item = state.store.pop();
        if item.is_none()
            && self.capacity == 0
            && let Some((putter, taken)) = state.take_from_putter()
        {
            putter.wake();
            item = Some(taken);
        }
        let item = match item {
            Some(item) => {
                state.looked_at += 1;
                let number = state.next_number();
                drop(state);
                (number, item)
            }
            None if state.is_over() => return Err(GetError::Closed),
            None => self.wait_to_get(state, None, Intent::Looks)?,
        };
        let looked_at = LookedAt { shared: self, item: Some(item) };
        match &looked_at.item {
            Some((_, item)) => Ok(item.clone()),
            None => unreachable!("it is there until the destructor"),
        }
    }

    pub(super) fn task_done(&self) -> Result<(), TaskDoneError> {
        let mut state = self.lock();
        if state.unfinished == 0 {
            return Err(TaskDoneError(()));
        }
        state.finish(1);
        Ok(())
    }

    pub(super) fn join(&self, timeout: Option<Duration>) -> bool {
        let mut state = self.lock();
        if state.unfinished == 0 {
            return true;
        }
        let wait = Wait::new();
        let place = state.joiners.push(wait.waiter());
        drop(state);
        let joiner = Joiner { shared: self, place, wait };
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        while joiner.wait.park(Reason::QueueJoin, deadline).timed_out() {
            if deadline.is_some() {
                return self.lock().unfinished == 0;
            }
        }
        true
    }

    pub(super) fn close(&self) {
        self.close_as(Stage::Closed);
    }

    pub(super) fn close_now(&self) {
        // Dropped without the lock: their destructors are foreign code.
        drop(self.close_as(Stage::Discarded));
    }

    /// Returns what is to be dropped.
    fn close_as(&self, stage: Stage) -> Option<S> {
        let mut state = self.lock();
        if state.stage != Stage::Discarded {
            state.stage = stage;
        }
        let mut getters = state.getters_at_the_end();
        // Their items stay in their slots.
        let mut putters = mem::replace(&mut state.putters, WaitList::new());
        let discarded = (stage == Stage::Discarded).then(|| {
            let store = mem::take(&mut state.store);
            state.finish(store.len());
            store
        });
        drop(state);
        getters.wake_all();
        putters.wake_all();
        discarded
    }

    #[inline(always)]
    fn wait_to_put(
        &self,
        mut state: Locked<'_, S>,
        item: S::Item,
        timeout: Option<Duration>,
    ) -> Result<(), PutError<S::Item>> {
        let slot = Slot::new(Some((0, item)));
        let wait = Wait::new();
        let place = Some(state.putters.push_for(wait.waiter(), slot.reference()));
        drop(state);
        let in_time =
            Spot { shared: self, line: Line::Putters, place, wait, slot: &slot }.wait(Reason::QueuePut, timeout);
        // SAFETY: it stands in line no more.
        match unsafe { slot.take() } {
            None => Ok(()),
            Some((_, item)) if in_time => Err(PutError::Closed(item)),
            Some((_, item)) => Err(PutError::Full(item)),
        }
    }

    #[inline(always)]
    fn wait_to_get(
        &self,
        mut state: Locked<'_, S>,
        timeout: Option<Duration>,
        intent: Intent,
    ) -> Result<Numbered<S::Item>, GetError> {
        let slot = Slot::new(None);
        let wait = Wait::new();
        let place = Some(state.getters.push_for(wait.waiter(), Getter { slot: slot.reference(), intent }));
        drop(state);
        let line = Line::Getters(intent);
        let in_time = Spot { shared: self, line, place, wait, slot: &slot }.wait(Reason::QueueGet, timeout);
        // SAFETY: it stands in line no more.
        match unsafe { slot.take() } {
            Some(item) => Ok(item),
            None if in_time => Err(GetError::Closed),
            None => Err(GetError::Empty),
        }
    }

    /// Room has become free: the oldest putter's item takes it. Returns whom to wake.
    fn refill(&self, state: &mut Locked<'_, S>) -> Option<Waiter> {
        if !self.has_room(state) {
            return None;
        }
        let (putter, item) = state.take_from_putter()?;
        state.store.push(item);
        Some(putter)
    }

    /// An item that was got, but can't be used, goes to the next in line.
    fn give_back(&self, mut state: Locked<'_, S>, (number, item): Numbered<S::Item>) {
        if state.stage == Stage::Discarded {
            state.finish(1);
            drop(state);
            drop_here(item);
            return;
        }
        if let Err(item) = state.hand_over(item) {
            state.store.put_back(number, item);
            return;
        }
        // If it was the last that a closed queue waited for, nobody gets anything any more.
        if state.is_over() {
            state.getters_at_the_end().wake_all();
        }
        // If it had been looked at, its room is free now.
        while self.has_room(&state)
            && let Some((putter, item)) = state.take_from_putter()
        {
            putter.wake();
            if let Err(item) = state.hand_over(item) {
                state.store.push(item);
            }
        }
    }

    fn has_room(&self, state: &State<S>) -> bool {
        state.store.len() + state.looked_at < self.capacity
    }

    fn lock(&self) -> Locked<'_, S> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Store> State<S> {
    /// The oldest putter's item comes out of its hands.
    fn take_from_putter(&mut self) -> Option<(Waiter, S::Item)> {
        // One whose hub has ended has an item all the same.
        let (putter, slot) = self.putters.pop_for()?;
        self.unfinished += 1;
        // SAFETY: the lock, of which `self` is behind, is held in which the reference was taken out.
        let item = unsafe { slot.exchange(None) };
        item.map(|(_, item)| (putter, item))
    }

    /// The oldest getter gets the item, and is woken.
    fn hand_over(&mut self, item: S::Item) -> Result<(), S::Item> {
        let Some((getter, what)) = pop_live(&mut self.getters) else {
            return Err(item);
        };
        self.fill(what, item);
        getter.wake();
        Ok(())
    }

    /// The item goes to a getter that was taken out of the line in this critical section.
    #[inline]
    fn fill(&mut self, getter: Getter<S::Item>, item: S::Item) {
        self.looked_at += getter.intent as usize;
        let number = self.next_number();
        // SAFETY: the lock, of which `self` is behind, is held in which the reference was taken out.
        unsafe { getter.slot.exchange(Some((number, item))) };
    }

    fn next_number(&mut self) -> u64 {
        self.gone_out += 1;
        self.gone_out
    }

    fn is_next_a_looker(&self) -> bool {
        self.getters.first().is_some_and(|(_, getter)| getter.intent == Intent::Looks)
    }

    /// Closed, and no item can come back from being looked at.
    fn is_over(&self) -> bool {
        match self.stage {
            Stage::Open => false,
            Stage::Closed => self.looked_at == 0,
            Stage::Discarded => true,
        }
    }

    /// Takes out the getters if there will be nothing for them.
    fn getters_at_the_end(&mut self) -> WaitList<Getter<S::Item>> {
        if self.is_over() { mem::replace(&mut self.getters, WaitList::new()) } else { WaitList::new() }
    }

    fn finish(&mut self, count: usize) {
        // Fewer than that, if `task_done` came before the `get`.
        self.unfinished = self.unfinished.saturating_sub(count);
        if self.unfinished == 0 {
            self.joiners.wake_all();
        }
    }
}

/// The oldest whose hub has not ended.
#[inline(always)]
fn pop_live<T>(list: &mut WaitList<T>) -> Option<(Waiter, T)> {
    while let Some(first) = list.pop_for() {
        if !first.0.is_lost() {
            return Some(first);
        }
    }
    None
}

/// Drops foreign values. Where this code unwinds already, a destructor that panics is reported: it would abort.
fn drop_here<T>(value: T) {
    if let Err(payload) = unwind::drop_caught(value) {
        if !thread::panicking() {
            resume_unwind(payload);
        }
        current::with(|core| Inner::report_unseen(core, JoinError::panicked(payload)));
    }
}

/// A place in a line, given up on every path.
struct Spot<'a, S: Store> {
    shared: &'a Shared<S>,
    line: Line,
    /// Its place in the line, until it is out.
    place: Option<usize>,
    wait: Wait,
    slot: &'a Slot<Numbered<S::Item>>,
}

impl<S: Store> Spot<'_, S> {
    /// Parks until it is out of the line. False: it left because the time was over.
    #[inline(always)]
    fn wait(mut self, reason: Reason, timeout: Option<Duration>) -> bool {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        while self.wait.park(reason, deadline).timed_out() {
            if deadline.is_some() {
                return !self.leave(&mut self.shared.lock());
            }
        }
        // Only who took it out has its waiter.
        self.place = None;
        true
    }

    /// Whether it was still in the line.
    fn leave(&mut self, state: &mut Locked<'_, S>) -> bool {
        self.place.take().is_some_and(|place| match self.line {
            Line::Getters(_) => self.wait.leave(&mut state.getters, place),
            Line::Putters => self.wait.leave(&mut state.putters, place),
        })
    }
}

impl<S: Store> Drop for Spot<'_, S> {
    fn drop(&mut self) {
        if self.place.is_none() {
            return;
        }
        let mut state = self.shared.lock();
        self.leave(&mut state);
        let Line::Getters(intent) = self.line else {
            // Its item is in the queue, or is dropped without the lock.
            drop(state);
            // SAFETY: it stands in line no more.
            drop_here(unsafe { self.slot.take() });
            return;
        };
        // SAFETY: it stands in line no more.
        if let Some(item) = unsafe { self.slot.take() } {
            state.looked_at -= intent as usize;
            self.shared.give_back(state, item);
        }
    }
}

/// A place among those who wait until all items are done, given up on every path.
struct Joiner<'a, S: Store> {
    shared: &'a Shared<S>,
    place: usize,
    wait: Wait,
}

impl<S: Store> Drop for Joiner<'_, S> {
    fn drop(&mut self) {
        self.wait.leave(&mut self.shared.lock().joiners, self.place);
    }
}

/// An item that is being looked at, put back on every path.
struct LookedAt<'a, S: Store> {
    shared: &'a Shared<S>,
    /// `Some` until the destructor.
    item: Option<Numbered<S::Item>>,
}

impl<S: Store> Drop for LookedAt<'_, S> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.looked_at -= 1;
        if let Some(item) = self.item.take() {
            self.shared.give_back(state, item);
        }
    }
}
