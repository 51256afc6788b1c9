//! What became of the dirty blocks, in words and as JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use larder_engine::format::Recovered;
use larder_io::offline::{Failed, FailedWhy, Saved};
use serde::Serialize;

use super::super::words;
use super::backings::Chosen;

/// All of it.
#[derive(Serialize)]
pub struct Report {
    written_blocks: u64,
    written_bytes: u64,
    dirty_blocks_left: u64,
    volumes: Vec<OfVolume>,
    damaged: Vec<Damaged>,
    #[serde(skip)]
    block_bytes: u32,
}

/// A volume that had dirty blocks.
#[derive(Serialize)]
struct OfVolume {
    number: u16,
    name: String,
    backing: Option<String>,
    /// That is another disk than the blocks are of: they have left the cache.
    elsewhere: bool,
    written_blocks: u64,
    dirty_blocks_left: u64,
    error: Option<String>,
}

/// A block whose data is not what it was.
#[derive(Serialize)]
struct Damaged {
    volume: String,
    block: u64,
    offset_bytes: u64,
    slot: u32,
    why: &'static str,
}

impl Report {
    /// What `saved` says, with the dirty blocks of each volume before and after.
    pub fn new(
        recovered: &Recovered,
        chosen: &Chosen,
        before: &BTreeMap<u16, u64>,
        after: &BTreeMap<u16, u64>,
        saved: &Saved,
        elsewhere: &BTreeSet<u16>,
    ) -> Self {
        let block_bytes = recovered.superblock().layout.block_bytes();
        let name =
            |id| recovered.volumes().get(id).map_or_else(|| id.to_string(), |volume| volume.name.clone());
        let of_volume = |(&number, &blocks): (&u16, &u64)| {
            let left = after.get(&number).copied().unwrap_or(0);
            let broken = saved.broken.iter().find(|broken| broken.volume == number);
            OfVolume {
                number,
                name: name(number),
                backing: chosen.get(&number).map(|(backing, _)| backing.clone()),
                elsewhere: elsewhere.contains(&number),
                written_blocks: blocks - left,
                dirty_blocks_left: left,
                error: broken.map(|broken| broken.error.to_string()),
            }
        };
        let damaged = |failed: &Failed| Damaged {
            volume: name(failed.block.volume),
            block: failed.block.block,
            offset_bytes: failed.block.block * u64::from(block_bytes),
            slot: failed.slot,
            why: match failed.why {
                FailedWhy::Checksum => "fails its checksum",
                FailedWhy::Unreadable(_) => "cannot be read",
            },
        };
        Self {
            written_blocks: saved.blocks,
            written_bytes: saved.bytes,
            dirty_blocks_left: saved.left,
            volumes: before.iter().map(of_volume).collect(),
            damaged: saved.failed.iter().map(damaged).collect(),
            block_bytes,
        }
    }

    /// In words.
    pub fn text(&self, path: &Path) -> String {
        let shown = path.display();
        if self.volumes.is_empty() {
            return format!("{shown}: no dirty blocks; the backings have all of it\n");
        }
        let mut text = String::new();
        // Writing to a String cannot fail.
        for volume in &self.volumes {
            let _ = writeln!(text, "volume {}: {}", volume.name, volume.told(self.block_bytes));
        }
        for Damaged { volume, block, offset_bytes, slot, why } in &self.damaged {
            let _ = writeln!(
                text,
                "block {block} of volume {volume} (at byte {offset_bytes}) {why}: it stays in slot {slot}, dirty"
            );
        }
        text + &match self.dirty_blocks_left {
            0 if self.volumes.iter().any(|volume| volume.elsewhere) => {
                format!("{shown}: no dirty blocks any more; what is named has all of it\n")
            }
            0 => format!("{shown}: no dirty blocks any more; the backings have all of it\n"),
            left => format!("{shown}: {} left\n", words::blocks(left, "dirty ", self.block_bytes)),
        }
    }
}

impl OfVolume {
    fn told(&self, block_bytes: u32) -> String {
        let written = words::blocks(self.written_blocks, "", block_bytes);
        let left = match self.dirty_blocks_left {
            0 => String::new(),
            left => format!(", {} left", words::counted(left, "dirty block")),
        };
        match (&self.backing, &self.error) {
            (None, _) => format!("left out{left}"),
            (Some(backing), None) if self.elsewhere => format!(
                "{written} written to {backing}{left}; that is not the disk that they are of, so they have left the cache"
            ),
            (Some(backing), None) => format!("{written} written to {backing}{left}"),
            (Some(backing), Some(error)) => {
                format!("{backing} failed: {error}; {written} written before{left}")
            }
        }
    }
}
