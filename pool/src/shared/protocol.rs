//! The protocol of sleeping, walked through in every order: README.md, *Sleeping*. All steps of the real thing are sequentially
//! consistent, so an order of steps is all there is to it. Names are those of `sleepers` and `worker`.

use std::collections::HashSet;

const WORKERS: usize = 2;
const SUBMITTERS: usize = 2;

/// Where an actor is in `rouse`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Rouse {
    IsWanted,
    IsAnyoneAsleep,
    BecomeTheSearchers,
    Wake,
    Missed,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    /// A submitter is about to count a job; so many are left.
    Submit(u8),
    /// A worker looks for a job.
    Claim,
    EndSearch {
        found: bool,
    },
    /// `then` after `rouse`.
    Rousing(Rouse, Then),
    Work,
    BeginSearch,
    Spin,
    Enter,
    LookAgain,
    Asleep,
    Over,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Then {
    Submit(u8),
    Work,
    Enter,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct State {
    queued: u8,
    searching: u8,
    /// The list of sleepers, the last one on top.
    asleep: Vec<u8>,
    woken: [bool; WORKERS],
    /// `Search::on` of each worker.
    on: [bool; WORKERS],
    actors: [At; WORKERS + SUBMITTERS],
}

impl State {
    /// What the actor's next step may lead to. None if it can't move.
    fn step(&self, actor: usize) -> Vec<State> {
        let mut next = self.clone();
        let mut also = None;
        let at = &mut next.actors[actor];
        match self.actors[actor] {
            At::Submit(0) => *at = At::Over,
            At::Submit(left) => {
                *at = At::Rousing(Rouse::IsWanted, Then::Submit(left - 1));
                next.queued += 1;
            }
            At::Claim if self.queued > 0 => {
                *at = if self.on[actor] { At::EndSearch { found: true } } else { At::Work };
                next.queued -= 1;
            }
            At::Claim => *at = At::BeginSearch,
            At::Work if self.queued > 0 => next.queued -= 1,
            At::Work => *at = At::Claim,
            At::BeginSearch => {
                *at = At::Spin;
                next.searching += u8::from(!self.on[actor]);
                next.on[actor] = true;
            }
            At::Spin => {
                // It may see a job, if there is one, or be out of patience.
                *at = At::EndSearch { found: false };
                if self.queued > 0 {
                    let mut seen = self.clone();
                    seen.actors[actor] = At::Claim;
                    also = Some(seen);
                }
            }
            At::EndSearch { found } => {
                *at = At::Rousing(Rouse::IsWanted, if found { Then::Work } else { Then::Enter });
                next.searching -= 1;
                next.on[actor] = false;
            }
            At::Enter => {
                *at = At::LookAgain;
                next.asleep.push(actor as u8);
                next.woken[actor] = false;
            }
            At::LookAgain if self.queued > 0 => {
                *at = At::Claim;
                match self.asleep.iter().position(|&other| other == actor as u8) {
                    Some(place) => drop(next.asleep.remove(place)),
                    None => next.on[actor] = true,
                }
            }
            At::LookAgain => *at = At::Asleep,
            At::Asleep if self.woken[actor] => {
                *at = At::Claim;
                next.on[actor] = true;
            }
            At::Asleep | At::Over => return Vec::new(),
            At::Rousing(rouse, then) => {
                let over = match then {
                    Then::Submit(left) => At::Submit(left),
                    Then::Work => At::Work,
                    Then::Enter => At::Enter,
                };
                let go_on = |rouse| At::Rousing(rouse, then);
                *at = match rouse {
                    Rouse::IsWanted if self.queued > 0 => go_on(Rouse::IsAnyoneAsleep),
                    Rouse::IsAnyoneAsleep if !self.asleep.is_empty() => go_on(Rouse::BecomeTheSearchers),
                    Rouse::BecomeTheSearchers if self.searching == 0 => go_on(Rouse::Wake),
                    Rouse::Wake if self.asleep.is_empty() => go_on(Rouse::Missed),
                    Rouse::Missed => go_on(Rouse::IsWanted),
                    _ => over,
                };
                match rouse {
                    Rouse::BecomeTheSearchers => next.searching += u8::from(self.searching == 0),
                    Rouse::Missed => next.searching -= 1,
                    Rouse::Wake => {
                        if let Some(bed) = next.asleep.pop() {
                            next.woken[bed as usize] = true;
                        }
                    }
                    _ => {}
                }
            }
        }
        [Some(next), also].into_iter().flatten().collect()
    }
}

#[test]
fn in_no_order_of_steps_does_a_job_wait_while_a_worker_sleeps() {
    let mut actors = [At::Claim; WORKERS + SUBMITTERS];
    actors[WORKERS..].fill(At::Submit(2));
    let start =
        State { queued: 0, searching: 0, asleep: Vec::new(), woken: [false; WORKERS], on: [false; WORKERS], actors };
    let (mut seen, mut open, mut ends) = (HashSet::from([start.clone()]), vec![start], 0);
    while let Some(state) = open.pop() {
        let all = || 0..WORKERS + SUBMITTERS;
        // A job may take for ever. If nobody moves who doesn't perform one, nothing waits that a sleeper could do.
        let others = all().filter(|&actor| state.actors[actor] != At::Work);
        if others.flat_map(|actor| state.step(actor)).next().is_none() {
            assert!(state.queued == 0 || state.asleep.is_empty(), "{state:?}");
        }
        let next: Vec<_> = all().flat_map(|actor| state.step(actor)).collect();
        if next.is_empty() {
            ends += 1;
            assert_eq!((state.queued, state.searching, state.asleep.len()), (0, 0, WORKERS), "{state:?}");
        }
        open.extend(next.into_iter().filter(|next| seen.insert(next.clone())));
    }
    assert!(ends > 0 && seen.len() > 10_000, "{ends} ends among {} states", seen.len());
}
