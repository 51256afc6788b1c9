//! Where a trace is written to: stdout, or a file that gets its name when it is whole.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use larder_trace::Format;
use tempfile::TempPath;

use super::options::Compression;
use crate::input::TraceName;
use crate::problem::Problem;

/// Ends of file names, and the formats that they tell.
const EXTENSIONS: [(&str, Format); 5] = [
    (".csv", Format::Msr),
    (".oraclegeneral", Format::OracleGeneral),
    (".parquet", Format::Parquet),
    (".fio", Format::FioLog),
    (".iolog", Format::FioLog),
];

/// What a new file may be, less the umask.
const MODE: u32 = 0o666;

/// The end of a file's name in a format, as [`EXTENSIONS`] has it.
pub fn extension(format: Format) -> &'static str {
    match format {
        Format::OracleGeneral => ".oracleGeneral",
        Format::Parquet => ".parquet",
        Format::FioLog => ".fio",
        _ => ".csv",
    }
}

/// What the name of a file says.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    format: Option<Format>,
    compression: Option<Compression>,
}

impl Told {
    fn by(name: &OsStr) -> Self {
        let name = name.to_string_lossy().to_ascii_lowercase();
        let (name, compression) = match (name.strip_suffix(".gz"), name.strip_suffix(".zst")) {
            (Some(name), _) => (name, Some(Compression::Gzip)),
            (_, Some(name)) => (name, Some(Compression::Zstd)),
            _ => (name.as_str(), None),
        };
        let known = EXTENSIONS.iter().find(|(extension, _)| name.ends_with(extension));
        Self { format: known.map(|&(_, format)| format), compression }
    }
}

/// Where a trace goes, and as what.
#[derive(Debug)]
pub struct Destination {
    /// None for stdout.
    path: Option<PathBuf>,
    pub format: Format,
    pub compression: Option<Compression>,
    force: bool,
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => path.display().fmt(f),
            None => f.write_str("stdout"),
        }
    }
}

impl Destination {
    /// The destination `out` (`-` for stdout) in the format `to`, or in the one that its name tells.
    pub fn new(out: &OsStr, to: Option<Format>, force: bool) -> Result<Self, Problem> {
        let path = (out != "-").then(|| PathBuf::from(out));
        let told = Told::by(out);
        let Some(format) = to.or(told.format) else {
            let what = match &path {
                Some(path) => format!("{}: the name tells no format", path.display()),
                None => "a trace written to stdout has no name that tells its format".to_owned(),
            };
            return Err(Problem::new(
                what,
                "name the format (msr, oracle-general, parquet, fio), or end the name in .csv, .oracleGeneral, .parquet, .fio or .iolog",
            ));
        };
        Ok(Self { path, format, compression: told.compression, force })
    }

    /// An error if it is one of the traces that are read, or a file that may not be replaced.
    pub fn check(&self, inputs: &[TraceName]) -> Result<(), Problem> {
        let Some(existing) = self.existing() else { return Ok(()) };
        let same = |path: &&Path| is_same(path, &existing);
        if let Some(input) = inputs.iter().filter_map(TraceName::path).find(same) {
            let what = format!("{self}: is the trace that is read ({})", input.display());
            return Err(Problem::new(what, "write to another file"));
        }
        if existing.is_dir() {
            return Err(Problem::new(format_args!("{self}: is a directory"), "name a file in it"));
        }
        if existing.is_file() && !self.force { Err(self.exists()) } else { Ok(()) }
    }

    /// What is there already; none if nothing is, or a name that leads nowhere.
    fn existing(&self) -> Option<PathBuf> {
        fs::canonicalize(self.path.as_ref()?).ok()
    }

    fn exists(&self) -> Problem {
        Problem::new(
            format_args!("{self}: exists already"),
            "write to another file, or replace it with --force",
        )
    }

    /// Open it to be written, with a name of its own until [`Pending::commit`].
    pub fn open(self) -> Result<(File, Pending), Problem> {
        let opened = match &self.path {
            None => io::stdout().as_fd().try_clone_to_owned().map(|stdout| (File::from(stdout), None)),
            // A device or a pipe is written to, not replaced.
            Some(path) if path.exists() && !path.is_file() => {
                File::options().write(true).open(path).map(|file| (file, None))
            }
            Some(path) => beside(path).map(|(file, temporary, target)| (file, Some((temporary, target)))),
        };
        let (file, renaming) = opened.map_err(|error| self.failed(&error))?;
        Ok((file, Pending { destination: self, renaming }))
    }

    fn failed(&self, error: &io::Error) -> Problem {
        let help = match error.kind() {
            io::ErrorKind::NotFound => "make its directory first, or write to another",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "write to a directory where you may, or change its permissions"
            }
            io::ErrorKind::StorageFull => "make room, or write to another device",
            _ => "check the path and its device",
        };
        Problem::new(format_args!("{self}: cannot be written: {error}"), help)
    }
}

/// True if both names lead to the same file.
fn is_same(left: &Path, right: &Path) -> bool {
    let identity = |path| fs::metadata(path).map(|meta| (meta.dev(), meta.ino()));
    matches!((identity(left), identity(right)), (Ok(left), Ok(right)) if left == right)
}

/// A new file in the directory of the one that `path` leads to, with its name and that of the other.
fn beside(path: &Path) -> io::Result<(File, TempPath, PathBuf)> {
    // A symbolic link stays: what it leads to is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let named = target.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let mut prefix = OsStr::new(".").to_owned();
    prefix.push(named);
    let file = tempfile::Builder::new()
        .prefix(shortened(&prefix))
        .suffix(".part")
        .permissions(Permissions::from_mode(MODE))
        .tempfile_in(folder_of(&target))?;
    let (file, temporary) = file.into_parts();
    Ok((file, temporary, target))
}

/// The name, or a plain one where it is so long that nothing can be added to it.
fn shortened(name: &OsStr) -> &OsStr {
    if name.len() <= 200 { name } else { OsStr::new(".larder") }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != "" => folder,
        _ => Path::new("."),
    }
}

/// A file that has no name of its own yet. Dropped, it is gone.
#[derive(Debug)]
pub struct Pending {
    pub destination: Destination,
    /// Its present name, and the one that it is to have; none for what is no file.
    renaming: Option<(TempPath, PathBuf)>,
}

impl Pending {
    /// The directory of the file; none where it is a pipe or a device.
    pub fn folder(&self) -> Option<&Path> {
        self.renaming.as_ref().map(|(_, target)| folder_of(target))
    }

    /// True for stdout.
    pub fn is_stdout(&self) -> bool {
        self.destination.path.is_none()
    }

    /// What has been written is whole: make sure that it is on the device.
    pub fn sync(&self, file: &File) -> Result<(), Problem> {
        match self.renaming {
            Some(_) => file.sync_all().map_err(|error| self.failed(&error)),
            None => Ok(()),
        }
    }

    /// Give the file its name.
    pub fn commit(self) -> Result<(), Problem> {
        let Self { destination, renaming } = self;
        let Some((temporary, target)) = renaming else { return Ok(()) };
        let renamed =
            if destination.force { temporary.persist(target) } else { temporary.persist_noclobber(target) };
        renamed.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => destination.exists(),
            _ => destination.failed(&error.error),
        })
    }

    /// The problem that writing failed so.
    pub fn failed(&self, error: &io::Error) -> Problem {
        self.destination.failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn open(path: &Path, force: bool) -> Result<(File, Pending), Problem> {
        let destination = Destination::new(path.as_os_str(), None, force).unwrap();
        destination.check(&[])?;
        destination.open()
    }

    #[test]
    fn names_tell_formats() {
        use Compression::{Gzip, Zstd};
        for (name, format, compression) in [
            ("a.csv", Some(Format::Msr), None),
            ("a.csv.gz", Some(Format::Msr), Some(Gzip)),
            ("A.CSV.ZST", Some(Format::Msr), Some(Zstd)),
            ("x.oracleGeneral.zst", Some(Format::OracleGeneral), Some(Zstd)),
            ("x.y.parquet", Some(Format::Parquet), None),
            ("x.fio", Some(Format::FioLog), None),
            ("x.iolog.gz", Some(Format::FioLog), Some(Gzip)),
            ("x.gz", None, Some(Gzip)),
            ("csv", None, None),
            ("-", None, None),
        ] {
            assert_eq!(Told::by(OsStr::new(name)), Told { format, compression }, "{name}");
        }
        for format in larder_trace::TraceWriter::FORMATS {
            let name = format!("x{}", extension(format));
            assert_eq!(Told::by(OsStr::new(&name)).format, Some(format));
        }
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        let (mut file, pending) = open(&path, false).unwrap();
        file.write_all(b"new").unwrap();
        let [part] = &names(folder.path())[..] else { panic!("one file") };
        assert!(part.starts_with(".x.csv") && part.ends_with(".part"), "{part}");
        pending.sync(&file).unwrap();
        pending.commit().unwrap();
        assert_eq!(
            (names(folder.path()), fs::read(&path).unwrap()),
            (vec!["x.csv".to_owned()], b"new".to_vec())
        );
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o111, 0);
    }

    #[test]
    fn what_is_given_up_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        fs::write(&path, "old").unwrap();
        drop(open(&path, true).unwrap());
        assert_eq!(
            (names(folder.path()), fs::read(&path).unwrap()),
            (vec!["x.csv".to_owned()], b"old".to_vec())
        );
    }

    #[test]
    fn files_are_replaced_by_force_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        let (_, early) = open(&path, false).unwrap();
        fs::write(&path, "old").unwrap();
        let complaint =
            |problem: Problem| assert!(problem.to_string().contains("exists already"), "{problem}");
        complaint(open(&path, false).unwrap_err());
        // It came to be while the trace was written.
        complaint(early.commit().unwrap_err());
        assert_eq!(fs::read(&path).unwrap(), b"old");
        open(&path, true).unwrap().1.commit().unwrap();
        assert_eq!((names(folder.path()).len(), fs::read(&path).unwrap().len()), (1, 0));
    }

    #[test]
    fn a_link_stays_and_leads_to_the_new_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("x.csv"), folder.path().join("link.csv"));
        fs::write(&path, "old").unwrap();
        std::os::unix::fs::symlink("x.csv", &link).unwrap();
        open(&link, true).unwrap().1.commit().unwrap();
        assert_eq!(
            (fs::read(&path).unwrap().len(), fs::read_link(&link).unwrap()),
            (0, PathBuf::from("x.csv"))
        );
    }

    #[test]
    fn a_device_is_written_to_as_it_is() {
        let destination = Destination::new(OsStr::new("/dev/null"), Some(Format::Msr), false).unwrap();
        destination.check(&[]).unwrap();
        let (_, pending) = destination.open().unwrap();
        assert_eq!((pending.folder(), pending.is_stdout()), (None, false));
        pending.commit().unwrap();
    }
}
