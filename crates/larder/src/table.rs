//! The status as tables for people, readable at 120 columns.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, SystemTime};

use larder_daemon::status::{CacheState, CacheStatus, Status, TenantStatus, VolumeState, VolumeStatus};
use larder_daemon::units::{ExactDuration, HumanDuration, HumanSize};
use larder_policy::spec::joined;

use crate::budget;
use crate::columns::Columns;
use crate::number::{counted, grouped};
use crate::wear;

/// Columns used where stdout is no terminal.
const WIDTH: u16 = 120;

/// The columns of the terminal that stdout is.
pub fn terminal_width() -> u16 {
    let columns = || ratatui::crossterm::terminal::size().ok().map(|(columns, _)| columns);
    if std::io::stdout().is_terminal() { columns().unwrap_or(WIDTH) } else { WIDTH }
}

/// Everything, in lines of at most `width` columns where the words allow it.
pub fn render(status: &Status, width: u16) -> String {
    let tables = [tenants(status), traffic(status), decisions(status), volumes(status)];
    let tables = tables.into_iter().chain(write_back(status));
    let mut text = head(status);
    for table in tables {
        text.push('\n');
        text.push_str(&table.text(width));
    }
    text
}

fn head(status: &Status) -> String {
    let cache = &status.cache;
    let mut text = format!(
        "larder {}, up {}, epoch {} (every {}), allocator {}\n",
        status.version,
        HumanDuration(seconds(status.uptime_seconds)),
        status.epoch,
        ExactDuration(seconds(status.epoch_seconds)),
        status.allocator,
    );
    // Writing to a String cannot fail.
    let _ = writeln!(
        text,
        "cache {}: {}, {} of {} free, blocks of {}",
        cache.path,
        cache.state.as_str(),
        size(cache, cache.free_blocks.into()),
        HumanSize(cache.size_bytes),
        HumanSize(cache.block_bytes.into()),
    );
    if let Some(file) = &cache.loss_file {
        let _ = writeln!(
            text,
            "what the failed device alone has is listed in {file}; `larder cache attach` when it is back"
        );
    }
    let _ = writeln!(text, "{}", kept(cache));
    if let Some(line) = wear::line(&cache.wear, SystemTime::now()) {
        let _ = writeln!(text, "{line}");
    }
    if let Some(budget) = &cache.write_budget {
        let _ = writeln!(text, "{}", budget::line(budget, &status.tenants));
    }
    let _ = writeln!(text, "{}", memory(cache, status.analyzer_memory_bytes));
    if status.monitor_dropped > 0 {
        let _ =
            writeln!(text, "the monitor lost {} requests: distances are incomplete", status.monitor_dropped);
    }
    text
}

fn kept(cache: &CacheStatus) -> String {
    if !cache.kept {
        return "not kept over restarts: cold at the start".into();
    }
    let (warm, records) = (size(cache, cache.warm_blocks.into()), HumanSize(cache.ssd_write_bytes.metadata));
    format!("kept over restarts: {warm} warm at the start; {records} of records written to the SSD since")
}

fn memory(cache: &CacheStatus, analyzer_bytes: u64) -> String {
    let held = cache.blocks.saturating_sub(cache.free_blocks);
    let each = match held {
        // Memory comes in steps of 4096 blocks: below that, a share says nothing.
        0..4096 => String::new(),
        _ => format!(" ({} bytes per cached block)", cache.memory_bytes / u64::from(held)),
    };
    let (blocks, analyzer) = (HumanSize(cache.memory_bytes), HumanSize(analyzer_bytes));
    format!("memory: {blocks} for blocks{each}, {analyzer} for the analyzer")
}

fn tenants(status: &Status) -> Columns {
    let mut table = Columns::new([
        "tenant",
        "quota",
        "occupied",
        "policy",
        "replacement",
        "read hit ratio\n(blocks)",
        "write hit ratio\n(blocks)",
        "evicted",
        "URD size",
        "TRD size",
    ])
    .words([0, 3, 4]);
    for tenant in &status.tenants {
        table.row([
            tenant.name.clone(),
            size(&status.cache, tenant.quota_blocks.into()),
            size(&status.cache, tenant.occupied_blocks.into()),
            tenant.write_policy.clone(),
            joined(&tenant.replacement, &tenant.admission),
            ratio(tenant.read_hit_ratio()),
            ratio(tenant.write_hit_ratio()),
            size(&status.cache, tenant.evictions),
            size(&status.cache, tenant.urd_blocks),
            size(&status.cache, tenant.trd_blocks),
        ]);
    }
    table
}

fn traffic(status: &Status) -> Columns {
    let mut table = Columns::new([
        "tenant",
        "SSD fills",
        "SSD guest writes",
        "SSD writes in all",
        "backing reads",
        "backing writes",
        "errors\n(cache, backing)",
    ])
    .words([0]);
    for tenant in &status.tenants {
        let ssd = &tenant.ssd_write_bytes;
        table.row([
            tenant.name.clone(),
            HumanSize(ssd.fill).to_string(),
            HumanSize(ssd.guest_write).to_string(),
            HumanSize(ssd.total).to_string(),
            size(&status.cache, tenant.backing_reads),
            size(&status.cache, tenant.backing_writes),
            format!("{}, {}", tenant.cache_errors, tenant.backing_errors),
        ]);
    }
    table
}

fn decisions(status: &Status) -> Columns {
    let mut table = words(["tenant", "decided", "size", "policy", "because"]);
    for TenantStatus { name, decision, .. } in &status.tenants {
        let when = if decision.epoch == 0 { "at start".into() } else { format!("epoch {}", decision.epoch) };
        let quota = size(&status.cache, decision.quota_blocks.into());
        table.row([name.clone(), when, quota, decision.write_policy.clone(), decision.reason.clone()]);
    }
    table
}

fn volumes(status: &Status) -> Columns {
    let mut table = words(["volume", "tenant", "size", "export", "backing", "backing read, write\n(mean)"]);
    for tenant in &status.tenants {
        for volume in &tenant.volumes {
            let (read, write) = (volume.backing_read_latency_seconds, volume.backing_write_latency_seconds);
            table.row([
                volume.name.clone(),
                tenant.name.clone(),
                HumanSize(volume.size_bytes).to_string(),
                ways(volume),
                volume.backing.clone(),
                format!("{}, {}", latency(read), latency(write)),
            ]);
        }
    }
    table
}

/// Every way in which a volume is served, one to a line.
fn ways(volume: &VolumeStatus) -> String {
    let vhost = volume.vhost_user.as_ref().map(|path| format!("vhost-user:{path}"));
    let missing = volume.ublk_problem.as_ref().map(|_| "no block device (see the log)".to_string());
    let disk = volume.ublk.clone().or(missing);
    let ways: Vec<String> = volume.export.clone().into_iter().chain(vhost).chain(disk).collect();
    ways.join("\n")
}

/// The volumes of which there is something to tell: dirty blocks, draining, what has failed.
fn write_back(status: &Status) -> Option<Columns> {
    let mut table = words(["volume", "tenant", "dirty", "draining", "state"]);
    for tenant in &status.tenants {
        let gone = status.cache.state == CacheState::Failed;
        let told = tenant.volumes.iter().filter(|volume| gone || volume.dirty_blocks > 0 || !is_calm(volume));
        for volume in told {
            table.row([
                volume.name.clone(),
                tenant.name.clone(),
                HumanSize(volume.dirty_bytes).to_string(),
                if volume.draining.is_empty() { "-".into() } else { volume.draining.clone() },
                state(volume, gone),
            ]);
        }
    }
    (!table.is_empty()).then_some(table)
}

fn is_calm(volume: &VolumeStatus) -> bool {
    let drains = !matches!(volume.draining.as_str(), "" | "off");
    let fails = volume.state != VolumeState::Ok || volume.backing_failing_seconds.is_some();
    !fails && !drains && !volume.slow_cache && !volume.quiet
}

/// `gone`: the cache device has failed.
fn state(volume: &VolumeStatus, gone: bool) -> String {
    match volume.backing_failing_seconds {
        _ if volume.state == VolumeState::Failed => {
            let (lost, ranges) = (HumanSize(volume.lost_bytes), counted(volume.lost_ranges, "range"));
            format!("failed: requests are refused; {lost} in {ranges} are on the cache device alone")
        }
        _ if volume.damaged_blocks > 0 => {
            let (lost, ranges) = (HumanSize(volume.lost_bytes), counted(volume.lost_ranges, "range"));
            format!(
                "damaged: {lost} in {ranges} lost, reads there fail; `larder status --lost {}`",
                volume.name
            )
        }
        Some(for_seconds) => {
            let time = HumanDuration(seconds(for_seconds));
            match volume.dirty_blocks {
                0 => format!("the backing fails, for {time} now"),
                1 => format!("the backing fails: 1 block waits to be written back, for {time} now"),
                blocks => {
                    let blocks = grouped(blocks.into());
                    format!("the backing fails: {blocks} blocks wait to be written back, for {time} now")
                }
            }
        }
        None if volume.quiet => format!("quiet: writes wait for `larder volume thaw {}`", volume.name),
        None if volume.migrating => {
            format!("its guest is leaving: `larder volume migrate complete {0}` or `abort {0}`", volume.name)
        }
        None if gone => "ok; the cache device has failed: the backing alone serves it".into(),
        None if volume.slow_cache => {
            "ok; the cache device is slower than the backing: reads pass it by".into()
        }
        None => match volume.epochs_behind {
            None | Some(0) => volume.state.as_str().into(),
            Some(1) => format!("{}; the backing is behind by less than a flush", volume.state.as_str()),
            Some(epochs) => format!("{}; the backing is {epochs} flushes behind", volume.state.as_str()),
        },
    }
}

/// An empty table with these headings, all its columns flush left.
fn words<const N: usize>(headings: [&str; N]) -> Columns {
    Columns::new(headings).words(0..N)
}

/// Some blocks as a size.
fn size(cache: &CacheStatus, blocks: u64) -> String {
    HumanSize(blocks.saturating_mul(cache.block_bytes.into())).to_string()
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), |ratio| format!("{ratio:.3}"))
}

/// A time in the unit that leaves one to three digits before the point.
fn latency(seconds: Option<f64>) -> String {
    match seconds {
        None => "-".into(),
        Some(s) if s < 0.001 => format!("{:.0} µs", s * 1e6),
        Some(s) if s < 1.0 => format!("{:.1} ms", s * 1e3),
        Some(s) => format!("{s:.1} s"),
    }
}

/// A number of seconds that came in over a socket as a duration: what is no duration is none.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = r#"{
        "version": "0.1.0", "uptime_seconds": 3725.4, "allocator": "eci", "epoch": 6, "epoch_seconds": 600.0,
        "monitor_dropped": 3, "analyzer_memory_bytes": 1048576,
        "cache": {
            "path": "/var/lib/larder/cache.img", "size_bytes": 2147483648, "block_bytes": 4096, "blocks": 524288,
            "free_blocks": 424288, "memory_bytes": 2400000, "state": "ok", "errors": 0,
            "read_latency_seconds": 0.0001, "write_latency_seconds": null, "kept": true, "warm_blocks": 90000,
            "ssd_write_bytes": {"fill": 409600, "guest_write": 20480, "promotion": 0, "metadata": 8192, "total": 438272}
        },
        "tenants": [{
            "name": "db", "quota_blocks": 131072, "occupied_blocks": 100000, "dirty_blocks": 0, "write_policy": "wt",
            "replacement": "arc", "admission": "nth:2",
            "read_hits": 900, "read_misses": 100, "write_hits": 0, "write_misses": 0, "evictions": 12, "invalidations": 0,
            "ssd_writes": {"fill": 100, "guest_write": 5, "promotion": 0, "metadata": 0, "total": 105},
            "ssd_write_bytes": {"fill": 409600, "guest_write": 20480, "promotion": 0, "metadata": 0, "total": 430080},
            "backing_reads": 100, "backing_writes": 5, "cache_errors": 0, "backing_errors": 1,
            "urd_blocks": 131072, "trd_blocks": 262144,
            "decision": {
                "epoch": 6, "quota_blocks": 131072, "write_policy": "wt",
                "reason": "URD 131,071 (131,072 blocks) fits: the tenants together want 131,072 of 524,288 blocks; write ratio 0.12 < 0.50: wt"
            },
            "volumes": [{
                "name": "db-root", "backing": "/srv/db.img",
                "export": "nbd+unix:///db-root?socket=/run/larder/db-root.sock", "size_bytes": 10737418240,
                "backing_read_latency_seconds": 0.0062, "backing_write_latency_seconds": null
            }]
        }]
    }"#;

    #[test]
    fn a_status_is_readable_at_120_columns() {
        let text = render(&serde_json::from_str(STATUS).expect("a status"), WIDTH);
        assert_eq!(text, EXPECTED, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= usize::from(WIDTH)));
    }

    #[test]
    fn nonsense_from_the_socket_is_shown_and_does_not_panic() {
        let mut status: Status = serde_json::from_str(STATUS).expect("a status");
        status.uptime_seconds = -1.0;
        status.epoch_seconds = f64::INFINITY;
        status.cache.free_blocks = u32::MAX;
        status.cache.block_bytes = u32::MAX;
        status.tenants[0].evictions = u64::MAX;
        assert!(render(&status, 20).contains("up 0s"));
    }

    #[test]
    fn what_an_operator_has_begun_and_not_ended_is_told() {
        let mut status: Status = serde_json::from_str(STATUS).expect("a status");
        status.tenants[0].volumes[0].draining = "done".into();
        status.tenants[0].volumes[0].migrating = true;
        let text = render(&status, 200);
        assert!(text.contains("larder volume migrate complete db-root` or `abort db-root`"), "{text}");
        status.tenants[0].volumes[0].quiet = true;
        let text = render(&status, 200);
        assert!(text.contains("writes wait for `larder volume thaw db-root`"), "{text}");
    }

    #[test]
    fn what_waits_to_be_written_back_is_told() {
        let mut status: Status = serde_json::from_str(STATUS).expect("a status");
        let volume = &mut status.tenants[0].volumes[0];
        (volume.dirty_blocks, volume.dirty_bytes, volume.draining) = (2000, 8_192_000, "once".into());
        assert!(render(&status, WIDTH).contains(" db-root   db       7.8 MiB   once       ok\n"));
        status.tenants[0].volumes[0].backing_failing_seconds = Some(75.0);
        let text = render(&status, WIDTH);
        assert!(
            text.contains("the backing fails: 2,000 blocks wait to be written back, for 1m 15s now"),
            "{text}"
        );
        status.tenants[0].volumes[0].backing_failing_seconds = None;
        status.cache.state = CacheState::Failed;
        let text = render(&status, WIDTH);
        assert!(text.contains("ok; the cache device has failed: the backing alone serves it"), "{text}");
        let volume = &mut status.tenants[0].volumes[0];
        (volume.state, volume.damaged_blocks) = (VolumeState::Damaged, 1);
        (volume.lost_bytes, volume.lost_ranges) = (4096, 1);
        let text = render(&status, 200);
        let words = "damaged: 4 KiB in 1 range lost, reads there fail; `larder status --lost db-root`";
        assert!(text.contains(words), "{text}");
        status.tenants[0].volumes[0].state = VolumeState::Failed;
        (status.tenants[0].volumes[0].lost_bytes, status.tenants[0].volumes[0].lost_ranges) = (8_192_000, 12);
        status.cache.loss_file = Some("/srv/cache.img.loss.json".into());
        let text = render(&status, 200);
        assert!(
            text.contains("failed: requests are refused; 7.8 MiB in 12 ranges are on the cache device alone"),
            "{text}"
        );
        assert!(
            text.contains("what the failed device alone has is listed in /srv/cache.img.loss.json"),
            "{text}"
        );
    }

    #[test]
    fn a_daemon_that_does_not_tell_keeps_nothing() {
        let text = STATUS.replace("\"kept\": true, ", "").replace("\"warm_blocks\": 90000,", "\"x\": 0,");
        let text = render(&serde_json::from_str(&text).expect("a status"), WIDTH);
        assert!(text.contains("not kept over restarts: cold at the start"), "{text}");
    }

    const EXPECTED: &str = "\
larder 0.1.0, up 1h 2m, epoch 6 (every 10m), allocator eci
cache /var/lib/larder/cache.img: ok, 1.6 GiB of 2 GiB free, blocks of 4 KiB
kept over restarts: 351.6 MiB warm at the start; 8 KiB of records written to the SSD since
memory: 2.3 MiB for blocks (24 bytes per cached block), 1 MiB for the analyzer
the monitor lost 3 requests: distances are incomplete

 tenant     quota    occupied   policy   replacement   read hit ratio   write hit ratio   evicted   URD size   TRD size
                                                             (blocks)          (blocks)
────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
 db       512 MiB   390.6 MiB   wt       arc+nth:2              0.900                 -    48 KiB    512 MiB      1 GiB

 tenant   SSD fills   SSD guest writes   SSD writes in all   backing reads   backing writes             errors
                                                                                              (cache, backing)
───────────────────────────────────────────────────────────────────────────────────────────────────────────────
 db         400 KiB             20 KiB             420 KiB         400 KiB           20 KiB               0, 1

 tenant   decided   size      policy   because
────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
 db       epoch 6   512 MiB   wt       URD 131,071 (131,072 blocks) fits: the tenants together want 131,072 of 524,288
                                       blocks; write ratio 0.12 < 0.50: wt

 volume    tenant   size     export                                                backing       backing read, write
                                                                                                 (mean)
─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
 db-root   db       10 GiB   nbd+unix:///db-root?socket=/run/larder/db-root.sock   /srv/db.img   6.2 ms, -
";
}
