//! `peek`: it parks until there is an item, and leaves it there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use greenroom::queue::{GetError, PutError, Queue};
use greenroom::{Greenlet, sleep, yield_now};

use crate::common::{begun, is_ended_early, ms, panic_with};
use crate::{AnyQueue, Item, elsewhere, putter};

each_queue! { Item;
    it_parks_until_a_put_and_removes_nothing: check_removes_nothing;
    a_clone_that_panics_leaves_the_item: check_panic;
    a_clone_that_parks_keeps_the_room: check_parked_clone;
    a_clone_that_is_killed_leaves_the_item: check_killed_clone;
    a_clone_that_uses_the_queue: check_recursion;
    a_parked_one_is_killed: check_killed;
    a_copy_under_way_is_not_the_end_of_a_closed_queue: check_closed_meanwhile;
    discarded_while_it_is_copied: check_discarded_meanwhile;
    none_of_many_lets_a_putter_in: check_many;
}

fn plain(id: u32) -> Item {
    Item::with_clone(id, |_| ())
}

fn ids(result: Result<Item, GetError>) -> Result<u32, GetError> {
    result.map(|item| item.id)
}

fn looker<Q: AnyQueue<Item>>(queue: &Q) -> Greenlet<Result<u32, GetError>> {
    let queue = queue.clone();
    begun(move || ids(queue.peek()))
}

/// Puts one in, and has it stay there: in a channel, it comes back from a getter that is killed.
fn leave<Q: AnyQueue<Item>>(queue: &Q, item: Item) {
    if Q::ROOM > 0 {
        queue.try_put(item).unwrap_or_else(|error| panic!("{error}"));
        return;
    }
    let other = queue.clone();
    let getter = begun(move || other.get());
    elsewhere(queue, |queue| queue.put(item).unwrap());
    getter.kill();
    assert_eq!(queue.len(), 1);
}

/// Copying it parks for a while; the flag says that it does just now.
fn slow(id: u32, is_copying: &Arc<AtomicBool>) -> Item {
    let is_copying = Arc::clone(is_copying);
    Item::with_clone(id, move |_| {
        is_copying.store(true, SeqCst);
        sleep(ms(5));
        is_copying.store(false, SeqCst);
    })
}

fn check_removes_nothing<Q: AnyQueue<Item>>() {
    let queue = Q::narrow();
    let looker = looker(&queue);
    assert!(!looker.is_finished());
    queue.put(plain(7)).unwrap();
    assert_eq!(looker.join().unwrap(), Ok(7));
    assert_eq!(queue.len(), 1);
    for _ in 0..3 {
        assert_eq!(ids(queue.peek()), Ok(7));
    }
    assert!(queue.try_put(plain(8)).unwrap_err().is_full());
    assert_eq!(queue.len(), 1);
    assert_eq!(ids(queue.try_get()), Ok(7));
    assert_eq!(ids(queue.try_get()), Err(GetError::Empty));
    // It was put once.
    queue.task_done().unwrap();
    assert!(queue.task_done().is_err());
}

fn check_panic<Q: AnyQueue<Item>>() {
    let queue = Q::narrow();
    leave(&queue, Item::with_clone(7, |_| panic_with("can't be copied")));
    let waiting = putter(&queue, plain(8));
    for _ in 0..3 {
        assert!(is_ended_early(|| drop(queue.peek())));
        assert_eq!(queue.len(), 1);
        yield_now();
        assert!(!waiting.is_finished(), "the room was free");
    }
    assert_eq!([ids(queue.get()), ids(queue.get())], [Ok(7), Ok(8)]);
    waiting.join().unwrap().unwrap();
    assert!(queue.is_empty());
}

fn check_parked_clone<Q: AnyQueue<Item>>() {
    let (queue, is_copying) = (Q::narrow(), Arc::new(AtomicBool::new(false)));
    leave(&queue, slow(7, &is_copying));
    let looker = looker(&queue);
    assert!(is_copying.load(SeqCst));
    // It is nobody's now, but its room is taken.
    assert_eq!(queue.len(), 1);
    assert!(queue.is_full());
    assert_eq!(queue.try_put(plain(8)), Err(PutError::Full(plain(8))));
    assert_eq!(ids(queue.try_get()), Err(GetError::Empty));
    let waiting = putter(&queue, plain(8));
    assert!(!waiting.is_finished());
    // Who parks for it gets it when it is back.
    let other = queue.clone();
    let getter = begun(move || other.get());
    assert_eq!(looker.join().unwrap(), Ok(7));
    if Q::ROOM > 0 {
        assert_eq!(ids(getter.join().unwrap()), Ok(7));
        assert_eq!(ids(queue.get()), Ok(8));
    } else {
        // Hands were free: the getter took the putter's, and the other is in the channel.
        let mut both = [ids(getter.join().unwrap()).unwrap(), ids(queue.get()).unwrap()];
        both.sort_unstable();
        assert_eq!(both, [7, 8]);
    }
    waiting.join().unwrap().unwrap();
    assert!(queue.is_empty());
}

fn check_killed_clone<Q: AnyQueue<Item>>() {
    let (queue, is_copying) = (Q::narrow(), Arc::new(AtomicBool::new(false)));
    leave(&queue, slow(7, &is_copying));
    let looker = looker(&queue);
    assert!(is_copying.load(SeqCst));
    looker.kill();
    assert!(looker.join().unwrap_err().is_killed());
    assert_eq!(queue.len(), 1);
    assert_eq!(ids(queue.try_get()), Ok(7));
}

fn check_recursion<Q: AnyQueue<Item>>() {
    let queue = Q::narrow();
    let (other, seen) = (queue.clone(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&seen);
    let item = Item::with_clone(7, move |_| {
        assert_eq!(other.len(), 1);
        assert!(other.try_put(plain(8)).is_err());
        assert!(other.try_get().is_err());
        count.fetch_add(1, SeqCst);
    });
    leave(&queue, item);
    assert_eq!(ids(queue.peek()), Ok(7));
    assert_eq!(seen.load(SeqCst), 1);
    assert_eq!(ids(queue.try_get()), Ok(7));
}

fn check_killed<Q: AnyQueue<Item>>() {
    let queue = Q::narrow();
    // In line, and after it was handed the item.
    let [first, second, third] = [(); 3].map(|()| looker(&queue));
    second.kill();
    elsewhere(&queue, |queue| queue.put(plain(7)).unwrap());
    first.request_kill();
    assert_eq!(third.join().unwrap(), Ok(7));
    assert!(first.join().unwrap_err().is_killed());
    assert_eq!(queue.len(), 1);
    assert!(queue.try_put(plain(8)).unwrap_err().is_full());
    assert_eq!(ids(queue.get()), Ok(7));
    // No room is kept for a copy that will never be.
    assert_eq!(queue.len(), 0);
    assert_eq!(queue.try_put(plain(8)).is_ok(), Q::ROOM > 0);
}

fn check_closed_meanwhile<Q: AnyQueue<Item>>() {
    for getter_first in [false, true] {
        let (queue, is_copying) = (Q::narrow(), Arc::new(AtomicBool::new(false)));
        leave(&queue, slow(7, &is_copying));
        let looker = looker(&queue);
        assert!(is_copying.load(SeqCst));
        let getters = || {
            [(); 2].map(|()| {
                let queue = queue.clone();
                begun(move || ids(queue.get()))
            })
        };
        let getters = if getter_first {
            let getters = getters();
            queue.close();
            getters
        } else {
            queue.close();
            getters()
        };
        assert_eq!(ids(queue.try_get()), Err(GetError::Empty), "there will be one");
        assert_eq!(looker.join().unwrap(), Ok(7));
        // The item comes back to the first of them; then there is none left.
        assert_eq!(getters.map(|getter| getter.join().unwrap()), [Ok(7), Err(GetError::Closed)]);
        assert_eq!(ids(queue.get()), Err(GetError::Closed));
    }
}

fn check_discarded_meanwhile<Q: AnyQueue<Item>>() {
    let (queue, is_copying) = (Q::narrow(), Arc::new(AtomicBool::new(false)));
    leave(&queue, slow(7, &is_copying));
    let looker = looker(&queue);
    assert!(is_copying.load(SeqCst));
    queue.close_now();
    assert_eq!(ids(queue.get()), Err(GetError::Closed));
    assert_eq!(looker.join().unwrap(), Ok(7));
    assert_eq!(ids(queue.get()), Err(GetError::Closed));
    assert!(queue.is_empty());
    assert!(queue.join(None), "what was dropped is done");
}

fn check_many<Q: AnyQueue<Item>>() {
    // Parked before there is one.
    let queue = Q::narrow();
    let lookers = [(); 3].map(|()| looker(&queue));
    elsewhere(&queue, |queue| queue.put(plain(7)).unwrap());
    let fits = Q::ROOM > 0 && queue.try_put(plain(8)).is_ok();
    assert!(!fits, "an item on its way to be looked at keeps its room");
    assert_eq!(queue.len(), 1);
    for looker in lookers {
        assert_eq!(looker.join().unwrap(), Ok(7));
    }
    assert_eq!(queue.len(), 1);
    assert_eq!(ids(queue.get()), Ok(7));

    // Each waits for the copy of the one before.
    let is_copying = Arc::new(AtomicBool::new(false));
    leave(&queue, slow(7, &is_copying));
    let waiting = {
        let first = looker(&queue);
        let waiting = putter(&queue, plain(8));
        let others = if Q::ROOM > 0 { vec![looker(&queue), looker(&queue)] } else { Vec::new() };
        for looker in [first].into_iter().chain(others) {
            assert_eq!(looker.join().unwrap(), Ok(7));
            assert!(!waiting.is_finished(), "it let a putter in");
        }
        waiting
    };
    assert_eq!([ids(queue.get()), ids(queue.get())], [Ok(7), Ok(8)]);
    waiting.join().unwrap().unwrap();
}

#[test]
fn an_item_that_can_not_be_copied_while_others_wait() {
    crate::common::within_a_minute(|| {
        // The panic hands the item to the getter.
        let queue = Queue::bounded(1);
        let other = queue.clone();
        let looker = begun(move || is_ended_early(|| drop(other.peek())));
        let other = queue.clone();
        let getter = begun(move || ids(other.get()));
        queue.put(Item::with_clone(7, |_| panic_with("can't be copied"))).unwrap();
        assert!(looker.join().unwrap());
        assert_eq!(getter.join().unwrap(), Ok(7));
    });
}
