//! Volumes whose guests are on their way to another host, over backings that both hosts reach.
//!
//! From `prepare` on the volume is drained, so that its backing has all of it, and stays so until `complete` or `abort`. When the guest is gone, the other
//! host writes to the backing, and what is cached here is old: `complete` drops it, so that the guest may come back at any time. A file keeps the names, since
//! this daemon may die while the guest leaves: the next one serves such a volume without what the cache still holds of it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use thiserror::Error;

/// The file cannot be read or written.
#[derive(Debug, Error)]
#[error("cannot {action} {}, which says which volumes are being migrated: {source}", path.display())]
pub struct MigrationError {
    path: PathBuf,
    action: &'static str,
    source: io::Error,
}

/// The volumes that are being migrated, by name.
#[derive(Debug)]
pub struct Migrations {
    path: PathBuf,
    names: Mutex<BTreeSet<String>>,
}

impl Migrations {
    /// Those of the file; none where there is no file.
    ///
    /// # Errors
    /// Where it cannot be read, or is none.
    pub fn load(path: PathBuf) -> Result<Self, MigrationError> {
        let failed = |source| MigrationError { path: path.clone(), action: "read", source };
        let names = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
            Err(error) => return Err(failed(error)),
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(error.into()))?,
        };
        Ok(Self { path, names: Mutex::new(names) })
    }

    /// Their names.
    pub fn names(&self) -> BTreeSet<String> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// True if a volume is among them.
    pub fn has(&self, name: &str) -> bool {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).contains(name)
    }

    /// One more, or one less: durable when this returns.
    ///
    /// # Errors
    /// Where the file cannot be written; nothing has changed then.
    pub fn set(&self, name: &str, on: bool) -> Result<(), MigrationError> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = names.clone();
        let new = if on { changed.insert(name.to_owned()) } else { changed.remove(name) };
        if new {
            write(&self.path, &changed).map_err(|source| {
                let path = self.path.clone();
                MigrationError { path, action: "write", source }
            })?;
            *names = changed;
        }
        Ok(())
    }
}

/// In place of what was there, durably; no file where there are no names.
fn write(path: &Path, names: &BTreeSet<String>) -> io::Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if names.is_empty() {
        fs::remove_file(path)?;
    } else {
        fs::create_dir_all(folder)?;
        let beside = path.with_extension("new");
        let mut file = File::create(&beside)?;
        serde_json::to_writer_pretty(&mut file, names)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
    }
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_outlive_the_process_until_they_are_taken_away() {
        let folder = tempfile::tempdir().expect("tempdir");
        let path = folder.path().join("deeper/cache.migrating.json");
        let load = || Migrations::load(path.clone()).expect("no file, or one of ours");
        let first = load();
        assert!(first.names().is_empty());
        first.set("vm 7", true).expect("written");
        first.set("vm 7", true).expect("nothing new");
        assert!(load().has("vm 7") && !load().has("vm 8"));
        load().set("vm 7", false).expect("written");
        assert!(!path.exists() && load().names().is_empty());
        load().set("vm 7", false).expect("nothing new");
    }

    #[test]
    fn a_file_that_is_something_else_is_told() {
        let folder = tempfile::tempdir().expect("tempdir");
        let path = folder.path().join("m.json");
        fs::write(&path, "{}").expect("written");
        let error = Migrations::load(path).expect_err("no list").to_string();
        assert!(error.contains("m.json"), "{error}");
    }
}
