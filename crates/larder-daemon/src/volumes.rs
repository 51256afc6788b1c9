//! What can be done to one volume while it is served: it grows, is kept quiet for a snapshot of its backing, and lets its guest leave for another host.

use std::sync::Arc;
use std::time::Duration;

use larder_engine::Drain;
use larder_io::{DrainCommand, Handle, HandleError, Told, VolumeError, VolumeInfo, VolumeSnapshot};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use crate::collector::{Collector, Observed, Silent, answered};
use crate::control::{Draining, Refusal};
use crate::exported::Exported;
use crate::hosted::VolumePlace;
use crate::migration::{MigrationError, Migrations};
use crate::status::Status;

/// How long a volume may take to become quiet, once it is drained.
const QUIET_WITHIN: Duration = Duration::from_secs(10);
/// The longest that guests may be kept waiting.
pub const HOLD_MAX: Duration = Duration::from_secs(3600);

/// A volume has grown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Resized {
    /// Its size before, in bytes.
    pub from_bytes: u64,
    /// Its size now.
    pub to_bytes: u64,
    /// Why its block device does not have it, if it has one.
    pub ublk_problem: Option<String>,
}

/// A volume goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Thawed {
    /// It was quiet all the time until now: a snapshot taken meanwhile is whole.
    pub was_quiet: bool,
}

/// Something was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Done {}

/// A step of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationStep {
    /// Write all back, and let nothing become dirty: the guest is about to leave.
    Prepare,
    /// It has left.
    Complete,
    /// It stays.
    Abort,
}

/// Why something cannot be done to a volume.
#[derive(Debug, Error)]
pub enum VolumeRefusal {
    /// There is none of this name.
    #[error("there is no volume \"{0}\"")]
    Unknown(String),
    /// The reactor cannot do it.
    #[error("volume \"{name}\": {source}")]
    Volume {
        /// Its name.
        name: String,
        /// Why.
        source: VolumeError,
    },
    /// A reactor does not take commands.
    #[error("a reactor does not take commands: {0}")]
    Reactor(#[from] HandleError),
    /// A reactor says nothing.
    #[error(transparent)]
    Silent(#[from] Silent),
    /// It cannot be written down.
    #[error(transparent)]
    File(#[from] MigrationError),
    /// Nobody has prepared it.
    #[error("volume \"{0}\" is not being migrated")]
    NotMigrating(String),
    /// Not everything is on its backing.
    #[error("volume \"{0}\" is not drained yet")]
    NotDrained(String),
    /// Its guest is still here.
    #[error("volume \"{name}\" is still in use here ({clients} connected)")]
    InUse {
        /// Its name.
        name: String,
        /// Clients.
        clients: usize,
    },
}

impl VolumeRefusal {
    /// What the operator can do.
    pub fn help(&self) -> String {
        match self {
            Self::Unknown(_) => "`larder status` lists the volumes".into(),
            Self::Volume { name, source } => volume_help(name, source),
            Self::Reactor(_) | Self::Silent(_) => {
                "try again; if it stays so, look at the daemon's log".into()
            }
            Self::File(_) => {
                "make its folder writable for the daemon: without the file a restart could serve old data"
                    .into()
            }
            Self::NotMigrating(name) => {
                format!("begin with `larder volume migrate prepare {name}`, before the guest leaves")
            }
            Self::NotDrained(name) => format!("wait for `larder volume migrate prepare {name}` to end"),
            Self::InUse { name, .. } => {
                format!(
                    "end the guest here, or let it finish its migration; if it stays: `larder volume migrate abort {name}`"
                )
            }
        }
    }
}

/// What can be done about dirty blocks whose data is lost.
pub fn lost_help(name: &str) -> String {
    format!(
        "`larder status --lost {name}` lists them; they are gone until the guest writes those ranges again, or discards them"
    )
}

fn volume_help(name: &str, error: &VolumeError) -> String {
    use larder_engine::GrowError;
    match error {
        VolumeError::Grow(GrowError::Size { from, to }) if to == from => {
            "make its backing larger first: `truncate -s SIZE`, `lvextend`, `qemu-img resize`".into()
        }
        VolumeError::Grow(GrowError::Size { .. }) => {
            "a volume never shrinks while it is in use: give the backing its size back at once; what was cut off is lost".into()
        }
        VolumeError::Grow(GrowError::Uneven { .. }) | VolumeError::Measure { .. } => {
            format!("`larder drain {name}`, then restart the daemon: it takes the new size at its start")
        }
        VolumeError::Grow(GrowError::NoCache) | VolumeError::Failed => {
            "bring the cache device back: `larder cache attach`".into()
        }
        VolumeError::Quiet => format!("`larder volume thaw {name}`"),
        VolumeError::Dirty => format!("`larder drain {name}`"),
        VolumeError::Lost { .. } => lost_help(name),
        _ => "try again; if it stays so, look at the daemon's log".into(),
    }
}

/// Does things to volumes.
pub struct Volumes<C> {
    collector: Arc<Collector<C>>,
    exported: Exported,
    migrations: Arc<Migrations>,
}

/// Those of the same daemon.
impl<C> Clone for Volumes<C> {
    fn clone(&self) -> Self {
        let (collector, migrations) = (Arc::clone(&self.collector), Arc::clone(&self.migrations));
        Self { collector, exported: self.exported.clone(), migrations }
    }
}

impl<C> Volumes<C> {
    /// Those of this daemon.
    pub fn new(collector: Arc<Collector<C>>, exported: Exported, migrations: Arc<Migrations>) -> Self {
        Self { collector, exported, migrations }
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
        let mut observed = self.collector.observe()?;
        let mut volumes: Vec<_> =
            observed.status.tenants.iter_mut().flat_map(|tenant| &mut tenant.volumes).collect();
        volumes.iter_mut().for_each(|volume| volume.migrating = self.migrations.has(&volume.name));
        self.exported.tell(volumes.into_iter());
        Ok(observed)
    }

    /// Have dirty blocks of a tenant or a volume written back, or no longer.
    ///
    /// # Errors
    /// Where nothing has this name, one that is being migrated would have dirty blocks again, or a reactor does not take the command.
    pub fn drain(&self, name: &str, how: DrainCommand) -> Result<Draining, Refusal> {
        let hosted = self.collector.hosted.get();
        if how == DrainCommand::Off
            && let Some((volume, _)) =
                hosted.named(name).into_iter().find(|(volume, _)| self.migrations.has(&volume.name))
        {
            return Err(Refusal::Migrating(volume.name.clone()));
        }
        self.collector.drain(name, how)
    }

    /// Let a volume have the size that its backing has now.
    ///
    /// # Errors
    /// Where that is not larger, or cannot be.
    pub fn resize(&self, name: &str) -> Result<Resized, VolumeRefusal> {
        let (reactor, place) = self.find(name)?;
        let from_bytes = self.now(place)?.info.bytes;
        let VolumeInfo { bytes: to_bytes, .. } =
            done(name, place.reactor, &reactor.grow_volume(place.volume)?)?;
        let ublk_problem = self.exported.resize(name, to_bytes);
        tracing::info!(volume = name, from_bytes, to_bytes, "the volume has grown");
        Ok(Resized { from_bytes, to_bytes, ublk_problem })
    }

    /// Have a volume's backing hold all of it, and let nothing change it until it is thawed, or so much time has passed.
    ///
    /// # Errors
    /// Where it cannot be, or not in time: then it goes on as before.
    pub fn quiesce(&self, name: &str, hold: Duration) -> Result<Done, VolumeRefusal> {
        let (reactor, place) = self.find(name)?;
        let hold = hold.min(HOLD_MAX);
        done(name, place.reactor, &reactor.quiesce(place.volume, QUIET_WITHIN, hold)?)?;
        tracing::info!(volume = name, seconds = hold.as_secs(), "the volume is quiet: writes wait");
        Ok(Done {})
    }

    /// Let it go on.
    ///
    /// # Errors
    /// Where there is none of this name.
    pub fn thaw(&self, name: &str) -> Result<Thawed, VolumeRefusal> {
        let (reactor, place) = self.find(name)?;
        let was_quiet = answered(place.reactor, &reactor.thaw(place.volume)?)?;
        tracing::info!(volume = name, was_quiet, "the volume goes on");
        Ok(Thawed { was_quiet })
    }

    /// Take a step of a migration.
    ///
    /// # Errors
    /// Where it is not this step's turn.
    pub fn migrate(&self, name: &str, step: MigrationStep) -> Result<Done, VolumeRefusal> {
        let (reactor, place) = self.find(name)?;
        let migrations = &self.migrations;
        if step != MigrationStep::Prepare && !migrations.has(name) {
            return Err(VolumeRefusal::NotMigrating(name.into()));
        }
        match step {
            MigrationStep::Prepare => {
                // Before anybody may rely on it.
                migrations.set(name, true)?;
                reactor.drain(place.volume, DrainCommand::On)?;
                tracing::info!(
                    volume = name,
                    "its guest is to leave: what is dirty is to be written back, and nothing becomes dirty"
                );
            }
            MigrationStep::Complete => {
                self.has_left(name, place)?;
                done(name, place.reactor, &reactor.forget_volume(place.volume)?)?;
                self.end(name, reactor, place)?;
                tracing::info!(volume = name, "its guest has left: nothing is cached of it any more");
            }
            MigrationStep::Abort => {
                self.end(name, reactor, place)?;
                tracing::info!(volume = name, "its guest stays");
            }
        }
        Ok(Done {})
    }

    fn end(&self, name: &str, reactor: &Handle<C>, place: VolumePlace) -> Result<(), VolumeRefusal> {
        self.migrations.set(name, false)?;
        Ok(reactor.drain(place.volume, DrainCommand::Off)?)
    }

    /// The backing has everything, and nobody is here.
    fn has_left(&self, name: &str, place: VolumePlace) -> Result<(), VolumeRefusal> {
        let clients = self.exported.users(name);
        if clients > 0 {
            return Err(VolumeRefusal::InUse { name: name.into(), clients });
        }
        let now = self.now(place)?;
        match now.draining {
            Drain::Done => Ok(()),
            _ if now.is_stuck() => {
                let source = VolumeError::Lost { blocks: now.lost.blocks };
                Err(VolumeRefusal::Volume { name: name.into(), source })
            }
            _ => Err(VolumeRefusal::NotDrained(name.into())),
        }
    }

    fn find(&self, name: &str) -> Result<(&Handle<C>, VolumePlace), VolumeRefusal> {
        let hosted = self.collector.hosted.get();
        let (_, place) = hosted.volume(name).ok_or_else(|| VolumeRefusal::Unknown(name.into()))?;
        Ok((&self.collector.reactors[place.reactor], place))
    }

    fn now(&self, place: VolumePlace) -> Result<VolumeSnapshot, VolumeRefusal> {
        let mut snapshots = self.collector.snapshots()?;
        let volumes = &mut snapshots[place.reactor].volumes;
        let found = volumes.iter().position(|volume| volume.volume == place.volume);
        Ok(volumes.swap_remove(found.ok_or(Silent(place.reactor))?))
    }
}

/// What has come of something that a reactor was to do to a volume.
fn done<T>(name: &str, reactor: usize, told: &Told<T>) -> Result<T, VolumeRefusal> {
    answered(reactor, told)?.map_err(|source| VolumeRefusal::Volume { name: name.into(), source })
}
