//! Proportional shares of latency (figure 11): two VMs, each with four requests outstanding on a file of 1 GB.

use std::ffi::OsString;

use larder_alloc::Goals;
use larder_sim::tenants::{Caching, Pace, TenantPlan, TenantsResult};
use serde_json::{Value, json};

use super::late;
use crate::problem::Problem;
use crate::reproduce::bench::{Bench, Trial};
use crate::reproduce::claim::Claim;
use crate::reproduce::common::{Common, Devices};
use crate::reproduce::larc::Verdict;
use crate::reproduce::sheet::Sheet;

/// Shares of the two.
const SHARES: [(f64, f64); 3] = [(1.0, 1.0), (1.0, 2.0), (2.0, 1.0)];

/// Simulated seconds: time to settle, and as much again to measure.
const SECONDS: f64 = 600.0;

/// Seconds between decisions. The paper's iterations come every 5 s, but take steps by what they measure; these go by curves, for which every block has to be
/// accessed a few times in between.
const EPOCH_SECONDS: f64 = 30.0;

/// "The initial cache partition size is set to 500 MB per VM."
const PARTITION_BYTES: u64 = 500_000_000;

/// A pair of shares.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    shares: (f64, f64),
    /// Mean seconds of a request of each, in the second half; none where nothing was measured.
    latencies: Option<(f64, f64)>,
    /// Seconds of the run.
    lasted: f64,
}

impl Row {
    /// How many times the first one's latency is the second's.
    fn ratio(&self) -> Option<f64> {
        self.latencies.map(|(first, second)| first / second.max(f64::MIN_POSITIVE))
    }

    /// How far the ratio of the latencies is from that of the shares: latency is to be inverse to the share.
    fn error(&self) -> Option<f64> {
        let wanted = self.shares.1 / self.shares.0;
        self.ratio().map(|ratio| ratio / wanted - 1.0)
    }

    /// For programs; null where nothing was measured.
    pub fn json(&self) -> Value {
        let ((a, b), latencies) = (self.shares, self.latencies.map(|(first, second)| [first, second]));
        json!({ "shares": [a, b], "mean_latency_seconds": latencies, "error": self.error() })
    }
}

/// All pairs.
pub fn find(bench: &mut Bench<'_>, common: &Common) -> Result<Vec<Row>, Problem> {
    let specs = [1, 2].map(|seed| {
        OsString::from(format!("gen:uniform:blocks=262144,requests=2000000,read=0.5,seed={seed}"))
    });
    let traces = specs.map(|spec| bench.trace(&spec.into())).into_iter().collect::<Result<Vec<_>, _>>()?;
    let trial = |&(first, second): &(f64, f64)| {
        let tenants = [("vm-1", first), ("vm-2", second)].map(|(name, share)| TenantPlan {
            pace: Pace::Closed { outstanding: 4 },
            repeat: true,
            goals: Goals { share: Some(share), ..Goals::default() },
            quota_bytes: Some(PARTITION_BYTES),
            ..TenantPlan::new(name)
        });
        let mut plan = common.plan(tenants.to_vec(), "centaur", 2 * PARTITION_BYTES, Devices::USUAL);
        plan.duration_seconds = Some(SECONDS);
        plan.limit = common.limit();
        plan.caching = Caching { epoch_seconds: Some(EPOCH_SECONDS), ..Caching::default() };
        Trial { plan, traces: traces.clone() }
    };
    let runs = bench.run(SHARES.iter().map(trial).collect())?;
    let row = |(&shares, run): (_, &TenantsResult)| Row {
        shares,
        latencies: late::latency(run, 0).zip(late::latency(run, 1)),
        lasted: run.seconds,
    };
    Ok(SHARES.iter().zip(&runs).map(row).collect())
}

/// The table.
pub fn sheet(rows: &[Row]) -> Sheet {
    let caption = format!(
        "Figure 11: shares of latency. Two VMs with 4 requests of 4 KiB outstanding at random in 1 GiB, half of them reads; 1 GB of cache in blocks of 128 KiB, a decision \
         every {EPOCH_SECONDS} s. Mean latencies of the {}; a VM with twice the share is to have half the latency.",
        late::half(rows.iter().map(|row| row.lasted), SECONDS)
    );
    let mut sheet = Sheet::new(caption, 1, ["shares", "VM 1", "VM 2", "ratio\nwanted", "\nfound", "error"]);
    for row in rows {
        let (a, b) = row.shares;
        let cell = |value: Option<f64>, told: &dyn Fn(f64) -> String| {
            value.map_or_else(|| late::NOTHING.to_owned(), told)
        };
        sheet.row([
            format!("{a} : {b}"),
            cell(row.latencies.map(|(first, _)| first), &crate::number::time),
            cell(row.latencies.map(|(_, second)| second), &crate::number::time),
            format!("{:.2}", b / a),
            cell(row.ratio(), &|ratio| format!("{ratio:.2}")),
            cell(row.error(), &|error| format!("{:+.1} %", error * 100.0)),
        ]);
    }
    sheet
}

/// What the paper says about it.
pub fn claim(rows: &[Row]) -> Claim {
    let claim = Claim::new("shares", "figure 11: latencies follow the shares", "within 5 %");
    let Some(errors) = rows.iter().map(Row::error).collect::<Option<Vec<_>>>() else {
        return late::untested(claim);
    };
    let near = errors.iter().filter(|error| error.abs() <= 0.05).count();
    let told: Vec<_> = errors.iter().map(|error| format!("{:+.1}", error * 100.0)).collect();
    let because = format!("{near} of {} pairs of shares are met within 5 %", rows.len());
    claim.found(format!("{} %", told.join(", ")), Verdict::of(near == rows.len(), near, rows.len()), because)
}
