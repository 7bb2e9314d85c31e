//! "This would block forever": the proof, and the report.
//!
//! Main is parked, nothing is ready, and the hub has no deadline. What could still wake somebody is another thread. If
//! no pool has a job queued or running, and the process has no threads but this one, pools' workers, and hubs that sleep as this one
//! does, then all those workers are idle, and nobody is left to give them a job: the wait is for ever. Pools and hubs are asked
//! before and after the threads are counted, so that all is of one moment. Wakes that happened before are at the doors of
//! the hubs by then, so those are looked at last. A thread that has just ended may still be counted: the loop asks again later.
//! Where the kernel doesn't say how many threads there are, or there are others, nothing is proved: the hub waits, and
//! says so in the log once. Of several hubs that wait for each other one reports; its main unwinds, which may free the others.

use std::fmt::Write;

use greenroom_pool::census;

use super::GreenletInfo;
use super::asleep::{self, Sleepers};
use super::inner::Inner;
use crate::greenlet::core::{Core, Phase};
use crate::sys;

impl Inner {
    /// `Err` with the report if nothing can ever wake anybody on this hub.
    pub(super) fn check_deadlock(&self) -> Result<(), String> {
        let (pools, hubs) = (census(), Sleepers::now());
        if pools.busy > 0 {
            return Ok(());
        }
        let threads = sys::thread_count();
        if (pools, hubs) != (census(), Sleepers::now()) {
            return Ok(());
        }
        let known = 1 + pools.workers + hubs.count();
        if threads != Some(known) {
            self.tell_foreign(threads, known);
            return Ok(());
        }
        if self.is_attendant.get() || !asleep::are_doors_quiet() || !hubs.is_first_report() {
            return Ok(());
        }
        Err(self.report(hubs.count()))
    }

    fn tell_foreign(&self, threads: Option<usize>, known: usize) {
        if self.told_foreign.replace(true) {
            return;
        }
        let others = match threads {
            Some(threads) => {
                format!("it can't tell whether one of {} other threads will", threads.saturating_sub(known))
            }
            None => "another thread might".to_owned(),
        };
        log::warn!("a hub waits with nothing of its own to wake it; {others}: {}", self.waits());
    }

    fn report(&self, other_hubs: usize) -> String {
        let mut text = format!("this would block forever: {}", self.waits());
        if self.table.borrow().len() == 1 {
            text.push_str(", and no greenlet, thread or timer is left that could wake it");
        }
        if other_hubs > 0 {
            // Writing to a string can't fail.
            let _ =
                write!(text, "\n  {other_hubs} other hub(s) of this process wait as well, with nothing to wake them");
        }
        text
    }

    /// What main and each greenlet wait for.
    fn waits(&self) -> String {
        let waits_for = |core: &Core| match (core.parked.get(), core.phase.get()) {
            (Some(parked), _) => parked.reason.to_string(),
            (None, Phase::Live) if !core.is_main() => "a stack: the kernel refuses memory for one".to_owned(),
            (None, _) => "nothing".to_owned(),
        };
        let mut text = format!("main waits for {}", waits_for(&self.main));
        let table = self.table.borrow();
        if table.len() > 1 {
            text.push_str(", and so does everybody else:");
        }
        for task in table.iter().filter_map(|(_, task)| task.as_ref()) {
            let core = task.core();
            // Writing to a string can't fail.
            let _ = write!(text, "\n  {} waits for {}", GreenletInfo::of(core), waits_for(core));
        }
        text
    }
}
