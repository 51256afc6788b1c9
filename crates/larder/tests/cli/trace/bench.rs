//! What the tests of `larder trace` share: a directory with traces, and the command in it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// Reads and writes of two volumes in 3 seconds of FILETIME.
pub const MSR: &str = "\
128166372000000000,web,0,Read,0,8192,100
128166372010000000,web,1,Write,4096,4096,100
128166372010000000,web,0,Read,4096,4096,100
128166372020000000,db,0,Write,1048576,1536,100
128166372030000000,web,0,Read,0,4096,100
";

/// Every kind of request, for one file.
pub const FIO: &str = "\
fio version 3 iolog
0 /dev/sda add
0 /dev/sda open
10 /dev/sda write 0 4096
20 /dev/sda sync 0 0
30 /dev/sda trim 8192 4096
40 /dev/sda read 0 512
50 /dev/sda close
";

/// A directory to work in.
pub struct Bench {
    directory: TempDir,
}

impl Bench {
    /// An empty one.
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    /// One with `msr.csv` and `disk.fio`.
    pub fn with_traces() -> Self {
        let bench = Self::new();
        bench.write("msr.csv", MSR);
        bench.write("disk.fio", FIO);
        bench
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Write a file.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("write a file");
    }

    /// The content of a file.
    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// All names in a directory in it, sorted.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).expect("a directory");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let mut names: Vec<_> = entries.map(|entry| name(entry).into_string().expect("UTF-8")).collect();
        names.sort();
        names
    }

    /// `larder trace` with these words, run in the directory.
    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
        command.arg("trace").args(words.split_whitespace()).current_dir(self.directory.path());
        command.stdin(Stdio::null()).env_remove("RUST_LOG");
        command
    }

    /// Run it to its end.
    pub fn run(&self, words: &str) -> Output {
        self.command(words).output().expect("larder runs")
    }

    /// Run it; it must succeed. What it wrote to stdout and stderr.
    pub fn good(&self, words: &str) -> (String, String) {
        let output = self.run(words);
        assert!(output.status.success(), "{words}: {output:?}");
        (text(output.stdout), text(output.stderr))
    }

    /// Run it; it must fail with 1 and say nothing on stdout. What it wrote to stderr.
    pub fn bad(&self, words: &str) -> String {
        let output = self.run(words);
        assert_eq!((output.status.code(), text(output.stdout)), (Some(1), String::new()), "{words}");
        text(output.stderr)
    }

    /// The JSON that it prints of a trace.
    pub fn info(&self, trace: &str) -> serde_json::Value {
        serde_json::from_str(&self.good(&format!("info --json {trace}")).0).expect("JSON")
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("UTF-8")
}

/// Run a program of the system to its end on a file; it must succeed. None if it is not installed.
pub fn run_tool(name: &str, arguments: &[&str], file: &std::path::Path) -> Option<Vec<u8>> {
    match Command::new(name).args(arguments).arg(file).stdin(Stdio::null()).output() {
        Ok(output) => {
            assert!(output.status.success(), "{name}: {output:?}");
            Some(output.stdout)
        }
        Err(_) => {
            eprintln!("NOTE: {name} is not installed: what it would check is not checked");
            None
        }
    }
}
