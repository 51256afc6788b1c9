//! Reservations (figure 12): three VMs that do the same, one of which is promised a latency, or IOPS.

use std::ffi::OsString;

use larder_alloc::{Goals, Reservation};
use larder_sim::tenants::{Caching, Pace, TenantPlan, TenantsResult};
use serde_json::{Value, json};

use super::late;
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

/// A promise, what the VM had without, and what it got; none where nothing was measured.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    what: &'static str,
    without: Option<f64>,
    promised: Option<f64>,
    got: Option<f64>,
    /// Seconds of the run without a promise, and of that with it.
    lasted: [f64; 2],
}

impl Row {
    fn is_latency(&self) -> bool {
        self.what == "latency"
    }

    /// What it got beside its promise, as a share: 0.1 is a tenth more.
    fn difference(&self) -> Option<f64> {
        Some(self.got? / self.promised.filter(|&promised| promised > 0.0)? - 1.0)
    }

    /// How far it misses its promise; negative where it has better than was promised.
    fn short_by(&self) -> Option<f64> {
        self.difference().map(|difference| if self.is_latency() { difference } else { -difference })
    }

    fn told(&self, value: Option<f64>) -> String {
        let told = |value| {
            if self.is_latency() { crate::number::time(value) } else { format!("{value:.0} IOPS") }
        };
        value.map_or_else(|| late::NOTHING.to_owned(), told)
    }

    /// For programs: seconds, or requests per second; null where nothing was measured.
    pub fn json(&self) -> Value {
        json!({ "what": self.what, "without": self.without, "promised": self.promised, "got": self.got })
    }
}

/// Run without a promise, then with each.
pub fn find(bench: &mut Bench<'_>, common: &Common) -> Result<Vec<Row>, Problem> {
    let free = run(bench, common, &[None])?;
    let Some(free) = free.first() else { return Ok(Vec::new()) };
    let (latency, iops) = (late::latency(free, PROMISED), late::iops(free, PROMISED));
    let row = |what, without, promised| Row { what, without, promised, got: None, lasted: [free.seconds; 2] };
    let (Some(promised), Some(promised_iops)) = (latency.map(|it| it * LATENCY), iops.map(|it| it * IOPS))
    else {
        // The requests end so early that there is nothing to promise.
        return Ok(vec![row("latency", latency, None), row("IOPS", iops, None)]);
    };
    let promises = [Reservation::Latency(promised), Reservation::Iops(promised_iops)];
    let runs = run(bench, common, &promises.map(Some))?;
    let [for_latency, for_iops] = &runs[..] else { return Ok(Vec::new()) };
    let got = |row: Row, run: &TenantsResult, got| Row { got, lasted: [free.seconds, run.seconds], ..row };
    Ok(vec![
        got(row("latency", latency, Some(promised)), for_latency, late::latency(for_latency, PROMISED)),
        got(row("IOPS", iops, Some(promised_iops)), for_iops, late::iops(for_iops, PROMISED)),
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

/// The table.
pub fn sheet(rows: &[Row]) -> Sheet {
    let caption = format!(
        "Figure 12: reservations. Three VMs with 16 requests of 8 KiB outstanding at random in 1 GiB each, 75 % reads; 1.5 GiB of cache in blocks of 128 KiB, a decision every \
         {EPOCH_SECONDS} s. What one of them has without a promise, what it is promised, and what it gets in the {}.",
        late::half(rows.iter().flat_map(|row| row.lasted), SECONDS)
    );
    let mut sheet = Sheet::new(caption, 1, ["promise of", "without", "promised", "got", "short by"]);
    for row in rows {
        sheet.row([
            row.what.to_owned(),
            row.told(row.without),
            row.told(row.promised),
            row.told(row.got),
            row.short_by()
                .map_or_else(|| late::NOTHING.to_owned(), |short| format!("{:+.1} %", short * 100.0)),
        ]);
    }
    sheet
}

/// What the paper says about it.
pub fn claims(rows: &[Row]) -> Vec<Claim> {
    let claim = |row: &Row| {
        let id = if row.is_latency() { "latency_reservation" } else { "iops_reservation" };
        let claim = Claim::new(id, format!("figure 12: a promise of {} is kept", row.what), "within 10 %");
        let (Some(difference), Some(short)) = (row.difference(), row.short_by()) else {
            return late::untested(claim);
        };
        let here = format!("{} promised, {} got", row.told(row.promised), row.told(row.got));
        let than = match (row.is_latency(), difference > 0.0) {
            (true, true) => "higher",
            (true, false) => "lower",
            (false, true) => "more",
            (false, false) => "fewer",
        };
        let because = format!("{:.1} % {than} than promised", difference.abs() * 100.0);
        claim.found(here, Verdict::of(short <= 0.1, 0, 1), because)
    };
    rows.iter().map(claim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(what: &'static str, promised: Option<f64>, got: Option<f64>) -> Row {
        Row { what, without: promised, promised, got, lasted: [SECONDS; 2] }
    }

    #[test]
    fn a_promise_is_told_by_its_kind() {
        let rows = [
            row("latency", Some(4.0), Some(1.0)),
            row("latency", Some(4.0), Some(5.0)),
            row("IOPS", Some(100.0), Some(150.0)),
            row("IOPS", Some(100.0), Some(95.0)),
        ];
        let told: Vec<_> = claims(&rows).into_iter().map(|it| (it.verdict, it.because)).collect();
        let expected = [
            (Verdict::Holds, "75.0 % lower than promised"),
            (Verdict::Fails, "25.0 % higher than promised"),
            (Verdict::Holds, "50.0 % more than promised"),
            (Verdict::Holds, "5.0 % fewer than promised"),
        ];
        assert_eq!(told, expected.map(|(verdict, because)| (verdict, because.to_owned())));
    }

    #[test]
    fn what_was_not_measured_is_not_tested() {
        let rows =
            [row("IOPS", None, None), row("latency", Some(1.0), None), row("IOPS", Some(0.0), Some(0.0))];
        assert!(claims(&rows).iter().all(|claim| claim.verdict == Verdict::Untested && claim.here == "-"));
        let text = sheet(&rows).text(110);
        assert!(!text.contains("NaN") && !text.contains("-0"), "{text}");
    }
}
