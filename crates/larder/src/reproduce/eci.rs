//! `larder reproduce eci`: ECI-Cache against Centaur, with a cache that is too small for both and one that is not.
//!
//! After section 6 and appendix A of Ahmadian, Mutlu, Asadi: "ECI-Cache: A High-Endurance and Cost-Efficient I/O Caching Scheme for Virtualized Platforms", SIGMETRICS 2018.

mod claims;

use larder_daemon::units::HumanSize;
use larder_sim::BlockSize;
use larder_sim::tenants::{Caching, TenantPlan, TenantsResult};
use serde_json::{Value, json};

use super::bench::{Bench, Trial, footprint_blocks};
use super::common::{Common, Devices};
use super::guests::{EIGHT, Guest, told};
use super::report::Report;
use super::sheet::Sheet;
use crate::number;
use crate::problem::Problem;

/// "Block size is equal to 8KB", for both.
const BLOCK_BYTES: u32 = 8192;

/// Seconds between decisions: the paper's ten minutes are a hundredth of its traces, too, and these take minutes.
const EPOCH_SECONDS: f64 = 20.0;

/// The caches: too small, and as large as everything that is touched.
const SHARES: [(&str, f64); 2] = [("limited", 0.2), ("unlimited", 1.0)];

/// Who is compared.
const ALLOCATORS: [&str; 2] = ["centaur", "eci"];

/// Both on a cache of one size.
#[derive(Clone, Debug)]
pub struct Compared {
    /// `limited` or `unlimited`.
    pub name: &'static str,
    centaur: TenantsResult,
    eci: TenantsResult,
}

impl Compared {
    /// How much lower ECI-Cache's mean latency is, as a share of Centaur's.
    pub fn latency_saved(&self) -> f64 {
        1.0 - self.eci.total.mean_latency / self.centaur.total.mean_latency.max(f64::MIN_POSITIVE)
    }

    /// How much less cache it allots; none where Centaur allots none.
    pub fn cache_saved(&self) -> Option<f64> {
        let centaur = allotted(&self.centaur);
        (centaur > 0.0).then(|| 1.0 - allotted(&self.eci) / centaur)
    }

    /// How much higher its performance per cost is: the inverse of latency times the cache allotted. None where one of the two allots none.
    pub fn per_cost_gained(&self) -> Option<f64> {
        let cost = |run: &TenantsResult| run.total.mean_latency * allotted(run);
        let (eci, centaur) = (cost(&self.eci), cost(&self.centaur));
        (eci > 0.0 && centaur > 0.0).then(|| centaur / eci - 1.0)
    }

    /// How many of Centaur's writes to the SSD it saves; none where Centaur writes nothing.
    pub fn writes_saved(&self) -> Option<f64> {
        let writes = |run: &TenantsResult| run.total.ssd_writes.total as f64;
        let centaur = writes(&self.centaur);
        (centaur > 0.0).then(|| 1.0 - writes(&self.eci) / centaur)
    }

    fn json(&self) -> Value {
        let run = |run: &TenantsResult| {
            json!({
                "allocator": run.allocator,
                "mean_latency_seconds": run.total.mean_latency,
                "read_hit_ratio_blocks": run.total.read_hit_ratio,
                "ssd_written_bytes": run.total.ssd_writes.total * u64::from(run.block_bytes),
                "allotted_bytes": allotted(run) * f64::from(run.block_bytes),
            })
        };
        json!({ "cache": self.name, "cache_bytes": self.eci.cache_bytes, "runs": [run(&self.centaur), run(&self.eci)] })
    }
}

/// Blocks allotted to all tenants, in the mean over the run.
fn allotted(run: &TenantsResult) -> f64 {
    run.total.mean_quota_blocks
}

/// Run both caches, and hold the paper's figures against them.
pub fn find(common: &Common) -> Result<Report, Problem> {
    let guests = EIGHT.map(|known| known.guest(common.folder.as_deref()));
    let compared = compare(common, &guests)?;
    let setup = format!(
        "Eight tenants at the times of their traces; blocks of 8 KiB and a decision every {EPOCH_SECONDS} s for both, a batch of Centaur's mover \
         every fifth of that. NVMe in front of a SAN: the paper's SATA SSD and four hard disks would drown in these rates. Limited: {:.0} % of all \
         blocks touched; unlimited: all.",
        SHARES[0].1 * 100.0
    );
    Ok(Report {
        title: "Ahmadian, Mutlu, Asadi: \"ECI-Cache: A High-Endurance and Cost-Efficient I/O Caching Scheme for Virtualized Platforms\", SIGMETRICS 2018, section 6".into(),
        notes: [setup].into_iter().chain(told(common.folder.as_deref(), &guests)).chain(common.cut_short()).collect(),
        sheets: vec![sheet(&compared)],
        claims: claims::judge(&compared),
        figures: json!({ "caches": compared.iter().map(Compared::json).collect::<Vec<_>>() }),
        ..Report::default()
    })
}

fn compare(common: &Common, guests: &[Guest]) -> Result<Vec<Compared>, Problem> {
    let mut bench = Bench::new(common);
    let traces = guests.iter().map(|guest| bench.trace(&guest.trace)).collect::<Result<Vec<_>, _>>()?;
    let block =
        BlockSize::new(BLOCK_BYTES.into()).map_err(|error| Problem::new(error, "tell the authors"))?;
    let footprint = footprint_blocks(&traces, block)?;
    let trial = |share: f64, allocator| {
        let blocks = (footprint as f64 * share).max(1.0) as u64;
        let tenants = guests.iter().map(|guest| TenantPlan::new(guest.name)).collect();
        let mut plan = common.plan(tenants, allocator, blocks * u64::from(BLOCK_BYTES), Devices::USUAL);
        plan.caching =
            Caching { block: Some(block), epoch_seconds: Some(EPOCH_SECONDS), ..Caching::default() };
        Trial { plan, traces: traces.clone() }
    };
    let trials = SHARES.iter().flat_map(|&(_, share)| ALLOCATORS.map(|allocator| trial(share, allocator)));
    let mut runs = bench.run(trials.collect())?.into_iter();
    let compared = SHARES.iter().map_while(|&(name, _)| {
        let (centaur, eci) = (runs.next()?, runs.next()?);
        Some(Compared { name, centaur, eci })
    });
    Ok(compared.collect())
}

fn sheet(compared: &[Compared]) -> Sheet {
    let headings =
        ["cache", "allocator", "size", "mean\nlatency", "read hits", "SSD\nwrites", "allotted\non average"];
    let mut sheet = Sheet::new("Both systems on both caches.", 2, headings);
    for caches in compared {
        for run in [&caches.centaur, &caches.eci] {
            let bytes = |blocks: f64| HumanSize((blocks * f64::from(run.block_bytes)) as u64).to_string();
            sheet.row([
                caches.name.to_owned(),
                run.allocator.clone(),
                HumanSize(run.cache_bytes).to_string(),
                number::time(run.total.mean_latency),
                number::percent(Some(run.total.read_hit_ratio)),
                bytes(run.total.ssd_writes.total as f64),
                bytes(allotted(run)),
            ]);
        }
    }
    sheet
}
