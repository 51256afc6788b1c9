//! `larder reproduce scave`: S-CAVE's co-runs of two VMs of strong and of weak locality, against one cache under CLOCK.
//!
//! After section VI-D of Luo, Ma, Lee, Zhang, Liu, Zhou: "S-CAVE: Effective SSD Caching to Improve Virtual Machine Storage Performance", PACT 2013. Each VM is alone on a
//! hard disk, all share the SSD, and each workload runs again and again until the time is over.

mod claims;
mod guests;

use larder_alloc::{ConfiguredPolicy, WritePolicy};
use larder_policy::spec::{AdmissionSpec, CachingSpec, PolicySpec};
use larder_sim::BlockSize;
use larder_sim::tenants::{Backing, DeviceSpec, Pace, TenantPlan, TenantsResult};
use serde_json::{Value, json};

use super::bench::{Bench, Held, Trial, footprint_blocks};
use super::common::{Common, Devices};
use super::guests::{Guest, Known, told};
use super::report::Report;
use super::sheet::Sheet;
use crate::problem::Problem;

/// Requests that each VM has outstanding: its trace is replayed as fast as the storage allows.
const OUTSTANDING: u32 = 4;

/// Simulated seconds.
const SECONDS: f64 = 1800.0;

/// The cache as a share of both VMs' footprint: too little for both, as in the paper.
const SHARE: f64 = 0.4;

/// Who divides the cache in the co-runs. `unified` and `static` are CLOCK too, and cache as S-CAVE does.
const ALLOCATORS: [&str; 3] = ["unified", "static", "scave"];

/// Two VMs side by side.
#[derive(Clone, Debug)]
pub struct CoRun {
    /// Which, in words.
    pub title: &'static str,
    guests: [Guest; 2],
    /// Each VM with the whole cache for itself.
    pub alone: [TenantsResult; 2],
    /// Side by side, a run for each of [`ALLOCATORS`].
    pub runs: Vec<TenantsResult>,
}

impl CoRun {
    /// Requests per second of a VM under an allocator.
    pub fn iops(&self, allocator: &str, vm: usize) -> f64 {
        let run = self.runs.iter().find(|run| run.allocator == allocator);
        run.map_or(0.0, |run| run.tenants[vm].iops)
    }

    /// Of both VMs together.
    pub fn total_iops(&self, allocator: &str) -> f64 {
        self.iops(allocator, 0) + self.iops(allocator, 1)
    }

    /// How many times slower a VM is than alone with the whole cache.
    pub fn slowdown(&self, allocator: &str, vm: usize) -> f64 {
        self.alone[vm].tenants[0].iops / self.iops(allocator, vm).max(f64::EPSILON)
    }

    fn json(&self) -> Value {
        let vm = |allocator: &str, vm: usize| {
            json!({
                "vm": self.guests[vm].name,
                "iops": self.iops(allocator, vm),
                "slowdown": self.slowdown(allocator, vm),
            })
        };
        let runs = ALLOCATORS
            .map(|allocator| json!({ "allocator": allocator, "vms": [vm(allocator, 0), vm(allocator, 1)] }));
        json!({ "co_run": self.title, "runs": runs })
    }
}

/// The recorded traces that are known.
pub fn known() -> Vec<Known> {
    guests::PAIRS.iter().flat_map(|(_, pair)| *pair).collect()
}

/// Run all three, and hold the paper's figures against them.
pub fn find(common: &Common) -> Result<Report, Problem> {
    let mut bench = Bench::new(common);
    let co_runs = guests::PAIRS.map(|(title, pair)| {
        let guests = pair.map(|known| known.guest(common.folder.as_deref()));
        co_run(&mut bench, common, title, guests)
    });
    let co_runs = co_runs.into_iter().collect::<Result<Vec<_>, _>>()?;
    let setup = format!(
        "Each VM on a hard disk of its own with {OUTSTANDING} requests outstanding, again and again {}; one SSD cache of {:.0} % of \
         both footprints. All under CLOCK, write-through without write allocation. Slower: than alone with the whole cache.",
        how_long(co_runs.iter().flat_map(|run| run.alone.iter().chain(&run.runs)).map(|run| run.seconds)),
        SHARE * 100.0
    );
    let notes =
        [setup].into_iter().chain(told(common.folder.as_deref(), co_runs.iter().flat_map(|run| &run.guests)));
    Ok(Report {
        title: "Luo, Ma, Lee, Zhang, Liu, Zhou: \"S-CAVE: Effective SSD Caching to Improve Virtual Machine Storage Performance\", PACT 2013, section VI-D".into(),
        notes: notes.chain(common.cut_short()).collect(),
        sheets: vec![sheet(&co_runs)],
        claims: claims::judge(&co_runs),
        figures: json!({ "co_runs": co_runs.iter().map(CoRun::json).collect::<Vec<_>>() }),
        ..Report::default()
    })
}

/// How long runs of these seconds lasted; those whose requests are limited end with them.
fn how_long(seconds: impl Iterator<Item = f64>) -> String {
    let shortest = seconds.fold(SECONDS, f64::min);
    if shortest >= 0.99 * SECONDS {
        return format!("for {SECONDS} s");
    }
    let ended = crate::number::time(shortest);
    format!("until the requests are at an end, the first after {ended} instead of {SECONDS} s")
}

fn co_run(
    bench: &mut Bench<'_>,
    common: &Common,
    title: &'static str,
    guests: [Guest; 2],
) -> Result<CoRun, Problem> {
    let traces = guests.iter().map(|guest| bench.trace(&guest.trace)).collect::<Result<Vec<_>, _>>()?;
    let blocks = footprint_blocks(&traces, BlockSize::DEFAULT)?;
    let cache_bytes = (blocks as f64 * SHARE).max(1.0) as u64 * u64::from(BlockSize::DEFAULT.bytes());
    let trial = |allocator: &str, of: &[usize]| {
        let names: Vec<_> = of.iter().map(|&at| guests[at].name).collect();
        let traces = of.iter().map(|&at| traces[at].clone()).collect();
        trial(common, allocator, cache_bytes, &names, traces)
    };
    let alone = [0, 1].map(|at| trial(ALLOCATORS[0], &[at]));
    let together = ALLOCATORS.map(|allocator| trial(allocator, &[0, 1]));
    let mut runs = bench.run(alone.into_iter().chain(together).collect())?;
    let together = runs.split_off(2);
    let [first, second]: [TenantsResult; 2] =
        runs.try_into().map_err(|_| Problem::new("two runs are missing", "tell the authors"))?;
    Ok(CoRun { title, guests, alone: [first, second], runs: together })
}

fn trial(common: &Common, allocator: &str, cache_bytes: u64, names: &[&str], traces: Vec<Held>) -> Trial {
    let devices =
        Devices { ssd: DeviceSpec::SATA_SSD, backing: DeviceSpec::HDD_10K, backings: Backing::Each };
    let tenant = |name: &&str| TenantPlan {
        pace: Pace::Closed { outstanding: OUTSTANDING },
        repeat: true,
        write_policy: ConfiguredPolicy::Fixed(WritePolicy::WriteThroughNoAllocate),
        ..TenantPlan::new(*name)
    };
    let mut plan = common.plan(names.iter().map(tenant).collect(), allocator, cache_bytes, devices);
    plan.duration_seconds = Some(SECONDS);
    plan.caching.caching = CachingSpec::new(PolicySpec::Clock { bits: 1 }, AdmissionSpec::Always)
        .ok()
        .filter(|_| allocator != "scave");
    plan.caching.write = Some(WritePolicy::WriteThroughNoAllocate);
    plan.caching.block = Some(BlockSize::DEFAULT);
    plan.limit = common.limit();
    Trial { plan, traces }
}

fn sheet(co_runs: &[CoRun]) -> Sheet {
    let headings =
        ["co-run", "VM", "unified\nIOPS", "\nslower", "static\nIOPS", "\nslower", "scave\nIOPS", "\nslower"];
    let mut sheet = Sheet::new("Requests per second, and how many times slower than alone.", 2, headings);
    for run in co_runs {
        for vm in 0..2 {
            let title = if vm == 0 { run.title } else { "" };
            let cells = ALLOCATORS.into_iter().flat_map(|allocator| {
                [format!("{:.0}", run.iops(allocator, vm)), format!("{:.2}×", run.slowdown(allocator, vm))]
            });
            let head = [title.to_owned(), run.guests[vm].name.to_owned()];
            sheet.row(head.into_iter().chain(cells));
        }
    }
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_end_early_are_told() {
        assert_eq!(how_long([SECONDS, SECONDS + 0.1].into_iter()), "for 1800 s");
        assert!(how_long([SECONDS, 3.0].into_iter()).contains("the first after 3.000 s"));
    }
}
