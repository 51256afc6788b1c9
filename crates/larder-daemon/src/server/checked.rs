//! Everything that a configuration names, opened and judged, with nothing written.

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use larder_alloc::control::WriteBudget;
use larder_alloc::{ConfiguredPolicy, Goals, Reservation, WritePolicy};
use larder_engine::format::{Recovered, Volume};
use larder_io::{Backing, CacheError, CachePlan, CacheSpec, FileDevice, OpenError, ReactorError};

use super::ServeError;
use super::astray::{Stray, newest};
use crate::config::{
    BackingConfig, CacheConfig, Config, GoalsConfig, PolicyChoice, Population, TenantConfig, VolumeConfig,
};
use crate::control_socket;
use crate::epoch::{EpochLoop, LoopConfig, LoopTenant};
use crate::last_cache;
use crate::loss::Loss;
use crate::migration::Migrations;

/// How long to wait for locks that somebody holds. The kernel closes the files of a daemon that was killed only after it
/// has wound its rings down, which may be after its process is gone, and on a busy host or a slow disk seconds later: a restart at once must not fail for that.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);

/// The same for a volume that comes while others are served: reloads wait for that.
const LOCK_PATIENCE_RUNNING: Duration = Duration::from_secs(3);

/// How often to try.
const LOCK_EVERY: Duration = Duration::from_millis(50);

/// What passed.
pub(super) struct Checked {
    /// The backings of each tenant's volumes, in the order of the configuration.
    pub backings: Vec<Vec<Backing>>,
    /// What the cache has for each volume, in the order of the configuration.
    pub volumes: Vec<Volume>,
    /// The cache device, locked if it exists.
    pub plan: CachePlan,
    /// The loop at its start, for the blocks that the device has.
    pub epochs: EpochLoop,
    /// There is a file that says what a failed cache device alone has: it is not needed any more.
    pub given_up: bool,
    /// The volumes that are being migrated.
    pub migrations: Migrations,
}

impl Checked {
    /// Open and judge. `activated` is true where the service manager listens on the control socket, so that nobody answers there.
    pub fn new(config: &Config, activated: bool) -> Result<Self, ServeError> {
        // Before the locks: a second start of the same daemon waits for none of them.
        if !activated && control_socket::is_answered(&config.control.socket) {
            return Err(control_socket::BindError::Live(config.control.socket.clone()).into());
        }
        let volumes = |tenant: &TenantConfig| tenant.volumes.iter().map(open_backing).collect();
        let backings = config.tenants.iter().map(volumes).collect::<Result<Vec<Vec<_>>, _>>()?;
        all_different(config)?;
        let free_by = Instant::now() + LOCK_PATIENCE;
        for (volume, backing) in config.volumes().zip(backings.iter().flatten()) {
            if let Backing::File(device) = backing {
                lock(volume, device, free_by)?;
            }
        }
        let migrations = Migrations::load(config.migration_file())?;
        let loss = Loss::load(&config.loss_file())?;
        let given_up = loss.is_some();
        let plan = cache_plan(config, loss, free_by)?;
        if let Some(missing) = last_cache::missing(config, plan.recovered())? {
            return Err(ServeError::CacheMissing(Box::new(missing)));
        }
        let mut epochs = epoch_loop(config, plan.blocks())?;
        let known = config.volumes().zip(backings.iter().flatten());
        let volumes: Vec<Volume> = known.map(|(volume, backing)| identified(volume, backing)).collect();
        if let Some(recovered) = plan.recovered() {
            check_dirty(&config.cache.path, recovered, &volumes)?;
            epochs.start_warm(&held_blocks(config, &volumes, recovered));
        }
        Ok(Self { backings, volumes, plan, epochs, given_up, migrations })
    }
}

/// A volume as the cache knows it again; its number is chosen when the cache is opened.
pub(super) fn identified(volume: &VolumeConfig, backing: &Backing) -> Volume {
    let (name, identity) = (volume.name.clone(), backing.identity());
    Volume { id: 0, name, uuid: larder_io::new_uuid(), bytes: backing.bytes(), identity }
}

/// Blocks that each tenant finds in the cache.
fn held_blocks(config: &Config, volumes: &[Volume], recovered: &Recovered) -> Vec<u32> {
    let tenants = config.tenants.iter().enumerate();
    let owners = tenants.flat_map(|(index, tenant)| tenant.volumes.iter().map(move |_| index));
    let of_number = of_number(volumes.iter().zip(owners), recovered);
    let mut held = vec![0; config.tenants.len()];
    for (_, contents) in newest(recovered) {
        if let Some(&owner) = of_number.get(&contents.block.volume) {
            held[owner] += 1;
        }
    }
    held
}

/// What goes with each volume, by the number that the cache has given it.
pub(super) fn of_number<'v, T>(
    volumes: impl Iterator<Item = (&'v Volume, T)>,
    recovered: &Recovered,
) -> BTreeMap<u16, T> {
    let block_bytes = recovered.superblock().layout.block_bytes();
    let known = |(volume, it)| recovered.volumes().again(volume, block_bytes).map(|known| (known.id, it));
    volumes.filter_map(known).collect()
}

/// Refuse a cache with dirty blocks of a volume that is not configured.
fn check_dirty(cache: &Path, recovered: &Recovered, volumes: &[Volume]) -> Result<(), ServeError> {
    let all = of_number(volumes.iter().map(|volume| (volume, ())), recovered);
    let is_known = |number| all.contains_key(&number);
    if let Some(stray) = Stray::find(cache, recovered, volumes, is_known) {
        return Err(stray.into());
    }
    // Of volumes that the cache has no name for.
    let mut dirty = recovered.blocks().filter(|(_, contents)| contents.dirty);
    match dirty.find(|(_, contents)| !is_known(contents.block.volume)) {
        Some((slot, contents)) => {
            Err(ReactorError::Cache(larder_engine::OpenError::Dirty(contents.block, slot)).into())
        }
        None => Ok(()),
    }
}

/// Open what a volume's truth is on.
pub(super) fn open_backing(volume: &VolumeConfig) -> Result<Backing, ServeError> {
    let opened = match &volume.backing {
        BackingConfig::Path(path) => FileDevice::open_backing(path).map(Backing::File).map_err(Into::into),
        BackingConfig::Nbd(uri) => larder_io::NbdBacking::connect(uri).map(Backing::Nbd).map_err(Into::into),
    };
    opened.map_err(|source| ServeError::Backing { volume: volume.name.clone(), source })
}

/// Refuse two paths that lead to one file or device, of two volumes or of a volume and the cache: the texts in the
/// configuration differ, but links may not.
pub(super) fn all_different(config: &Config) -> Result<(), ServeError> {
    let paths = config.volumes().filter_map(|volume| match &volume.backing {
        BackingConfig::Path(path) => Some(path.as_path()),
        BackingConfig::Nbd(_) => None,
    });
    let mut seen: Vec<(Identity, &Path)> = Vec::new();
    for path in paths.chain([config.cache.path.as_path()]) {
        // What is absent (the cache, before its first use) is the same as nothing else.
        let Some(identity) = identity(path) else { continue };
        if let Some((_, first)) = seen.iter().find(|(other, _)| *other == identity) {
            let (first, second) = (first.display().to_string(), path.display().to_string());
            return Err(ServeError::SameDisk { first, second });
        }
        seen.push((identity, path));
    }
    Ok(())
}

/// What makes two paths the same disk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Identity {
    /// The number of a block device.
    Device(u64),
    /// Device and inode of a file.
    File(u64, u64),
}

fn identity(path: &Path) -> Option<Identity> {
    let meta = fs::metadata(path).ok()?;
    let device = meta.file_type().is_block_device();
    Some(if device { Identity::Device(meta.rdev()) } else { Identity::File(meta.dev(), meta.ino()) })
}

/// Open the backing of a volume that comes, and lock it.
pub(super) fn open_alone(volume: &VolumeConfig) -> Result<Backing, ServeError> {
    let backing = open_backing(volume)?;
    if let Backing::File(device) = &backing {
        lock(volume, device, Instant::now() + LOCK_PATIENCE_RUNNING)?;
    }
    Ok(backing)
}

/// Lock a backing that is a file against a second daemon: two caches over one disk would serve stale data. The lock
/// lives as long as the device's own handle. Block devices are left alone: udev takes the same lock on them.
fn lock(volume: &VolumeConfig, device: &FileDevice, free_by: Instant) -> Result<(), ServeError> {
    if device.is_block_device() {
        return Ok(());
    }
    let path = device.path().display().to_string();
    let try_lock = || {
        let handle = device.as_fd().try_clone_to_owned().map_err(TryLockError::Error)?;
        File::from(handle).try_lock()
    };
    match until_free(free_by, try_lock, |error| matches!(error, TryLockError::WouldBlock)) {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(ServeError::BackingInUse { volume: volume.name.clone(), path }),
        Err(TryLockError::Error(error)) => {
            tracing::warn!(path, %error, "cannot lock the backing: nothing guards it against a second daemon");
            Ok(())
        }
    }
}

/// Check the cache device. Where one has failed before, it has to be that one, if it alone has data; and no clean block of it is trusted.
fn cache_plan(config: &Config, loss: Option<Loss>, free_by: Instant) -> Result<CachePlan, ServeError> {
    let CacheConfig { path, size_bytes: size, block_bytes, keep, .. } = config.cache.clone();
    let spec = CacheSpec { path, size, block_bytes };
    let is_taken = |error: &CacheError| matches!(error, CacheError::InUse { .. });
    if let Some(loss) = loss {
        let missing =
            |why| Err(ServeError::CacheGone { loss: Box::new(loss.clone()), file: config.loss_file(), why });
        let again = match loss.mark().filter(|_| keep) {
            Some(mark) => until_free(free_by, || CachePlan::check_again(spec.clone(), mark), is_taken),
            None => Err(CacheError::Another { path: spec.path.clone() }),
        };
        match again {
            Ok(plan) => return Ok(plan),
            Err(error) if !is_elsewhere(&error) => return Err(error.into()),
            Err(error) if !loss.volumes.is_empty() => return missing(error),
            Err(_) => {}
        }
    }
    let look = if keep { CachePlan::check_kept } else { CachePlan::check };
    Ok(until_free(free_by, || look(spec.clone()), is_taken)?)
}

/// True if what is there is not the cache that was looked for.
fn is_elsewhere(error: &CacheError) -> bool {
    matches!(error, CacheError::Another { .. } | CacheError::Open(OpenError::Missing { .. }))
}

/// Try until it is no longer `taken`, or the time is up.
fn until_free<T, E>(
    free_by: Instant,
    mut attempt: impl FnMut() -> Result<T, E>,
    taken: impl Fn(&E) -> bool,
) -> Result<T, E> {
    loop {
        match attempt() {
            Err(error) if taken(&error) && Instant::now() < free_by => thread::sleep(LOCK_EVERY),
            outcome => return outcome,
        }
    }
}

/// The loop over a cache of that many blocks.
pub(super) fn epoch_loop(config: &Config, cache_blocks: u32) -> Result<EpochLoop, ServeError> {
    let allocator = config.control.allocator.allocator();
    let tenant = |tenant: &TenantConfig| loop_tenant(config, tenant);
    let settings = LoopConfig {
        block_bytes: config.cache.block_bytes,
        cache_blocks,
        min_blocks: config.control.min_blocks,
        write_threshold: config.control.write_threshold,
        write_back: config.control.write_back,
        budget: write_budget(config, cache_blocks),
        epoch: config.control.epoch,
        // A guest that knew the seed could slow the analyzer down by its choice of blocks.
        seed: RandomState::new().hash_one(cache_blocks),
    };
    Ok(EpochLoop::new(settings, allocator, config.tenants.iter().map(tenant).collect())?)
}

/// What the SSD under a cache of that many blocks may be written.
pub fn write_budget(config: &Config, cache_blocks: u32) -> Option<WriteBudget> {
    let cache_bytes = u64::from(cache_blocks) * u64::from(config.cache.block_bytes);
    config.control.write_budget.budget(config.cache.endurance.as_ref(), cache_bytes)
}

/// A tenant as the loop knows it.
pub fn loop_tenant(config: &Config, tenant: &TenantConfig) -> LoopTenant {
    LoopTenant {
        name: tenant.name.clone(),
        quota_blocks: tenant.quota_bytes.map(|bytes| config.cache.blocks_in(bytes)),
        write_policy: configured_policy(tenant.write_policy),
        caching: tenant.caching,
        batched: tenant.population.map(|population| population == Population::Batched),
        goals: goals(config, &tenant.goals),
    }
}

fn goals(config: &Config, goals: &GoalsConfig) -> Goals {
    let latency = goals.latency.map(|latency| Reservation::Latency(latency.as_secs_f64()));
    Goals {
        weight: goals.weight,
        share: goals.share,
        reservation: latency.or(goals.iops.map(Reservation::Iops)),
        max_blocks: goals.max_bytes.map(|bytes| config.cache.blocks_in(bytes)),
    }
}

fn configured_policy(choice: PolicyChoice) -> ConfiguredPolicy {
    match choice {
        PolicyChoice::Auto => ConfiguredPolicy::Auto,
        PolicyChoice::WriteBack => ConfiguredPolicy::Fixed(WritePolicy::WriteBack),
        PolicyChoice::WriteThrough => ConfiguredPolicy::Fixed(WritePolicy::WriteThrough),
        PolicyChoice::ReadOnly => ConfiguredPolicy::Fixed(WritePolicy::ReadOnly),
    }
}
