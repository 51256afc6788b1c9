//! The day on which the SSD will be worn out: what may still be written, at the pace at which it is.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Known;
use super::endurance::Endurance;
use super::smart::DiskWear;

/// So long has to be looked at before a pace is one: filling a cold cache is none.
const PACE_AFTER: Duration = Duration::from_secs(3600);

const DAY: f64 = 86_400.0;

/// The object `cache.wear` of the status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WearStatus {
    /// The disks that the cache lies on, as they tell of themselves.
    pub disks: Vec<DiskWear>,
    /// Why a disk tells nothing; else `null`.
    pub problem: Option<String>,
    /// Bytes that may be written to them in their lives; `null` where nobody says.
    pub rated_bytes: Option<f64>,
    /// Who says so: `configured` (`cache.endurance`), or `disk`: what was written so far, over what that has used.
    pub rated_by: Option<String>,
    /// Bytes that are written in a day; `null` where nothing is known yet.
    pub written_bytes_per_day: Option<f64>,
    /// How that is known: `disk`, since the daemon's start; `larder`, by its own writes since then; `life`, the disk's mean.
    pub pace_by: Option<String>,
    /// Seconds from now until as much as is rated is written at this pace; `null` where one of the two is not known. Of a disk that does not tell what was written before, as if it were new.
    pub worn_out_in_seconds: Option<f64>,
}

/// What is known, put together. `own`: bytes that the cache has written since the start, and how long that was.
pub fn forecast(known: &Known, endurance: Option<&Endurance>, own: (u64, Duration)) -> WearStatus {
    let written = known.written_bytes();
    let capacity = known.disks.iter().filter_map(|disk| disk.size_bytes).sum();
    let configured = endurance.map(|endurance| endurance.rated_bytes(capacity)).filter(|rated| *rated > 0.0);
    // The most used one is worn out first.
    let used = known.disks.iter().filter_map(|disk| disk.used_ratio).reduce(f64::max);
    let by_disk = || Some(written? as f64 / used.filter(|used| *used > 0.0)?);
    let rated = match configured {
        Some(rated) => Some((rated, "configured")),
        None => by_disk().map(|rated| (rated, "disk")),
    };
    let left = |rated: f64| match (written, used) {
        (Some(written), _) => rated - written as f64,
        (None, Some(used)) => rated * (1.0 - used),
        (None, None) => rated,
    };
    let pace = pace(known, written, own);
    let worn_out = rated.zip(pace).and_then(|((rated, _), (each_day, _))| {
        (each_day > 0.0).then(|| left(rated).max(0.0) / each_day * DAY)
    });
    WearStatus {
        disks: known.disks.clone(),
        problem: known.problem.clone(),
        rated_bytes: rated.map(|rated| rated.0),
        rated_by: rated.map(|rated| rated.1.into()),
        written_bytes_per_day: pace.map(|pace| pace.0),
        pace_by: pace.map(|pace| pace.1.into()),
        worn_out_in_seconds: worn_out,
    }
}

/// Bytes in a day, and how that is known.
fn pace(known: &Known, written: Option<u64>, own: (u64, Duration)) -> Option<(f64, &'static str)> {
    let per_day = |(bytes, time): (u64, Duration)| bytes as f64 / time.as_secs_f64() * DAY;
    let long = |measured: &(u64, Duration)| measured.1 >= PACE_AFTER;
    if let Some(measured) = known.since_first.filter(long) {
        return Some((per_day(measured), "disk"));
    }
    if long(&own) {
        return Some((per_day(own), "larder"));
    }
    let powered = known.disks.iter().filter_map(|disk| disk.power_on_seconds).max();
    let life = (written?, Duration::from_secs(powered?));
    long(&life).then(|| (per_day(life), "life"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const YEARS: f64 = 365.25 * DAY;

    fn disk(used_ratio: Option<f64>, written_bytes: Option<u64>) -> DiskWear {
        DiskWear {
            used_ratio,
            written_bytes,
            size_bytes: Some(1_000_000_000_000),
            power_on_seconds: Some(1000 * 86_400),
            ..DiskWear::default()
        }
    }

    fn known(disks: Vec<DiskWear>) -> Known {
        Known { disks, ..Known::default() }
    }

    fn close(found: Option<f64>, expected: f64) {
        let found = found.expect("known");
        assert!((found / expected - 1.0).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn the_configured_endurance_less_what_was_written_at_the_pace_of_the_disk() {
        let mut known = known(vec![disk(Some(0.5), Some(100_000_000_000_000))]);
        known.since_first = Some((1_000_000_000_000, HOUR * 24));
        let endurance = "600TBW".parse().expect("one");
        let found = forecast(&known, Some(&endurance), (5, HOUR * 24));
        assert_eq!((found.rated_by.as_deref(), found.pace_by.as_deref()), (Some("configured"), Some("disk")));
        close(found.written_bytes_per_day, 1e12);
        close(found.worn_out_in_seconds, 500.0 * DAY);
        let drive_writes = forecast(&known, Some(&"1DWPD/2y".parse().expect("one")), (5, HOUR));
        close(drive_writes.rated_bytes, 730.5e12);
    }

    #[test]
    fn a_disk_that_tells_how_much_is_used_rates_itself() {
        let found = forecast(&known(vec![disk(Some(0.25), Some(100_000_000_000_000))]), None, (0, HOUR / 2));
        assert_eq!((found.rated_by.as_deref(), found.pace_by.as_deref()), (Some("disk"), Some("life")));
        close(found.rated_bytes, 400e12);
        // A tenth of a terabyte a day for a thousand days so far.
        close(found.worn_out_in_seconds, 3000.0 * DAY);
        let new = forecast(&known(vec![disk(Some(0.0), Some(1000))]), None, (0, HOUR));
        assert_eq!((new.rated_bytes, new.worn_out_in_seconds), (None, None));
    }

    #[test]
    fn a_disk_that_tells_nothing_is_taken_to_be_new() {
        let endurance = "365.25TBW".parse().expect("one");
        let found = forecast(&known(Vec::new()), Some(&endurance), (1_000_000_000_000, HOUR * 24));
        assert_eq!(found.pace_by.as_deref(), Some("larder"));
        close(found.worn_out_in_seconds, YEARS);
        let early = forecast(&known(Vec::new()), Some(&endurance), (1_000_000_000_000, HOUR / 2));
        assert_eq!((early.written_bytes_per_day, early.worn_out_in_seconds), (None, None));
        let idle = forecast(&known(Vec::new()), Some(&endurance), (0, HOUR * 24));
        assert_eq!((idle.written_bytes_per_day, idle.worn_out_in_seconds), (Some(0.0), None));
    }

    #[test]
    fn what_is_worn_out_has_no_time_left() {
        let endurance = "1TBW".parse().expect("one");
        let found =
            forecast(&known(vec![disk(Some(1.2), Some(2_000_000_000_000))]), Some(&endurance), (7, HOUR));
        assert_eq!(found.worn_out_in_seconds, Some(0.0));
        let partly =
            forecast(&known(vec![disk(Some(0.75), None)]), Some(&endurance), (1_000_000_000, HOUR * 24));
        close(partly.worn_out_in_seconds, 250.0 * DAY);
    }
}
