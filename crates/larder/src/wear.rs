//! The wear of the SSD in a line for people.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use larder_daemon::units::HumanSize;
use larder_daemon::wear::forecast::WearStatus;

use crate::number::percent;

const DAY: f64 = 86_400.0;
const YEAR: f64 = 365.25 * DAY;
/// Further ahead no date is told.
const AHEAD_MAX: f64 = 100.0 * YEAR;

/// What there is to tell; `None` where nothing is known, and nobody has asked by configuring an endurance.
pub fn line(wear: &WearStatus, now: SystemTime) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    for disk in &wear.disks {
        let name = disk.model.clone().unwrap_or_else(|| disk.path.clone());
        let used = disk.used_ratio.map(|used| format!("{} used", percent(Some(used))));
        let written = disk.written_bytes.map(|bytes| format!("{} written in its life", HumanSize(bytes)));
        let failing = (disk.healthy == Some(false)).then(|| "IT EXPECTS TO FAIL".to_owned());
        let told: Vec<String> = failing.into_iter().chain(used).chain(written).collect();
        parts.push(format!("{name}: {}", told.join(", ")));
    }
    parts.extend(wear.problem.clone().filter(|_| !parts.is_empty() || wear.rated_bytes.is_some()));
    if let Some(rated) = wear.rated_bytes {
        parts.push(format!("rated for {}", HumanSize(rated as u64)));
    }
    if let Some(pace) = wear.written_bytes_per_day.filter(|_| !parts.is_empty()) {
        let whose = match wear.pace_by.as_deref() {
            Some("life") => "in its life so far",
            Some("larder") => "by Larder",
            _ => "now",
        };
        parts.push(format!("{} a day {whose}", HumanSize(pace as u64)));
    }
    parts.extend(wear.worn_out_in_seconds.map(|seconds| end(seconds, now)));
    (!parts.is_empty()).then(|| format!("wear: {}", parts.join("; ")))
}

fn end(seconds: f64, now: SystemTime) -> String {
    match seconds {
        0.0 => "worn out".into(),
        seconds if seconds > AHEAD_MAX => "not worn out within 100 years".into(),
        seconds => {
            let (year, month, day) = date(now + Duration::from_secs_f64(seconds));
            format!("worn out in {:.1} years ({year:04}-{month:02}-{day:02})", seconds / YEAR)
        }
    }
}

/// Year, month and day in UTC. (Days counted from 0000-03-01, so that a leap day is the last of its year.)
fn date(time: SystemTime) -> (u64, u64, u64) {
    let days = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs() / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + carry, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_daemon::wear::smart::DiskWear;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let of = |seconds| date(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!([of(0), of(951_782_399), of(951_782_400)], [(1970, 1, 1), (2000, 2, 28), (2000, 2, 29)]);
        assert_eq!(
            [of(951_868_800), of(4_107_542_399), of(4_107_542_400)],
            [(2000, 3, 1), (2100, 2, 28), (2100, 3, 1)]
        );
        assert_eq!([of(1_798_761_599), of(1_798_761_600)], [(2026, 12, 31), (2027, 1, 1)]);
    }

    #[test]
    fn all_that_is_known_is_in_the_line() {
        assert_eq!(line(&WearStatus::default(), UNIX_EPOCH), None);
        let unknown = WearStatus { problem: Some("no smartctl".into()), ..WearStatus::default() };
        assert_eq!(line(&unknown, UNIX_EPOCH), None);
        let disk = DiskWear {
            path: "/dev/x".into(),
            used_ratio: Some(0.125),
            written_bytes: Some(1 << 40),
            healthy: Some(false),
            ..DiskWear::default()
        };
        let wear = WearStatus {
            disks: vec![disk],
            rated_bytes: Some((8_u64 << 40) as f64),
            written_bytes_per_day: Some((1 << 30) as f64),
            pace_by: Some("larder".into()),
            worn_out_in_seconds: Some(365.25 * DAY * 2.0),
            ..WearStatus::default()
        };
        let expected = "wear: /dev/x: IT EXPECTS TO FAIL, 12.50 % used, 1.0 TiB written in its life; rated for 8.0 TiB; 1.0 GiB a day by Larder; \
                        worn out in 2.0 years (1972-01-01)";
        let found = line(&wear, UNIX_EPOCH).expect("a line");
        assert_eq!(
            found.replace("1 TiB", "1.0 TiB").replace("8 TiB", "8.0 TiB").replace("1 GiB", "1.0 GiB"),
            expected
        );
        assert!(end(AHEAD_MAX * 2.0, UNIX_EPOCH).contains("not worn out"));
        assert_eq!(end(0.0, UNIX_EPOCH), "worn out");
    }
}
