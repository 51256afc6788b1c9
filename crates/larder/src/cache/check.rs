//! `larder cache check`: damage, by how bad it is.

use std::fmt::Write;
use std::path::Path;

use larder_engine::format::{Finding, Recovered, Severity, Unusable, check, recover};
use larder_io::offline::StoppedCache;
use serde::Serialize;

use super::bar::{Bar, Watched};
use super::options::Check;
use super::state::State;
use super::{Done, Outcome, trouble, words};
use crate::output;

/// What is printed as JSON.
#[derive(Serialize)]
struct Report {
    sound: bool,
    data_checked: bool,
    worst_finding: Option<&'static str>,
    blocks: u64,
    dirty_blocks: u64,
    findings: Vec<Line>,
}

/// A finding; the last one may stand for many.
#[derive(Serialize)]
struct Line {
    severity: &'static str,
    text: String,
}

/// Print what the options say.
pub fn run(options: &Check) -> Done {
    let path = &options.path;
    let mut cache = StoppedCache::open_to_read(path)?;
    let recovered = recover(&mut cache).map_err(|error| trouble::recover(path, &error))?;
    let state = State::new(&recovered);
    let findings = match options.data {
        false => recovered.findings().to_vec(),
        true => {
            let layout = recovered.superblock().layout;
            let bytes = layout.data_offset() + state.blocks * u64::from(layout.block_bytes());
            let bar = Bar::new("checking", bytes);
            let mut watched = Watched { medium: &mut cache, bar };
            check(&mut watched, true).map_err(|error| trouble::recover(path, &error))?
        }
    };
    output::print(&match options.json {
        true => output::json(&Report::new(options.data, &state, &findings)),
        false => text(path, options.data, &recovered, &state, &findings),
    })?;
    Ok(if findings.is_empty() { Outcome::Well } else { Outcome::NotWell })
}

impl Report {
    fn new(data_checked: bool, state: &State, findings: &[Finding]) -> Self {
        let line = |finding: &Finding| Line {
            severity: words::severity(finding.severity()),
            text: finding.to_string(),
        };
        Self {
            sound: findings.is_empty(),
            data_checked,
            worst_finding: findings.iter().map(Finding::severity).max().map(words::severity),
            blocks: state.blocks,
            dirty_blocks: state.dirty_blocks,
            findings: findings.iter().map(line).collect(),
        }
    }
}

fn text(path: &Path, data: bool, recovered: &Recovered, state: &State, findings: &[Finding]) -> String {
    let shown = path.display();
    let dirty = words::counted(state.dirty_blocks, "dirty one");
    let held = format!("{}, {dirty} among them", words::counted(state.blocks, "block"));
    let looked = if data { "metadata and the data of all blocks" } else { "metadata" };
    if findings.is_empty() {
        return format!("{shown}: sound ({looked}): {held}\n");
    }
    let mut text =
        format!("{shown}: {} ({looked}); {held}\n", words::counted(words::count(findings), "finding"));
    for severity in [Severity::Dirty, Severity::Clean, Severity::Note] {
        let of: Vec<_> = findings.iter().filter(|finding| finding.severity() == severity).collect();
        if of.is_empty() {
            continue;
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\n{}: {}", words::severity(severity), words::meaning(severity));
        for finding in of {
            let _ = writeln!(text, "  {finding}{}", name(recovered, finding));
        }
    }
    text + &advice(path, findings)
}

/// The name of the volume that a block is of, where a finding is about one.
fn name(recovered: &Recovered, finding: &Finding) -> String {
    let (Finding::NotDirty { block, .. }
    | Finding::Duplicate { block, .. }
    | Finding::BeyondEnd { block, .. }
    | Finding::Data { block, .. }) = finding
    else {
        return String::new();
    };
    let volume = recovered.volumes().get(block.volume);
    volume.map_or(String::new(), |volume| format!(" (volume {} is {})", volume.id, volume.name))
}

/// True where something else is over the first superblock: whose it is a start does not judge.
fn is_overwritten(findings: &[Finding]) -> bool {
    let first = Finding::Superblock { copy: 0, why: Unusable::Foreign };
    findings.contains(&first)
}

/// What to do about it.
fn advice(path: &Path, findings: &[Finding]) -> String {
    let shown = path.display();
    let is_data = |finding: &&Finding| matches!(finding, Finding::Data { .. });
    let in_metadata = findings.iter().filter(|finding| !is_data(finding)).map(Finding::severity).max();
    let mut text = String::from("\n");
    let line = match in_metadata {
        None => String::new(),
        Some(Severity::Note) if is_overwritten(findings) => format!(
            "A start refuses it, for it begins with something else. If nothing else uses {shown}, larder cache repair {shown} keeps the cache; copy the device first.\n"
        ),
        Some(Severity::Note) => "A start goes on in spite of the notes.\n".into(),
        Some(Severity::Clean) => format!("larder cache repair {shown} makes it sound again.\n"),
        Some(Severity::Dirty) => {
            format!("larder cache repair {shown} tells what can be kept; copy the device first.\n")
        }
    };
    text.push_str(&line);
    if findings.iter().any(|finding| matches!(finding, Finding::Data { dirty: true, .. })) {
        text.push_str("Dirty blocks whose data is damaged are lost but for what the backings had before: larder cache writeback names them, and saves the others.\n");
    }
    if findings.iter().any(|finding| matches!(finding, Finding::Data { dirty: false, .. })) {
        text.push_str("Clean blocks whose data is damaged are read from the backings again.\n");
    }
    text
}
