//! Greenlets that belong together: who of them lives, and who waits for the last to end.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use slab::Slab;

use super::body::Task;
use super::core::Core;
use crate::wake::WaitList;

/// See the module. A greenlet is in one at most, from its spawn to its end.
pub(crate) struct Roster {
    members: RefCell<Slab<Weak<dyn Task>>>,
    /// How many greenlets can't end before every member has: the one that waits for them in a scope, and those that wait for
    /// it.
    pub(crate) behind: usize,
    /// Called after one has left.
    on_leave: Option<Box<dyn Fn()>>,
    /// Who waits for the last, or for the last but one, to end.
    pub(crate) waiters: RefCell<WaitList>,
}

impl Roster {
    pub(crate) fn new(behind: usize, on_leave: Option<Box<dyn Fn()>>) -> Rc<Roster> {
        let (members, waiters) = (RefCell::new(Slab::new()), RefCell::new(WaitList::new()));
        Rc::new(Roster { members, behind, on_leave, waiters })
    }

    /// Takes in a greenlet that was just spawned.
    pub(crate) fn add(self: &Rc<Self>, task: &Rc<dyn Task>) {
        let place = self.members.borrow_mut().insert(Rc::downgrade(task));
        task.core().membership.set(Some(Membership { roster: Rc::clone(self), place }));
    }

    /// How many live.
    pub(crate) fn len(&self) -> usize {
        self.members.borrow().len()
    }

    /// Those that live.
    pub(crate) fn members(&self) -> Vec<Rc<dyn Task>> {
        self.members.borrow().iter().filter_map(|(_, member)| member.upgrade()).collect()
    }

    /// Whether the greenlet is one of them.
    pub(crate) fn has(&self, core: &Core) -> bool {
        let membership = core.membership.take();
        let has = membership.as_ref().is_some_and(|membership| std::ptr::eq(&*membership.roster, self));
        core.membership.set(membership);
        has
    }
}

/// A greenlet's place in its roster, given up when it has ended.
pub(crate) struct Membership {
    pub(crate) roster: Rc<Roster>,
    place: usize,
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.roster.members.borrow_mut().remove(self.place);
        if self.roster.len() <= 1 {
            self.roster.waiters.borrow_mut().wake_all();
        }
        if let Some(on_leave) = &self.roster.on_leave {
            on_leave();
        }
    }
}
