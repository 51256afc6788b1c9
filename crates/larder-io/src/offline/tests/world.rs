//! A cache with a random past, its backings, and what each block of them must be in the end.

use super::device::{Device, Power};
use super::image::{Maker, data, volume};
use crate::offline::{Saved, WriteBackError, write_back::write_back_by};
use larder_engine::format::*;
use larder_policy::Rng;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

pub const BLOCK: u64 = 4096;
/// Numbers and sizes of the volumes: one ends within a sector's reach of its last block's start.
pub const VOLUMES: [(u16, u64); 3] = [(1, 300 * BLOCK), (4, 200 * BLOCK + 1536), (9, 40 * BLOCK)];
const SLOTS: u32 = 1020;
/// Blocks saved before a backing is flushed.
const BATCH: usize = 50;

pub struct World {
    pub power: Power,
    pub cache: Device,
    pub backings: BTreeMap<u16, Device>,
    /// What each backing must hold when all is saved.
    pub wanted: BTreeMap<u16, Vec<u8>>,
    /// The dirty blocks, with all that guests wrote there, the newest last.
    pub dirty: BTreeMap<BlockId, Vec<Vec<u8>>>,
}

/// How the session of the image ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    CleanStop,
    /// After a commit.
    PowerCut,
    /// Before the flush of the last commit, but the device kept its power.
    Killed,
}

pub fn layout() -> Layout {
    let shape = Shape {
        block_bytes: BLOCK as u32,
        sector_bytes: 512,
        slots: SLOTS,
        records: 32,
        volume_table_bytes: 4096,
    };
    Layout::new(shape).unwrap()
}

impl World {
    pub fn new(seed: u64, end: End) -> Self {
        let power: Power = Rc::new(Cell::new(usize::MAX));
        let mut rng = Rng::new(seed);
        let mut cache = Device::new(vec![0; layout().device_bytes() as usize], &power);
        let wanted: BTreeMap<u16, Vec<u8>> =
            VOLUMES.iter().map(|&(id, bytes)| (id, data(id, 1 << 30, 0, bytes as usize))).collect();
        let backings = wanted.iter().map(|(&id, bytes)| (id, Device::new(bytes.clone(), &power))).collect();
        let volumes = VOLUMES.map(|(id, bytes)| volume(id, &format!("v{id}"), bytes, "/dev/null")).to_vec();
        let mut maker = Maker::new(&mut cache, layout(), volumes);
        maker.drafts = seed.is_multiple_of(2);
        let mut past = Past {
            held: BTreeMap::new(),
            free: (0..SLOTS).collect(),
            wanted,
            dirty: BTreeMap::new(),
            marked: BTreeSet::new(),
        };
        for step in 0..rng.below(1200) {
            past.step(&mut maker, &mut rng, step as u8);
        }
        // At least the last block of the odd volume is dirty.
        past.write_back(&mut maker, &mut rng, (4, 200), 7);
        match end {
            End::CleanStop => maker.stop(),
            End::PowerCut => maker.commit(),
            End::Killed => maker.write(),
        }
        let Past { wanted, dirty, .. } = past;
        Self { power, cache, backings, wanted, dirty }
    }

    pub fn recover(&mut self) -> Recovered {
        recover(&mut self.cache).unwrap()
    }

    pub fn save(&mut self) -> Result<Saved, WriteBackError> {
        let recovered = self.recover();
        write_back_by(BATCH, &mut self.cache, &recovered, (&mut self.backings, &BTreeSet::new()), |_| {})
    }

    /// The power goes, and comes again.
    pub fn crash(&mut self, rng: &mut Rng) {
        self.cache.crash(rng);
        self.backings.values_mut().for_each(|backing| backing.crash(rng));
        self.power.set(usize::MAX);
    }

    /// Every block that was dirty is durable on its backing, or dirty in the cache, whole; nothing else has changed.
    pub fn check(&mut self) {
        let recovered = self.recover();
        let worst = recovered.findings().iter().map(Finding::severity).max();
        assert!(worst <= Some(Severity::Note), "{:?}", recovered.findings());
        let left: BTreeMap<BlockId, u32> = recovered
            .blocks()
            .filter(|(_, contents)| contents.dirty)
            .map(|(slot, contents)| (contents.block, slot))
            .collect();
        assert!(left.keys().all(|block| self.dirty.contains_key(block)));
        for (&id, wanted) in &self.wanted {
            let durable = &self.backings[&id].durable;
            for (block, (durable, wanted)) in
                (0..).zip(durable.chunks(BLOCK as usize).zip(wanted.chunks(BLOCK as usize)))
            {
                match left.get(&BlockId { volume: id, block }) {
                    Some(&slot) => {
                        let start = layout().slot_offset(slot) as usize;
                        assert!(
                            self.cache.bytes[start..].starts_with(wanted),
                            "{block} of {id} in the cache"
                        );
                    }
                    None => assert!(durable == wanted, "block {block} of volume {id} on its backing"),
                }
            }
        }
    }
}

/// The image while it is made.
struct Past {
    held: BTreeMap<(u16, u64), (u32, bool)>,
    free: Vec<u32>,
    wanted: BTreeMap<u16, Vec<u8>>,
    dirty: BTreeMap<BlockId, Vec<Vec<u8>>>,
    marked: BTreeSet<(u16, u64)>,
}

impl Past {
    fn step(&mut self, maker: &mut Maker<'_, Device>, rng: &mut Rng, version: u8) {
        let (id, bytes) = VOLUMES[rng.below(3) as usize];
        let block = rng.below(bytes.div_ceil(BLOCK));
        match rng.below(20) {
            0 => maker.commit(),
            1 if self.marked.len() < 30 && self.marked.insert((id, block / 8)) => maker.mark(id, block),
            2..8 => self.fill(maker, rng, (id, block)),
            _ => self.write_back(maker, rng, (id, block), version),
        }
    }

    fn slot(&mut self, rng: &mut Rng) -> Option<u32> {
        let at = rng.below(self.free.len().max(1) as u64) as usize;
        (at < self.free.len()).then(|| self.free.swap_remove(at))
    }

    /// A copy of what the backing has.
    fn fill(&mut self, maker: &mut Maker<'_, Device>, rng: &mut Rng, at: (u16, u64)) {
        if self.held.contains_key(&at) {
            return;
        }
        let Some(slot) = self.slot(rng) else { return };
        let (start, len) = ((at.1 * BLOCK) as usize, maker.covered(at.0, at.1));
        maker.put(at, &self.wanted[&at.0][start..start + len], false, slot, None);
        self.held.insert(at, (slot, false));
    }

    /// A guest's write. Slots that it leaves are not used again: that they are free is not durable yet.
    fn write_back(&mut self, maker: &mut Maker<'_, Device>, rng: &mut Rng, at: (u16, u64), version: u8) {
        let Some(slot) = self.slot(rng) else { return };
        let (start, len) = ((at.1 * BLOCK) as usize, maker.covered(at.0, at.1));
        let new = data(at.0, at.1, version, len);
        let old = self.held.insert(at, (slot, true)).map(|held| held.0);
        maker.put(at, &new, true, slot, old);
        if let Some(wanted) = self.wanted.get_mut(&at.0) {
            wanted[start..start + len].copy_from_slice(&new);
        }
        self.dirty.entry(BlockId { volume: at.0, block: at.1 }).or_default().push(new);
    }
}
