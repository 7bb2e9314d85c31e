//! The measurement: each length of a job in each way, by turns.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use greenroom::{hub, sleep, spawn};

use crate::work::{Pace, Work};

/// Long enough for every thread of the pool, and the hub, to fall asleep.
pub(crate) const PAUSE: Duration = Duration::from_millis(3);

/// How a job is done.
#[derive(Clone, Copy)]
enum Way {
    Inline,
    Offloaded,
}

impl Way {
    fn run(self, work: Work) {
        match self {
            Way::Inline => work.run(),
            Way::Offloaded => hub().threadpool().apply(Work::run, (work,)),
        }
    }

    /// How long the caller waits for it.
    fn round_trip(self, work: Work) -> Duration {
        let start = Instant::now();
        self.run(work);
        start.elapsed()
    }

    /// How long another greenlet waits that could run when the job comes.
    fn gap(self, work: Work) -> Duration {
        let turn = Rc::new(Cell::new(None));
        let neighbour = spawn({
            let turn = Rc::clone(&turn);
            move || turn.set(Some(Instant::now()))
        });
        let start = Instant::now();
        self.run(work);
        neighbour.wait();
        turn.get().expect("it has run") - start
    }
}

/// What jobs of one length cost, over all rounds; in microseconds.
pub(crate) struct Cost {
    pub(crate) job: f64,
    /// The round trip on the hub, and through the pool.
    pub(crate) inline: f64,
    pub(crate) hot: f64,
    pub(crate) cold: f64,
    /// What the round trip through the pool takes longer, in the same round.
    pub(crate) overhead_hot: f64,
    pub(crate) overhead_cold: f64,
    pub(crate) gap_inline: f64,
    pub(crate) gap_offloaded: f64,
}

/// One length in one round; medians, in microseconds.
struct Sample {
    inline: f64,
    hot: f64,
    cold: f64,
    gap_inline: f64,
    gap_offloaded: f64,
}

/// Measures every length in each round. Calls `done` after each measurement.
pub(crate) fn measure(lengths: &[Duration], rounds: u32, pace: &Pace, done: impl Fn()) -> Vec<Cost> {
    let mut samples: Vec<Vec<Sample>> = lengths.iter().map(|_| vec![]).collect();
    for _ in 0..rounds {
        for (&length, samples) in lengths.iter().zip(&mut samples) {
            samples.push(sample(length, pace.work(length)));
            done();
        }
    }
    lengths.iter().zip(&samples).map(|(&length, samples)| cost(length, samples)).collect()
}

fn sample(length: Duration, work: Work) -> Sample {
    // As many as fit into a moment: short ones vary more.
    let times = |most: u32| (Duration::from_millis(10).div_duration_f64(length) as u32).clamp(1, most);
    let inline = middle(times(100), || Way::Inline.round_trip(work));
    // The first ones wake the threads, and let them find out whether to stay awake pays.
    for _ in 0..times(100) {
        Way::Offloaded.run(work);
    }
    Sample {
        inline,
        hot: middle(times(100), || Way::Offloaded.round_trip(work)),
        gap_offloaded: middle(times(20), || Way::Offloaded.gap(work)),
        gap_inline: middle(times(20), || Way::Inline.gap(work)),
        cold: middle(times(5), || {
            sleep(PAUSE);
            Way::Offloaded.round_trip(work)
        }),
    }
}

fn cost(length: Duration, samples: &[Sample]) -> Cost {
    let over_all = |figure: fn(&Sample) -> f64| median(samples.iter().map(figure).collect());
    Cost {
        job: microseconds(length),
        inline: over_all(|it| it.inline),
        hot: over_all(|it| it.hot),
        cold: over_all(|it| it.cold),
        overhead_hot: over_all(|it| it.hot - it.inline),
        overhead_cold: over_all(|it| it.cold - it.inline),
        gap_inline: over_all(|it| it.gap_inline),
        gap_offloaded: over_all(|it| it.gap_offloaded),
    }
}

fn middle(times: u32, mut measured: impl FnMut() -> Duration) -> f64 {
    median((0..times).map(|_| microseconds(measured())).collect())
}

/// The middle one, or the mean of the middle two.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    (figures[figures.len() / 2] + figures[(figures.len() - 1) / 2]) / 2.0
}

fn microseconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}
