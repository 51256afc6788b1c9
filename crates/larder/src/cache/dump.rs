//! `larder cache dump`: a cache's metadata as JSON.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use larder_engine::format::{self, recover};
use larder_io::offline::StoppedCache;
use tempfile::NamedTempFile;

use super::options::Dump;
use super::{Done, Outcome, trouble};
use crate::output;
use crate::problem::Problem;

/// Write what the options say.
pub fn run(options: &Dump) -> Done {
    if let Some(file) = &options.output {
        output::check(file)?;
        if file.exists() && !options.force {
            return Err(exists(file));
        }
    }
    let mut cache = StoppedCache::open_to_read(&options.path)?;
    let recovered = recover(&mut cache).map_err(|error| trouble::recover(&options.path, &error))?;
    let dump = format::Dump::new(&recovered);
    match &options.output {
        Some(file) => save(file, &dump, options.force)?,
        None => print(&dump)?,
    }
    Ok(Outcome::Well)
}

fn print(dump: &format::Dump) -> Result<(), Problem> {
    match write(io::stdout().lock(), dump) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => outcome.map_err(|error| {
            Problem::new(format_args!("cannot write the dump: {error}"), "check where stdout goes")
        }),
    }
}

/// To a file that gets its name when it is whole.
fn save(file: &Path, dump: &format::Dump, force: bool) -> Result<(), Problem> {
    let folder = file.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let failed = |error: &io::Error| output::cannot_write(file, error);
    let mut temporary = NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
    let written = write(&mut temporary, dump).and_then(|()| temporary.as_file().sync_all());
    written.map_err(|error| failed(&error))?;
    let kept = if force { temporary.persist(file) } else { temporary.persist_noclobber(file) };
    kept.map(drop).map_err(|error| failed(&error.error))
}

fn write(into: impl Write, dump: &format::Dump) -> io::Result<()> {
    let mut into = BufWriter::new(into);
    serde_json::to_writer_pretty(&mut into, dump)?;
    into.write_all(b"\n")?;
    into.flush()
}

fn exists(file: &Path) -> Problem {
    let what = format!("{} exists already", file.display());
    Problem::new(what, "write to another file, or replace it with --force")
}
