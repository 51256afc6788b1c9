//! A web server beside three random readers: table 4.5.

use larder_sim::tenants::TenantPlan;
use serde_json::{Value, json};

use super::gaussian::below_page_cache;
use super::{CACHE_BYTES, PAGE_CACHE_BLOCKS, Pair};
use crate::problem::Problem;
use crate::reproduce::bench::{Bench, Trial};
use crate::reproduce::common::{Common, Devices};

/// Simulated seconds; the thesis does not say how long its programs ran.
const SECONDS: f64 = 900.0;

/// "A set of files of total size 700MB is read by 10 threads simultaneously with io size of 16KB."
const SERVER: Program = Program { places: 44_800, request_kib: 16, quota_bytes: 512 << 20 };

/// "A file of size 2GB is read by 32 threads simultaneously with IO size of 1MB."
const READER: Program = Program { places: 2048, request_kib: 1024, quota_bytes: 164 << 20 };

/// Megabytes per second of each with one cache for all: table 4.6.
const THROUGHPUT: [f64; 4] = [12.8, 11.3, 12.6, 12.8];

/// A container's program: reads at random of so many places.
#[derive(Clone, Copy)]
struct Program {
    places: u64,
    request_kib: u32,
    quota_bytes: u64,
}

impl Program {
    /// Its requests at a throughput of so many megabytes per second.
    fn spec(self, throughput: f64, seed: usize) -> String {
        let rate = throughput * 1e6 / (f64::from(self.request_kib) * 1024.0);
        let (requests, interval) = ((SECONDS * rate) as u64, (1e9 / rate) as u64);
        format!(
            "uniform:blocks={},block={}KiB,requests={requests},interval={interval}ns,seed={seed}",
            self.places, self.request_kib
        )
    }

    /// Requests whose blocks fit into the page cache.
    fn held_above(self) -> u32 {
        PAGE_CACHE_BLOCKS * 4 / self.request_kib
    }
}

/// Names, and the thesis's hit ratios in per cent: unified, divided.
const PAPER: [(&str, (f64, f64)); 4] = [
    ("web server", (15.9, 86.94)),
    ("random reads 1", (12.75, 10.75)),
    ("random reads 2", (12.32, 10.98)),
    ("random reads 3", (12.97, 10.60)),
];

/// A workload as it was found.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// The thesis's hit ratios in per cent: unified, divided.
    pub paper: (f64, f64),
    /// What was found.
    pub here: Pair,
}

impl Row {
    /// For programs.
    pub fn json(&self) -> Value {
        json!({ "workload": self.name, "read_hit_ratio_divided": self.here.divided, "read_hit_ratio_unified": self.here.unified })
    }
}

/// Run both.
pub fn find(bench: &mut Bench<'_>, common: &Common) -> Result<Vec<Row>, Problem> {
    let trace = |at: usize| {
        let program = program(at);
        below_page_cache(&program.spec(THROUGHPUT[at], at + 1), program.held_above(), common.limit())
    };
    let traces = (0..PAPER.len()).map(trace).collect::<Result<Vec<_>, _>>()?;
    let trial = |allocator| {
        let tenants = (0..PAPER.len()).map(tenant).collect();
        Trial { plan: common.plan(tenants, allocator, CACHE_BYTES, Devices::USUAL), traces: traces.clone() }
    };
    let runs = bench.run(vec![trial("static"), trial("unified")])?;
    let row = |(at, (name, paper)): (usize, (&'static str, _))| {
        let ratio = |run: usize| runs[run].tenants[at].read_hit_ratio;
        Row { name, paper, here: Pair { divided: ratio(0), unified: ratio(1) } }
    };
    Ok(PAPER.into_iter().enumerate().map(row).collect())
}

fn program(at: usize) -> Program {
    if at == 0 { SERVER } else { READER }
}

fn tenant(at: usize) -> TenantPlan {
    TenantPlan {
        quota_bytes: Some(program(at).quota_bytes),
        ..TenantPlan::new(PAPER[at].0.replace(' ', "-"))
    }
}
