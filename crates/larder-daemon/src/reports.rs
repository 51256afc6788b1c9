//! What reactors report to the loop of an epoch: how tenants use their partitions, and how long their requests took.

use std::time::{Duration, Instant};

use larder_alloc::control::{Offers, Spent};
use larder_alloc::{CacheUse, Measured, Timed};
use larder_io::{Handle, Served, TenantSpending, TenantUse};

use crate::epoch::{Report, SsdSpending};
use crate::placement::Place;

/// How long reactors may take, all together: they answer between two batches of operations.
const WITHIN: Duration = Duration::from_secs(1);

/// The reports of the tenants in these places; nothing of those whose reactor does not say.
pub fn reports<C>(reactors: &[Handle<C>], places: &[Place]) -> Vec<Option<Report>> {
    // All are asked before any is waited for.
    let asked: Vec<_> = reactors.iter().map(Handle::tenant_uses).collect();
    let until = Instant::now() + WITHIN;
    let answer = |asked: Result<std::sync::mpsc::Receiver<Vec<TenantUse>>, _>| {
        asked.ok()?.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
    };
    let told: Vec<Option<Vec<TenantUse>>> = asked.into_iter().map(answer).collect();
    let report = |place: &Place| {
        let uses = told.get(place.reactor)?.as_ref()?;
        uses.get(usize::from(place.tenant.0)).map(of)
    };
    places.iter().map(report).collect()
}

/// What the tenants in these places have written to the SSD; `None` where a reactor does not say.
pub fn spending<C>(reactors: &[Handle<C>], places: &[Place]) -> Option<SsdSpending> {
    let asked: Vec<_> = reactors.iter().map(Handle::spent).collect();
    let until = Instant::now() + WITHIN;
    let mut told = Vec::with_capacity(asked.len());
    for asked in asked {
        told.push(asked.ok()?.recv_timeout(until.saturating_duration_since(Instant::now())).ok()?);
    }
    let spent = |place: &Place| {
        let of = told.get(place.reactor)?.tenants.get(usize::from(place.tenant.0))?;
        let TenantSpending { bytes, refused_blocks, diverted_blocks, turned_away_blocks } = *of;
        Some(Spent { bytes, refused_blocks, diverted_blocks, turned_away_blocks })
    };
    let record_bytes = told.iter().map(|it| it.metadata_bytes).sum();
    let bytes = told.iter().map(|it| it.bytes).sum();
    Some(SsdSpending { tenants: places.iter().map(spent).collect(), bytes, record_bytes })
}

/// What the tenants in these places have offered to the SSD since they have doors; nothing of one that did not, or whose reactor does not say.
pub fn offers<C>(reactors: &[Handle<C>], places: &[Place]) -> Vec<Option<Box<Offers>>> {
    let asked: Vec<_> = reactors.iter().map(Handle::offers).collect();
    let until = Instant::now() + WITHIN;
    let told: Vec<_> = asked
        .into_iter()
        .map(|asked| asked.ok()?.recv_timeout(until.saturating_duration_since(Instant::now())).ok())
        .collect();
    let offered = |place: &Place| {
        let of = told.get(place.reactor)?.as_ref()?.get(usize::from(place.tenant.0))?.as_ref()?;
        let (blocks, taken, resident) = (of.offered.blocks, of.offered.taken, of.offered.resident);
        Some(Box::new(Offers { blocks, taken, resident, took: of.served.map(|by| by.map(timed)) }))
    };
    places.iter().map(offered).collect()
}

fn of(used: &TenantUse) -> Report {
    let stats = &used.stats;
    let measured = Measured {
        read_hits: timed(used.read_hits),
        read_misses: timed(used.read_misses),
        cached_writes: timed(used.write_hits),
        backing_writes: timed(used.write_misses),
        // What waits for room counts with the writes that do.
        write_backs: Timed { count: stats.cleaned_blocks, seconds: 0.0 },
        ssd_blocks_written: stats.ssd_fill_blocks + stats.ssd_guest_write_blocks,
    };
    let usage = CacheUse {
        resident_blocks: used.occupied_blocks,
        effective: used.effective,
        missed_blocks: stats.read_misses + stats.write_misses,
    };
    Report { measured, usage }
}

fn timed(served: Served) -> Timed {
    Timed { count: served.requests, seconds: served.total_ns as f64 / 1e9 }
}
