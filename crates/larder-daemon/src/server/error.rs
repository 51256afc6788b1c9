//! Why the daemon does not serve, each with what the operator can do.

use std::io;
use std::path::PathBuf;

use larder_alloc::AllocError;
use larder_export::BindError;
use larder_io::{BackingError, CacheError, OpenError, ReactorError, UnfinishedDevice};
use thiserror::Error;

use super::astray::Stray;
use crate::api::ApiSetupError;
use crate::control_socket;
use crate::last_cache::{LastCacheError, Missing};
use crate::loss::{Loss, LossError, VolumeLoss};
use crate::migration::MigrationError;
use crate::settings::{SettingError, SettingsFileError};
use crate::units::HumanSize;

/// Why the daemon does not start, or does not go on.
#[derive(Debug, Error)]
pub enum ServeError {
    /// What was set on top of the configuration cannot be.
    #[error("{0}, as was set while the daemon ran")]
    Setting(#[from] SettingError),
    /// It cannot be told what was set.
    #[error(transparent)]
    SettingsFile(#[from] SettingsFileError),
    /// A backing cannot be used.
    #[error("volume \"{volume}\": {source}")]
    Backing {
        /// The volume.
        volume: String,
        /// What is wrong with its backing.
        source: BackingError,
    },
    /// A backing is locked by somebody else.
    #[error("volume \"{volume}\": {path} is in use by another daemon")]
    BackingInUse {
        /// The volume.
        volume: String,
        /// Its backing.
        path: String,
    },
    /// Two names of one disk.
    #[error("{first} and {second} are the same disk")]
    SameDisk {
        /// One name.
        first: String,
        /// The other.
        second: String,
    },
    /// The cache device cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A cache device has failed, and is not there, though it alone has data of volumes.
    #[error("{why}; it failed with data that no backing has: {}", lost_of(loss))]
    CacheGone {
        /// What it alone has.
        loss: Box<Loss>,
        /// The file that says so.
        file: PathBuf,
        /// Why it is not there.
        why: CacheError,
    },
    /// The file that says so cannot be read.
    #[error(transparent)]
    Loss(#[from] LossError),
    /// Another cache than the one that was used last is there, or none.
    #[error(transparent)]
    CacheMissing(Box<Missing>),
    /// The file that says so cannot be read or written.
    #[error(transparent)]
    LastCache(#[from] LastCacheError),
    /// The cache has data that no backing has, of volumes that are not configured as they were.
    #[error("{0}")]
    Stray(Box<Stray>),
    /// The file that says which volumes are being migrated cannot be read.
    #[error(transparent)]
    Migration(#[from] MigrationError),
    /// The quotas do not fit the device.
    #[error("the quotas do not fit into the cache: {0}")]
    Quotas(#[from] AllocError),
    /// An address cannot be listened on.
    #[error(transparent)]
    Listen(#[from] BindError),
    /// The control socket cannot be had.
    #[error(transparent)]
    Control(#[from] control_socket::BindError),
    /// The HTTP API cannot be had.
    #[error(transparent)]
    Api(#[from] ApiSetupError),
    /// `socket_group` names no group.
    #[error("{section}.socket_group: this host has no group \"{name}\"")]
    UnknownGroup {
        /// Where it stands.
        section: &'static str,
        /// What it names.
        name: String,
    },
    /// A reactor does not start, or does not end well.
    #[error(transparent)]
    Reactor(#[from] ReactorError),
    /// A reactor ended by itself; the log says more.
    #[error("a reactor ended while it was needed")]
    ReactorEnded,
    /// The system refused something.
    #[error("cannot {action}: {source}")]
    Os {
        /// What was tried.
        action: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl From<Stray> for ServeError {
    fn from(stray: Stray) -> Self {
        Self::Stray(Box::new(stray))
    }
}

impl ServeError {
    /// What the operator can do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Setting(_) | Self::SettingsFile(_) => {
                "mend the file beside the cache (NAME.settings.json), or remove it: then larder.toml alone counts".into()
            }
            Self::Backing { source, .. } => source.remedy(),
            Self::BackingInUse { path, .. } => {
                format!("find out who uses it (fuser -v {path}) and stop that first")
            }
            Self::SameDisk { .. } => "give the cache and each volume a disk of its own".into(),
            // A cache file that is missing is created, so what is missing is its directory.
            Self::Cache(CacheError::Open(OpenError::Missing { path })) => {
                format!("create the directory: mkdir -p {}", path.display())
            }
            Self::Cache(error) => error.remedy(),
            Self::CacheGone { loss, file, .. } => format!(
                "bring back {} as it was; {} lists the ranges; to give them up for good, remove that file",
                loss.cache,
                file.display()
            ),
            Self::CacheMissing(missing) => missing.help(),
            Self::LastCache(error) => error.help(),
            Self::Stray(stray) => stray.help(),
            Self::Migration(_) => "mend the file, or remove it if no guest is on its way to another host".into(),
            Self::Loss(_) => "mend the file, or remove it if no cache device has failed".into(),
            Self::Quotas(_) => "lower a quota, or have a larger cache; under `combined` half of the cache is in common, and none of it a quota's".into(),
            Self::Listen(error) => error.remedy(),
            Self::Control(error) => error.help(),
            Self::Api(error) => error.help(),
            Self::UnknownGroup { name, .. } => {
                format!("choose one that `getent group` lists, or create it: groupadd --system {name}")
            }
            Self::Reactor(ReactorError::Ring(_)) => {
                "allow io_uring: sysctl kernel.io_uring_disabled=0, and a seccomp profile that lets it through".into()
            }
            Self::Reactor(ReactorError::Unfinished { devices, .. }) => unfinished_help(devices),
            Self::Reactor(ReactorError::Stuck { .. }) => {
                "a system call does not return: see dmesg, and /proc/PID/task/*/stack; the process goes when it does".into()
            }
            Self::Reactor(ReactorError::Cache(larder_engine::OpenError::Dirty(..))) => {
                "configure that volume again as it was (name, backing, size), or save its data: larder cache info PATH names it, larder cache writeback PATH writes it to its backing".into()
            }
            Self::Reactor(ReactorError::Cache(larder_engine::OpenError::Volumes(_))) => {
                "use fewer volumes or shorter names and paths, or a larger cache, which has room for more of them".into()
            }
            Self::Reactor(_) | Self::ReactorEnded => "look at the log above, and report it as a bug".into(),
            Self::Os { .. } => "check the limits on threads, memory and open files (ulimit -a)".into(),
        }
    }
}

/// The volumes, with what they lack.
fn lost_of(loss: &Loss) -> String {
    let one = |volume: &VolumeLoss| format!("{} ({})", volume.volume, HumanSize(volume.bytes()));
    loss.volumes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// What it means that a daemon stopped without its devices having done all.
fn unfinished_help(devices: &[UnfinishedDevice]) -> String {
    if devices.is_empty() {
        return "nothing is lost: every request that was answered is on its backing, and flushed; clients ask again".into();
    }
    "look after what is named (its server, its cable, dmesg): what it completed but did not flush may be lost if it fails now; larder holds none of it, and its process goes once the device has answered".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backing_that_hangs_at_the_end_is_named_and_explained() {
        let name = "/srv/disk.img".to_string();
        let devices = vec![UnfinishedDevice { name, operations: 3, flushed: false }];
        let error = ServeError::from(ReactorError::Unfinished { requests: 2, operations: 4, devices });
        assert_eq!(
            error.to_string(),
            "stopped before everything was done: /srv/disk.img did not answer in time (operations left: 3) and could not be flushed; guests went without an answer (requests: 2)"
        );
        let help = error.help();
        assert!(help.contains("completed but did not flush may be lost"), "{help}");
        assert!(help.contains("larder holds none of it") && !help.contains("report it as a bug"), "{help}");
    }
}
