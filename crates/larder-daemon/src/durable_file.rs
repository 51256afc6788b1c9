//! Small files that outlive the daemon, as JSON: each is there whole, as it was or as it is to be, also after a crash.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What the file says; `None` where there is none.
///
/// # Errors
/// Where it cannot be read, or says something else.
pub fn load<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
        Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
    }
}

/// Write it, durably, in place of what was there. Its folder is made.
///
/// # Errors
/// Where that fails; what was there is still there.
pub fn save(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    save_bytes(path, &text)
}

/// The same without a line for each number.
///
/// # Errors
/// Where that fails; what was there is still there.
pub fn save_dense(path: &Path, value: &impl Serialize) -> io::Result<()> {
    save_bytes(path, &serde_json::to_vec(value)?)
}

fn save_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = folder_of(path);
    fs::create_dir_all(folder)?;
    let beside = path.with_extension("new");
    let mut file = File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    File::open(folder)?.sync_all()
}

/// Remove it, durably. Nothing if there is none.
///
/// # Errors
/// Where that fails.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => File::open(folder_of(path))?.sync_all(),
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
