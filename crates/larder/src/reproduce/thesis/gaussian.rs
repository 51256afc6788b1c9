//! Two containers that read a file of 10 GB at places of a Gaussian distribution: tables 4.3 and 4.4.

use larder_sim::tenants::TenantPlan;
use larder_trace::GeneratorSpec;
use serde_json::{Value, json};

use super::{CACHE_BYTES, PAGE_CACHE_BLOCKS, Pair};
use crate::problem::Problem;
use crate::reproduce::bench::{Bench, Held, Trial, hold};
use crate::reproduce::common::{Common, Devices};
use crate::reproduce::larc::BelowPageCache;

/// Blocks of 4 KiB in the file.
const FILE_BLOCKS: u64 = 10 << 18;

/// Requests of container 1; the other one's last as long.
const REQUESTS: f64 = 600_000.0;

/// Of container 1.
const IOPS: f64 = 358.16;
const SIGMA: u64 = 50_000;

/// A row of the thesis's tables: container 2, and hit ratios in per cent, divided and unified.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Container 2's requests per second.
    pub iops: f64,
    /// Container 2's standard deviation, in blocks.
    pub sigma: u64,
    /// Container 1.
    pub first: (f64, f64),
    /// Container 2; not a number where it was all in the page cache.
    pub second: (f64, f64),
    /// Both.
    pub all: (f64, f64),
}

const fn paper(iops: f64, sigma: u64, first: (f64, f64), second: (f64, f64), all: (f64, f64)) -> Paper {
    Paper { iops, sigma, first, second, all }
}

/// Table 4.3.
pub const BY_RATE: [Paper; 4] = [
    paper(358.16, 500_000, (78.26, 68.19), (29.48, 33.96), (53.87, 51.075)),
    paper(512.55, 500_000, (79.58, 53.25), (29.46, 34.41), (54.52, 43.83)),
    paper(535.90, 500_000, (79.54, 48.06), (29.47, 33.89), (54.50, 40.97)),
    paper(607.53, 500_000, (79.58, 41.29), (28.89, 34.15), (54.23, 37.72)),
];

/// Table 4.4.
pub const BY_SIGMA: [Paper; 5] = [
    paper(607.53, 10_000, (80.18, 79.39), (f64::NAN, f64::NAN), (80.18, 79.39)),
    paper(607.53, 50_000, (79.62, 78.18), (79.42, 78.80), (79.52, 78.49)),
    paper(607.53, 150_000, (79.59, 66.02), (33.84, 51.66), (56.71, 58.84)),
    paper(607.53, 250_000, (79.44, 65.87), (29.91, 44.95), (54.67, 55.41)),
    paper(607.53, 500_000, (79.36, 58.47), (29.5, 32.92), (54.43, 45.695)),
];

/// A row as it was found.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The thesis's.
    pub paper: Paper,
    /// Container 1, container 2, and the mean of both, which is what the thesis calls overall.
    pub here: [Pair; 3],
}

impl Row {
    /// For programs.
    pub fn json(&self) -> Value {
        let pair = |pair: Pair| json!({ "divided": pair.divided, "unified": pair.unified });
        let [first, second, all] = self.here;
        json!({
            "iops_2": self.paper.iops, "sigma_2_blocks": self.paper.sigma,
            "read_hit_ratio_1": pair(first), "read_hit_ratio_2": pair(second), "read_hit_ratio_mean": pair(all),
        })
    }
}

/// Run these rows.
pub fn find(bench: &mut Bench<'_>, common: &Common, table: &[Paper]) -> Result<Vec<Row>, Problem> {
    let first = container(common, IOPS, SIGMA, 1)?;
    let mut trials = Vec::new();
    for paper in table {
        let traces = vec![first.clone(), container(common, paper.iops, paper.sigma, 2)?];
        let trial = |allocator| {
            let tenants = ["container-1", "container-2"].map(TenantPlan::new).to_vec();
            let plan = common.plan(tenants, allocator, CACHE_BYTES, Devices::USUAL);
            Trial { plan, traces: traces.clone() }
        };
        trials.extend(["static", "unified"].map(trial));
    }
    let results = bench.run(trials)?;
    let rows = table.iter().zip(results.chunks(2)).map(|(&paper, runs)| {
        let ratio = |run: usize, tenant: usize| runs[run].tenants[tenant].read_hit_ratio;
        let of = |tenant| Pair { divided: ratio(0, tenant), unified: ratio(1, tenant) };
        let (first, second) = (of(0), of(1));
        // What is all in the page cache is in no mean.
        let all = if paper.second.0.is_nan() { first } else { mean(first, second) };
        Row { paper, here: [first, second, all] }
    });
    Ok(rows.collect())
}

fn mean(a: Pair, b: Pair) -> Pair {
    Pair { divided: (a.divided + b.divided) / 2.0, unified: (a.unified + b.unified) / 2.0 }
}

/// A container's requests below its page cache.
fn container(common: &Common, iops: f64, sigma: u64, seed: u64) -> Result<Held, Problem> {
    let deviation = sigma as f64 / FILE_BLOCKS as f64;
    let requests = (REQUESTS * iops / IOPS) as u64;
    let interval = (1e9 / iops) as u64;
    let text = format!(
        "gaussian:centre=0.5,deviation={deviation},blocks={FILE_BLOCKS},requests={requests},interval={interval}ns,seed={seed}"
    );
    below_page_cache(&text, PAGE_CACHE_BLOCKS, common.limit())
}

/// What comes through a page cache that holds so many requests' blocks.
pub fn below_page_cache(text: &str, holds: u32, limit: Option<u64>) -> Result<Held, Problem> {
    let spec: GeneratorSpec =
        text.parse().map_err(|error| Problem::new(error, "tell the authors: this workload is built in"))?;
    hold(BelowPageCache::new(spec.open(), holds, limit), limit)
}
