//! Saving dirty blocks: all of them, in order, and none lost whatever fails on the way.

use super::world::{BLOCK, End, VOLUMES, World, layout};
use crate::offline::{FailedWhy, WriteBackError, dirty_blocks};
use larder_engine::format::*;
use larder_policy::Rng;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn end() -> impl Strategy<Value = End> {
    prop::sample::select(vec![End::CleanStop, End::PowerCut, End::Killed])
}

/// Save, with the power cut after so many writes and flushes each time, and then to the end.
fn cut_short(seed: u64, end: End, cuts: &[usize]) {
    let (mut world, mut rng) = (World::new(seed, end), Rng::new(seed));
    for &cut in cuts {
        // Before the first flush a killed process's last writes may go: no guest was told that they are durable. Where the last record is a draft it is put in its place before that.
        world.power.set(cut.max(2 * usize::from(end == End::Killed)));
        // It may have been done before.
        let _ = world.save();
        world.crash(&mut rng);
        world.check();
    }
    let saved = world.save().unwrap();
    assert_eq!((saved.left, saved.failed.len(), saved.broken.len()), (0, 0, 0));
    world.crash(&mut rng);
    world.check();
    assert_eq!(check(&mut world.cache, true).unwrap(), []);
    let recovered = world.recover();
    let superblock = recovered.superblock();
    assert!(superblock.clean_stop && !superblock.may_hold_dirty && !superblock.needs_check);
    assert_eq!(recovered.marks().count(), 0);
}

/// The process was killed with a draft, and the next one dies as soon as it has put it in its place and flushed that.
#[test]
fn a_draft_is_saved_too() {
    (0..3).for_each(|cut| cut_short(15_337_663_488_063_081_728, End::Killed, &[cut]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    /// Power cuts at any write or flush, several in a row: each block is always somewhere, and in the end all are saved.
    #[test]
    fn no_block_is_lost_when_saving_is_cut_short(
        seed: u64,
        end in end(),
        cuts in prop::collection::vec(0usize..120, 0..6),
    ) {
        cut_short(seed, end, &cuts);
    }

    /// An error of the cache device, at any write or flush: nothing is lost, and it is not used before a repair.
    #[test]
    fn an_error_of_the_cache_device_is_latched(seed: u64, end in end(), good in 0usize..60) {
        let mut world = World::new(seed, end);
        let before = world.recover();
        world.cache.good = good;
        let saved = world.save();
        let failed = world.cache.errors > 0;
        world.cache.good = usize::MAX;
        if !failed {
            prop_assert_eq!(saved.unwrap().left, 0);
            return Ok(());
        }
        prop_assert!(matches!(saved, Err(WriteBackError::Medium(_))));
        // All fails from then on, the mark too; what is left goes on as if cut short.
        world.check();
        prop_assert!(world.recover().blocks().count() <= before.blocks().count());
        prop_assert_eq!(world.save().unwrap().left, 0);
        world.check();
    }

    /// A backing that fails keeps its blocks in the cache; the others get theirs.
    #[test]
    fn a_backing_that_fails_loses_nothing(seed: u64, good in 0usize..40) {
        let (mut world, mut rng) = (World::new(seed, End::PowerCut), Rng::new(seed));
        let before = dirty_blocks(&world.recover());
        world.backings.get_mut(&4).unwrap().good = good;
        let saved = world.save().unwrap();
        let failed = world.backings[&4].errors > 0;
        world.backings.get_mut(&4).unwrap().good = usize::MAX;
        let broken: Vec<_> = saved.broken.iter().map(|broken| broken.volume).collect();
        prop_assert_eq!(broken, if failed { vec![4] } else { vec![] });
        world.crash(&mut rng);
        world.check();
        let after = dirty_blocks(&world.recover());
        prop_assert_eq!(after.values().sum::<u64>(), saved.left);
        prop_assert_eq!(saved.blocks + saved.left, before.values().sum::<u64>());
        prop_assert!(after.keys().all(|&volume| volume == 4));
        prop_assert_eq!(world.save().unwrap().left, 0);
        world.check();
    }
}

#[test]
fn a_write_error_marks_the_cache() {
    let mut world = World::new(3, End::CleanStop);
    // The session's superblock is written; its flush fails, once.
    let mut cache = Once { device: world.cache.clone(), at: 2 };
    let recovered = world.recover();
    let failed =
        crate::offline::write_back(&mut cache, &recovered, &mut world.backings, &BTreeSet::new(), |_| {});
    assert!(matches!(failed, Err(WriteBackError::Medium(_))), "{failed:?}");
    world.cache = cache.device;
    assert!(world.recover().superblock().needs_check);
    assert!(matches!(world.save(), Err(WriteBackError::Recover(RecoverError::MayLoseDirty(_)))));
    repair(&mut world.cache).unwrap();
    assert_eq!(world.save().unwrap().left, 0);
    world.check();
}

/// A device of which one operation fails.
struct Once {
    device: super::device::Device,
    at: usize,
}

impl Once {
    fn next<T>(
        &mut self,
        act: impl FnOnce(&mut super::device::Device) -> Result<T, MediumError>,
    ) -> Result<T, MediumError> {
        self.at = self.at.wrapping_sub(1);
        match self.at {
            0 => Err(MediumError { offset: 0, reason: "once".into() }),
            _ => act(&mut self.device),
        }
    }
}

impl Medium for Once {
    fn bytes(&self) -> u64 {
        Medium::bytes(&self.device)
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        self.device.read(offset, into)
    }
}

impl MediumMut for Once {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.next(|device| MediumMut::write(device, offset, bytes))
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        self.next(MediumMut::flush)
    }
}

#[test]
fn blocks_that_are_not_what_they_were_are_named_and_kept() {
    let mut world = World::new(11, End::PowerCut);
    let recovered = world.recover();
    let all: Vec<_> = recovered.blocks().filter(|(_, contents)| contents.dirty).collect();
    let [(rotten, a), .., (unreadable, b)] = all[..] else { panic!("two dirty blocks: {all:?}") };
    Harm::Data(rotten).inflict(&mut world.cache).unwrap();
    let start = layout().slot_offset(unreadable);
    world.cache.unreadable.push(start..start + 512);
    let mut done = 0;
    let saved = crate::offline::write_back(
        &mut world.cache,
        &recovered,
        &mut world.backings,
        &BTreeSet::new(),
        |bytes| done += bytes,
    );
    let saved = saved.unwrap();
    assert_eq!((saved.blocks, saved.left, done), (all.len() as u64 - 2, 2, all.len() as u64 * BLOCK));
    let why = |block: BlockId| &saved.failed.iter().find(|failed| failed.block == block).unwrap().why;
    assert_eq!(*why(a.block), FailedWhy::Checksum);
    assert!(matches!(why(b.block), FailedWhy::Unreadable(_)));
    assert!(world.recover().superblock().may_hold_dirty);
    let left: Vec<_> = world.recover().blocks().filter(|(_, contents)| contents.dirty).collect();
    assert_eq!(left, [(rotten, a), (unreadable, b)]);
    // What was there before the cache was is still there.
    let place = (a.block.block * BLOCK) as usize;
    let backing = &world.backings[&a.block.volume].durable;
    assert_ne!(&backing[place..place + 512], &world.dirty[&a.block].last().unwrap()[..512]);
    // Mended, they are saved as well.
    Harm::Data(rotten).inflict(&mut world.cache).unwrap();
    world.cache.unreadable.clear();
    assert_eq!(world.save().unwrap().blocks, 2);
    world.check();
}

#[test]
fn blocks_go_in_order_of_address_and_neighbours_together() {
    let mut world = World::new(5, End::CleanStop);
    let recovered = world.recover();
    crate::offline::write_back(&mut world.cache, &recovered, &mut world.backings, &BTreeSet::new(), |_| {})
        .unwrap();
    for (id, bytes) in VOLUMES {
        let backing = &world.backings[&id];
        // Written ranges rise, and never touch: neighbours were merged.
        assert!(backing.writes.windows(2).all(|pair| pair[0].0 + (pair[0].1 as u64) < pair[1].0));
        let written: u64 = backing.writes.iter().map(|write| write.1 as u64).sum();
        let blocks = world.dirty.keys().filter(|block| block.volume == id);
        let dirty: u64 = blocks.map(|block| (bytes - block.block * BLOCK).min(BLOCK)).sum();
        assert_eq!((written, backing.flushes), (dirty, 1), "nothing past the volume's end is written");
    }
    world.check();
}

#[test]
fn blocks_that_are_saved_on_another_disk_leave_the_cache() {
    let mut world = World::new(8, End::CleanStop);
    let recovered = world.recover();
    let blocks = |recovered: &Recovered, dirty| -> Vec<_> {
        let of_1 = recovered.blocks().filter(|(_, contents)| contents.block.volume == 1);
        of_1.filter(|(_, contents)| contents.dirty == dirty).map(|(slot, _)| slot).collect()
    };
    let (clean, dirty) = (blocks(&recovered, false), blocks(&recovered, true));
    assert!(!dirty.is_empty());
    let elsewhere = BTreeSet::from([1]);
    let saved =
        crate::offline::write_back(&mut world.cache, &recovered, &mut world.backings, &elsewhere, |_| {});
    assert_eq!(saved.unwrap().left, 0);
    let after = world.recover();
    assert_eq!((blocks(&after, false), blocks(&after, true)), (clean, vec![]));
    let of_others =
        |recovered: &Recovered| recovered.blocks().filter(|(_, contents)| contents.block.volume != 1).count();
    assert_eq!(of_others(&after), of_others(&recovered), "those are clean");
    world.check();
}

#[test]
fn volumes_without_a_backing_are_left_alone() {
    let mut world = World::new(8, End::CleanStop);
    let before = dirty_blocks(&world.recover());
    assert_eq!(before.keys().copied().collect::<Vec<_>>(), [1, 4, 9]);
    let kept = world.backings.remove(&1).unwrap();
    let saved = world.save().unwrap();
    assert_eq!((saved.left, saved.blocks), (before[&1], before[&4] + before[&9]));
    assert_eq!(dirty_blocks(&world.recover()).into_iter().collect::<Vec<_>>(), [(1, before[&1])]);
    assert!(world.recover().superblock().may_hold_dirty);
    world.backings.insert(1, kept);
    assert_eq!(world.save().unwrap().left, 0);
    world.check();
}

#[test]
fn a_damaged_cache_is_refused_and_not_touched() {
    let mut world = World::new(21, End::CleanStop);
    Harm::Page(0).inflict(&mut world.cache).unwrap();
    let before = world.cache.bytes.clone();
    assert!(matches!(world.save(), Err(WriteBackError::Recover(RecoverError::MayLoseDirty(_)))));
    assert!(world.cache.bytes == before);
    assert!(world.backings.values().all(|backing| backing.writes.is_empty()));
}
