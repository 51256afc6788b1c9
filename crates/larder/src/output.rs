//! Where results go: stdout and files.

use std::io::{self, Write};
use std::path::Path;

use crate::problem::Problem;

/// Print to stdout. It is no problem if the reader has seen enough (`larder simulate … | head`).
pub fn print(text: &str) -> Result<(), Problem> {
    let mut stdout = io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|error| {
            Problem::new(format_args!("cannot write the results: {error}"), "check where stdout goes")
        }),
    }
}

/// Print a line.
pub fn tell(line: impl std::fmt::Display) -> Result<(), Problem> {
    print(&format!("{line}\n"))
}

/// Write to a file.
pub fn save(path: &Path, text: &str) -> Result<(), Problem> {
    std::fs::write(path, text).map_err(|error| cannot_write(path, &error))
}

/// Before a long computation: is the folder there in which a file is to be written?
pub fn check(path: &Path) -> Result<(), Problem> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    if path.is_dir() {
        return Err(cannot_write(path, &io::ErrorKind::IsADirectory.into()));
    }
    match folder.metadata() {
        Ok(meta) if meta.is_dir() => Ok(()),
        Ok(_) => Err(cannot_write(path, &io::ErrorKind::NotADirectory.into())),
        Err(error) => Err(cannot_write(path, &error)),
    }
}

/// A file that is to be written cannot be.
pub fn cannot_write(path: &Path, error: &io::Error) -> Problem {
    let what = format!("{} cannot be written: {error}", path.display());
    Problem::new(what, "name a file in a folder that is there and writable")
}

/// A value as JSON for people and programs.
pub fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).expect("numbers and text are always JSON") + "\n"
}
