//! What a trace holds, for people: at most 100 columns.

use std::fmt::Write;
use std::time::Duration;

use larder_daemon::units::{HumanDuration, HumanSize};

use super::findings::{Findings, TenantFindings, TimeFindings, Traffic, VolumeFindings};
use crate::trace::text::{self, Columns, Side, counted, grouped};

/// Below it, times are told in seconds.
const MINUTE_NS: u64 = 60_000_000_000;

/// Volumes and tenants that are listed.
const LISTED: usize = 10;

/// All that there is to tell.
pub fn render(findings: &Findings) -> String {
    let mut text = format!("{}\n", findings.trace);
    for (label, value) in lines(findings) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  {label:<15}{value}");
    }
    let volumes = findings.volumes.iter().map(|volume| (volume.name.as_str(), &volume.traffic));
    let tenants = findings.tenants.iter().map(|tenant| (tenant.name.as_str(), &tenant.traffic));
    if findings.volumes.len() > 1 {
        text += &largest("volume", volumes.collect(), findings.block_bytes);
    }
    if findings.tenants.len() > 1 && findings.tenants.len() < findings.volumes.len() {
        text += &largest("tenant", tenants.collect(), findings.block_bytes);
    }
    text
}

fn lines(findings: &Findings) -> Vec<(&'static str, String)> {
    let Findings { traffic, times, .. } = findings;
    let mut lines = vec![
        ("format", format(findings)),
        ("requests", requests(traffic)),
        ("read share", read_share(findings)),
        ("data", data(traffic)),
        ("footprint", footprint(findings)),
        ("re-references", re_references(findings)),
        ("request sizes", sizes(findings)),
        ("time", time(times)),
    ];
    lines.extend(pause(times).map(|pause| ("pause", pause)));
    if times.out_of_order > 0 {
        let requests = counted(times.out_of_order, "request is", "requests are");
        lines.push(("order", format!("{requests} earlier than the one before")));
    }
    lines.push((
        "reaches to",
        format!("{} ({} B)", HumanSize(findings.end_offset), grouped(findings.end_offset)),
    ));
    lines.push(("volumes", volumes(&findings.volumes, &findings.tenants)));
    lines
}

fn format(findings: &Findings) -> String {
    let how = if findings.format_detected { " (detected)" } else { "" };
    let compression = findings.compression.map_or(String::new(), |name| format!(", compressed by {name}"));
    format!("{}{how}{compression}", findings.format)
}

fn requests(traffic: &Traffic) -> String {
    let Traffic { requests, reads, writes, flushes, discards, .. } = *traffic;
    let of_kind = [
        counted(reads, "read", "reads"),
        counted(writes, "write", "writes"),
        counted(flushes, "flush", "flushes"),
        counted(discards, "discard", "discards"),
    ];
    format!("{}: {}", grouped(requests), of_kind.join(", "))
}

fn read_share(findings: &Findings) -> String {
    let (requests, blocks) = (percent(findings.read_share), percent(findings.read_share_blocks));
    format!("{requests} of requests, {blocks} of blocks of {}", HumanSize(findings.block_bytes.into()))
}

fn data(traffic: &Traffic) -> String {
    let Traffic { read_bytes, written_bytes, discarded_bytes, .. } = *traffic;
    let discarded = match discarded_bytes {
        0 => String::new(),
        bytes => format!(", {} discarded", HumanSize(bytes)),
    };
    format!("{} read, {} written{discarded}", HumanSize(read_bytes), HumanSize(written_bytes))
}

fn footprint(findings: &Findings) -> String {
    let blocks = counted(findings.traffic.footprint_blocks, "block", "blocks");
    format!(
        "{} in {blocks} ({} of it read, {} written)",
        HumanSize(findings.footprint_bytes),
        HumanSize(findings.read_footprint_bytes),
        HumanSize(findings.write_footprint_bytes),
    )
}

fn re_references(findings: &Findings) -> String {
    let accesses = findings.traffic.block_reads + findings.traffic.block_writes;
    format!(
        "{} of {}",
        percent(findings.re_reference_share),
        counted(accesses, "block access", "block accesses")
    )
}

fn sizes(findings: &Findings) -> String {
    let sizes = &findings.request_bytes;
    let size = |bytes: Option<u32>| bytes.map_or("-".to_owned(), |bytes| HumanSize(bytes.into()).to_string());
    let mean = sizes.mean.map_or("-".to_owned(), |mean| HumanSize(mean.round() as u64).to_string());
    if sizes.min == sizes.max {
        return sizes.min.map_or("-".to_owned(), |_| format!("all {}", size(sizes.min)));
    }
    format!(
        "{} to {}, mean {mean}, median {}, 99 % up to {}",
        size(sizes.min),
        size(sizes.max),
        size(sizes.p50),
        size(sizes.p99)
    )
}

fn time(times: &TimeFindings) -> String {
    let Some((first, last)) = times.span_ns else { return "-".to_owned() };
    let length = length(last - first);
    let rate = times.iops_mean.map_or(String::new(), |rate| format!(", {rate:.1} requests/s"));
    format!("{length}, from {} s to {} s{rate}", text::seconds(first), text::seconds(last))
}

fn length(ns: u64) -> String {
    match ns {
        ..MINUTE_NS => format!("{} s", text::seconds(ns)),
        _ => HumanDuration(Duration::from_nanos(ns)).to_string(),
    }
}

/// The longest time without a request, where it is minutes and more than all the rest: a time may be wrong.
fn pause(times: &TimeFindings) -> Option<String> {
    let ((first, last), (from, pause)) = (times.span_ns?, times.longest_pause_ns?);
    let told = format!("{} without a request, {} after the first one", length(pause), length(from - first));
    (pause >= MINUTE_NS && pause > (last - first) / 2).then_some(told)
}

fn volumes(volumes: &[VolumeFindings], tenants: &[TenantFindings]) -> String {
    match volumes {
        [] => "none".to_owned(),
        [one] => format!("1 volume, {}", text::name(&one.name)),
        several => {
            let of = match tenants.len() {
                0 => String::new(),
                count => format!(" of {}", counted(count as u64, "tenant", "tenants")),
            };
            format!("{}{of}", counted(several.len() as u64, "volume", "volumes"))
        }
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.2} %", share * 100.0))
}

/// A table of those with the most requests.
fn largest(what: &'static str, mut all: Vec<(&str, &Traffic)>, block_bytes: u32) -> String {
    all.sort_by_key(|(_, traffic)| std::cmp::Reverse(traffic.requests));
    let rows: Vec<_> =
        all.iter().take(LISTED).map(|(name, traffic)| row(name, traffic, block_bytes)).collect();
    let mut columns = Columns::new([
        (what, Side::Left),
        ("requests", Side::Right),
        ("reads", Side::Right),
        ("data read", Side::Right),
        ("written", Side::Right),
        ("footprint", Side::Right),
    ]);
    let mut text = format!("\n{}{}", columns.head(&rows), columns.lines(&rows));
    if all.len() > LISTED {
        let others = counted((all.len() - LISTED) as u64, "other", "others");
        text += &format!("  and {others} with fewer requests (--json tells all)\n");
    }
    text
}

fn row(name: &str, traffic: &Traffic, block_bytes: u32) -> [String; 6] {
    [
        text::name(name),
        grouped(traffic.requests),
        percent(traffic.read_share()),
        HumanSize(traffic.read_bytes).to_string(),
        HumanSize(traffic.written_bytes).to_string(),
        HumanSize(traffic.footprint_blocks.saturating_mul(block_bytes.into())).to_string(),
    ]
}
