//! The options that all experiments with tenants have in common.

use std::num::NonZero;
use std::path::PathBuf;

use clap::Args;
use larder_sim::tenants::{Backing, DeviceSpec, TenantPlan, TenantsPlan};

use crate::output;
use crate::problem::Problem;
use crate::simulate::tenants::Machine;

/// Requests of each tenant in a quick look.
const QUICK: u64 = 100_000;

/// Where traces are, on what devices, how much of it, told how.
#[derive(Clone, Debug, Default, Args)]
pub struct Common {
    /// A folder with traces: those known by name are taken, such as DIR/msr_web_1.csv.gz and DIR/recorded/web.csv.zst. Without it,
    /// stand-ins are generated, and named as such.
    #[arg(long = "traces", value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// The SSD, in place of the experiment's: nvme, sata-ssd, or one of them with changes (`nvme:parallel=16`).
    #[arg(long, value_name = "DEVICE")]
    pub ssd: Option<DeviceSpec>,
    /// What lies behind the cache, in place of the experiment's: san, hdd-10k, or one of them with changes (`san:parallel=8`).
    #[arg(long, value_name = "DEVICE")]
    pub backing: Option<DeviceSpec>,
    /// Print JSON instead of the tables; with `=FILE`, write it there beside the tables.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub json: Option<Option<PathBuf>>,
    /// Print Markdown instead of the tables; with `=FILE`, write it there beside the tables.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, conflicts_with = "json")]
    pub markdown: Option<Option<PathBuf>>,
    /// Threads to work with [default: one per core].
    #[arg(short, long, value_name = "N")]
    pub threads: Option<NonZero<usize>>,
    /// Take only the first N reads and writes of each tenant.
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<u64>,
    /// A quick look: the first 100,000 reads and writes of each tenant. The verdicts are then about no more than these.
    #[arg(long, conflicts_with = "limit")]
    pub quick: bool,
    /// Show no progress.
    #[arg(short, long)]
    pub quiet: bool,
}

/// The devices of an experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Devices {
    /// The SSD.
    pub ssd: DeviceSpec,
    /// What lies behind it.
    pub backing: DeviceSpec,
    /// One for all, or one each.
    pub backings: Backing,
}

impl Devices {
    /// What the simulator has by default: NVMe in front of one SAN.
    pub const USUAL: Self =
        Self { ssd: DeviceSpec::NVME, backing: DeviceSpec::SAN, backings: Backing::Shared };
}

impl Common {
    /// Reads and writes of each tenant, at most.
    pub fn limit(&self) -> Option<u64> {
        if self.quick { Some(QUICK) } else { self.limit }
    }

    /// The devices, where others than the experiment's are asked for.
    pub fn machine(&self) -> Machine {
        Machine { ssd: self.ssd, backing: self.backing, ..Machine::default() }
    }

    /// A run on these devices, unless others are asked for.
    pub fn plan(
        &self,
        tenants: Vec<TenantPlan>,
        allocator: &str,
        cache_bytes: u64,
        devices: Devices,
    ) -> TenantsPlan {
        TenantsPlan {
            ssd: self.ssd.unwrap_or(devices.ssd),
            backing: self.backing.unwrap_or(devices.backing),
            backings: devices.backings,
            ..TenantsPlan::new(tenants, allocator, cache_bytes)
        }
    }

    /// A name of a file that cannot be is told before the work, not after it.
    pub fn check(&self) -> Result<(), Problem> {
        let files = self.json.iter().chain(&self.markdown).flatten();
        files.map(PathBuf::as_path).try_for_each(output::check)
    }

    /// A sentence about what was left out of the traces, if anything was.
    pub fn cut_short(&self) -> Option<String> {
        let limit = crate::number::grouped(self.limit()?);
        Some(format!(
            "CUT SHORT: only the first {limit} reads and writes of each tenant; the verdicts are about no more than these."
        ))
    }
}
