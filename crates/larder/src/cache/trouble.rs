//! What is wrong with a cache, told to people.

use std::path::Path;

use larder_engine::format::{DumpError, MediumError, RecoverError, Unusable};
use larder_io::offline::{StoppedError, WriteBackError};

use crate::problem::Problem;

/// What a device's errors are met with.
const DEVICE: &str = "see the system's message; the kernel log (dmesg) may say more";

impl From<StoppedError> for Problem {
    fn from(error: StoppedError) -> Self {
        Self::new(&error, error.remedy())
    }
}

/// It cannot be used as it is.
pub fn recover(path: &Path, error: &RecoverError) -> Problem {
    let shown = path.display();
    let help = match error {
        RecoverError::NoSuperblock { a, b } => superblocks(path, a, b),
        RecoverError::TwoCaches | RecoverError::UsedUp => {
            format!("if what it holds can go: larder cache format --force {shown}")
        }
        RecoverError::TooShort { needed, .. } => {
            format!(
                "give the device its {needed} bytes back; a file that was cut short: truncate -s {needed} {shown}, then larder cache check {shown}"
            )
        }
        RecoverError::MayLoseDirty(_) | RecoverError::RepairFirst(_) => {
            format!("larder cache repair {shown} tells what can be kept")
        }
        RecoverError::Medium(_) => DEVICE.into(),
    };
    Problem::new(format_args!("{shown}: {error}"), help)
}

fn superblocks(path: &Path, a: &Unusable, b: &Unusable) -> String {
    let shown = path.display();
    match (a, b) {
        (Unusable::Newer(_), _) | (_, Unusable::Newer(_)) => "use that version of Larder".into(),
        (Unusable::VersionOne, _) => {
            format!("there is nothing to be had of it; for a new cache: larder cache format {shown}")
        }
        (Unusable::Foreign, Unusable::Blank | Unusable::Foreign) | (Unusable::Blank, Unusable::Foreign) => {
            format!(
                "if it was a cache, and there is a dump of it: larder cache restore --force DUMP {shown}; else name a Larder cache, or make one: larder cache format {shown}"
            )
        }
        (Unusable::Blank, Unusable::Blank) => {
            format!("name a Larder cache; larder cache format {shown} makes one")
        }
        _ => format!(
            "it was a cache; with a dump of it: larder cache restore --force DUMP {shown}; without one nothing tells where its blocks are"
        ),
    }
}

/// The device failed.
pub fn medium(path: &Path, error: &MediumError) -> Problem {
    Problem::new(format_args!("{}: {error}", path.display()), DEVICE)
}

/// A dump makes no cache.
pub fn dump(path: &Path, file: &Path, error: &DumpError) -> Problem {
    match error {
        DumpError::Medium(error) => medium(path, error),
        other => Problem::new(
            format_args!("{}: {other}", file.display()),
            "give a file that larder cache dump has written, unchanged",
        ),
    }
}

/// Dirty blocks could not be saved.
pub fn write_back(path: &Path, error: &WriteBackError) -> Problem {
    let shown = path.display();
    match error {
        WriteBackError::Recover(error) => recover(path, error),
        WriteBackError::Medium(error) => Problem::new(
            format_args!("{shown}: {error}"),
            format!(
                "what was saved is on the backings, the rest still in the cache; see the kernel log (dmesg), then larder cache check {shown}"
            ),
        ),
        WriteBackError::Journal(error) => Problem::new(
            format_args!("{shown}: {error}"),
            format!(
                "what was saved is on the backings, the rest still in the cache; larder cache check {shown} may say why"
            ),
        ),
    }
}
