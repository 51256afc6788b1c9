//! Volumes whose guests are on their way to another host, over backings that both hosts reach.
//!
//! From `prepare` on the volume is drained, so that its backing has all of it, and stays so until `complete` or `abort`. When the guest is gone, the other
//! host writes to the backing, and what is cached here is old: `complete` drops it, so that the guest may come back at any time. A file keeps the names, since
//! this daemon may die while the guest leaves: the next one serves such a volume without what the cache still holds of it.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use thiserror::Error;

use crate::durable_file;

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
        let loaded = durable_file::load(&path);
        let names: Option<_> =
            loaded.map_err(|source| MigrationError { path: path.clone(), action: "read", source })?;
        Ok(Self { path, names: Mutex::new(names.unwrap_or_default()) })
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
            let written = match changed.is_empty() {
                true => durable_file::remove(&self.path),
                false => durable_file::save(&self.path, &changed),
            };
            written.map_err(|source| MigrationError { path: self.path.clone(), action: "write", source })?;
            *names = changed;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
