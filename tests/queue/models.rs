//! Random sequences of what doesn't park, against a list.

use std::time::Duration;

use greenroom::queue::{Channel, GetError, LifoQueue, PriorityQueue, PutError, Queue};
use greenroom::try_hub;
use proptest::prelude::*;

use crate::AnyQueue;

#[derive(Clone, Debug)]
enum Step {
    TryPut(u8),
    PutAtOnce(u8),
    TryGet,
    GetAtOnce,
    /// Only where it finds something or fails.
    Peek,
    TaskDone,
    Close,
    CloseNow,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        24 => any::<u8>().prop_map(Step::TryPut),
        12 => any::<u8>().prop_map(Step::PutAtOnce),
        12 => Just(Step::TryGet),
        12 => Just(Step::GetAtOnce),
        12 => Just(Step::Peek),
        24 => Just(Step::TaskDone),
        1 => Just(Step::Close),
        1 => Just(Step::CloseNow),
    ];
    prop::collection::vec(step, 0..120)
}

/// What a queue should do: its items in the order in which they were put, and where the next is.
struct Model {
    items: Vec<u8>,
    capacity: usize,
    next: fn(&[u8]) -> Option<usize>,
    unfinished: usize,
    is_closed: bool,
}

impl Model {
    fn put(&mut self, item: u8) -> Result<(), PutError<u8>> {
        if self.is_closed {
            return Err(PutError::Closed(item));
        }
        if self.items.len() >= self.capacity {
            return Err(PutError::Full(item));
        }
        self.items.push(item);
        self.unfinished += 1;
        Ok(())
    }

    fn peek(&self) -> Result<u8, GetError> {
        match (self.next)(&self.items) {
            Some(at) => Ok(self.items[at]),
            None if self.is_closed => Err(GetError::Closed),
            None => Err(GetError::Empty),
        }
    }

    fn get(&mut self) -> Result<u8, GetError> {
        let result = self.peek();
        if let Some(at) = (self.next)(&self.items) {
            self.items.remove(at);
        }
        result
    }
}

fn run<Q: AnyQueue<u8>>(queue: &Q, capacity: usize, next: fn(&[u8]) -> Option<usize>, steps: Vec<Step>) {
    let mut model = Model { items: Vec::new(), capacity, next, unfinished: 0, is_closed: false };
    for step in steps {
        match step {
            Step::TryPut(item) => assert_eq!(queue.try_put(item), model.put(item)),
            Step::PutAtOnce(item) => assert_eq!(queue.put_timeout(item, Duration::ZERO), model.put(item)),
            Step::TryGet => assert_eq!(queue.try_get(), model.get()),
            Step::GetAtOnce => assert_eq!(queue.get_timeout(Duration::ZERO), model.get()),
            Step::Peek => {
                if model.peek() != Err(GetError::Empty) {
                    assert_eq!(queue.peek(), model.peek());
                }
            }
            Step::TaskDone => {
                assert_eq!(queue.task_done().is_ok(), model.unfinished > 0);
                model.unfinished = model.unfinished.saturating_sub(1);
            }
            Step::Close => {
                queue.close();
                model.is_closed = true;
            }
            Step::CloseNow => {
                queue.close_now();
                // What was dropped is done, unless `task_done` had already been called for it.
                model.unfinished = model.unfinished.saturating_sub(model.items.len());
                model.items.clear();
                model.is_closed = true;
            }
        }
        assert_eq!(queue.len(), model.items.len());
        assert_eq!(queue.is_empty(), model.items.is_empty());
        assert_eq!(queue.is_full(), model.items.len() >= capacity);
        assert_eq!(queue.is_closed(), model.is_closed);
        assert_eq!(queue.join(Some(Duration::ZERO)), model.unfinished == 0);
    }
    assert!(try_hub().is_none(), "it made a hub");
}

fn oldest(items: &[u8]) -> Option<usize> {
    (!items.is_empty()).then_some(0)
}

fn newest(items: &[u8]) -> Option<usize> {
    items.len().checked_sub(1)
}

fn smallest(items: &[u8]) -> Option<usize> {
    (0..items.len()).min_by_key(|&at| items[at])
}

proptest! {
    #[test]
    fn a_queue_gives_the_oldest(capacity in 1_usize..6, steps in steps()) {
        run(&Queue::bounded(capacity), capacity, oldest, steps.clone());
        run(&Queue::unbounded(), usize::MAX, oldest, steps);
    }

    #[test]
    fn a_lifo_queue_gives_the_newest(capacity in 1_usize..6, steps in steps()) {
        run(&LifoQueue::bounded(capacity), capacity, newest, steps.clone());
        run(&LifoQueue::unbounded(), usize::MAX, newest, steps);
    }

    #[test]
    fn a_priority_queue_gives_the_smallest(capacity in 1_usize..6, steps in steps()) {
        run(&PriorityQueue::bounded(capacity), capacity, smallest, steps.clone());
        run(&PriorityQueue::unbounded(), usize::MAX, smallest, steps);
    }

    #[test]
    fn a_channel_holds_nothing(steps in steps()) {
        run(&Channel::new(), 0, oldest, steps);
    }
}
