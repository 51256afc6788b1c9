//! Metrics of the SSD's wear: what its disks tell, and when it will be worn out. What is not known is not there.

use super::family::{Family, Page, flag};
use crate::status::WriteBudgetStatus;
use crate::wear::forecast::WearStatus;
use crate::wear::smart::DiskWear;

pub(super) fn tell(page: &mut Page, wear: &WearStatus) {
    page.gauge("larder_ssd_rated_bytes", "Bytes that may be written to the SSD in its life.", |family| {
        family.add_some(&[], wear.rated_bytes);
    });
    page.gauge("larder_ssd_written_bytes_per_day", "Bytes that are written to the SSD in a day.", |family| {
        family.add_some(&[], wear.written_bytes_per_day);
    });
    page.gauge(
        "larder_ssd_worn_out_in_seconds",
        "Time until as much is written as the SSD is rated for, at this pace.",
        |family| family.add_some(&[], wear.worn_out_in_seconds),
    );
    let each = |family: &mut Family, value: fn(&DiskWear) -> Option<f64>| {
        wear.disks.iter().for_each(|disk| family.add_some(&[("disk", &disk.path)], value(disk)));
    };
    page.gauge(
        "larder_ssd_disk_used_ratio",
        "How much of its endurance a disk has used, by its own account; it may go beyond 1.",
        |family| each(family, |disk| disk.used_ratio),
    );
    page.counter(
        "larder_ssd_disk_written_bytes_total",
        "Bytes that were written to a disk in its life, by anybody.",
        |family| each(family, |disk| disk.written_bytes.map(|bytes| bytes as f64)),
    );
    page.gauge("larder_ssd_disk_healthy", "0 where a disk expects to fail, by its own account.", |family| {
        each(family, |disk| disk.healthy.map(flag));
    });
}

/// How far the budget of SSD writes is used up, where there is one.
pub(super) fn tell_budget(page: &mut Page, budget: Option<&WriteBudgetStatus>) {
    type Told = fn(&WriteBudgetStatus) -> f64;
    let gauges: [(&str, &str, Told); 4] = [
        ("larder_ssd_write_budget_bytes", "Bytes that may be written to the SSD in a period.", |it| {
            it.bytes as f64
        }),
        ("larder_ssd_write_budget_period_seconds", "Length of a period of the budget.", |it| {
            it.period_seconds
        }),
        ("larder_ssd_write_budget_left_bytes", "Bytes that are left of the budget of this period.", |it| {
            it.left_bytes as f64
        }),
        ("larder_ssd_write_budget_room_bytes", "Bytes of the budget that may be written at once.", |it| {
            it.room_bytes as f64
        }),
    ];
    for (name, help, value) in gauges {
        page.gauge(name, help, |family| family.add_some(&[], budget.map(value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_told_and_nothing_else() {
        let disk = DiskWear {
            path: "/dev/nvme0n1".into(),
            used_ratio: Some(0.25),
            written_bytes: Some(1 << 40),
            healthy: Some(true),
            ..DiskWear::default()
        };
        let known = WearStatus {
            disks: vec![disk],
            rated_bytes: Some(2e15),
            written_bytes_per_day: Some(1e12),
            worn_out_in_seconds: Some(8.64e7),
            ..WearStatus::default()
        };
        let text = |wear: &WearStatus| {
            let mut page = Page::default();
            tell(&mut page, wear);
            page.text()
        };
        let told = text(&known);
        for line in [
            "larder_ssd_disk_used_ratio{disk=\"/dev/nvme0n1\"} 0.25",
            "larder_ssd_disk_written_bytes_total{disk=\"/dev/nvme0n1\"} 1099511627776",
            "larder_ssd_disk_healthy{disk=\"/dev/nvme0n1\"} 1",
            "larder_ssd_rated_bytes 2000000000000000",
            "larder_ssd_written_bytes_per_day 1000000000000",
            "larder_ssd_worn_out_in_seconds 86400000",
        ] {
            assert!(told.lines().any(|told| told == line), "{line}:\n{told}");
        }
        assert_eq!(text(&WearStatus::default()), "");
    }

    #[test]
    fn a_budget_is_told_where_there_is_one() {
        let budget = WriteBudgetStatus {
            configured: "4GiB/day".into(),
            bytes: 4 << 30,
            period_seconds: 86_400.0,
            written_bytes: 3 << 30,
            left_bytes: 1 << 30,
            room_bytes: 1 << 20,
            rest_seconds: 7.0,
        };
        let text = |budget| {
            let mut page = Page::default();
            tell_budget(&mut page, budget);
            page.text()
        };
        let told = text(Some(&budget));
        for line in [
            "larder_ssd_write_budget_bytes 4294967296",
            "larder_ssd_write_budget_period_seconds 86400",
            "larder_ssd_write_budget_left_bytes 1073741824",
            "larder_ssd_write_budget_room_bytes 1048576",
        ] {
            assert!(told.lines().any(|told| told == line), "{line}:\n{told}");
        }
        assert_eq!(text(None), "");
    }
}
