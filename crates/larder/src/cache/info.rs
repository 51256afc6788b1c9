//! `larder cache info`: what a cache is, how it was left, and what it holds of each volume.

use std::fmt::Write;
use std::path::Path;

use larder_daemon::units::HumanSize;
use larder_engine::format::{Recovered, recover};
use larder_io::offline::StoppedCache;
use serde::Serialize;

use super::options::Look;
use super::state::State;
use super::{Done, Outcome, trouble, words};
use crate::number::grouped;
use crate::simulate::tenants::grid;
use crate::{output, table};

/// What is printed as JSON.
#[derive(Serialize)]
struct Info {
    format: u32,
    uuid: String,
    generation: u64,
    stopped_cleanly: bool,
    may_hold_dirty: bool,
    needs_check: bool,
    block_bytes: u32,
    sector_bytes: usize,
    slots: u32,
    data_bytes: u64,
    metadata_bytes: u64,
    journal_records: u64,
    findings: u64,
    worst_finding: Option<&'static str>,
    #[serde(flatten)]
    state: State,
}

/// Print what the options say.
pub fn run(options: &Look) -> Done {
    let mut cache = StoppedCache::open_to_read(&options.path)?;
    let recovered = recover(&mut cache).map_err(|error| trouble::recover(&options.path, &error))?;
    let info = Info::new(&recovered);
    output::print(&match options.json {
        true => output::json(&info),
        false => info.text(&options.path, table::terminal_width()),
    })?;
    Ok(Outcome::Well)
}

impl Info {
    fn new(recovered: &Recovered) -> Self {
        let superblock = recovered.superblock();
        let layout = superblock.layout;
        Self {
            format: superblock.format,
            uuid: superblock.uuid.to_string(),
            generation: superblock.generation,
            stopped_cleanly: superblock.clean_stop,
            may_hold_dirty: superblock.may_hold_dirty,
            needs_check: superblock.needs_check,
            block_bytes: layout.block_bytes(),
            sector_bytes: layout.sector_bytes(),
            slots: layout.slots(),
            data_bytes: layout.device_bytes() - layout.data_offset(),
            metadata_bytes: layout.data_offset(),
            journal_records: layout.records(),
            findings: words::count(recovered.findings()),
            worst_finding: recovered.severity().map(words::severity),
            state: State::new(recovered),
        }
    }

    fn text(&self, path: &Path, width: u16) -> String {
        let mut text = format!("{}: a Larder cache of format {}\n", path.display(), self.format);
        for (what, value) in self.lines() {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  {what:<12} {value}");
        }
        if self.findings > 0 {
            let found = words::counted(self.findings, "finding");
            let _ = writeln!(text, "  {:<12} {found}: larder cache check {}", "damage", path.display());
        }
        if !self.state.volumes.is_empty() {
            let _ = write!(text, "\n{}", self.volumes(width));
        }
        text
    }

    fn lines(&self) -> Vec<(&'static str, String)> {
        let state = &self.state;
        let slots = words::blocks(self.slots.into(), "", self.block_bytes);
        let of = HumanSize(self.block_bytes.into());
        let metadata = words::size(self.metadata_bytes);
        let mut lines = vec![
            ("UUID", self.uuid.clone()),
            ("generation", self.generation.to_string()),
            ("stopped", stopped(self.stopped_cleanly).into()),
            (
                "room",
                format!("{slots} of {of}; {metadata} of metadata in sectors of {} bytes", self.sector_bytes),
            ),
            ("cached", words::blocks(state.blocks, "", self.block_bytes)),
            ("dirty", self.dirty()),
        ];
        if self.needs_check {
            lines.push(("needs check", "its device failed while metadata was written".into()));
        }
        if state.dropped_clean_blocks > 0 {
            let dropped = words::counted(state.dropped_clean_blocks, "clean block");
            lines.push((
                "dropped",
                format!("{dropped} that a write may have gone past; the backings have them"),
            ));
        }
        lines
    }

    fn dirty(&self) -> String {
        match (self.state.dirty_blocks, self.may_hold_dirty) {
            (0, false) => "nothing: the backings have it all".into(),
            (0, true) => "nothing now; it may be used for write-back".into(),
            (dirty, _) => {
                format!("{} that the backings do not have", words::blocks(dirty, "", self.block_bytes))
            }
        }
    }

    fn volumes(&self, width: u16) -> String {
        let row = |volume: &super::state::VolumeState| {
            [
                volume.name.clone(),
                volume.number.to_string(),
                words::size(volume.size_bytes),
                grouped(volume.blocks),
                grouped(volume.dirty_blocks),
                volume.backing.clone(),
            ]
        };
        let headings = ["volume", "number", "size", "blocks", "dirty", "backing"];
        grid(headings, self.state.volumes.iter().map(row), &[0, 5], width)
    }
}

fn stopped(cleanly: bool) -> &'static str {
    match cleanly {
        true => "cleanly",
        false => "not cleanly: killed, or without power; a start replays its journal",
    }
}
