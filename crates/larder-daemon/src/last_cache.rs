//! A file apart from the cache device that says which cache was used last, and whether it may have blocks that no backing has.
//!
//! Without it a start that finds nothing where the cache was, since the SSD is not mounted, say, would make a new cache and serve backings that are older than what guests wrote. And one that
//! finds the cache of before last there, mounted again, would trust blocks that guests have written since.
//!
//! It is there from the first start on; that blocks may be dirty it says from before the first tenant writes back until the cache is stopped without any, or has failed and a
//! [`crate::loss::Loss`] says more.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use larder_engine::WritePolicy;
use larder_engine::format::Recovered;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::config::{Config, LOSS_FOLDER};
use crate::durable_file;

/// The cache that was used last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastCache {
    /// Where it was.
    pub cache: String,
    /// Its UUID.
    pub uuid: String,
    /// A session that it durably had: it is in no earlier one now, unless it is an older copy.
    pub session: u64,
    /// The session in which it was found at the last start. That may not have been durable, if its process was killed soon: a power cut then leaves the one before.
    pub found_session: u64,
    /// It may have blocks that no backing has.
    pub may_hold_dirty: bool,
    /// Seconds since 1970 when that was written.
    pub since_unix_seconds: u64,
}

/// The file cannot be read or written.
#[derive(Debug, Error)]
#[error("cannot {action} {}, which says which cache was used last: {source}", path.display())]
pub struct LastCacheError {
    path: PathBuf,
    action: &'static str,
    source: io::Error,
}

/// Another cache than the one that was used last is there, or none.
#[derive(Debug, Error)]
#[error("{} holds {found}: {}", told.cache, self.why())]
pub struct Missing {
    /// What is known of that one.
    told: LastCache,
    /// The file that says so.
    file: PathBuf,
    /// What is there instead.
    found: String,
}

impl Missing {
    fn why(&self) -> String {
        let uuid = &self.told.uuid;
        match self.told.may_hold_dirty {
            true => format!("the cache that was used last, {uuid}, may have data that no backing has"),
            false => format!(
                "what it has may be older than what guests have written with the one that was used last, {uuid}"
            ),
        }
    }

    /// What the operator can do.
    pub fn help(&self) -> String {
        let (cache, file) = (&self.told.cache, self.file.display());
        match self.told.may_hold_dirty {
            true => format!(
                "bring that cache back (is its file system mounted, its device connected?); if `larder cache writeback` has saved what it had, or to give that up for good, remove {file}"
            ),
            false => format!(
                "bring that cache back, or make this one anew: larder cache format {cache}; remove {file} only if nobody has written to the backings since this one was in use"
            ),
        }
    }
}

/// What is missing where a start finds this cache, or none that is kept.
///
/// # Errors
/// Where that cannot be told.
pub fn missing(config: &Config, found: Option<&Recovered>) -> Result<Option<Missing>, LastCacheError> {
    for file in places(config) {
        if let Some(told) = load(&file)?
            && let Some(found) = instead_of(&told, config, found)
        {
            return Ok(Some(Missing { told, file, found }));
        }
    }
    Ok(None)
}

/// What is there instead of this cache, if that is not to be used.
fn instead_of(told: &LastCache, config: &Config, found: Option<&Recovered>) -> Option<String> {
    let Some(recovered) = found else {
        let what = if config.cache.path.exists() { "no cache that is kept" } else { "nothing" };
        return told.may_hold_dirty.then(|| what.into());
    };
    let superblock = recovered.superblock();
    let (uuid, session) = (superblock.uuid.to_string(), superblock.session);
    if uuid == told.uuid && session >= told.session {
        return None;
    }
    let is_empty = recovered.blocks().next().is_none();
    match uuid == told.uuid {
        _ if is_empty && !told.may_hold_dirty => None,
        true => Some(format!("an older state of it (session {session}, and it was in {})", told.session)),
        false => Some(format!("another cache ({uuid})")),
    }
}

impl LastCacheError {
    /// What the operator can do.
    pub fn help(&self) -> String {
        "the file must be writable, and no other: give `loss_file` in [control], beside which it lies; remove it only if no cache holds dirty blocks".into()
    }

    /// Tell it in the log, where the daemon goes on all the same.
    pub fn tell(&self) {
        tracing::error!(error = %self, "a start without this cache would not be refused: keep it until it is stopped without dirty blocks");
    }
}

/// Where it is written: beside `control.loss_file`; where that is not configured, in the folder that the service manager keeps for the daemon; where there is none, beside the
/// cache file.
pub fn place(config: &Config) -> PathBuf {
    place_in(config, std::env::var_os("STATE_DIRECTORY").as_deref())
}

fn place_in(config: &Config, state_directories: Option<&OsStr>) -> PathBuf {
    let first = state_directories.and_then(|folders| std::env::split_paths(folders).next());
    match first.filter(|folder| config.control.loss_file.is_none() && folder.is_absolute()) {
        Some(folder) => folder.join(flat_name(config)),
        None => config.last_cache_file(),
    }
}

/// Where it is written, and where else it is: who asks may be another than who wrote it, without a folder from the service manager.
fn places(config: &Config) -> Vec<PathBuf> {
    let mut places = vec![place(config)];
    for other in [Path::new(LOSS_FOLDER).join(flat_name(config)), config.last_cache_file()] {
        if config.control.loss_file.is_none() && !places.contains(&other) && other.exists() {
            places.push(other);
        }
    }
    places
}

fn flat_name(config: &Config) -> String {
    let path = config.cache.path.display().to_string();
    format!("{}.last.json", path.trim_start_matches('/').replace('/', "-"))
}

/// What it says; `None` where there is no file.
///
/// # Errors
/// Where it cannot be read, or is none.
pub fn load(path: &Path) -> Result<Option<LastCache>, LastCacheError> {
    durable_file::load(path).map_err(|source| LastCacheError { path: path.into(), action: "read", source })
}

/// Keeps it, for a cache that is in use. Clones do so for the same one.
#[derive(Clone, Debug)]
pub struct Keep(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    cache: String,
    uuid: String,
    session: u64,
    found_session: u64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Blocks may be dirty.
    dirty: bool,
    /// What the file says of that; nothing before it is written.
    told: Option<bool>,
    /// The cache has failed: something else says what it alone has.
    given_up: bool,
}

impl Keep {
    /// From now on this cache is the one that was used last, with dirty blocks or without. What others have written of an earlier one elsewhere is gone.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn begin(config: &Config, recovered: &Recovered) -> Result<Self, LastCacheError> {
        let mut places = places(config);
        let told = places.iter().find_map(|place| load(place).ok().flatten());
        let keep = Self::at(places.remove(0), &config.cache.path, recovered, told.as_ref());
        keep.0.state().dirty = recovered.blocks().any(|(_, contents)| contents.dirty);
        keep.0.write(&mut keep.0.state())?;
        for place in places {
            if let Err(error) = durable_file::remove(&place) {
                tracing::warn!(path = %place.display(), %error, "cannot remove the file, which says that another cache was used last");
            }
        }
        Ok(keep)
    }

    fn at(path: PathBuf, cache: &Path, recovered: &Recovered, told: Option<&LastCache>) -> Self {
        let superblock = recovered.superblock();
        let (cache, uuid) = (cache.display().to_string(), superblock.uuid.to_string());
        let found_session = superblock.session;
        // What was found at the start before this one has been flushed since.
        let before = told.filter(|told| told.uuid == uuid).map_or(0, |told| told.found_session);
        let session = if superblock.clean_stop { found_session } else { before.min(found_session) };
        Self(Arc::new(Inner { path, cache, uuid, session, found_session, state: Mutex::default() }))
    }

    /// A tenant will treat its writes so: where blocks can be dirty, the file says so, durably, when this returns.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn before(&self, policy: WritePolicy) -> Result<(), LastCacheError> {
        let mut state = self.0.state();
        state.dirty |= policy == WritePolicy::WriteBack;
        self.0.write(&mut state)
    }

    /// The cache has failed, and a [`crate::loss::Loss`] says durably what it alone has.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn given_up(&self) -> Result<(), LastCacheError> {
        let mut state = self.0.state();
        state.given_up = true;
        self.0.write(&mut state)
    }

    /// The cache is in use again.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn back(&self) -> Result<(), LastCacheError> {
        let mut state = self.0.state();
        state.given_up = false;
        self.0.write(&mut state)
    }

    /// No block is dirty.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn clean(&self) -> Result<(), LastCacheError> {
        let mut state = self.0.state();
        state.dirty = false;
        self.0.write(&mut state)
    }
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Have the file say what is so.
    fn write(&self, state: &mut State) -> Result<(), LastCacheError> {
        let may_hold_dirty = state.dirty && !state.given_up;
        if state.told == Some(may_hold_dirty) {
            return Ok(());
        }
        let Self { path, cache, uuid, session, found_session, .. } = self;
        let since_unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let (session, found_session) = (*session, *found_session);
        let (cache, uuid) = (cache.clone(), uuid.clone());
        let told = LastCache { cache, uuid, session, found_session, may_hold_dirty, since_unix_seconds };
        let failed = |source| LastCacheError { path: path.clone(), action: "write", source };
        durable_file::save(path, &told).map_err(failed)?;
        state.told = Some(may_hold_dirty);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_engine::format::{Layout, Medium, MediumError, MediumMut, Superblock, Uuid, format, recover};

    #[test]
    fn it_lies_apart_from_the_cache_where_it_can() {
        let config = |cache: &str, control: &str| {
            let text = format!(
                "[cache]\npath = \"{cache}\"\nsize = \"1GiB\"\n[control]\n{control}\n[[tenant]]\nname = \"a\"\n[[tenant.volume]]\nname = \"v\"\nbacking = \"/b\"\nublk = true\n"
            );
            Config::parse(Path::new("larder.toml"), Path::new("/etc"), &text).expect("it can be served")
        };
        let of = |cache, control, folders: Option<&str>| {
            place_in(&config(cache, control), folders.map(OsStr::new)).display().to_string()
        };
        let state = Some("/var/lib/larder:/var/lib/other");
        assert_eq!(of("/ssd/cache.img", "", None), "/ssd/cache.img.last.json");
        assert_eq!(of("/ssd/cache.img", "", state), "/var/lib/larder/ssd-cache.img.last.json");
        assert_eq!(of("/dev/sda", "", None), "/var/lib/larder/dev-sda.last.json");
        assert_eq!(of("/dev/sda", "", state), "/var/lib/larder/dev-sda.last.json");
        assert_eq!(of("/ssd/c", "loss_file = \"/srv/c.loss.json\"", state), "/srv/c.last.json");
    }

    fn recovered() -> Recovered {
        let layout = Layout::for_slots(4096, 512, 100).expect("a possible cache");
        let mut medium = Memory(vec![0; layout.device_bytes() as usize]);
        format(&mut medium, &Superblock::new(Uuid([7; 16]), layout)).expect("memory takes it");
        recover(&mut medium).expect("it was made")
    }

    struct Memory(Vec<u8>);

    impl Medium for Memory {
        fn bytes(&self) -> u64 {
            self.0.len() as u64
        }
        fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
            into.copy_from_slice(&self.0[offset as usize..][..into.len()]);
            Ok(())
        }
    }

    impl MediumMut for Memory {
        fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
            self.0[offset as usize..][..bytes.len()].copy_from_slice(bytes);
            Ok(())
        }
        fn flush(&mut self) -> Result<(), MediumError> {
            Ok(())
        }
    }

    #[test]
    fn blocks_may_be_dirty_from_the_first_write_back_on_until_they_are_not() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deep/c.last.json");
        let keep = Keep::at(path.clone(), Path::new("/ssd/c"), &recovered(), None);
        let dirty = || load(&path).expect("readable").map(|told| told.may_hold_dirty);
        keep.before(WritePolicy::WriteThrough).expect("written");
        assert_eq!(dirty(), Some(false));
        keep.clone().before(WritePolicy::WriteBack).expect("written");
        keep.before(WritePolicy::WriteThrough).expect("nothing to do");
        assert_eq!(dirty(), Some(true));
        keep.clean().expect("written");
        assert_eq!(dirty(), Some(false));
        // Of a cache that has failed something else tells.
        keep.before(WritePolicy::WriteBack).expect("written");
        keep.given_up().expect("written");
        keep.before(WritePolicy::WriteBack).expect("nothing to do");
        assert_eq!(dirty(), Some(false));
        keep.back().expect("written");
        assert_eq!(dirty(), Some(true));
    }
}
