//! Wastage (figure 2): what one cache for several tenants needs beyond the sum of what each needs for itself.
//!
//! A working set is "the size beyond which any increase in cache size does not reduce the miss rate" (section II-B); here the least size with no more
//! than 1 % more misses than a cache that holds everything. It is found by halving, to 1/256 of the footprint.

use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use larder_daemon::units::HumanSize;
use larder_policy::spec::{AdmissionSpec, CachingSpec, PolicySpec};
use larder_sim::{BlockSize, Plan, RunSpec, WritePolicy, simulate};
use larder_trace::{Request, RequestKind};
use serde_json::{Value, json};

use super::window::Window;
use crate::input::Input;
use crate::metered::Requests;
use crate::problem::Problem;
use crate::reproduce::bench::{Held, survey};
use crate::reproduce::claim::Claim;
use crate::reproduce::common::Common;
use crate::reproduce::larc::Verdict;
use crate::reproduce::sheet::Sheet;

/// The replacement policies of the figure.
const POLICIES: [PolicySpec; 3] = [PolicySpec::Lru, PolicySpec::AgingLfu, PolicySpec::Arc];

/// The first so many seconds of each trace, in place of the paper's three hours.
const SECONDS: u64 = 60;

/// More misses than with everything cached that still count as none.
const TOLERANCE: f64 = 0.01;

/// Halvings of the footprint.
const STEPS: u32 = 8;

/// So many tenants, under each policy.
#[derive(Clone, Debug)]
pub struct Row {
    /// How many.
    pub tenants: usize,
    /// For each policy, blocks that all need in one cache, and the sum of what each needs alone.
    pub sets: [(u64, u64); 3],
}

impl Row {
    /// Wastage under a policy, as a share of what one cache needs.
    fn wastage(&self, policy: usize) -> f64 {
        let (together, alone) = self.sets[policy];
        1.0 - alone as f64 / together.max(1) as f64
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let sets = POLICIES.iter().zip(self.sets).enumerate().map(|(at, (policy, (together, alone)))| {
            json!({ "policy": policy.name(), "one_cache_blocks": together, "sum_alone_blocks": alone, "wastage": self.wastage(at) })
        });
        json!({ "tenants": self.tenants, "working_sets": sets.collect::<Vec<_>>() })
    }
}

/// For one tenant, two, and so on.
pub fn find(common: &Common, traces: &[Held]) -> Result<Vec<Row>, Problem> {
    let windows: Vec<_> = traces.iter().map(|trace| Window::first(trace, SECONDS)).collect();
    let alone = windows.iter().map(|window| working_sets(common, &window.requests));
    let alone = alone.collect::<Result<Vec<_>, _>>()?;
    let mut rows = Vec::new();
    for tenants in 1..=windows.len() {
        let together = match tenants {
            1 => alone[0],
            _ => working_sets(common, &Window::merged(&windows[..tenants]))?,
        };
        let sum = |policy: usize| alone[..tenants].iter().map(|sets| sets[policy]).sum();
        rows.push(Row { tenants, sets: [0, 1, 2].map(|policy| (together[policy], sum(policy))) });
    }
    Ok(rows)
}

/// The working set under each policy.
fn working_sets(common: &Common, trace: &Held) -> Result<[u64; 3], Problem> {
    let footprint = survey(trace, BlockSize::DEFAULT)?.footprint_blocks.max(1);
    let [enough, ..] = misses(common, trace, [footprint; 3])?;
    let allowed = (enough as f64 * (1.0 + TOLERANCE)) as u64;
    // What is below is too small; what is above is enough.
    let (mut below, mut above) = ([0; 3], [footprint; 3]);
    for _ in 0..STEPS {
        let middle = [0, 1, 2].map(|at| (below[at] + above[at]).div_ceil(2));
        let found = misses(common, trace, middle)?;
        for at in 0..POLICIES.len() {
            if found[at] <= allowed { above[at] = middle[at] } else { below[at] = middle[at] }
        }
    }
    Ok(above)
}

/// Blocks that miss in a cache of each policy.
fn misses(common: &Common, trace: &Held, sizes: [u64; 3]) -> Result<[u64; 3], Problem> {
    let run = |(policy, blocks): (PolicySpec, u64)| {
        let caching = CachingSpec::new(policy, AdmissionSpec::Always).unwrap_or_default();
        RunSpec { caching, write: WritePolicy::WriteBack, blocks }
    };
    let threads = common.threads.or_else(|| thread::available_parallelism().ok());
    let runs = POLICIES.into_iter().zip(sizes).map(run).collect();
    let plan = Plan { threads: threads.unwrap_or(NonZero::<usize>::MIN), ..Plan::new(runs) };
    let source = Requests::Other(Input::Held(Arc::clone(trace), 0));
    let results = simulate(source, &plan, None, |_| {})?.runs;
    Ok([0, 1, 2].map(|at| {
        let totals = &results[at].totals;
        totals.block_reads + totals.block_writes - totals.read_hits - totals.write_hits
    }))
}

/// The table.
pub fn sheet(rows: &[Row]) -> Sheet {
    let caption = format!(
        "Figure 2: wastage. Working sets in one cache for all, and how much of it is beyond the sum of the working sets of each alone; the first \
         {SECONDS} s of the traces, blocks of 4 KiB."
    );
    let headings = [
        "tenants",
        "LRU\none cache",
        "\nwastage",
        "aging-LFU\none cache",
        "\nwastage",
        "ARC\none cache",
        "\nwastage",
    ];
    let mut sheet = Sheet::new(caption, 0, headings);
    for row in rows {
        let cells = (0..POLICIES.len()).flat_map(|policy| {
            let bytes = row.sets[policy].0 * u64::from(BlockSize::DEFAULT.bytes());
            [HumanSize(bytes).to_string(), format!("{:.1} %", row.wastage(policy) * 100.0)]
        });
        sheet.row([row.tenants.to_string()].into_iter().chain(cells));
    }
    sheet
}

/// What the paper says about it.
pub fn claims(rows: &[Row]) -> Vec<Claim> {
    let text = "figure 2: one cache wastes more as tenants are added, under any of the policies";
    let claim = Claim::new("wastage_grows", text, "grows with consolidation");
    let (Some(two), Some(all)) = (rows.get(1), rows.last()) else { return vec![claim] };
    let wastes = |row: &Row| [0, 1, 2].map(|policy| row.wastage(policy));
    let (two_waste, all_waste) = (wastes(two), wastes(all));
    let grows = two_waste.iter().zip(all_waste).filter(|(two, all)| *all > **two && *all > 0.0).count();
    let told = |values: [f64; 3]| values.map(|value| format!("{:.1}", value * 100.0)).join(", ");
    let here = format!("{} % of two, {} % of {}", told(two_waste), told(all_waste), all.tenants);
    let because = format!("it grows under {grows} of 3 (LRU, aging-LFU, ARC)");
    vec![claim.found(here, Verdict::of(grows == 3, grows, 3), because)]
}

/// True for what moves blocks.
pub fn is_access(request: &Request) -> bool {
    matches!(request.kind, RequestKind::Read | RequestKind::Write)
}
