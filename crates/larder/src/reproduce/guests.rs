//! The tenants of an experiment: recorded traces where they are at hand, generated stand-ins where they are not.

use std::ffi::OsString;
use std::path::Path;

use crate::input::TraceName;
use crate::problem::Problem;

/// A tenant: its name, the recorded trace in a folder of traces, and what stands in for it.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The name.
    pub name: &'static str,
    /// The recorded trace, below the folder of traces.
    pub file: &'static str,
    /// The generated one, as `gen:` has it.
    pub stand_in: &'static str,
}

/// Eight applications, for hosts with many tenants.
pub const EIGHT: [Known; 8] = [
    known(
        "pgbench",
        "recorded/pgbench.csv.zst",
        "zipf:theta=1.0,blocks=60000,requests=200000,read=0.4,interval=1ms,seed=1",
    ),
    known(
        "mail",
        "recorded/mail.csv.zst",
        "zipf:theta=0.9,blocks=60000,requests=200000,read=0.15,interval=1ms,seed=2",
    ),
    known(
        "web",
        "recorded/web.csv.zst",
        "zipf:theta=0.9,blocks=60000,requests=200000,read=0.95,interval=1ms,seed=3",
    ),
    known(
        "rocksdb",
        "recorded/rocksdb.csv.zst",
        "gaussian:centre=0.5,deviation=0.1,blocks=60000,requests=200000,read=0.99,interval=1ms,seed=4",
    ),
    known(
        "backup",
        "recorded/backup.csv.zst",
        "loop:blocks=40000,requests=200000,read=0.95,interval=1ms,seed=5",
    ),
    known(
        "redis",
        "recorded/redis.csv.zst",
        "sequential:blocks=60000,requests=100000,read=0,interval=2ms,seed=6",
    ),
    known(
        "build",
        "recorded/build.csv.zst",
        "zipf:theta=0.8,blocks=60000,requests=100000,read=0.4,interval=2ms,seed=7",
    ),
    known(
        "fileserver",
        "recorded/fileserver.csv.zst",
        "zipf:theta=1.1,blocks=30000,requests=200000,read=0.3,interval=1ms,seed=8",
    ),
];

const fn known(name: &'static str, file: &'static str, stand_in: &'static str) -> Known {
    Known { name, file, stand_in }
}

/// A tenant that can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Guest {
    /// The name.
    pub name: &'static str,
    /// The trace.
    pub trace: TraceName,
    /// True if it is a stand-in.
    pub is_generated: bool,
}

impl Known {
    /// The recorded trace if the folder has it, else the stand-in.
    pub fn guest(&self, folder: Option<&Path>) -> Guest {
        let file = folder.map(|folder| folder.join(self.file)).filter(|path| path.exists());
        let is_generated = file.is_none();
        let stand_in = || OsString::from(format!("gen:{}", self.stand_in));
        let trace = file.map_or_else(stand_in, |path| path.into_os_string());
        Guest { name: self.name, trace: trace.into(), is_generated }
    }
}

/// A folder of traces in which none of these is gives nothing to run on: that is told before the work. Without a folder, stand-ins are wanted.
pub fn check<'a>(folder: Option<&Path>, known: impl IntoIterator<Item = &'a Known>) -> Result<(), Problem> {
    let files: Vec<_> = known.into_iter().map(|known| known.file).collect();
    match folder {
        Some(folder) if !files.iter().any(|file| folder.join(file).exists()) => {
            Err(none_known(folder, &files, "leave --traces out for generated stand-ins"))
        }
        _ => Ok(()),
    }
}

/// None of these files is in a folder of traces; what to do, but for naming the right folder.
pub fn none_known(folder: &Path, files: &[&str], help: &str) -> Problem {
    let (shown, mut listed) = (folder.display(), Vec::new());
    files.iter().for_each(|file| {
        if !listed.contains(file) {
            listed.push(*file);
        }
    });
    let known = format!("known in a folder are {}", listed.join(", "));
    if !folder.is_dir() {
        return Problem::new(format!("{shown} is no folder"), format!("name a folder with traces; {known}"));
    }
    let what = format!("{shown}: no trace is there that is known by name");
    // A folder below the one that is meant.
    let is_below = |file: &&&str| {
        let file = Path::new(file);
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        parent.is_some() && file.file_name().is_some_and(|name| folder.join(name).exists())
    };
    match files.iter().find(is_below) {
        Some(file) => Problem::new(what, format!("name the folder above it, in which {file} is; {known}")),
        None => Problem::new(what, format!("{help}; {known}")),
    }
}

/// Sentences about where the tenants' requests come from, where traces were looked for in this folder.
pub fn told<'a>(folder: Option<&Path>, guests: impl IntoIterator<Item = &'a Guest>) -> Vec<String> {
    let mut all: Vec<&Guest> = Vec::new();
    for guest in guests {
        if !all.contains(&guest) {
            all.push(guest);
        }
    }
    let (generated, recorded): (Vec<_>, Vec<_>) = all.into_iter().partition(|guest| guest.is_generated);
    let recorded = (!recorded.is_empty()).then(|| {
        let names: Vec<_> = recorded.iter().map(|guest| guest.name).collect();
        format!("Recorded traces in place of the paper's own: {}.", names.join(", "))
    });
    let generated = (!generated.is_empty()).then(|| {
        let list: Vec<_> =
            generated.iter().map(|guest| format!("{} = {}", guest.name, guest.trace)).collect();
        let why = match folder {
            Some(folder) => format!("no recorded ones are in {}", folder.display()),
            None => "--traces DIR takes recorded ones".to_owned(),
        };
        format!("GENERATED stand-ins ({why}): {}.", list.join("; "))
    });
    recorded.into_iter().chain(generated).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Known; 2] = [
        Known { name: "web", file: "web.csv", stand_in: "uniform:blocks=9,requests=9" },
        Known { name: "db", file: "db.csv", stand_in: "uniform:blocks=8,requests=8" },
    ];

    #[test]
    fn recorded_traces_go_first() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("db.csv"), "").expect("a file");
        let of = |folder| KNOWN.map(|known| known.guest(folder)).to_vec();
        assert!(of(None).iter().all(|guest| guest.is_generated && guest.trace.generator().is_some()));
        let found = of(Some(folder.path()));
        assert_eq!(found.iter().map(|guest| guest.is_generated).collect::<Vec<_>>(), [true, false]);
        let told = told(Some(folder.path()), found.iter().chain(&found));
        assert_eq!(told[0], "Recorded traces in place of the paper's own: db.");
        assert!(
            told[1].contains("GENERATED") && told[1].ends_with(": web = gen:uniform:blocks=9,requests=9.")
        );
        assert!(told[1].contains("no recorded ones are in"), "{}", told[1]);
    }

    #[test]
    fn a_folder_without_them_is_refused() {
        const BELOW: Known = Known { file: "recorded/web.csv", ..KNOWN[0] };
        let folder = tempfile::tempdir().expect("a folder");
        let said = |path: &Path| check(Some(path), &[BELOW]).map_err(|problem| problem.to_string());
        assert!(check(None, &[BELOW]).is_ok());
        let file = folder.path().join("web.csv");
        assert!(said(folder.path()).is_err_and(|it| it.contains("leave --traces out")));
        std::fs::write(&file, "").expect("a file");
        assert!(said(&file).is_err_and(|it| it.contains("is no folder")));
        assert!(said(folder.path()).is_err_and(|it| it.contains("name the folder above it")));
        std::fs::create_dir(folder.path().join("recorded")).expect("a folder");
        std::fs::rename(&file, folder.path().join(BELOW.file)).expect("moved");
        assert_eq!(said(folder.path()), Ok(()));
    }
}
