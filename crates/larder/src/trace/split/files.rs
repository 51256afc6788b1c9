//! The files of a split trace: they get their names together, when all are whole.

use std::fs;
use std::path::PathBuf;

use super::names::Names;
use crate::input::TraceName;
use crate::problem::Problem;
use crate::trace::destination::{Destination, extension};
use crate::trace::losses::Losses;
use crate::trace::options::{Care, Compression, Split};
use crate::trace::output::{Output, Written};
use crate::trace::text::{counted, grouped};
use crate::trace::{Failure, tell};

/// Files that a trace is split into.
pub const FILES_MAX: usize = 10_000;

/// The problem that there would be more.
pub fn too_many(trace: &TraceName) -> Problem {
    let what = format!("{trace}: splits into more than {} files", grouped(FILES_MAX as u64));
    Problem::new(what, "choose a part with `larder trace cut` first, or a longer --every")
}

/// A directory that is removed again if it was made here and nothing came into it.
struct Folder {
    path: PathBuf,
    is_new: bool,
}

impl Folder {
    fn new(path: PathBuf) -> Result<Self, Problem> {
        let is_new = !path.exists();
        fs::create_dir_all(&path).map_err(|error| {
            let what = format!("{}: no directory can be made there: {error}", path.display());
            Problem::new(what, "name another directory with --out-dir")
        })?;
        Ok(Self { path, is_new })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_new {
            // Fails where there are files in it, which is what is wanted.
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// The files so far.
pub struct Files {
    whole: Vec<Written>,
    count: usize,
    names: Names,
    trace: TraceName,
    to: larder_trace::Format,
    compression: Option<Compression>,
    care: Care,
    // Dropped last: the files in it have to be gone.
    folder: Folder,
}

impl Files {
    /// None yet, in the directory that the options name.
    pub fn new(options: &Split) -> Result<Self, Problem> {
        Ok(Self {
            whole: Vec::new(),
            count: 0,
            names: Names::default(),
            trace: options.trace.clone(),
            to: options.to,
            compression: options.compress,
            care: options.care,
            folder: Folder::new(options.out_dir.clone())?,
        })
    }

    /// Begin a file called like `name`, as far as a file can be.
    pub fn create(&mut self, name: &str) -> Result<Output, Failure> {
        if self.count == FILES_MAX {
            return Err(too_many(&self.trace).into());
        }
        self.count += 1;
        let compressed = match self.compression {
            None => "",
            Some(Compression::Gzip) => ".gz",
            Some(Compression::Zstd) => ".zst",
        };
        let file = format!("{}{}{compressed}", self.names.file_name(name), extension(self.to));
        let path = self.folder.path.join(file);
        let destination = Destination::new(path.as_os_str(), Some(self.to), self.care.force)?;
        destination.check(std::slice::from_ref(&self.trace))?;
        Output::new(destination, self.care)
    }

    /// A file is whole.
    pub fn keep(&mut self, whole: Written) {
        self.whole.push(whole);
    }

    /// Give all files their names, and tell on stderr what was written and what was lost.
    pub fn commit_and_tell(self) -> Result<(), Failure> {
        let (mut losses, mut requests) = (Losses::new(self.to), 0);
        let files = counted(self.whole.len() as u64, "file", "files");
        for whole in self.whole {
            losses.merge(whole.losses());
            requests += whole.requests();
            whole.commit()?;
        }
        let folder = self.folder.path.display().to_string();
        let requests = counted(requests, "request", "requests");
        tell(&format!("{}{requests} written to {files} in {folder} ({})\n", losses.told(&folder), self.to));
        Ok(())
    }
}
