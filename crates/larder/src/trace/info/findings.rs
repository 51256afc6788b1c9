//! What a trace holds, counted request by request.

use std::collections::BTreeMap;

use larder_sim::BlockSize;
use larder_trace::{Request, RequestKind, Volume};
use serde::Serialize;

use super::footprint::Footprint;
use super::sizes::{RequestBytes, Sizes};
use crate::input::Input;

/// Counts of all requests, or of those for a volume or of a tenant. Blocks are those that reads and writes touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Traffic {
    pub requests: u64,
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub discards: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub discarded_bytes: u64,
    pub block_reads: u64,
    pub block_writes: u64,
    /// Distinct blocks that were read or written.
    pub footprint_blocks: u64,
    pub read_footprint_blocks: u64,
    pub write_footprint_blocks: u64,
}

impl Traffic {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.reads += other.reads;
        self.writes += other.writes;
        self.flushes += other.flushes;
        self.discards += other.discards;
        self.read_bytes = self.read_bytes.saturating_add(other.read_bytes);
        self.written_bytes = self.written_bytes.saturating_add(other.written_bytes);
        self.discarded_bytes = self.discarded_bytes.saturating_add(other.discarded_bytes);
        self.block_reads += other.block_reads;
        self.block_writes += other.block_writes;
        self.footprint_blocks += other.footprint_blocks;
        self.read_footprint_blocks += other.read_footprint_blocks;
        self.write_footprint_blocks += other.write_footprint_blocks;
    }

    /// Share of reads among reads and writes.
    pub fn read_share(&self) -> Option<f64> {
        share(self.reads, self.reads + self.writes)
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// When requests were issued.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    /// The earliest and the latest.
    span: Option<(u64, u64)>,
    last: u64,
    out_of_order: u64,
    /// The longest time without a request in the order of the trace: when it begins, and its length.
    longest_pause: Option<(u64, u64)>,
}

impl Times {
    fn add(&mut self, time_ns: u64) {
        let (first, last) = self.span.unwrap_or((time_ns, time_ns));
        self.span = Some((first.min(time_ns), last.max(time_ns)));
        let pause = time_ns.saturating_sub(last);
        if pause > self.longest_pause.map_or(0, |(_, longest)| longest) {
            self.longest_pause = Some((last, pause));
        }
        self.out_of_order += u64::from(time_ns < self.last);
        self.last = time_ns;
    }
}

/// Counts while a trace is read. The memory it takes grows with the footprint and the number of volumes.
pub struct Count {
    block: BlockSize,
    volumes: Vec<Traffic>,
    footprint: Footprint,
    sizes: Sizes,
    times: Times,
    end_offset: u64,
}

impl Count {
    /// Nothing yet, with blocks of this size.
    pub fn new(block: BlockSize) -> Self {
        Self {
            block,
            volumes: Vec::new(),
            footprint: Footprint::default(),
            sizes: Sizes::default(),
            times: Times::default(),
            end_offset: 0,
        }
    }

    /// Count a request.
    pub fn request(&mut self, request: &Request) {
        let Request { time_ns, volume, kind, offset, len } = *request;
        self.times.add(time_ns);
        self.end_offset = self.end_offset.max(offset.saturating_add(len.into()));
        if self.volumes.len() <= volume as usize {
            self.volumes.resize(volume as usize + 1, Traffic::default());
        }
        let traffic = &mut self.volumes[volume as usize];
        traffic.requests += 1;
        match kind {
            RequestKind::Read => traffic.reads += 1,
            RequestKind::Write => traffic.writes += 1,
            RequestKind::Flush => traffic.flushes += 1,
            RequestKind::Discard => {
                traffic.discards += 1;
                traffic.discarded_bytes = traffic.discarded_bytes.saturating_add(len.into());
            }
        }
        if matches!(kind, RequestKind::Read | RequestKind::Write) {
            self.access(request);
        }
    }

    fn access(&mut self, request: &Request) {
        self.sizes.add(request.len);
        let (blocks, is_write) = (self.block.blocks_of(request), request.kind == RequestKind::Write);
        let (count, len) = (blocks.end - blocks.start, u64::from(request.len));
        let fresh = self.footprint.access(request.volume, blocks, is_write);
        let traffic = &mut self.volumes[request.volume as usize];
        if is_write {
            traffic.block_writes += count;
            traffic.written_bytes = traffic.written_bytes.saturating_add(len);
        } else {
            traffic.block_reads += count;
            traffic.read_bytes = traffic.read_bytes.saturating_add(len);
        }
        traffic.footprint_blocks += fresh.touched;
        traffic.read_footprint_blocks += fresh.read;
        traffic.write_footprint_blocks += fresh.written;
    }

    /// What was counted of `input`, called `trace`.
    pub fn findings(self, trace: String, input: &Input, is_detected: bool) -> Findings {
        let names = input.volumes();
        let volumes: Vec<_> = names.iter().zip(&self.volumes).map(VolumeFindings::new).collect();
        let mut traffic = Traffic::default();
        self.volumes.iter().for_each(|volume| traffic.add(volume));
        let bytes = |blocks: u64| blocks.saturating_mul(self.block.bytes().into());
        let accesses = traffic.block_reads + traffic.block_writes;
        Findings {
            trace,
            format: input.format().map_or("generated", larder_trace::Format::as_str),
            format_detected: is_detected && input.format().is_some(),
            compression: input.compression(),
            block_bytes: self.block.bytes(),
            read_share: traffic.read_share(),
            read_share_blocks: share(traffic.block_reads, accesses),
            footprint_bytes: bytes(traffic.footprint_blocks),
            read_footprint_bytes: bytes(traffic.read_footprint_blocks),
            write_footprint_bytes: bytes(traffic.write_footprint_blocks),
            re_reference_share: share(accesses - traffic.footprint_blocks, accesses),
            request_bytes: self.sizes.findings(),
            end_offset: self.end_offset,
            times: TimeFindings::new(&self.times, traffic.requests),
            tenants: TenantFindings::of(&volumes),
            traffic,
            volumes,
        }
    }
}

/// What a trace holds: bytes, seconds on the trace's own clock, shares from 0 to 1. What needs a request and has none is null.
#[derive(Debug, Serialize)]
pub struct Findings {
    pub trace: String,
    pub format: &'static str,
    pub format_detected: bool,
    pub compression: Option<&'static str>,
    pub block_bytes: u32,
    #[serde(flatten)]
    pub traffic: Traffic,
    /// Share of reads among reads and writes.
    pub read_share: Option<f64>,
    /// The same of the blocks that they touch.
    pub read_share_blocks: Option<f64>,
    pub footprint_bytes: u64,
    pub read_footprint_bytes: u64,
    pub write_footprint_bytes: u64,
    /// Share of accesses to blocks that were read or written before.
    pub re_reference_share: Option<f64>,
    pub request_bytes: RequestBytes,
    #[serde(flatten)]
    pub times: TimeFindings,
    /// The end of the request that reaches furthest: the least size of the largest volume.
    pub end_offset: u64,
    pub volumes: Vec<VolumeFindings>,
    pub tenants: Vec<TenantFindings>,
}

/// When the requests of a trace were issued.
#[derive(Debug, Serialize)]
pub struct TimeFindings {
    #[serde(skip)]
    pub span_ns: Option<(u64, u64)>,
    pub first_time_seconds: Option<f64>,
    pub last_time_seconds: Option<f64>,
    pub duration_seconds: f64,
    /// Requests a second, from the first to the last.
    pub iops_mean: Option<f64>,
    /// Requests that are earlier than the one before them.
    pub out_of_order: u64,
    /// When the longest time without a request begins, and its length, in nanoseconds.
    #[serde(skip)]
    pub longest_pause_ns: Option<(u64, u64)>,
    pub longest_pause_from_seconds: Option<f64>,
    pub longest_pause_seconds: Option<f64>,
}

impl TimeFindings {
    fn new(times: &Times, requests: u64) -> Self {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let duration_seconds = times.span.map_or(0.0, |(first, last)| seconds(last - first));
        Self {
            span_ns: times.span,
            first_time_seconds: times.span.map(|span| seconds(span.0)),
            last_time_seconds: times.span.map(|span| seconds(span.1)),
            duration_seconds,
            iops_mean: (duration_seconds > 0.0).then(|| requests as f64 / duration_seconds),
            out_of_order: times.out_of_order,
            longest_pause_ns: times.longest_pause,
            longest_pause_from_seconds: times.longest_pause.map(|pause| seconds(pause.0)),
            longest_pause_seconds: times.longest_pause.map(|pause| seconds(pause.1)),
        }
    }
}

/// What a trace holds of a volume.
#[derive(Debug, Serialize)]
pub struct VolumeFindings {
    pub name: String,
    pub tenant: String,
    pub disk: String,
    #[serde(flatten)]
    pub traffic: Traffic,
}

impl VolumeFindings {
    fn new((volume, &traffic): (&Volume, &Traffic)) -> Self {
        let Volume { tenant, disk } = volume.clone();
        Self { name: volume.to_string(), tenant, disk, traffic }
    }
}

/// What a trace holds of a tenant.
#[derive(Debug, Serialize)]
pub struct TenantFindings {
    pub name: String,
    /// How many it has.
    pub volumes: u64,
    #[serde(flatten)]
    pub traffic: Traffic,
}

impl TenantFindings {
    /// Every tenant that has a name.
    fn of(volumes: &[VolumeFindings]) -> Vec<Self> {
        let mut tenants: BTreeMap<&str, Self> = BTreeMap::new();
        for volume in volumes.iter().filter(|volume| !volume.tenant.is_empty()) {
            let new = || Self { name: volume.tenant.clone(), volumes: 0, traffic: Traffic::default() };
            let tenant = tenants.entry(&volume.tenant).or_insert_with(new);
            tenant.volumes += 1;
            tenant.traffic.add(&volume.traffic);
        }
        tenants.into_values().collect()
    }
}
