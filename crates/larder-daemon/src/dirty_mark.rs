//! A file apart from the cache device that says: the device may have blocks that no backing has. Without it a start that finds nothing where the cache was, since the SSD
//! is not mounted, say, or another one is in its place, would make a new cache and serve backings that are older than what guests wrote.
//!
//! It is there from before the first tenant writes back until the cache is stopped without dirty blocks, or has failed and a [`crate::loss::Loss`] says more.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use larder_engine::WritePolicy;
use larder_engine::format::Uuid;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::config::{Config, LOSS_FOLDER};
use crate::durable_file;

/// The cache that may have such blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirtyCache {
    /// Where it was.
    pub cache: String,
    /// Its UUID.
    pub uuid: String,
    /// Seconds since 1970 when it could have its first.
    pub since_unix_seconds: u64,
}

/// The file cannot be read or written.
#[derive(Debug, Error)]
#[error("cannot {action} {}, which says whether a cache may have data that no backing has: {source}", path.display())]
pub struct DirtyMarkError {
    path: PathBuf,
    action: &'static str,
    source: io::Error,
}

/// The cache that was used last may have data that no backing has, and is not there.
#[derive(Debug, Error)]
#[error("{} holds {found}: the cache that was used last, {}, may have data that no backing has", told.cache, told.uuid)]
pub struct Missing {
    /// What is known of that one.
    told: DirtyCache,
    /// The file that says so.
    file: PathBuf,
    /// What is there instead.
    found: String,
}

impl Missing {
    /// What the operator can do.
    pub fn help(&self) -> String {
        format!(
            "bring that cache back (is its file system mounted, its device connected?); if `larder cache writeback` has saved what it had, or to give that up for good, remove {}",
            self.file.display()
        )
    }
}

/// What is missing where a start finds the cache with this UUID, or none that is kept.
///
/// # Errors
/// Where that cannot be told.
pub fn missing(config: &Config, uuid: Option<Uuid>) -> Result<Option<Missing>, DirtyMarkError> {
    for file in places(config) {
        if let Some(told) = load(&file)?
            && let Some(found) = instead_of(&told, config, uuid)
        {
            return Ok(Some(Missing { told, file, found }));
        }
    }
    Ok(None)
}

/// What is there instead of this cache.
fn instead_of(told: &DirtyCache, config: &Config, uuid: Option<Uuid>) -> Option<String> {
    let found = match uuid.map(|uuid| uuid.to_string()) {
        Some(uuid) if uuid == told.uuid => return None,
        Some(uuid) => format!("another cache ({uuid})"),
        None if config.cache.path.exists() => "no cache that is kept".into(),
        None => "nothing".into(),
    };
    Some(found)
}

impl DirtyMarkError {
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
        None => config.dirty_file(),
    }
}

/// Where it is written, and where else it is: who asks may be another than who wrote it, without a folder from the service manager.
fn places(config: &Config) -> Vec<PathBuf> {
    let mut places = vec![place(config)];
    for other in [Path::new(LOSS_FOLDER).join(flat_name(config)), config.dirty_file()] {
        if config.control.loss_file.is_none() && !places.contains(&other) && other.exists() {
            places.push(other);
        }
    }
    places
}

fn flat_name(config: &Config) -> String {
    let path = config.cache.path.display().to_string();
    format!("{}.dirty.json", path.trim_start_matches('/').replace('/', "-"))
}

/// What it says; `None` where there is no file.
///
/// # Errors
/// Where it cannot be read, or is none.
pub fn load(path: &Path) -> Result<Option<DirtyCache>, DirtyMarkError> {
    durable_file::load(path).map_err(|source| DirtyMarkError { path: path.into(), action: "read", source })
}

/// Sets and removes it, for a cache that is in use. Clones do so for the same one.
#[derive(Clone, Debug)]
pub struct DirtyMark(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// Where others may have written it.
    elsewhere: Vec<PathBuf>,
    cache: String,
    uuid: String,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Blocks may be dirty.
    wanted: bool,
    /// The file is there.
    is_set: bool,
    /// The cache has failed: something else says what it alone has.
    given_up: bool,
}

impl DirtyMark {
    /// For this cache. What an earlier daemon wrote is still there, or nothing.
    pub fn new(config: &Config, uuid: Uuid) -> Self {
        let mut places = places(config);
        let path = places.remove(0);
        Self::at(path, places, &config.cache.path, uuid)
    }

    fn at(path: PathBuf, elsewhere: Vec<PathBuf>, cache: &Path, uuid: Uuid) -> Self {
        let (cache, uuid) = (cache.display().to_string(), uuid.to_string());
        Self(Arc::new(Inner { path, elsewhere, cache, uuid, state: Mutex::default() }))
    }

    /// A tenant will treat its writes so: where they can be dirty, the file is there, durably, when this returns.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn before(&self, policy: WritePolicy) -> Result<(), DirtyMarkError> {
        if policy == WritePolicy::WriteBack { self.set() } else { Ok(()) }
    }

    /// Have it there, durably.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn set(&self) -> Result<(), DirtyMarkError> {
        let mut state = self.state();
        state.wanted = true;
        self.write(&mut state)
    }

    /// The cache has failed, and a [`crate::loss::Loss`] says durably what it alone has.
    pub fn given_up(&self) {
        let mut state = self.state();
        state.given_up = true;
        self.delete(&mut state);
    }

    /// The cache is in use again.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn back(&self) -> Result<(), DirtyMarkError> {
        let mut state = self.state();
        state.given_up = false;
        if state.wanted { self.write(&mut state) } else { Ok(()) }
    }

    /// No block is dirty.
    pub fn remove(&self) {
        let mut state = self.state();
        state.wanted = false;
        self.delete(&mut state);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, state: &mut State) -> Result<(), DirtyMarkError> {
        let Inner { path, cache, uuid, .. } = &*self.0;
        if state.is_set || state.given_up {
            return Ok(());
        }
        let since_unix_seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let told = DirtyCache { cache: cache.clone(), uuid: uuid.clone(), since_unix_seconds };
        durable_file::save(path, &told).map_err(|source| DirtyMarkError {
            path: path.clone(),
            action: "write",
            source,
        })?;
        state.is_set = true;
        Ok(())
    }

    fn delete(&self, state: &mut State) {
        for place in self.0.elsewhere.iter().chain([&self.0.path]) {
            if let Err(error) = durable_file::remove(place) {
                tracing::warn!(path = %place.display(), %error, "cannot remove the file: without this cache the daemon will not start");
                return;
            }
        }
        state.is_set = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(of("/ssd/cache.img", "", None), "/ssd/cache.img.dirty.json");
        assert_eq!(of("/ssd/cache.img", "", state), "/var/lib/larder/ssd-cache.img.dirty.json");
        assert_eq!(of("/dev/sda", "", None), "/var/lib/larder/dev-sda.dirty.json");
        assert_eq!(of("/dev/sda", "", state), "/var/lib/larder/dev-sda.dirty.json");
        assert_eq!(of("/ssd/c", "loss_file = \"/srv/c.loss.json\"", state), "/srv/c.dirty.json");
    }

    #[test]
    fn it_is_there_from_the_first_write_back_on_until_it_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("deep/c.dirty.json"), folder.path().join("other.json"));
        let mark = DirtyMark::at(path.clone(), vec![other.clone()], Path::new("/ssd/c"), Uuid([7; 16]));
        let there = || load(&path).expect("readable").map(|told| told.uuid);
        mark.before(WritePolicy::WriteThrough).expect("nothing to do");
        assert_eq!(there(), None);
        mark.clone().before(WritePolicy::WriteBack).expect("written");
        assert_eq!(there(), Some(Uuid([7; 16]).to_string()));
        mark.before(WritePolicy::WriteBack).expect("it is there");
        std::fs::write(&other, "{}").expect("writable");
        mark.remove();
        assert_eq!((there(), other.exists()), (None, false));
        mark.before(WritePolicy::WriteBack).expect("written again");
        assert!(there().is_some());
    }

    #[test]
    fn of_a_cache_that_has_failed_something_else_tells() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.dirty.json");
        let mark = DirtyMark::at(path.clone(), Vec::new(), Path::new("/ssd/c"), Uuid([7; 16]));
        mark.given_up();
        mark.back().expect("nothing to do");
        assert!(!path.exists(), "nobody has written back");
        mark.set().expect("written");
        mark.given_up();
        mark.before(WritePolicy::WriteBack).expect("nothing to do");
        assert!(!path.exists());
        mark.back().expect("written again");
        assert!(path.exists());
    }
}
