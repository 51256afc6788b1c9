//! What can be asked over the control socket, beside the status: that dirty blocks are written back, what a failed cache device alone has, and that it is
//! used again.
//!
//! A request is a word, and what it is about, as [`Request::WORDS`] lists them. A name is that of a tenant, or of a
//! volume; where both have it, it is the tenant, and `TENANT/VOLUME` is the volume. Each answer is one JSON object; one with the key `error` is a refusal.

use std::collections::BTreeMap;
use std::time::Duration;

use larder_io::{DrainCommand, Handle, HandleError};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use crate::hosted::Hosted;
use crate::keeper;
use crate::loss::VolumeLoss;
use crate::volumes::MigrationStep;

/// A request, as its line says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The whole status.
    Status,
    /// Dirty blocks of what has this name are to be written back.
    Drain {
        /// Of a tenant or a volume.
        name: String,
        /// Once, or from then on, or no longer.
        how: DrainCommand,
    },
    /// The ranges of this volume that the cache device alone has, and cannot give.
    Lost(String),
    /// The cache device is there again.
    Attach,
    /// The configuration file has changed: volumes come and go.
    Reload,
    /// These keys have these values from now on ([`crate::settings`]).
    Set {
        /// Whose they are; none for those of `[control]`.
        tenant: Option<String>,
        /// By key.
        pairs: BTreeMap<String, String>,
    },
    /// What was set, as it differs from the configuration file.
    Differences,
    /// The last decisions about a tenant.
    Decisions(String),
    /// What every size would bring to a tenant ([`crate::epoch::explore`]).
    Curves(String),
    /// What would be if a tenant had this size.
    WhatIf {
        /// The tenant.
        tenant: String,
        /// The size.
        bytes: u64,
    },
    /// The volume's backing has grown.
    Resize(String),
    /// Nothing is to change this volume for so long, at most.
    Quiesce {
        /// The volume.
        name: String,
        /// How long.
        hold: Duration,
    },
    /// It may change again.
    Thaw(String),
    /// The volume's guest leaves for another host.
    Migrate {
        /// The volume.
        name: String,
        /// How far it is.
        step: MigrationStep,
    },
    /// The requests to these tenants and volumes, to all where there are none, as they come: see [`crate::record::lines`].
    Record(Vec<String>),
}

impl Request {
    /// The words that a request may begin with.
    pub const WORDS: &str = "status, flush NAME, drain NAME, undrain NAME, lost VOLUME, attach, reload, \
         set control|tenant=TENANT KEY=VALUE…, differences, decisions TENANT, curves TENANT, what-if BYTES TENANT, resize VOLUME, quiesce SECONDS VOLUME, thaw VOLUME, \
         migrate-prepare VOLUME, migrate-complete VOLUME, migrate-abort VOLUME, record [NAME …]";

    /// A request of a line; `None` where it is none.
    pub fn parse(line: &str) -> Option<Self> {
        let drain = |name: &str, how| Some(Self::Drain { name: name.to_owned(), how });
        let migrate = |name: &str, step| Some(Self::Migrate { name: name.to_owned(), step });
        match line.split_once(' ') {
            None => match line {
                "status" => Some(Self::Status),
                "attach" => Some(Self::Attach),
                "reload" => Some(Self::Reload),
                "differences" => Some(Self::Differences),
                "record" => Some(Self::Record(Vec::new())),
                _ => None,
            },
            Some(("decisions", name)) => Some(Self::Decisions(name.to_owned())),
            Some(("curves", name)) => Some(Self::Curves(name.to_owned())),
            Some(("what-if", rest)) => {
                let (bytes, tenant) = rest.split_once(' ')?;
                Some(Self::WhatIf { tenant: tenant.to_owned(), bytes: bytes.parse().ok()? })
            }
            Some(("set", rest)) => {
                let (whose, rest) = rest.split_once(' ')?;
                let tenant = match whose {
                    "control" => None,
                    whose => Some(whose.strip_prefix("tenant=")?.to_owned()),
                };
                let pair =
                    |pair: &str| pair.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
                Some(Self::Set { tenant, pairs: rest.split(' ').map(pair).collect::<Option<_>>()? })
            }
            Some(("resize", name)) => Some(Self::Resize(name.to_owned())),
            Some(("quiesce", rest)) => {
                let (seconds, name) = rest.split_once(' ')?;
                Some(Self::Quiesce {
                    name: name.to_owned(),
                    hold: Duration::from_secs(seconds.parse().ok()?),
                })
            }
            Some(("record", names)) => {
                Some(Self::Record(names.split_whitespace().map(str::to_owned).collect()))
            }
            Some(("thaw", name)) => Some(Self::Thaw(name.to_owned())),
            Some(("migrate-prepare", name)) => migrate(name, MigrationStep::Prepare),
            Some(("migrate-complete", name)) => migrate(name, MigrationStep::Complete),
            Some(("migrate-abort", name)) => migrate(name, MigrationStep::Abort),
            Some(("lost", name)) => Some(Self::Lost(name.to_owned())),
            Some(("flush", name)) => drain(name, DrainCommand::Once),
            Some(("drain", name)) => drain(name, DrainCommand::On),
            Some(("undrain", name)) => drain(name, DrainCommand::Off),
            Some(_) => None,
        }
    }

    /// The line of a request to set keys. A pair is KEY=VALUE, without spaces.
    pub fn set_line(tenant: Option<&str>, pairs: &[String]) -> String {
        let whose = tenant.map_or("control".into(), |name| format!("tenant={name}"));
        format!("set {whose} {}", pairs.join(" "))
    }

    /// The line of a request to tell what would be if a tenant had this size.
    pub fn what_if_line(tenant: &str, bytes: u64) -> String {
        format!("what-if {bytes} {tenant}")
    }

    /// The line of a request to keep a volume quiet.
    pub fn quiesce_line(name: &str, hold: Duration) -> String {
        format!("quiesce {} {name}", hold.as_secs())
    }

    /// The line of a step of a migration.
    pub fn migrate_line(name: &str, step: MigrationStep) -> String {
        let word = match step {
            MigrationStep::Prepare => "prepare",
            MigrationStep::Complete => "complete",
            MigrationStep::Abort => "abort",
        };
        format!("migrate-{word} {name}")
    }

    /// The line of a request to drain.
    pub fn drain_line(name: &str, how: DrainCommand) -> String {
        let word = match how {
            DrainCommand::Once => "flush",
            DrainCommand::On => "drain",
            DrainCommand::Off => "undrain",
        };
        format!("{word} {name}")
    }
}

/// The answer to a request to drain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Draining {
    /// The volumes that it is about, by name.
    pub volumes: Vec<String>,
}

/// Why a request cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// No tenant and no volume has this name.
    #[error("there is no tenant and no volume \"{0}\"")]
    Unknown(String),
    /// No tenant has this name.
    #[error("there is no tenant \"{0}\"")]
    UnknownTenant(String),
    /// No volume has this name.
    #[error("there is no volume \"{0}\"")]
    UnknownVolume(String),
    /// Its guest is to leave.
    #[error(
        "volume \"{0}\" is being migrated: nothing of it may become dirty before `larder volume migrate complete` or `abort`"
    )]
    Migrating(String),
    /// Nobody else can record.
    #[error("too many recordings are under way")]
    Recordings,
    /// A reactor does not take commands.
    #[error("a reactor does not take commands: {0}")]
    Reactor(#[from] HandleError),
}

/// Carry out a request to drain.
///
/// # Errors
/// Where there is no such name, or a reactor is behind or has ended.
pub fn drain<C>(
    hosted: &Hosted,
    reactors: &[Handle<C>],
    name: &str,
    how: DrainCommand,
) -> Result<Draining, Refusal> {
    let named = hosted.named(name);
    if named.is_empty() {
        return Err(Refusal::Unknown(name.to_owned()));
    }
    for (volume, place) in &named {
        reactors[place.reactor].drain(place.volume, how)?;
        tracing::info!(volume = volume.name, "asked to {}", words(how));
    }
    Ok(Draining { volumes: named.into_iter().map(|(volume, _)| volume.name.clone()).collect() })
}

/// The ranges of a volume that the cache device alone has, and cannot give.
///
/// # Errors
/// Where there is no such volume, or its reactor does not answer.
pub fn lost<C>(hosted: &Hosted, reactors: &[Handle<C>], name: &str) -> Result<VolumeLoss, Refusal> {
    let (volume, place) = hosted.volume(name).ok_or_else(|| Refusal::UnknownVolume(name.to_owned()))?;
    let ranges = keeper::lost_ranges(&reactors[place.reactor], place)?;
    Ok(VolumeLoss { volume: name.to_owned(), backing: volume.backing.to_string(), ranges })
}

fn words(how: DrainCommand) -> &'static str {
    match how {
        DrainCommand::Once => "write back what is dirty",
        DrainCommand::On => "write back what is dirty, and to let nothing become dirty",
        DrainCommand::Off => "let blocks become dirty again",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::lines::request_line;

    #[test]
    fn lines_are_understood_as_they_are_made() {
        for how in [DrainCommand::Once, DrainCommand::On, DrainCommand::Off] {
            let request = Request::Drain { name: "a/b".into(), how };
            assert_eq!(Request::parse(&Request::drain_line("a/b", how)), Some(request));
        }
        for step in [MigrationStep::Prepare, MigrationStep::Complete, MigrationStep::Abort] {
            let request = Request::Migrate { name: "a b".into(), step };
            assert_eq!(Request::parse(&Request::migrate_line("a b", step)), Some(request));
        }
        let hold = Duration::from_secs(90);
        let quiesce = Request::Quiesce { name: "a b".into(), hold };
        assert_eq!(Request::parse(&Request::quiesce_line("a b", hold)), Some(quiesce));
        let what_if = Request::WhatIf { tenant: "a b".into(), bytes: 4096 };
        assert_eq!(Request::parse(&Request::what_if_line("a b", 4096)), Some(what_if));
        assert_eq!([Request::parse("what-if a"), Request::parse("what-if -1 a")], [None, None]);
        assert_eq!([Request::parse("quiesce a 90"), Request::parse("quiesce 90")], [None, None]);
        let pairs: Vec<String> = vec!["latency=2ms".into(), "iops=none".into()];
        for tenant in [None, Some("a")] {
            let Some(Request::Set { tenant: whose, pairs: found }) =
                Request::parse(&Request::set_line(tenant, &pairs))
            else {
                panic!("it is understood");
            };
            assert_eq!((whose.as_deref(), found["latency"].as_str(), found.len()), (tenant, "2ms", 2));
        }
        assert_eq!(
            [Request::parse("set control"), Request::parse("set a x=1"), Request::parse("set control x")],
            [None, None, None]
        );
        let names = vec!["a".to_owned(), "b/c".to_owned()];
        assert_eq!(Request::parse(&request_line(&names)), Some(Request::Record(names)));
        assert_eq!(Request::parse(&request_line(&[])), Some(Request::Record(Vec::new())));
        assert_eq!(Request::parse("status"), Some(Request::Status));
        assert_eq!(
            [Request::parse("dance"), Request::parse("drain"), Request::parse("status x")],
            [None, None, None]
        );
    }
}
