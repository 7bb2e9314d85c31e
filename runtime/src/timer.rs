//! Deadlines of greenlets: an indexed 4-ary min-heap.
//!
//! Nearly every deadline that is armed is disarmed before it falls due (the timeout of a call that succeeds), so both
//! must be cheap and neither may leave anything behind. The heap keeps each key's position, so disarming finds its
//! entry without a search; a later deadline goes in at the bottom and usually stays there. Four children halve the
//! depth of a binary heap, and they lie side by side: two cache lines.
//!
//! Rejected: a hashed timer wheel (rounds deadlines to its tick, and `next` must search), and lazy deletion (a million
//! short calls would leave a million dead entries until their timeouts fall due).

use std::time::Instant;

/// Position of a key that has no deadline.
const NONE: u32 = u32::MAX;

/// Children per entry.
const ARITY: usize = 4;

/// At most one deadline per key, the earliest first.
///
/// Keys are small and dense, like those of a slab: memory is proportional to the largest key ever armed.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    /// No entry is due before its parent, which is at `(index - 1) / ARITY`.
    heap: Vec<Entry>,
    /// For each key the index of its entry in `heap`, or [`NONE`].
    positions: Vec<u32>,
    /// Counts arms; breaks ties between equal deadlines.
    arms: u64,
}

/// One armed deadline.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// When it falls due.
    deadline: Instant,
    /// What `arms` was when it was armed: unique, so entries are in a total order.
    arm: u64,
    /// Whose deadline it is.
    key: u32,
}

impl Entry {
    #[inline]
    fn is_before(&self, other: &Entry) -> bool {
        (self.deadline, self.arm) < (other.deadline, other.arm)
    }
}

impl Timers {
    /// No deadlines.
    pub(crate) fn new() -> Timers {
        Timers::default()
    }

    /// Number of deadlines armed.
    pub(crate) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether no deadline is armed.
    pub(crate) fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    /// The earliest deadline.
    #[inline]
    pub(crate) fn next(&self) -> Option<Instant> {
        self.heap.first().map(|entry| entry.deadline)
    }

    /// Arms `deadline` for `key`, in place of the one that it had. Among equal deadlines the one armed first is first.
    ///
    /// # Panics
    ///
    /// If `key` is 2³² − 1 or more.
    #[inline]
    pub(crate) fn arm(&mut self, deadline: Instant, key: usize) {
        let position = match self.positions.get(key) {
            Some(&position) => position,
            None => self.make_room_for(key),
        };
        self.arms += 1;
        // Lossless: `positions` has an entry for this key, and no more than `NONE` entries.
        let entry = Entry { deadline, arm: self.arms, key: key as u32 };
        if position == NONE {
            self.heap.push(entry);
            self.sift_up(self.heap.len() - 1, entry);
        } else {
            self.settle(position as usize, entry);
        }
    }

    /// Takes the deadline of `key` back; returns whether it had one.
    #[inline]
    pub(crate) fn disarm(&mut self, key: usize) -> bool {
        match self.positions.get(key) {
            None | Some(&NONE) => false,
            Some(&position) => {
                self.remove(position as usize);
                true
            }
        }
    }

    /// Takes out the earliest deadline if it is not after `now`, and returns its key.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<usize> {
        let first = self.heap.first().filter(|entry| entry.deadline <= now)?;
        let key = first.key as usize;
        self.remove(0);
        Some(key)
    }

    /// Grows the table of positions to hold `key`; returns the position of a new key.
    #[cold]
    fn make_room_for(&mut self, key: usize) -> u32 {
        assert!(key < NONE as usize, "timer key {key} is not below 2^32 - 1");
        self.positions.resize(key + 1, NONE);
        NONE
    }

    /// Removes the entry at `index`; the last one fills its place.
    fn remove(&mut self, index: usize) {
        self.positions[self.heap[index].key as usize] = NONE;
        let last = self.heap.pop().expect("an index into the heap");
        if index < self.heap.len() {
            self.settle(index, last);
        }
    }

    /// Puts `entry` in the place of the one at `index`, and from there to where it belongs.
    fn settle(&mut self, index: usize, entry: Entry) {
        if index > 0 && entry.is_before(&self.heap[(index - 1) / ARITY]) {
            self.sift_up(index, entry);
        } else {
            self.sift_down(index, entry);
        }
    }

    /// Moves later parents down into the hole at `index`, until `entry` fits into it.
    fn sift_up(&mut self, mut index: usize, entry: Entry) {
        while index > 0 {
            let parent = (index - 1) / ARITY;
            if !entry.is_before(&self.heap[parent]) {
                break;
            }
            self.place(index, self.heap[parent]);
            index = parent;
        }
        self.place(index, entry);
    }

    /// Moves the earliest child up into the hole at `index`, until `entry` fits into it.
    fn sift_down(&mut self, mut index: usize, entry: Entry) {
        loop {
            let first = index * ARITY + 1;
            let children = first..(first + ARITY).min(self.heap.len());
            let Some(child) = children.reduce(|a, b| if self.heap[b].is_before(&self.heap[a]) { b } else { a }) else {
                break;
            };
            if !self.heap[child].is_before(&entry) {
                break;
            }
            self.place(index, self.heap[child]);
            index = child;
        }
        self.place(index, entry);
    }

    /// Writes `entry` at `index` and notes its position.
    #[inline]
    fn place(&mut self, index: usize, entry: Entry) {
        self.heap[index] = entry;
        // Lossless: there are no more entries than keys.
        self.positions[entry.key as usize] = index as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Duration;

    #[derive(Clone, Debug)]
    enum Step {
        Arm(u64, usize),
        Disarm(usize),
        Pop(u64),
    }

    /// Few keys and few instants, so that re-arms and equal deadlines are common.
    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            5 => (0..40u64, 0..60usize).prop_map(|(at, key)| Step::Arm(at, key)),
            2 => (0..80usize).prop_map(Step::Disarm),
            2 => (0..50u64).prop_map(Step::Pop),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_list_sorted_by_deadline_and_age(steps in prop::collection::vec(step(), 0..400)) {
            let zero = Instant::now();
            let at = |nanos| zero + Duration::from_nanos(nanos);
            let mut timers = Timers::new();
            let mut model: Vec<(u64, usize)> = Vec::new();
            for step in steps {
                match step {
                    Step::Arm(deadline, key) => {
                        timers.arm(at(deadline), key);
                        model.retain(|&(_, armed)| armed != key);
                        model.push((deadline, key));
                        model.sort_by_key(|&(deadline, _)| deadline); // stable: the newest of equals is last
                    }
                    Step::Disarm(key) => {
                        let before = model.len();
                        model.retain(|&(_, armed)| armed != key);
                        prop_assert_eq!(timers.disarm(key), model.len() < before);
                    }
                    Step::Pop(now) => {
                        let due = model.first().is_some_and(|&(deadline, _)| deadline <= now);
                        let expected = due.then(|| model.remove(0).1);
                        prop_assert_eq!(timers.pop_due(at(now)), expected);
                    }
                }
                prop_assert_eq!(timers.next(), model.first().map(|&(deadline, _)| at(deadline)));
                prop_assert_eq!(timers.len(), model.len());
                prop_assert_eq!(timers.is_empty(), model.is_empty());
            }
            for (_, key) in model {
                prop_assert_eq!(timers.pop_due(at(40)), Some(key));
            }
            prop_assert_eq!(timers.pop_due(at(40)), None);
        }
    }

    #[test]
    fn a_million_deadlines_come_back_in_order() {
        const COUNT: usize = 1_000_000;
        let zero = Instant::now();
        let mut timers = Timers::new();
        // A stride prime to COUNT visits every deadline once, in no useful order.
        for key in 0..COUNT {
            timers.arm(zero + Duration::from_nanos((key * 7_919 % COUNT) as u64), key);
        }
        for key in (0..COUNT).step_by(2) {
            assert!(timers.disarm(key));
        }
        let mut popped = 0;
        let mut last = 0;
        while let Some(key) = timers.pop_due(zero + Duration::from_secs(1)) {
            let deadline = key * 7_919 % COUNT;
            assert!(key % 2 == 1 && deadline >= last);
            last = deadline;
            popped += 1;
        }
        assert_eq!(popped, COUNT / 2);
    }

    #[test]
    fn unknown_keys_have_no_deadline_to_take_back() {
        let mut timers = Timers::new();
        assert!(!timers.disarm(0));
        timers.arm(Instant::now(), 3);
        assert!(!timers.disarm(2));
        assert!(!timers.disarm(usize::MAX));
        assert!(timers.disarm(3));
        assert!(!timers.disarm(3));
    }
}
