//! Putting the status together from what the reactors and the loop tell.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use larder_alloc::control::BudgetView;
use larder_engine::{TenantId, VolumeId};
use larder_io::{
    DeviceStats, DrainCommand, Handle, LostSize, ReactorSnapshot, TenantSnapshot, VolumeSnapshot,
};
use thiserror::Error;

use crate::analyzer::{LoopView, SharedView};
use crate::config::{Config, Population, TenantConfig, VolumeConfig};
use crate::control::{self, Draining, Refusal};
use crate::epoch::Standing;
use crate::hosted::{Hosted, Seat, SharedHosted};
use crate::loss::{Loss, SharedLoss, VolumeLoss};
use crate::status::{
    CacheState, CacheStatus, DecisionStatus, SsdWrites, Status, TenantLatency, TenantStatus, VolumeState,
    VolumeStatus, WriteBudgetStatus,
};
use crate::wear::budget::BudgetChoice;
use crate::wear::forecast::forecast;
use crate::wear::{Known, SharedWear};

/// How long reactors may take to answer, all together. They answer between two batches of operations, which takes a while only where the machine has no time for them.
const SNAPSHOT_WITHIN: Duration = Duration::from_secs(5);

/// A reactor did not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("reactor {0} does not answer")]
pub struct Silent(
    /// Index of the reactor.
    pub usize,
);

/// How long a reactor may take for anything but a snapshot.
const REACTOR_WITHIN: Duration = Duration::from_secs(60);

/// What a reactor answers to something that takes it a while.
///
/// # Errors
/// Where nothing comes.
pub fn answered<T>(reactor: usize, answer: &Receiver<T>) -> Result<T, Silent> {
    answer.recv_timeout(REACTOR_WITHIN).map_err(|_| Silent(reactor))
}

/// Asks everybody, and puts the answers together.
#[derive(Debug)]
pub struct Collector<C> {
    /// Who is here.
    pub hosted: SharedHosted,
    /// The reactors.
    pub reactors: Vec<Handle<C>>,
    blocks: u32,
    view: SharedView,
    /// What a cache device that failed alone has.
    pub loss: SharedLoss,
    /// What the SSD tells of its wear.
    pub wear: SharedWear,
    started: Instant,
}

impl<C> Collector<C> {
    /// A collector for a daemon that is ready now, on a cache of `blocks` blocks.
    pub fn new(hosted: Hosted, blocks: u32, reactors: Vec<Handle<C>>, view: SharedView) -> Self {
        Self {
            hosted: SharedHosted::new(hosted),
            reactors,
            blocks,
            view,
            loss: SharedLoss::default(),
            wear: SharedWear::default(),
            started: Instant::now(),
        }
    }

    /// Have dirty blocks of a tenant or a volume written back.
    ///
    /// # Errors
    /// Where nothing has this name, or a reactor does not take the command.
    pub fn drain(&self, name: &str, how: DrainCommand) -> Result<Draining, Refusal> {
        control::drain(&self.hosted.get(), &self.reactors, name, how)
    }

    /// The status now.
    ///
    /// # Errors
    /// When a reactor does not answer within five seconds.
    pub fn status(&self) -> Result<Status, Silent> {
        Ok(self.observe()?.status)
    }

    /// The status now, with what it was made of.
    ///
    /// # Errors
    /// When a reactor does not answer within five seconds.
    pub fn observe(&self) -> Result<Observed, Silent> {
        let (snapshots, loss) = (self.snapshots()?, self.loss.get());
        let hosted = self.hosted.get();
        let parts = Parts {
            hosted: &hosted,
            blocks: self.blocks,
            snapshots: &snapshots,
            view: &self.view.get(),
            loss: loss.as_ref(),
            wear: &self.wear.get(),
            uptime: self.started.elapsed(),
        };
        Ok(Observed { status: parts.status(), hosted, snapshots })
    }

    /// When the loop of an epoch began.
    pub fn loop_began(&self) -> Instant {
        self.view.began()
    }

    /// Blocks of the cache.
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// The ranges of a volume that the cache device alone has, and cannot give.
    ///
    /// # Errors
    /// Where there is no such volume, or its reactor does not answer.
    pub fn lost(&self, name: &str) -> Result<VolumeLoss, Refusal> {
        control::lost(&self.hosted.get(), &self.reactors, name)
    }

    /// What each reactor tells of itself now.
    ///
    /// # Errors
    /// When one does not answer within five seconds.
    pub fn snapshots(&self) -> Result<Vec<ReactorSnapshot>, Silent> {
        // All are asked before any is waited for.
        let asked: Vec<_> = self.reactors.iter().map(Handle::snapshot).collect();
        let until = Instant::now() + SNAPSHOT_WITHIN;
        let answer = |(index, asked): (usize, Result<Receiver<ReactorSnapshot>, _>)| {
            let left = until.saturating_duration_since(Instant::now());
            asked.ok().and_then(|answer| answer.recv_timeout(left).ok()).ok_or(Silent(index))
        };
        asked.into_iter().enumerate().map(answer).collect()
    }
}

/// The daemon at one moment.
#[derive(Clone, Debug)]
pub struct Observed {
    /// What it tells of itself.
    pub status: Status,
    /// Who was here.
    pub hosted: Arc<Hosted>,
    /// What each reactor told.
    pub snapshots: Vec<ReactorSnapshot>,
}

/// Everything that a status is made of.
struct Parts<'a> {
    hosted: &'a Hosted,
    blocks: u32,
    snapshots: &'a [ReactorSnapshot],
    view: &'a LoopView,
    loss: Option<&'a Loss>,
    wear: &'a Known,
    uptime: Duration,
}

impl Parts<'_> {
    fn status(&self) -> Status {
        let Self { hosted, view, snapshots, .. } = *self;
        let config = &hosted.config;
        let block_bytes = config.cache.block_bytes;
        let standings: HashMap<&str, &Standing> =
            view.tenants.iter().map(String::as_str).zip(&view.standings).collect();
        let reactors: Vec<_> = snapshots.iter().map(ByIdentity::of).collect();
        let tenant = |(tenant, seat): (&TenantConfig, &Seat)| {
            // One that came or went just now is there in the next status.
            let standing = standings.get(tenant.name.as_str())?;
            tenant_status(tenant, seat, &reactors, standing, block_bytes, self.loss)
        };
        let tenants: Vec<_> = hosted.tenants().filter_map(tenant).collect();
        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            uptime_seconds: self.uptime.as_secs_f64(),
            allocator: view.allocator.into(),
            epoch: view.epoch,
            epoch_seconds: view.epoch_seconds,
            monitor_dropped: snapshots.iter().map(|snapshot| snapshot.monitor_dropped).sum(),
            analyzer_memory_bytes: view.memory_bytes as u64,
            cache: self.cache(&tenants),
            tenants,
        }
    }

    fn cache(&self, tenants: &[TenantStatus]) -> CacheStatus {
        let Self { hosted, blocks, snapshots, .. } = *self;
        let cache = &hosted.config.cache;
        let occupied: u64 = tenants.iter().map(|tenant| u64::from(tenant.occupied_blocks)).sum();
        let free = u64::from(blocks).saturating_sub(occupied);
        let device = sum(snapshots.iter().map(|snapshot| &snapshot.cache));
        let failed = snapshots.iter().any(|snapshot| snapshot.cache_failed);
        let metadata = snapshots.iter().map(|snapshot| snapshot.metadata_bytes).sum();
        let written =
            tenants.iter().fold(SsdWrites::new(0, 0, 0, metadata), |sum, t| sum + t.ssd_write_bytes);
        CacheStatus {
            path: cache.path.display().to_string(),
            size_bytes: u64::from(blocks) * u64::from(cache.block_bytes),
            block_bytes: cache.block_bytes,
            blocks,
            free_blocks: u32::try_from(free).unwrap_or(u32::MAX),
            memory_bytes: snapshots.iter().map(|snapshot| snapshot.engine_memory_bytes as u64).sum(),
            state: match (failed, device.errors) {
                (true, _) => CacheState::Failed,
                (false, 0) => CacheState::Ok,
                (false, _) => CacheState::Degraded,
            },
            errors: device.errors,
            read_latency_seconds: seconds(device.read_mean_ns()),
            write_latency_seconds: seconds(device.write_mean_ns()),
            kept: cache.keep,
            warm_blocks: tenants.iter().map(|tenant| tenant.warm_blocks).sum(),
            ssd_write_bytes: written,
            loss_file: self.loss.map(|_| hosted.config.loss_file().display().to_string()),
            wear: forecast(self.wear, cache.endurance.as_ref(), (written.total, self.uptime)),
            write_budget: self.view.budget.map(|view| write_budget(&hosted.config, view)),
        }
    }
}

fn write_budget(config: &Config, view: BudgetView) -> WriteBudgetStatus {
    let BudgetView { budget, written_bytes, rest_seconds, room_bytes, first: _ } = view;
    WriteBudgetStatus {
        configured: match config.control.write_budget {
            BudgetChoice::Endurance => config.cache.endurance.map_or_else(String::new, |it| it.to_string()),
            choice => choice.to_string(),
        },
        bytes: budget.bytes as u64,
        period_seconds: budget.period_seconds,
        written_bytes: written_bytes as u64,
        left_bytes: (budget.bytes - written_bytes).max(0.0) as u64,
        room_bytes: room_bytes as u64,
        rest_seconds,
    }
}

/// One device as all reactors used it.
pub(crate) fn sum<'a>(stats: impl Iterator<Item = &'a DeviceStats>) -> DeviceStats {
    stats.fold(DeviceStats::default(), |sum, one| DeviceStats {
        reads: sum.reads + one.reads,
        read_ns: sum.read_ns + one.read_ns,
        writes: sum.writes + one.writes,
        write_ns: sum.write_ns + one.write_ns,
        others: sum.others + one.others,
        errors: sum.errors + one.errors,
        in_flight: sum.in_flight + one.in_flight,
    })
}

fn seconds(nanoseconds: Option<u64>) -> Option<f64> {
    nanoseconds.map(|ns| ns as f64 / 1e9)
}

/// What a reactor told, by whom it is about.
struct ByIdentity<'a> {
    tenants: HashMap<TenantId, &'a TenantSnapshot>,
    volumes: HashMap<VolumeId, &'a VolumeSnapshot>,
    latencies: HashMap<TenantId, TenantLatency>,
}

impl<'a> ByIdentity<'a> {
    fn of(snapshot: &'a ReactorSnapshot) -> Self {
        let latencies = snapshot.latencies.iter();
        Self {
            tenants: snapshot.tenants.iter().map(|it| (it.tenant, it)).collect(),
            volumes: snapshot.volumes.iter().map(|it| (it.volume, it)).collect(),
            latencies: latencies.map(|(tenant, it)| (*tenant, TenantLatency::from(&**it))).collect(),
        }
    }
}

/// A tenant's part; `None` where its reactor does not know it, which only a bug can cause. Volumes that came or went just now are there in the next one.
fn tenant_status(
    config: &TenantConfig,
    seat: &Seat,
    reactors: &[ByIdentity<'_>],
    standing: &Standing,
    block_bytes: u32,
    loss: Option<&Loss>,
) -> Option<TenantStatus> {
    let reactor = reactors.get(seat.place.reactor)?;
    let now = reactor.tenants.get(&seat.place.tenant)?;
    let volume = |(config, id): (&VolumeConfig, &VolumeId)| {
        let now = reactor.volumes.get(id)?;
        Some(volume_status(config, now, block_bytes, loss))
    };
    let volumes = config.volumes.iter().zip(&seat.volumes).filter_map(volume).collect();
    Some(TenantStatus {
        warm_blocks: seat.warm_blocks,
        replacement: standing.decision.mode.caching.policy().to_string(),
        admission: standing.decision.mode.caching.admission().to_string(),
        population: if standing.batched { Population::Batched } else { Population::OnDemand }.as_str().into(),
        decision: decision_status(standing),
        urd_blocks: standing.urd_blocks,
        trd_blocks: standing.trd_blocks,
        dirty_bytes: u64::from(now.dirty_blocks) * u64::from(block_bytes),
        latency: reactor.latencies.get(&seat.place.tenant).cloned().unwrap_or_default(),
        volumes,
        ..counters(&config.name, now)
    })
}

/// What the engine counts of a tenant; the rest is empty.
fn counters(name: &str, now: &TenantSnapshot) -> TenantStatus {
    let stats = &now.stats;
    TenantStatus {
        name: name.into(),
        quota_blocks: now.quota_blocks,
        occupied_blocks: now.occupied_blocks,
        dirty_blocks: now.dirty_blocks,
        dirty_bytes: 0,
        warm_blocks: 0,
        write_policy: now.write_policy.as_str().into(),
        replacement: String::new(),
        admission: String::new(),
        population: String::new(),
        read_hits: stats.read_hits,
        read_misses: stats.read_misses,
        write_hits: stats.write_hits,
        write_misses: stats.write_misses,
        evictions: stats.evictions,
        invalidations: stats.invalidations,
        ssd_writes: SsdWrites::new(stats.ssd_fill_blocks, stats.ssd_guest_write_blocks, 0, 0),
        ssd_write_bytes: SsdWrites::new(stats.ssd_fill_bytes, stats.ssd_guest_write_bytes, 0, 0),
        budget_refused_blocks: stats.refused_blocks,
        budget_diverted_blocks: stats.diverted_blocks,
        budget_turned_away_blocks: stats.turned_away_blocks,
        backing_reads: stats.backing_reads,
        backing_writes: stats.backing_writes,
        cache_errors: stats.cache_errors + stats.lost_blocks,
        backing_errors: stats.backing_errors,
        urd_blocks: 0,
        trd_blocks: 0,
        latency: TenantLatency::default(),
        decision: DecisionStatus::default(),
        volumes: Vec::new(),
    }
}

fn decision_status(Standing { epoch, decision, .. }: &Standing) -> DecisionStatus {
    DecisionStatus {
        epoch: *epoch,
        quota_blocks: decision.quota_blocks,
        write_policy: decision.mode.write.as_str().into(),
        predicted_latency_seconds: decision.predicted.map(|predicted| predicted.latency),
        predicted_request_hit_ratio: decision.predicted.map(|predicted| predicted.request_hit_ratio),
        reason: decision.reason.clone(),
    }
}

fn volume_status(
    config: &VolumeConfig,
    now: &VolumeSnapshot,
    block_bytes: u32,
    loss: Option<&Loss>,
) -> VolumeStatus {
    let on_device = loss.and_then(|loss| loss.volumes.iter().find(|lost| lost.volume == config.name));
    let state = match now {
        VolumeSnapshot { failed: true, .. } => VolumeState::Failed,
        VolumeSnapshot { lost: LostSize { blocks: 1.., .. }, .. } => VolumeState::Damaged,
        _ => VolumeState::Ok,
    };
    VolumeStatus {
        name: config.name.clone(),
        backing: config.backing.to_string(),
        export: config.export_uri().map(|uri| uri.to_string()),
        vhost_user: config.vhost_user.as_ref().map(|path| path.display().to_string()),
        // What the reactors do not know is filled in by who does.
        ublk: None,
        ublk_problem: None,
        size_bytes: now.info.bytes,
        requests: now.requests.into(),
        backing_read_latency_seconds: seconds(now.backing.read_mean_ns()),
        backing_write_latency_seconds: seconds(now.backing.write_mean_ns()),
        state,
        dirty_blocks: now.dirty_blocks,
        dirty_bytes: u64::from(now.dirty_blocks) * u64::from(block_bytes),
        draining: now.draining.as_str().into(),
        quiet: now.quiet,
        migrating: false,
        clients: 0,
        slow_cache: now.slow_cache,
        epochs_behind: now.epochs_behind,
        backing_failing_seconds: now.backing_failing.map(|time| time.as_secs_f64()),
        backing_failed_since_asked: now.backing_failed_since_asked,
        damaged_blocks: now.lost.blocks,
        lost_bytes: on_device.map_or(now.lost.bytes, VolumeLoss::bytes),
        lost_ranges: on_device.map_or(now.lost.ranges, |lost| lost.ranges.len() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::placement::Place;
    use larder_alloc::{Decision, Mode};
    use larder_engine::{TenantStats, WritePolicy};
    use larder_io::VolumeInfo;
    use larder_policy::spec::CachingSpec;
    use std::path::Path;

    const CONFIG: &str = r#"
        cache = { path = "/c", size = "1MiB" }
        [[tenant]]
        name = "a"
        [[tenant.volume]]
        name = "va"
        backing = "/a"
        nbd = "unix:/s"
        [[tenant]]
        name = "b"
        [[tenant.volume]]
        name = "vb1"
        backing = "/b1"
        nbd = "unix:/s"
        [[tenant.volume]]
        name = "vb2"
        backing = "nbd://10.0.0.1/b2"
        nbd = "unix:/s"
    "#;

    fn snapshot(tenants: &[(u32, u64)], volumes: &[(u16, u64)]) -> ReactorSnapshot {
        let tenant = |(index, (occupied_blocks, read_hits)): (usize, &(u32, u64))| TenantSnapshot {
            tenant: TenantId(index as u16),
            stats: TenantStats {
                read_hits: *read_hits,
                ssd_fill_blocks: 3,
                ssd_fill_bytes: 12_288,
                ..TenantStats::default()
            },
            quota_blocks: 10,
            occupied_blocks: *occupied_blocks,
            dirty_blocks: 0,
            write_policy: WritePolicy::ReadOnly,
        };
        let volume = |(index, (tenant, bytes)): (usize, &(u16, u64))| VolumeSnapshot {
            volume: VolumeId(index as u16),
            tenant: TenantId(*tenant),
            info: VolumeInfo { bytes: *bytes, min_block: 512, preferred_block: 4096, read_only: false },
            requests: larder_io::RequestStats::default(),
            backing: DeviceStats { reads: 2, read_ns: 3_000_000, ..DeviceStats::default() },
            dirty_blocks: 3,
            draining: larder_engine::Drain::Once,
            slow_cache: false,
            epochs_behind: Some(2),
            quiet: false,
            failed: *bytes == 1024,
            backing_failing: (*bytes == 2048).then_some(Duration::from_secs(8)),
            backing_failed_since_asked: false,
            lost: match *bytes {
                512 => LostSize { blocks: 2, bytes: 8192, ranges: 1 },
                _ => LostSize::default(),
            },
        };
        ReactorSnapshot {
            tenants: tenants.iter().enumerate().map(tenant).collect(),
            volumes: volumes.iter().enumerate().map(volume).collect(),
            cache: DeviceStats { reads: 1, read_ns: 100_000, ..DeviceStats::default() },
            engine_memory_bytes: 1000,
            metadata_bytes: 4096,
            ..ReactorSnapshot::default()
        }
    }

    fn standing(quota_blocks: u32) -> Standing {
        let mode = Mode { caching: CachingSpec::default(), write: larder_policy::WritePolicy::ReadOnly };
        let decision = Decision { quota_blocks, mode, predicted: None, reason: "so".into() };
        Standing { epoch: 4, decision, batched: false, urd_blocks: 7, trd_blocks: 9 }
    }

    /// The status of tenant a on reactor 1 and tenant b on reactor 0.
    fn status(snapshots: &[ReactorSnapshot]) -> Status {
        let config = Config::parse(Path::new("larder.toml"), Path::new("/"), CONFIG).expect("valid");
        let place = |reactor| Place { reactor, tenant: TenantId(0) };
        let tenants = vec!["a".into(), "b".into()];
        let view = LoopView {
            allocator: "eci",
            epoch_seconds: 600.0,
            epoch: 4,
            tenants,
            standings: vec![standing(1), standing(2)],
            memory_bytes: 5,
            budget: None,
        };
        let uptime = Duration::from_secs(2);
        Parts {
            hosted: &Hosted::at_start(config, &[place(1), place(0)], &[30, 10]),
            blocks: 255,
            snapshots,
            view: &view,
            loss: None,
            wear: &Known::default(),
            uptime,
        }
        .status()
    }

    #[test]
    fn everybody_is_found_where_he_is() {
        let status =
            status(&[snapshot(&[(20, 200)], &[(0, 512), (0, 1024)]), snapshot(&[(30, 300)], &[(0, 2048)])]);
        let [a, b] = &status.tenants[..] else { panic!("two tenants") };
        assert_eq!(
            (a.name.as_str(), a.occupied_blocks, a.read_hits, a.decision.quota_blocks),
            ("a", 30, 300, 1)
        );
        assert_eq!(
            (b.name.as_str(), b.occupied_blocks, b.read_hits, b.decision.quota_blocks),
            ("b", 20, 200, 2)
        );
        let sizes = |tenant: &TenantStatus| -> Vec<_> {
            tenant.volumes.iter().map(|volume| (volume.name.clone(), volume.size_bytes)).collect()
        };
        assert_eq!(sizes(a), [("va".to_owned(), 2048)]);
        assert_eq!(sizes(b), [("vb1".to_owned(), 512), ("vb2".to_owned(), 1024)]);
        assert_eq!(b.volumes[1].backing, "nbd://10.0.0.1:10809/b2");
        assert_eq!(a.volumes[0].backing_read_latency_seconds, Some(0.0015));
        assert_eq!(
            (a.warm_blocks, b.warm_blocks, status.cache.warm_blocks, status.cache.kept),
            (30, 10, 40, true)
        );
        let of = |volume: &VolumeStatus| (volume.state, volume.dirty_bytes, volume.backing_failing_seconds);
        assert_eq!(of(&a.volumes[0]), (VolumeState::Ok, 12_288, Some(8.0)));
        assert_eq!(of(&b.volumes[1]), (VolumeState::Failed, 12_288, None));
        assert_eq!(of(&b.volumes[0]), (VolumeState::Damaged, 12_288, None));
        let lost = |volume: &VolumeStatus| (volume.damaged_blocks, volume.lost_bytes, volume.lost_ranges);
        assert_eq!([lost(&b.volumes[0]), lost(&b.volumes[1])], [(2, 8192, 1), (0, 0, 0)]);
        assert_eq!((a.urd_blocks, a.trd_blocks, a.decision.epoch, a.ssd_writes.total), (7, 9, 4, 3));
    }

    #[test]
    fn the_cache_is_the_sum_of_what_reactors_tell() {
        let one = snapshot(&[(20, 0)], &[]);
        let cache = status(&[one.clone(), one.clone()]).cache;
        assert_eq!((cache.blocks, cache.free_blocks, cache.size_bytes), (255, 215, 255 * 4096));
        assert_eq!((cache.memory_bytes, cache.state), (2000, CacheState::Ok));
        assert_eq!(cache.read_latency_seconds, Some(0.0001));
        assert_eq!(cache.ssd_write_bytes, SsdWrites::new(2 * 12_288, 0, 0, 2 * 4096));
        let mut shaky = one.clone();
        shaky.cache.errors = 1;
        assert_eq!(status(&[one.clone(), shaky.clone()]).cache.state, CacheState::Degraded);
        shaky.cache_failed = true;
        assert_eq!(status(&[one, shaky]).cache.state, CacheState::Failed);
    }
}
