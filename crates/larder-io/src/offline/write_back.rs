//! Saving the dirty blocks of a stopped cache to their backings.
//!
//! Volume by volume, in order of address, neighbours in one write; each block is held against its checksum first. Where a volume's writes
//! have an order its epochs come one after the other, each with a flush: a run that is cut short leaves a disk that it once was. After a
//! batch the backing is flushed, and only then does the cache call its blocks clean: whatever the moment at which this is cut
//! short, each block is on its backing, or still dirty in the cache, and the next run goes on from there.

use super::disk::Disk;
use super::ledger::Ledger;
use larder_engine::format::{
    BlockId, Contents, JournalError, Medium, MediumError, MediumMut, PERIOD, RecoverError, Recovered,
    SlotState, Version,
};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Bytes saved between two flushes of a backing: what a run that is cut short does again.
const BATCH_BYTES: u32 = 64 << 20;
/// Bytes of one write to a backing.
const RUN_BYTES: usize = 1 << 20;

/// What became of the dirty blocks.
#[derive(Debug, Default)]
pub struct Saved {
    /// Blocks that their backings have now, durably, and that are clean in the cache.
    pub blocks: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Blocks whose data is not what it was: they are as they were, dirty.
    pub failed: Vec<Failed>,
    /// Backings that failed; what they do not have durably is still dirty.
    pub broken: Vec<Broken>,
    /// Dirty blocks that remain, these and those of volumes that were left out.
    pub left: u64,
}

/// A block that could not be read from the cache as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Which block.
    pub block: BlockId,
    /// Where it is.
    pub slot: u32,
    /// What is wrong with it.
    pub why: FailedWhy,
}

/// Why a block cannot be saved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailedWhy {
    /// The data is not what it was.
    #[error("fails its checksum")]
    Checksum,
    /// The device cannot read it.
    #[error("cannot be read: {0}")]
    Unreadable(MediumError),
}

/// A backing that failed.
#[derive(Debug)]
pub struct Broken {
    /// The volume's number.
    pub volume: u16,
    /// What the backing said.
    pub error: io::Error,
}

/// Saving could not begin, or the cache device failed to write.
#[derive(Debug, thiserror::Error)]
pub enum WriteBackError {
    /// The cache is damaged: a repair comes first.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// The cache device failed. What was saved is on the backings; the cache is marked as one that needs a check.
    #[error(transparent)]
    Medium(#[from] MediumError),
    /// The journal has no room, although all pages are up to date.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// The dirty blocks of each volume that has any: how many, with the older versions of each.
pub fn dirty_blocks(recovered: &Recovered) -> BTreeMap<u16, u64> {
    let mut found = BTreeMap::new();
    for (_, contents) in recovered.blocks().filter(|(_, contents)| contents.dirty) {
        *found.entry(contents.block.volume).or_insert(0) += 1;
    }
    found
}

/// Save all dirty blocks of the volumes that `disks` has, and stop the cache cleanly. `tell` is called with the bytes that
/// were looked at since the last time.
///
/// `disks` are at least as large as their volumes, and nobody else writes to them. Blocks of the volumes that are saved `elsewhere`, on another disk than they are of, leave the cache: beside
/// their own backing, which does not have them, they would be newer than what is around them, until they leave. It can be cut short at any moment, and run again.
pub fn write_back<D: Disk>(
    medium: &mut impl MediumMut,
    recovered: &Recovered,
    disks: &mut BTreeMap<u16, D>,
    elsewhere: &BTreeSet<u16>,
    tell: impl FnMut(u64),
) -> Result<Saved, WriteBackError> {
    let batch_blocks = BATCH_BYTES / recovered.superblock().layout.block_bytes();
    write_back_by(batch_blocks as usize, medium, recovered, (disks, elsewhere), tell)
}

/// The same, with a flush of the backing after so many blocks.
pub(super) fn write_back_by<D: Disk>(
    batch_blocks: usize,
    medium: &mut impl MediumMut,
    recovered: &Recovered,
    to: (&mut BTreeMap<u16, D>, &BTreeSet<u16>),
    mut tell: impl FnMut(u64),
) -> Result<Saved, WriteBackError> {
    let mut ledger = Ledger::new(recovered)?;
    let outcome = save(batch_blocks, medium, recovered, to, &mut ledger, &mut tell);
    if let Err(WriteBackError::Medium(_)) = outcome {
        ledger.latch(medium);
    }
    outcome
}

fn save<D: Disk>(
    batch_blocks: usize,
    medium: &mut impl MediumMut,
    recovered: &Recovered,
    (disks, elsewhere): (&mut BTreeMap<u16, D>, &BTreeSet<u16>),
    ledger: &mut Ledger<'_>,
    tell: &mut dyn FnMut(u64),
) -> Result<Saved, WriteBackError> {
    ledger.begin(medium)?;
    let versions = recovered.versions();
    let slots = dirty_slots(recovered, &versions);
    let mut saved = Saved { left: slots.len() as u64, ..Saved::default() };
    let is_superseded = |slot: &u32| versions.get(slot).is_some_and(|version| version.is_superseded);
    let turn = |slot: &u32| (contents(recovered, *slot).block.volume, epoch(&versions, *slot));
    for slots in slots.chunk_by(|a, b| turn(a) == turn(b)) {
        let (volume, _) = turn(&slots[0]);
        // What is newer than what a backing has failed to take is not for it.
        let broken = saved.broken.iter().any(|broken| broken.volume == volume);
        let Some(disk) = disks.get_mut(&volume).filter(|_| !broken) else { continue };
        for batch in slots.chunks(batch_blocks) {
            let mut failed = Vec::new();
            let outcome = copy(medium, recovered, batch, disk, &mut failed, tell);
            // Of a version that cannot be read a newer one takes the place: left dirty it would contradict that.
            let (older, newest): (Vec<Failed>, Vec<Failed>) =
                failed.into_iter().partition(|failed| is_superseded(&failed.slot));
            saved.failed.extend(newest);
            match outcome {
                Ok(copied) => {
                    for slot in copied.slots.iter().copied().chain(older.iter().map(|failed| failed.slot)) {
                        match is_superseded(&slot) || elsewhere.contains(&volume) {
                            true => ledger.free(medium, slot)?,
                            false => ledger.clean(medium, slot)?,
                        }
                    }
                    saved.left -= older.len() as u64;
                    ledger.commit(medium)?;
                    saved.blocks += copied.slots.len() as u64;
                    saved.left -= copied.slots.len() as u64;
                    saved.bytes += copied.bytes;
                }
                Err(error) => {
                    saved.broken.push(Broken { volume, error });
                    break;
                }
            }
        }
    }
    ledger.stop(medium, saved.left > 0)?;
    Ok(saved)
}

/// The slots of dirty blocks, by volume, epoch and address.
fn dirty_slots(recovered: &Recovered, versions: &BTreeMap<u32, Version>) -> Vec<u32> {
    let dirty = recovered.blocks().filter(|(_, contents)| contents.dirty);
    let mut slots: Vec<u32> = dirty.map(|(slot, _)| slot).collect();
    slots.sort_unstable_by_key(|&slot| {
        let block = contents(recovered, slot).block;
        (block.volume, epoch(versions, slot), block.block)
    });
    slots
}

/// What is of no epoch comes first.
fn epoch(versions: &BTreeMap<u32, Version>, slot: u32) -> u64 {
    versions.get(&slot).map_or(PERIOD - 1, |version| version.number)
}

fn contents(recovered: &Recovered, slot: u32) -> Contents {
    match recovered.slot(slot) {
        SlotState::Used(contents) => contents,
        other => unreachable!("only slots in use were picked, and slot {slot} is {other:?}"),
    }
}

/// What a batch put on a backing.
#[derive(Default)]
struct Copied {
    slots: Vec<u32>,
    bytes: u64,
}

/// Put blocks of one volume on its backing, durably; all but those that are not what they were.
fn copy(
    medium: &mut impl Medium,
    recovered: &Recovered,
    slots: &[u32],
    disk: &mut impl Disk,
    failed: &mut Vec<Failed>,
    tell: &mut dyn FnMut(u64),
) -> io::Result<Copied> {
    let (mut copied, mut run) = (Copied::default(), Run::default());
    for &slot in slots {
        let block = contents(recovered, slot).block;
        let start = block.block * u64::from(recovered.superblock().layout.block_bytes());
        if run.end() != start || run.bytes.len() >= RUN_BYTES {
            run.write(disk)?;
            run.start = start;
        }
        match read(medium, recovered, slot, &mut run.bytes) {
            Ok(bytes) => {
                copied.slots.push(slot);
                copied.bytes += bytes;
            }
            Err(why) => failed.push(Failed { block, slot, why }),
        }
        tell(recovered.superblock().layout.block_bytes().into());
    }
    run.write(disk)?;
    disk.flush()?;
    Ok(copied)
}

/// Read what a block has within its volume, and add it to `into` if it is what it was; how many bytes.
fn read(
    medium: &mut impl Medium,
    recovered: &Recovered,
    slot: u32,
    into: &mut Vec<u8>,
) -> Result<u64, FailedWhy> {
    let (superblock, Contents { block, crc, .. }) = (recovered.superblock(), contents(recovered, slot));
    let block_bytes = u64::from(superblock.layout.block_bytes());
    // Recovery drops what is past the end of its volume, or of none.
    let volume = recovered.volumes().get(block.volume).map_or(0, |volume| volume.bytes);
    let covered = volume.saturating_sub(block.block * block_bytes).min(block_bytes) as usize;
    let start = into.len();
    into.resize(start + covered.next_multiple_of(superblock.layout.sector_bytes()), 0);
    let outcome = match medium.read(superblock.layout.slot_offset(slot), &mut into[start..]) {
        Ok(()) if superblock.salt().block(block, &into[start..start + covered]) == crc => Ok(covered as u64),
        Ok(()) => Err(FailedWhy::Checksum),
        Err(error) => Err(FailedWhy::Unreadable(error)),
    };
    into.truncate(if outcome.is_ok() { start + covered } else { start });
    outcome
}

/// Neighbouring blocks on their way to a backing.
#[derive(Default)]
struct Run {
    start: u64,
    bytes: Vec<u8>,
}

impl Run {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn write(&mut self, disk: &mut impl Disk) -> io::Result<()> {
        if !self.bytes.is_empty() {
            disk.write(self.start, &self.bytes)?;
            self.bytes.clear();
        }
        Ok(())
    }
}
