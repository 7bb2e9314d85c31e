//! The values that belong to one greenlet.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use super::unwind;

/// See the module. A greenlet that has none pays for two words.
pub(crate) struct Locals(RefCell<Option<Box<Table>>>);

/// In ascending order of the keys.
type Table = Vec<(usize, Local)>;

/// A key's value.
#[derive(Clone)]
pub(crate) enum Local {
    /// It was made; held by those who use it as well.
    Value(Rc<dyn Any>),
    /// It was dropped, and isn't made again.
    Gone,
}

impl Locals {
    pub(crate) const fn new() -> Locals {
        Locals(RefCell::new(None))
    }

    pub(crate) fn get(&self, key: usize) -> Option<Local> {
        let table = self.0.borrow();
        let table = table.as_ref()?;
        let index = table.binary_search_by_key(&key, |entry| entry.0).ok()?;
        Some(table[index].1.clone())
    }

    /// Keeps a value; if there is one by now, that one stays.
    pub(crate) fn add(&self, key: usize, value: Rc<dyn Any>) {
        let mut table = self.0.borrow_mut();
        let table = table.get_or_insert_default();
        if let Err(index) = table.binary_search_by_key(&key, |entry| entry.0) {
            table.insert(index, (key, Local::Value(value)));
        }
    }

    /// Drops them, one after the other, also those that are made meanwhile. A panic goes to `unseen`.
    pub(crate) fn drop_all(&self, unseen: impl Fn(Box<dyn Any + Send>)) {
        while let Some(value) = self.take() {
            if let Err(payload) = unwind::drop_caught(value) {
                unseen(payload);
            }
        }
    }

    fn take(&self) -> Option<Local> {
        let mut table = self.0.borrow_mut();
        let left = table.as_mut()?.iter_mut().find(|entry| matches!(entry.1, Local::Value(_)));
        left.map(|entry| std::mem::replace(&mut entry.1, Local::Gone))
    }
}
