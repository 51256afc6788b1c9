//! Reservations (figure 12): three VMs that do the same, one of which is promised a latency, or IOPS.

use std::ffi::OsString;

use larder_alloc::{Goals, Reservation};
use larder_sim::tenants::{Caching, DecisionRow, Pace, TenantPlan, TenantsResult};
use serde_json::{Value, json};

use crate::problem::Problem;
use crate::reproduce::bench::{Bench, Trial};
use crate::reproduce::claim::Claim;
use crate::reproduce::common::{Common, Devices};
use crate::reproduce::larc::Verdict;
use crate::reproduce::sheet::Sheet;

/// Bytes of the cache, an eighth of the paper's 12 GB.
const CACHE_BYTES: u64 = 12 << 27;

/// Simulated seconds, and between decisions.
const SECONDS: f64 = 240.0;
const EPOCH_SECONDS: f64 = 20.0;

/// What is promised: this share of the latency without a promise, and so many times its IOPS.
const LATENCY: f64 = 0.6;
const IOPS: f64 = 1.5;

/// The VM that is promised something.
const PROMISED: usize = 0;

/// A promise, what the VM had without, and what it got.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    what: &'static str,
    without: f64,
    promised: f64,
    got: f64,
}

impl Row {
    fn is_latency(&self) -> bool {
        self.what == "latency"
    }

    /// How far it misses its promise; negative where it has more than was promised.
    fn short_by(&self) -> f64 {
        if self.is_latency() { self.got / self.promised - 1.0 } else { 1.0 - self.got / self.promised }
    }

    fn told(&self, value: f64) -> String {
        if self.is_latency() { crate::number::time(value) } else { format!("{value:.0} IOPS") }
    }

    /// For programs: seconds, or requests per second.
    pub fn json(&self) -> Value {
        json!({ "what": self.what, "without": self.without, "promised": self.promised, "got": self.got })
    }
}

/// Run without a promise, then with each.
pub fn find(bench: &mut Bench<'_>, common: &Common) -> Result<Vec<Row>, Problem> {
    let free = run(bench, common, &[None])?;
    let Some(free) = free.first() else { return Ok(Vec::new()) };
    let (latency, iops) = (late_latency(free, PROMISED), late_iops(free));
    if latency <= 0.0 {
        // Cut so short that nothing was measured.
        return Ok(Vec::new());
    }
    let promises = [Reservation::Latency(latency * LATENCY), Reservation::Iops(iops * IOPS)];
    let runs = run(bench, common, &promises.map(Some))?;
    let [for_latency, for_iops] = &runs[..] else { return Ok(Vec::new()) };
    let got = late_latency(for_latency, PROMISED);
    Ok(vec![
        Row { what: "latency", without: latency, promised: latency * LATENCY, got },
        Row { what: "IOPS", without: iops, promised: iops * IOPS, got: late_iops(for_iops) },
    ])
}

fn run(
    bench: &mut Bench<'_>,
    common: &Common,
    promises: &[Option<Reservation>],
) -> Result<Vec<TenantsResult>, Problem> {
    let spec = |seed| {
        OsString::from(format!("gen:uniform:blocks=131072,block=8KiB,requests=1000000,read=0.75,seed={seed}"))
    };
    let traces = [1, 2, 3].map(|seed| bench.trace(&spec(seed).into()));
    let traces = traces.into_iter().collect::<Result<Vec<_>, _>>()?;
    let trial = |&reservation: &Option<Reservation>| {
        let tenants = [0, 1, 2].map(|vm| TenantPlan {
            pace: Pace::Closed { outstanding: 16 },
            repeat: true,
            goals: Goals { reservation: reservation.filter(|_| vm == PROMISED), ..Goals::default() },
            ..TenantPlan::new(format!("vm-{}", vm + 1))
        });
        let mut plan = common.plan(tenants.to_vec(), "centaur", CACHE_BYTES, Devices::USUAL);
        plan.duration_seconds = Some(SECONDS);
        plan.limit = common.limit();
        plan.caching = Caching { epoch_seconds: Some(EPOCH_SECONDS), ..Caching::default() };
        Trial { plan, traces: traces.clone() }
    };
    bench.run(promises.iter().map(trial).collect())
}

/// Mean seconds of a tenant's requests in the second half of a run; 0 where no epoch began there.
pub fn late_latency(run: &TenantsResult, tenant: usize) -> f64 {
    let weighed = late(run, tenant).filter_map(|row| Some((row.achieved.latency?, row.achieved.iops)));
    let (sum, weight) =
        weighed.fold((0.0, 0.0), |(sum, weight), (latency, iops)| (sum + latency * iops, weight + iops));
    if weight > 0.0 { sum / weight } else { 0.0 }
}

/// A tenant's epochs in the second half of a run.
fn late(run: &TenantsResult, tenant: usize) -> impl Iterator<Item = &DecisionRow> {
    run.decisions.iter().filter(move |row| row.tenant == tenant && row.seconds >= run.seconds / 2.0)
}

/// Requests per second of the promised VM in the second half.
fn late_iops(run: &TenantsResult) -> f64 {
    let rows = run.decisions.iter().filter(|row| row.tenant == PROMISED && row.seconds >= SECONDS / 2.0);
    let rates: Vec<_> =
        rows.filter(|row| row.achieved.latency.is_some()).map(|row| row.achieved.iops).collect();
    rates.iter().sum::<f64>() / rates.len().max(1) as f64
}

/// The table.
pub fn sheet(rows: &[Row]) -> Sheet {
    let caption = format!(
        "Figure 12: reservations. Three VMs with 16 requests of 8 KiB outstanding at random in 1 GiB each, 75 % reads; 1.5 GiB of cache in blocks of 128 KiB, a decision every \
         {EPOCH_SECONDS} s. What one of them has without a promise, what it is promised, and what it gets in the second half of {SECONDS} s."
    );
    let mut sheet = Sheet::new(caption, 1, ["promise of", "without", "promised", "got", "short by"]);
    for row in rows {
        sheet.row([
            row.what.to_owned(),
            row.told(row.without),
            row.told(row.promised),
            row.told(row.got),
            format!("{:+.1} %", row.short_by() * 100.0),
        ]);
    }
    sheet
}

/// What the paper says about it.
pub fn claims(rows: &[Row]) -> Vec<Claim> {
    let claim = |row: &Row| {
        let id = if row.is_latency() { "latency_reservation" } else { "iops_reservation" };
        let claim = Claim::new(id, format!("figure 12: a promise of {} is kept", row.what), "within 10 %");
        let here = format!("{} promised, {} got", row.told(row.promised), row.told(row.got));
        let short = row.short_by();
        let because = match short > 0.0 {
            true => format!("{:.1} % short of it", short * 100.0),
            false => format!("{:.1} % more than promised", -short * 100.0),
        };
        claim.found(here, Verdict::of(short <= 0.1, 0, 1), because)
    };
    rows.iter().map(claim).collect()
}
