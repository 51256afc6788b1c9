//! `larder analyze`: known answers, traces with little or nothing in them, reports and pictures, and what it says of a trace or a question that makes no sense.

mod files;
mod json;
mod summary;
mod wrong;

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::lab::Lab;

/// ECI-Cache's figure 5.
const FIGURE_5: &str = "W1 W2 R1 W3 W4 W5 W2";

/// `R1 W2`: reads and writes of one block each as MSR CSV, a second apart.
fn msr(text: &str) -> String {
    let line = |(at, word): (u64, &str)| {
        let kind = if word.starts_with('R') { "Read" } else { "Write" };
        let block: u64 = word[1..].parse().expect("a block");
        format!("{},vm,0,{kind},{},4096,0\n", (at + 1) * 10_000_000, block * 4096)
    };
    (0..).zip(text.split_whitespace()).map(line).collect()
}

/// A folder with traces: names, and what is in them.
fn lab_with(traces: &[(&str, &str)]) -> Lab {
    let lab = Lab::new();
    traces.iter().for_each(|(name, text)| fs::write(lab.path(name), msr(text)).expect("write a trace"));
    lab
}

/// Run `larder analyze` in the lab's folder.
fn analyze(lab: &Lab, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_larder"));
    command.arg("analyze").args(arguments).current_dir(lab.path(".")).stdin(Stdio::null());
    command.output().expect("larder runs")
}

fn stdout(output: Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn error(output: Output) -> String {
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{output:?}");
    String::from_utf8(output.stderr).expect("UTF-8")
}

/// What `--json` says of one trace.
fn json(lab: &Lab, arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(analyze(lab, &[arguments, &["--json"]].concat()))).expect("JSON")
}
