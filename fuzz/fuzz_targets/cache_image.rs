//! A small cache image with arbitrary damage, against everything that reads one: recovery, check, dump, restore, repair,
//! write-back, an engine that starts.
//!
//! The first byte chooses whether the cache was stopped cleanly, and whether a repair comes before the write-back. Then each
//! four bytes are a place (two bytes, in units that reach everywhere) and what is done there.
#![no_main]

#[path = "../../crates/larder-io/src/offline/tests/image.rs"]
mod image;
#[path = "../../crates/larder-io/src/offline/tests/start.rs"]
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::LazyLock;

use image::{Maker, data, volume};
use larder_engine::format::*;
use larder_io::offline::{Disk, content, write_back};
use larder_io::sim;
use libfuzzer_sys::fuzz_target;

const BLOCK: usize = 4096;
const BLOCKS: u64 = 20;
/// The last block is a part of one.
const VOLUME_BYTES: usize = (BLOCKS as usize - 1) * BLOCK + 512;

#[derive(Clone)]
struct Memory(Vec<u8>);

impl Medium for Memory {
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        let there = self.0.get(offset as usize..).and_then(|rest| rest.get(..into.len()));
        let there = there.ok_or(MediumError { offset, reason: "past the end".into() })?;
        into.copy_from_slice(there);
        Ok(())
    }
}

impl MediumMut for Memory {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        let there = self.0.get_mut(offset as usize..).and_then(|rest| rest.get_mut(..bytes.len()));
        there.ok_or(MediumError { offset, reason: "past the end".into() })?.copy_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        Ok(())
    }
}

impl Disk for Memory {
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Left after a commit, and stopped cleanly.
static IMAGES: LazyLock<[Memory; 2]> = LazyLock::new(|| [false, true].map(image));

fn image(clean: bool) -> Memory {
    let shape = Shape {
        block_bytes: BLOCK as u32,
        sector_bytes: 512,
        slots: 400,
        records: 32,
        volume_table_bytes: 4096,
    };
    let layout = Layout::new(shape).expect("a layout");
    let mut memory = Memory(vec![0; layout.device_bytes() as usize]);
    let mut maker = Maker::new(&mut memory, layout, vec![volume(3, "v", VOLUME_BYTES as u64, "/v")]);
    maker.mark(3, 9);
    for block in 0..BLOCKS {
        let held = data(3, block, 1, maker.covered(3, block));
        maker.put((3, block), &held, block % 2 == 1, (block * 19) as u32, None);
        if block % 3 == 0 {
            maker.commit();
        }
    }
    if clean {
        maker.stop()
    } else {
        maker.commit()
    }
    memory
}

fn wound(memory: &mut Memory, at: u16, how: u8, value: u8) {
    // Small numbers reach every byte of the first superblocks and pages, large ones all of the device.
    let at = if at < 0x8000 { usize::from(at) } else { usize::from(at - 0x8000) * 61 };
    let len = memory.0.len();
    let range = at.min(len)..(at + usize::from(value) * 16).min(len);
    match how % 8 {
        0..=3 => memory.0.get_mut(at).into_iter().for_each(|byte| *byte ^= value),
        4 => memory.0[range].fill(0),
        5 => memory.0[range].fill(how),
        6 => memory.0.copy_within(range.clone(), len - range.len()),
        _ => memory.0.truncate(len.saturating_sub(usize::from(value))),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, wounds)) = bytes.split_first() else { return };
    let mut cache = IMAGES[usize::from(choice % 2)].clone();
    for one in wounds.chunks_exact(4).take(64) {
        wound(&mut cache, u16::from_le_bytes([one[0], one[1]]), one[2], one[3]);
    }
    let _ = content(&mut cache);
    let found = check(&mut cache, true);
    for finding in found.iter().flatten() {
        assert!(!finding.to_string().is_empty());
    }
    if choice & 2 != 0 && repair(&mut cache).is_ok() {
        assert_eq!(check(&mut cache, false), Ok(vec![]), "a repair leaves nothing in metadata");
    }
    let Ok(recovered) = recover(&mut cache) else { return };
    let dump = Dump::new(&recovered);
    let mut other = Memory(vec![0; recovered.superblock().layout.device_bytes() as usize]);
    restore(&mut other, &dump).expect("what was dumped can be restored");
    let _ = start::start(&cache.0, &recovered);
    let mut disks = BTreeMap::from([(3, Memory(vec![0xaa; VOLUME_BYTES]))]);
    if write_back(&mut cache, &recovered, &mut disks, &BTreeSet::new(), |_| {}).is_ok() {
        for (block, held) in (0..).zip(disks[&3].0.chunks(BLOCK)) {
            let untouched = held.iter().all(|&byte| byte == 0xaa);
            assert!(untouched || held == data(3, block, 1, held.len()), "block {block} is invented");
        }
    }
});
