//! Partitions by convex hulls against partitions by the full curves (figure 6).

use larder_alloc::Objective;
use larder_sim::BlockSize;
use larder_sim::tenants::{Caching, TenantPlan, TenantsResult};
use serde_json::{Value, json};

use crate::problem::Problem;
use crate::reproduce::bench::{Bench, Held, Trial, footprint_blocks};
use crate::reproduce::claim::Claim;
use crate::reproduce::common::{Common, Devices};
use crate::reproduce::larc::Verdict;
use crate::reproduce::sheet::Sheet;

/// Caches as shares of the joint footprint.
const SHARES: [f64; 4] = [0.05, 0.1, 0.2, 0.4];

/// Seconds between decisions: the paper's five minutes belong to a day, these traces to minutes.
const EPOCH_SECONDS: f64 = 20.0;

/// A size of the cache.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    share: f64,
    hull: f64,
    full: f64,
}

impl Row {
    /// How many more requests miss with convex hulls.
    fn more(&self) -> f64 {
        self.hull / self.full.max(f64::MIN_POSITIVE) - 1.0
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({ "cache_share": self.share, "request_miss_ratio_convex_hull": self.hull, "request_miss_ratio_full_curves": self.full })
    }
}

/// All sizes.
pub fn find(
    bench: &Bench<'_>,
    common: &Common,
    names: &[&str],
    traces: &[Held],
) -> Result<Vec<Row>, Problem> {
    let footprint = footprint_blocks(traces, BlockSize::DEFAULT)?;
    let trial = |share: f64, allocator| {
        let bytes = (footprint as f64 * share).max(1.0) as u64 * u64::from(BlockSize::DEFAULT.bytes());
        let tenants = names.iter().map(|name| TenantPlan::new(*name)).collect();
        let mut plan = common.plan(tenants, allocator, bytes, Devices::USUAL);
        plan.objective = Objective::TotalMisses;
        plan.caching = Caching {
            block: Some(BlockSize::DEFAULT),
            epoch_seconds: Some(EPOCH_SECONDS),
            ..Caching::default()
        };
        Trial { plan, traces: traces.to_vec() }
    };
    let trials = SHARES.iter().flat_map(|&share| ["convex-hull", "centaur"].map(|name| trial(share, name)));
    let runs = bench.run(trials.collect())?;
    let misses = |run: &TenantsResult| 1.0 - run.total.request_hit_ratio;
    let rows = SHARES.iter().zip(runs.chunks(2));
    Ok(rows.map(|(&share, runs)| Row { share, hull: misses(&runs[0]), full: misses(&runs[1]) }).collect())
}

/// The table.
pub fn sheet(rows: &[Row]) -> Sheet {
    let caption = "Figure 6: requests that miss where partitions go by convex hulls, and by the full curves; least misses in all as the objective, blocks \
                   of 4 KiB, a decision every 20 s.";
    let mut sheet = Sheet::new(caption, 0, ["cache", "convex hulls", "full curves", "more misses"]);
    for row in rows {
        sheet.row([
            format!("{:.0} %", row.share * 100.0),
            format!("{:.2} %", row.hull * 100.0),
            format!("{:.2} %", row.full * 100.0),
            format!("{:+.1} %", row.more() * 100.0),
        ]);
    }
    sheet
}

/// What the paper says about it.
pub fn claim(rows: &[Row]) -> Claim {
    let claim = Claim::new("convex_hull", "figure 6: convex hulls bring more misses", "up to 20 % more");
    let most = rows.iter().map(Row::more).fold(f64::NEG_INFINITY, f64::max);
    let worse = rows.iter().filter(|row| row.more() > 0.0).count();
    let because = format!(
        "more in {worse} of {} caches; it takes concave curves of large requests to make a difference",
        rows.len()
    );
    let met = most >= 0.05;
    claim.found(format!("up to {:+.1} %", most * 100.0), Verdict::of(met, worse, rows.len()), because)
}
