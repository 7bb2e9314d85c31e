//! From what length on offloading pays.
//!
//! It pays when it spares everybody else on the hub more waiting than it adds to the job: when the gap saved (inline less
//! offloaded) is larger than the overhead. That counts one neighbour; a hub with many waits with all of them.

use crate::measure::Cost;

/// The shortest length measured from which on it pays, for it and for all that are longer; in microseconds.
pub(crate) struct BreakEven {
    pub(crate) hot: Option<f64>,
    pub(crate) cold: Option<f64>,
}

impl BreakEven {
    pub(crate) fn of(costs: &[Cost]) -> BreakEven {
        BreakEven { hot: from(costs, |cost| cost.overhead_hot), cold: from(costs, |cost| cost.overhead_cold) }
    }
}

fn from(costs: &[Cost], overhead: fn(&Cost) -> f64) -> Option<f64> {
    let pays = |cost: &&Cost| cost.gap_inline - cost.gap_offloaded > overhead(cost);
    costs.iter().rev().take_while(pays).last().map(|cost| cost.job)
}
