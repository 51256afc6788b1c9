//! The configuration file is read again, and tenants and volumes come and go without a restart.
//!
//! What can be judged is judged first; then those who leave leave, then those who come come, one after the other: where one cannot, what was done so far stays,
//! and the next reload goes on. A volume leaves when nobody uses it and all of it is on its backing. That may take its time, which nobody waits for here: the
//! answer names those that are being drained, and who asks again goes on.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use larder_engine::{Drain, WritePolicy};
use larder_export::{ExportCommand, Listener, bind_for_group};
use larder_io::{DrainCommand, Handle, HandleError, NewTenant, NewVolume, VolumeError};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use super::ServeError;
use super::checked;
use super::difference::Difference;
use super::sockets;
use crate::analyzer::{AnalyzerHandle, ChangeError};
use crate::collector::{Collector, Silent, answered};
use crate::config::{Config, ConfigError, TenantConfig, VolumeConfig};
use crate::exported::{Exported, Reached};
use crate::hosted::{Hosted, Seat, VolumePlace};
use crate::manager;
use crate::migration::{MigrationError, Migrations};
use crate::placement::{self, Place};
use crate::settings::{SettingError, Settings, SettingsFileError};
use crate::volumes::lost_help;

/// How long a new block device may take before this is told without it.
const UBLK_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks at what is drained, where nobody asks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What has come of reading the configuration again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reloaded {
    /// Volumes that were added.
    pub added: Vec<String>,
    /// Volumes that were removed.
    pub removed: Vec<String>,
    /// Volumes that are to leave, and of which not all is on the backings yet: nothing else has been done. Ask again when they are drained.
    pub draining: Vec<String>,
}

/// Why a changed configuration is not served.
#[derive(Debug, Error)]
pub enum ReloadError {
    /// It cannot be read, or says something that cannot be served.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Something else differs than who is there.
    #[error("{0} is not what is served: only a restart changes that")]
    Restart(String),
    /// What it names cannot be used.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// A volume that is to leave has clients.
    #[error("volume \"{name}\" is still in use ({clients} connected)")]
    InUse {
        /// Its name.
        name: String,
        /// Clients.
        clients: usize,
    },
    /// A reactor cannot do it.
    #[error("volume \"{name}\": {source}")]
    Volume {
        /// Its name.
        name: String,
        /// Why.
        source: VolumeError,
    },
    /// A tenant cannot be added.
    #[error("tenant \"{name}\": {source}")]
    Tenant {
        /// Its name.
        name: String,
        /// Why.
        source: VolumeError,
    },
    /// Quotas.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// A reactor does not take commands.
    #[error("a reactor does not take commands: {0}")]
    Reactor(#[from] HandleError),
    /// A reactor says nothing.
    #[error(transparent)]
    Silent(#[from] Silent),
    /// It cannot be written down that a migration is over.
    #[error(transparent)]
    File(#[from] MigrationError),
    /// What was set cannot be.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// It cannot be kept what was set.
    #[error(transparent)]
    SettingsFile(#[from] SettingsFileError),
    /// One at a time.
    #[error("the configuration is being changed already")]
    Busy,
}

impl ReloadError {
    /// What the operator can do.
    pub fn help(&self) -> String {
        match self {
            Self::Config(_) => "mend the file: what is served has not changed".into(),
            Self::Restart(what) => {
                format!(
                    "take back the change of {what}, or restart the daemon: the cache stays warm where it is kept"
                )
            }
            Self::Serve(error) => error.help(),
            Self::InUse { name, .. } => format!(
                "end its guest, or disconnect its clients: `larder status` shows those of {name}; then reload again"
            ),
            Self::Volume { name, source: VolumeError::Failed } => {
                format!(
                    "bring the cache device back: `larder cache attach`; `larder status --lost {name}` tells what is on it"
                )
            }
            Self::Volume { name, source: VolumeError::Lost { .. } } => {
                format!(
                    "{}; or keep the volume: where it leaves, nothing tells any more what is lost",
                    lost_help(name)
                )
            }
            Self::Volume { .. } | Self::Tenant { .. } => {
                "look at the daemon's log, and reload again: it goes on where it was".into()
            }
            Self::Change(_) => "lower a quota".into(),
            Self::Reactor(_) | Self::Silent(_) | Self::Busy => {
                "try again; if it stays so, look at the daemon's log".into()
            }
            Self::Setting(_) => "nothing has changed: `larder config diff` shows what is set".into(),
            Self::SettingsFile(_) | Self::File(_) => "make its folder writable for the daemon".into(),
        }
    }
}

/// For NBD, and for vhost-user.
type Listeners = (Option<Listener>, Option<Listener>);

/// Reads the configuration file again.
pub struct Reloader {
    path: PathBuf,
    pub(super) collector: Arc<Collector<ExportCommand>>,
    exported: Exported,
    migrations: Arc<Migrations>,
    pub(super) analyzer: AnalyzerHandle,
    /// The volumes that this has begun to drain. Held while a reload is under way.
    drained: Mutex<BTreeSet<String>>,
    settings: Mutex<Settings>,
    /// What the file said when it was read last, without what was set.
    file: Mutex<Config>,
}

impl Reloader {
    /// Of a daemon that serves what the file at this path said.
    pub(super) fn new(
        path: PathBuf,
        collector: Arc<Collector<ExportCommand>>,
        exported: Exported,
        migrations: Arc<Migrations>,
        analyzer: AnalyzerHandle,
        (file, settings): (Config, Settings),
    ) -> Self {
        let (file, settings) = (Mutex::new(file), Mutex::new(settings));
        Self { path, collector, exported, migrations, analyzer, drained: Mutex::default(), settings, file }
    }

    /// Nobody else changes who is served, or how, while this is held.
    pub(super) fn alone(&self) -> Result<MutexGuard<'_, BTreeSet<String>>, ReloadError> {
        match self.drained.try_lock() {
            Ok(drained) => Ok(drained),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(ReloadError::Busy),
        }
    }

    /// What was set.
    pub(super) fn settings(&self) -> Settings {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// This is set from now on.
    pub(super) fn keep_settings(&self, settings: Settings) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// What is served, as the file alone has it.
    pub(super) fn file_config(&self, served: &Config) -> Config {
        let file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let tenant = |tenant: &TenantConfig| {
            let said = file.tenants.iter().find(|said| said.name == tenant.name);
            let said = said.unwrap_or(tenant);
            TenantConfig { volumes: tenant.volumes.clone(), ..said.clone() }
        };
        let tenants = served.tenants.iter().map(tenant).collect();
        Config {
            cache: served.cache.clone(),
            control: file.control.clone(),
            api: served.api.clone(),
            tenants,
        }
    }

    /// Read the file, and serve what it says: as far as that goes without waiting for backings.
    ///
    /// # Errors
    /// Where it cannot be served, or only after a restart.
    pub fn reload(&self) -> Result<Reloaded, ReloadError> {
        manager::reloading();
        let reloaded = self.read_again();
        manager::ready(&self.summary());
        reloaded
    }

    /// Who is served, in a line for people.
    pub fn summary(&self) -> String {
        let config = &self.collector.hosted.get().config;
        format!("serving {} volumes of {} tenants", config.volumes().count(), config.tenants.len())
    }

    fn read_again(&self) -> Result<Reloaded, ReloadError> {
        let mut drained = self.alone()?;
        let file = Config::load(&self.path)?;
        let mut wanted = file.clone();
        self.settings().apply(&mut wanted)?;
        let now = self.collector.hosted.get();
        let difference = Difference::between(&now.config, &wanted).map_err(ReloadError::Restart)?;
        self.judge(&wanted, &difference)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
        self.let_stay(&now, &difference, &mut drained)?;
        let draining = self.drain(&now, &difference, &mut drained)?;
        if !draining.is_empty() {
            return Ok(Reloaded { draining, ..Reloaded::default() });
        }
        for name in &difference.leaving {
            self.remove(name)?;
            drained.remove(name);
        }
        self.change_tenants(&difference)?;
        for (tenant, volume) in &difference.coming {
            self.add(&wanted, tenant, volume)?;
        }
        self.exported.wait(Instant::now() + UBLK_WITHIN);
        let added = difference.coming.into_iter().map(|(_, volume)| volume.name).collect();
        let reloaded = Reloaded { added, removed: difference.leaving, draining };
        tracing::info!(added = ?reloaded.added, removed = ?reloaded.removed, "the configuration was read again");
        Ok(reloaded)
    }

    /// The same, waiting until volumes that leave are drained; what comes of it is in the log.
    pub fn reload_patiently(&self) {
        manager::reloading();
        loop {
            match self.read_again() {
                Ok(reloaded) if reloaded.draining.is_empty() => break,
                Ok(_) => thread::sleep(LOOK_EVERY),
                Err(error) => {
                    tracing::error!("the changed configuration is not served: {error}; {}", error.help());
                    break;
                }
            }
        }
        manager::ready(&self.summary());
    }

    /// Find out what stands in the way, before anything changes.
    fn judge(&self, wanted: &Config, difference: &Difference) -> Result<(), ReloadError> {
        checked::epoch_loop(wanted, self.collector.blocks())?;
        checked::all_different(wanted)?;
        for (_, volume) in &difference.coming {
            checked::open_backing(volume)?;
        }
        for name in &difference.leaving {
            let clients = self.exported.users(name);
            if clients > 0 {
                return Err(ReloadError::InUse { name: name.clone(), clients });
            }
        }
        Ok(())
    }

    /// Volumes that were to leave, and stay after all, may have dirty blocks again.
    fn let_stay(
        &self,
        now: &Hosted,
        difference: &Difference,
        drained: &mut MutexGuard<'_, BTreeSet<String>>,
    ) -> Result<(), ReloadError> {
        let stay: Vec<String> =
            drained.iter().filter(|name| !difference.leaving.contains(name)).cloned().collect();
        for name in stay {
            if let Some((_, place)) = now.volume(&name).filter(|_| !self.migrations.has(&name)) {
                self.reactor(place).drain(place.volume, DrainCommand::Off)?;
            }
            drained.remove(&name);
        }
        Ok(())
    }

    /// Have those who leave written back. Those of which that is not over.
    fn drain(
        &self,
        now: &Hosted,
        difference: &Difference,
        drained: &mut MutexGuard<'_, BTreeSet<String>>,
    ) -> Result<Vec<String>, ReloadError> {
        let leaving = difference.leaving.iter().filter_map(|name| Some((name, now.volume(name)?.1)));
        let snapshots = self.collector.snapshots()?;
        let mut draining = Vec::new();
        for (name, place) in leaving {
            let reactor = &snapshots[place.reactor];
            let Some(volume) = reactor.volumes.iter().find(|volume| volume.volume == place.volume) else {
                continue;
            };
            if volume.failed {
                return Err(ReloadError::Volume { name: name.clone(), source: VolumeError::Failed });
            }
            if reactor.cache_failed || volume.draining == Drain::Done {
                continue;
            }
            if volume.is_stuck() && volume.draining == Drain::On {
                let source = VolumeError::Lost { blocks: volume.lost.blocks };
                return Err(ReloadError::Volume { name: name.clone(), source });
            }
            // One that the operator has drained stays so, should it not leave after all.
            if volume.draining != Drain::On {
                self.reactor(place).drain(place.volume, DrainCommand::On)?;
                drained.insert(name.clone());
            }
            draining.push(name.clone());
        }
        Ok(draining)
    }

    fn remove(&self, name: &str) -> Result<(), ReloadError> {
        let hosted = self.collector.hosted.get();
        let Some((config, place)) = hosted.volume(name) else { return Ok(()) };
        if !self.exported.close(config, place.volume, place.reactor, &self.collector.reactors)? {
            return Err(ReloadError::InUse { name: name.into(), clients: self.exported.users(name).max(1) });
        }
        let left = answered(place.reactor, &self.reactor(place).leave_volume(place.volume)?)?;
        if let Err(source) = left {
            self.open_again(&hosted, config, place)?;
            return Err(ReloadError::Volume { name: name.into(), source });
        }
        // Whoever has its guest now, nothing of it is here.
        self.migrations.set(name, false)?;
        let mut next = Hosted::clone(&hosted);
        let (tenant, seat) = (&mut next.config.tenants[place.tenant], &mut next.seats[place.tenant]);
        tenant.volumes.retain(|volume| volume.name != name);
        seat.volumes.retain(|volume| *volume != place.volume);
        tracing::info!(tenant = tenant.name, volume = name, "the volume is served no more");
        self.collector.hosted.set(next);
        Ok(())
    }

    /// Tenants without volumes leave, and others come, with their first quotas.
    fn change_tenants(&self, difference: &Difference) -> Result<(), ReloadError> {
        if difference.tenants_leaving.is_empty() && difference.tenants_coming.is_empty() {
            return Ok(());
        }
        let mut next = Hosted::clone(&self.collector.hosted.get());
        for name in &difference.tenants_leaving {
            if let Some(index) = next.tenant(name) {
                next.config.tenants.remove(index);
                next.seats.remove(index);
            }
        }
        for tenant in &difference.tenants_coming {
            let place = self.place(&next, tenant)?;
            next.config.tenants.push(tenant.clone());
            next.seats.push(Seat { place, volumes: Vec::new(), warm_blocks: 0 });
        }
        let tenants = next.config.tenants.iter().map(|tenant| checked::loop_tenant(&next.config, tenant));
        let places = next.seats.iter().map(|seat| seat.place).collect();
        self.analyzer.set_tenants(tenants.collect(), places)?;
        self.collector.hosted.set(next);
        Ok(())
    }

    /// A place for a tenant, without a quota yet.
    fn place(&self, hosted: &Hosted, config: &TenantConfig) -> Result<Place, ReloadError> {
        let places = hosted.seats.iter().map(|seat| &seat.place);
        let reactor = placement::for_newcomer(places, self.collector.reactors.len());
        let dirty = config.dirty;
        // The loop says how before a block enters.
        let caching = config.caching.unwrap_or_default();
        let new = NewTenant { quota_blocks: 0, policy: WritePolicy::WriteThrough, caching, dirty };
        let tenant = answered(reactor, &self.collector.reactors[reactor].add_tenant(new)?)?;
        let tenant = tenant.map_err(|source| ReloadError::Tenant { name: config.name.clone(), source })?;
        Ok(Place { reactor, tenant })
    }

    fn add(&self, wanted: &Config, tenant: &str, config: &VolumeConfig) -> Result<(), ReloadError> {
        let hosted = self.collector.hosted.get();
        let Some(index) = hosted.tenant(tenant) else { return Ok(()) };
        let Place { reactor, tenant: id } = hosted.seats[index].place;
        let listeners = self.listen(wanted, config)?;
        let backing = checked::open_alone(config)?;
        let (identity, known) = (backing.identity(), checked::identified(config, &backing));
        let new = NewVolume { tenant: id, backing, ordered: config.ordered, known };
        let joined = answered(reactor, &self.collector.reactors[reactor].join_volume(new)?)?;
        let (volume, info) =
            joined.map_err(|source| ReloadError::Volume { name: config.name.clone(), source })?;
        let mut next = Hosted::clone(&hosted);
        next.config.tenants[index].volumes.push(config.clone());
        next.seats[index].volumes.push(volume);
        self.collector.hosted.set(next);
        let reached = Reached { config, tenant, identity, reactor, volume, info };
        self.exported.open(&reached, &self.collector.reactors, listeners)?;
        super::running::announce(tenant, config);
        Ok(())
    }

    /// Listeners for NBD, where nobody listens yet, and for vhost-user.
    fn listen(&self, all: &Config, config: &VolumeConfig) -> Result<Listeners, ServeError> {
        let group = sockets::group(all)?;
        let bind = |address| bind_for_group(&address, group).map_err(ServeError::from);
        let nbd = config.nbd.clone().filter(|address| !self.exported.has_door(address));
        Ok((nbd.map(bind).transpose()?, config.vhost_address().map(bind).transpose()?))
    }

    /// A volume that could not leave is reached as before.
    fn open_again(
        &self,
        hosted: &Hosted,
        config: &VolumeConfig,
        place: VolumePlace,
    ) -> Result<(), ReloadError> {
        let VolumePlace { tenant, reactor, volume } = place;
        let listeners = self.listen(&hosted.config, config)?;
        let identity = checked::open_backing(config)?.identity();
        let snapshots = self.collector.snapshots()?;
        let found = snapshots[reactor].volumes.iter().find(|now| now.volume == volume);
        let info = found.ok_or(Silent(reactor))?.info;
        let tenant = hosted.config.tenants[tenant].name.as_str();
        let reached = Reached { config, tenant, identity, reactor, volume, info };
        Ok(self.exported.open(&reached, &self.collector.reactors, listeners)?)
    }

    fn reactor(&self, place: VolumePlace) -> &Handle<ExportCommand> {
        &self.collector.reactors[place.reactor]
    }
}
