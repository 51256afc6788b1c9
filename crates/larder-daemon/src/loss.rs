//! What a failed cache device alone has: which cache it is, and which byte ranges of which volumes. Kept in a file until the device is back, so that it
//! outlives the daemon.
//!
//! The file (`control.loss_file`) must not be on the cache device. It says two things to the next start: of the cache that it names no clean block may be
//! trusted, since guests have written past them and the device may not have heard of it; and without that cache the volumes that it names are not what their
//! guests wrote, so nothing is served.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use larder_engine::SessionMark;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use crate::durable_file;
use crate::units::HumanSize;

/// The cache that is gone, and what it alone has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// Where the cache was.
    pub cache: String,
    /// Seconds since 1970 when it was given up.
    pub since_unix_seconds: u64,
    /// The cache's UUID.
    pub uuid: String,
    /// Its last session.
    pub session: u64,
    /// The last record of its journal that was durable.
    pub record: u64,
    /// And so many bytes of the next one.
    #[serde(default)]
    pub part: u32,
    /// The volumes that are not served.
    pub volumes: Vec<VolumeLoss>,
}

/// What a volume lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VolumeLoss {
    /// Its name.
    pub volume: String,
    /// The file, device or URI that has older data there.
    pub backing: String,
    /// Ranges that the backing does not have, sorted.
    pub ranges: Vec<LostRange>,
}

/// A range of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LostRange {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

impl VolumeLoss {
    /// Bytes that the backing does not have.
    pub fn bytes(&self) -> u64 {
        self.ranges.iter().map(|range| range.len).sum()
    }
}

/// The file cannot be read or written.
#[derive(Debug, Error)]
#[error("cannot {action} {}, which says what a failed cache device alone has: {source}", path.display())]
pub struct LossError {
    path: PathBuf,
    action: &'static str,
    source: io::Error,
}

impl Loss {
    /// The cache of this session was given up at this moment: say so in the file before guests' writes go past it. What it alone has is added to that soon.
    pub fn begin(cache: &Path, mark: SessionMark, file: &Path) {
        Self::new(cache, mark).keep(file);
    }

    /// Nothing lost so far of the cache of this session, which is given up now.
    pub fn new(cache: &Path, mark: SessionMark) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since_unix_seconds = now.as_secs();
        let (cache, uuid) = (cache.display().to_string(), mark.uuid.to_string());
        Self {
            cache,
            since_unix_seconds,
            uuid,
            session: mark.session,
            record: mark.record,
            part: mark.part,
            volumes: Vec::new(),
        }
    }

    /// The session by which the cache is known again; `None` where the file has been changed, and names none.
    pub fn mark(&self) -> Option<SessionMark> {
        let uuid = self.uuid.parse().ok()?;
        Some(SessionMark { uuid, session: self.session, record: self.record, part: self.part })
    }

    /// Read it; `None` where there is no file.
    ///
    /// # Errors
    /// Where it cannot be read, or is none.
    pub fn load(path: &Path) -> Result<Option<Self>, LossError> {
        durable_file::load(path).map_err(|source| LossError { path: path.into(), action: "read", source })
    }

    /// Write it, durably, in place of what was there.
    ///
    /// # Errors
    /// Where that fails; what was there is still there.
    pub fn save(&self, path: &Path) -> Result<(), LossError> {
        durable_file::save(path, self).map_err(|source| LossError {
            path: path.into(),
            action: "write",
            source,
        })
    }

    /// The same, or tell in the log that it cannot be. True if it is there.
    pub fn keep(&self, path: &Path) -> bool {
        let saved = self.save(path);
        if let Err(error) = &saved {
            tracing::error!(%error, "keep what `larder status --lost VOLUME` tells: it does not outlive this process; and do not start again with this cache device");
        }
        saved.is_ok()
    }

    /// Everything is there again.
    pub fn remove(path: &Path) {
        if let Err(error) = durable_file::remove(path) {
            tracing::warn!(path = %path.display(), %error, "cannot remove the file: the next start takes the cache for one that was given up, and is cold");
        }
    }

    /// Tell it in the log.
    pub fn tell(&self, path: &Path) {
        for volume in &self.volumes {
            let (bytes, ranges) = (HumanSize(volume.bytes()), volume.ranges.len());
            tracing::error!(
                volume = volume.volume,
                list = %path.display(),
                "the volume has failed: {bytes} in {ranges} ranges are on the cache device alone; requests are refused until it is back"
            );
        }
    }
}

/// What is lost now, as everybody sees it.
#[derive(Clone, Debug, Default)]
pub struct SharedLoss(Arc<Mutex<Option<Loss>>>);

impl SharedLoss {
    /// A copy of what is there.
    pub fn get(&self) -> Option<Loss> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// In place of what was there.
    pub fn set(&self, loss: Option<Loss>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = loss;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_engine::format::Uuid;
    use std::fs;

    fn example() -> Loss {
        let mark = SessionMark { uuid: Uuid([0xab; 16]), session: 7, record: 99, part: 20 };
        let ranges = vec![LostRange { offset: 0, len: 4096 }, LostRange { offset: 12_288, len: 8192 }];
        let volume = VolumeLoss { volume: "a0".into(), backing: "/srv/a0.img".into(), ranges };
        let since_unix_seconds = 1_700_000_000;
        Loss { volumes: vec![volume], since_unix_seconds, ..Loss::new(Path::new("/dev/nvme0n1"), mark) }
    }

    #[test]
    fn what_is_saved_is_found_again_and_goes() {
        let folder = tempfile::tempdir().expect("tempdir");
        let path = folder.path().join("deeper/cache.loss.json");
        assert_eq!(Loss::load(&path).expect("no file"), None);
        example().save(&path).expect("saved");
        assert_eq!(Loss::load(&path).expect("a file"), Some(example()));
        assert_eq!(
            example().mark(),
            Some(SessionMark { uuid: Uuid([0xab; 16]), session: 7, record: 99, part: 20 })
        );
        assert_eq!(example().volumes[0].bytes(), 12_288);
        Loss::remove(&path);
        assert_eq!(Loss::load(&path).expect("no file"), None);
        Loss::remove(&path);
    }

    #[test]
    fn a_file_that_is_something_else_is_told() {
        let folder = tempfile::tempdir().expect("tempdir");
        let path = folder.path().join("loss.json");
        fs::write(&path, "{\"cache\": 1}").expect("written");
        let error = Loss::load(&path).expect_err("no loss");
        assert!(error.to_string().contains("loss.json"), "{error}");
        assert_eq!(Loss { uuid: "xyz".into(), ..example() }.mark(), None);
    }
}
