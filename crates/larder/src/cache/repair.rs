//! `larder cache repair`: a damaged cache made consistent, with what that costs.

use std::fmt::Write;
use std::path::Path;

use larder_engine::format::{
    Lost, Medium, MediumError, MediumMut, Recovered, Repaired, Severity, recover, repair,
};
use larder_io::offline::StoppedCache;
use serde::Serialize;

use super::options::Repair;
use super::{Done, Outcome, trouble, words};
use crate::number::grouped;
use crate::output;

/// What is printed as JSON.
#[derive(Serialize)]
struct Report {
    repaired: bool,
    needs_yes: bool,
    worst_finding: Option<&'static str>,
    findings: Vec<String>,
    kept_blocks: u64,
    dropped_clean_blocks: u64,
    lost: Vec<LostPart>,
    perhaps_outdated: Vec<Place>,
}

/// A block, and where its data is.
#[derive(Serialize)]
struct Place {
    volume: u16,
    block: u64,
    slot: u32,
}

/// What is given up that no backing may have.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum LostPart {
    DirtyBlock(Place),
    UnknownSlots { first: u32, last: u32 },
}

/// Takes writes, and forgets them: what a repair would do.
struct Trial<'m, M>(&'m mut M);

impl<M: Medium> Medium for Trial<'_, M> {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        self.0.read(offset, into)
    }
}

impl<M: Medium> MediumMut for Trial<'_, M> {
    fn write(&mut self, _offset: u64, _bytes: &[u8]) -> Result<(), MediumError> {
        Ok(())
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        Ok(())
    }
}

/// Runs of slots, and things of each kind, that are listed in words.
const RANGES_LISTED: usize = 20;

/// Repair, or tell what a repair would cost.
pub fn run(options: &Repair) -> Done {
    let path = &options.path;
    let mut cache = StoppedCache::open(path)?;
    let trouble = |error| trouble::recover(path, &error);
    let before = recover(&mut cache).map_err(trouble)?;
    let needs_yes = before.severity() == Some(Severity::Dirty) && !options.yes;
    let needed = before.severity().is_some();
    let done = match needed && !needs_yes {
        true => repair(&mut cache).map_err(trouble)?,
        false => repair(&mut Trial(&mut cache)).map_err(trouble)?,
    };
    let report = Report::new(&before, &done, needed && !needs_yes, needs_yes);
    output::print(&match (options.json, needed) {
        (true, _) => output::json(&report),
        (false, false) => format!("{}: sound; there is nothing to repair\n", path.display()),
        (false, true) => text(path, &before, &done, needs_yes),
    })?;
    Ok(if needs_yes { Outcome::NotWell } else { Outcome::Well })
}

impl Report {
    fn new(before: &Recovered, done: &Repaired, repaired: bool, needs_yes: bool) -> Self {
        let place = |block: larder_engine::format::BlockId, slot| Place {
            volume: block.volume,
            block: block.block,
            slot,
        };
        let lost = |lost: &Lost| match lost {
            Lost::Dirty { block, slot } => LostPart::DirtyBlock(place(*block, *slot)),
            Lost::Unknown { slots } => LostPart::UnknownSlots { first: slots.start, last: slots.end - 1 },
        };
        Self {
            repaired,
            needs_yes,
            worst_finding: before.severity().map(words::severity),
            findings: done.findings.iter().map(ToString::to_string).collect(),
            kept_blocks: done.kept,
            dropped_clean_blocks: done.clean_dropped,
            lost: done.lost.iter().map(lost).collect(),
            perhaps_outdated: done.outdated.iter().map(|&(block, slot)| place(block, slot)).collect(),
        }
    }
}

fn text(path: &Path, before: &Recovered, done: &Repaired, needs_yes: bool) -> String {
    let shown = path.display();
    let dirty = before.blocks().filter(|(_, contents)| contents.dirty).count() as u64;
    let mut text = format!("{shown}: {}\n", words::counted(words::count(&done.findings), "finding"));
    // Writing to a String cannot fail.
    let findings = done.findings.iter();
    let lines = findings.map(|finding| format!("  {}: {finding}", words::severity(finding.severity())));
    text += &listed(lines, "  ", "finding");
    let (keeps, gives) = if needs_yes { ("would keep", "would give up") } else { ("kept", "gave up") };
    let kept = words::counted(done.kept, "block");
    let _ = writeln!(text, "\nThe repair {keeps} {kept}, {} of them dirty.", grouped(dirty));
    if done.clean_dropped > 0 {
        let dropped = words::counted(done.clean_dropped, "clean block");
        let _ = writeln!(text, "It {gives} {dropped}: the backings have them.");
    }
    let lost = done.lost.iter().filter_map(|lost| match lost {
        Lost::Dirty { block, slot } => Some((words::block(before.volumes(), *block), slot)),
        Lost::Unknown { .. } => None,
    });
    let lost = lost.map(|(block, slot)| {
        format!("It {gives} {block} in slot {slot}, which is dirty and contradicts other metadata.")
    });
    text += &listed(lost, &format!("It {gives} "), "dirty block");
    if let Some(unknown) = unknown(before, &done.lost) {
        let _ = writeln!(text, "It {gives} {unknown}.");
    }
    let outdated = done.outdated.iter().map(|&(block, slot)| {
        let block = words::block(before.volumes(), block);
        format!("Perhaps out of date: {block} in slot {slot} (dirty, kept).")
    });
    text += &listed(outdated, "Perhaps out of date: ", "dirty block");
    text += &match needs_yes {
        false => format!(
            "\n{shown} is sound now, but for what may be wrong with data: larder cache check --data {shown}\n"
        ),
        true => format!(
            "\nNothing was changed: dirty data may be lost. Copy the device, then: larder cache repair --yes {shown}\n"
        ),
    };
    text
}

/// The first of some lines, and how many `more` there are: `one` is what a line is about.
fn listed(mut lines: impl Iterator<Item = String>, more: &str, one: &str) -> String {
    let mut text: String = lines.by_ref().take(RANGES_LISTED).map(|line| line + "\n").collect();
    let left = lines.count() as u64;
    if left > 0 {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{more}{} more; --json has them all", words::counted(left, one));
    }
    text
}

/// The slots of which nothing is known.
fn unknown(before: &Recovered, lost: &[Lost]) -> Option<String> {
    let ranges = lost.iter().filter_map(|lost| match lost {
        Lost::Unknown { slots } => Some(slots.clone()),
        Lost::Dirty { .. } => None,
    });
    let all: u64 = ranges.clone().map(|slots| slots.len() as u64).sum();
    let listed = ranges.clone().take(RANGES_LISTED).map(|slots| match slots.len() {
        1 => slots.start.to_string(),
        _ => format!("{} to {}", slots.start, slots.end - 1),
    });
    let listed = listed.collect::<Vec<_>>().join(", ");
    let more = ranges.count().saturating_sub(RANGES_LISTED);
    let more = if more > 0 { format!(", and {more} more runs: --json has them") } else { String::new() };
    let may = if before.superblock().may_hold_dirty { "; dirty blocks may have been among them" } else { "" };
    (all > 0).then(|| {
        format!("what was in {} of which nothing is known{may}: {listed}{more}", words::counted(all, "slot"))
    })
}
