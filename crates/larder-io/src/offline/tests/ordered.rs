//! Saving the blocks of a volume whose writes have an order: whatever is cut short, its backing is a disk that it once was.

use super::device::{Device, Power};
use super::image::{Maker, data, volume};
use super::world::{BLOCK, layout};
use crate::offline::write_back::write_back_by;
use larder_engine::format::*;
use larder_policy::Rng;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

const ID: u16 = 7;
const BLOCKS: u64 = 12;

/// The number of the epoch goes in as a version, 0 for what the backing has.
fn content(block: u64, epoch: u64) -> Vec<u8> {
    data(ID, block, epoch as u8, BLOCK as usize)
}

/// A stopped cache with these writes, (epoch, block), the oldest first; each version in a slot of its own.
fn cache(power: &Power, writes: &[(u64, u64)], first: u64) -> Device {
    let mut cache = Device::new(vec![0; layout().device_bytes() as usize], power);
    let volumes = vec![volume(ID, "v", BLOCKS * BLOCK, "/dev/null")];
    let mut maker = Maker::new(&mut cache, layout(), volumes);
    let mut slots: BTreeMap<(u64, u64), u32> = BTreeMap::new();
    for (slot, &(epoch, block)) in (0..).zip(writes) {
        maker.epoch = Epoch::of(first + epoch);
        // Within an epoch the newer one is all there is.
        let old = slots.insert((epoch, block), slot);
        maker.put((ID, block), &content(block, epoch), true, slot, old);
    }
    maker.commit();
    maker.stop();
    cache
}

/// Which epochs the sectors of each block of the backing show: of a write that was cut short any may be there, and one may be torn.
fn shown(backing: &Device) -> Vec<Vec<u64>> {
    let blocks = (0..).zip(backing.durable.chunks(BLOCK as usize));
    let epochs = |(block, bytes): (u64, &[u8])| {
        let versions: Vec<Vec<u8>> = (0..=20).map(|epoch| content(block, epoch)).collect();
        let of = |(at, sector): (usize, &[u8])| {
            versions.iter().position(|version| version[at * 512..].starts_with(sector)).map(|at| at as u64)
        };
        bytes.chunks(512).enumerate().filter_map(of).collect()
    };
    blocks.map(epochs).collect()
}

/// All that is older than the newest epoch that shows is there.
fn assert_prefix(backing: &Device, writes: &[(u64, u64)]) {
    let shown = shown(backing);
    let newest = shown.iter().flatten().copied().max().unwrap_or(0);
    for &(epoch, block) in writes {
        assert!(
            epoch >= newest || shown[block as usize].iter().all(|&sector| sector >= epoch),
            "epoch {newest} shows, and block {block} is without epoch {epoch}: {shown:?}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn epochs_are_saved_one_after_the_other(
        steps in prop::collection::vec((0..3u64, 0..BLOCKS), 1..40),
        first in 60u64..200,
        cuts in prop::collection::vec(1usize..60, 0..6),
        seed: u64,
    ) {
        let mut epoch = 1;
        let mut writes = Vec::new();
        for (step, block) in steps {
            epoch = (epoch + u64::from(step == 0)).min(SPAN);
            writes.push((epoch.min(20), block));
        }
        let power: Power = Rc::new(Cell::new(usize::MAX));
        let mut cache = cache(&power, &writes, first);
        let bytes = (0..BLOCKS).flat_map(|block| content(block, 0)).collect();
        let mut backings = BTreeMap::from([(ID, Device::new(bytes, &power))]);
        let mut rng = Rng::new(seed);
        let mut wanted = vec![vec![0; 8]; BLOCKS as usize];
        writes.iter().for_each(|&(epoch, block)| wanted[block as usize] = vec![epoch; 8]);
        for cut in cuts {
            power.set(cut);
            let recovered = recover(&mut cache).unwrap();
            let _ = write_back_by(5, &mut cache, &recovered, (&mut backings, &BTreeSet::new()), |_| {});
            cache.crash(&mut rng);
            backings.values_mut().for_each(|backing| backing.crash(&mut rng));
            power.set(usize::MAX);
            assert_prefix(&backings[&ID], &writes);
        }
        let recovered = recover(&mut cache).unwrap();
        let saved = write_back_by(5, &mut cache, &recovered, (&mut backings, &BTreeSet::new()), |_| {}).unwrap();
        prop_assert_eq!((saved.left, saved.failed.len(), saved.broken.len()), (0, 0, 0));
        prop_assert_eq!(shown(&backings[&ID]), wanted);
        prop_assert_eq!(check(&mut cache, true).unwrap(), []);
        prop_assert_eq!(dump_again(&mut cache), Dump::new(&recover(&mut cache).unwrap()));
    }

    /// Epochs go through a dump, and through a repair.
    #[test]
    fn versions_survive_the_tools(steps in prop::collection::vec((0..3u64, 0..BLOCKS), 1..40), first in 60u64..200) {
        let mut epoch = 1;
        let mut writes = Vec::new();
        for (step, block) in steps {
            epoch = (epoch + u64::from(step == 0)).min(SPAN);
            writes.push((epoch, block));
        }
        let power: Power = Rc::new(Cell::new(usize::MAX));
        let mut cache = cache(&power, &writes, first);
        let before = recover(&mut cache).unwrap();
        prop_assert_eq!(before.findings(), []);
        prop_assert_eq!(dump_again(&mut cache).blocks, Dump::new(&before).blocks);
        repair(&mut cache).unwrap();
        let after = recover(&mut cache).unwrap();
        prop_assert_eq!(after.versions(), before.versions());
        // The order is that of the writes, and the newest version of each block is the newest write.
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        for (slot, version) in after.versions() {
            let (epoch, block) = writes[slot as usize];
            let newest = writes.iter().filter(|write| write.1 == block).map(|write| write.0).max();
            prop_assert_eq!(version.is_superseded, newest != Some(epoch));
            prop_assert!(last.insert(version.number, epoch).is_none_or(|known| known == epoch));
        }
        prop_assert!(last.values().is_sorted());
    }
}

/// An older version that has rotted is in nobody's way: the newest one is saved, and the cache is whole.
#[test]
fn an_older_version_that_cannot_be_read_gives_way() {
    let power: Power = Rc::new(Cell::new(usize::MAX));
    let mut cache = cache(&power, &[(1, 0), (1, 1), (2, 0)], 70);
    cache.bytes[layout().slot_offset(0) as usize] ^= 1;
    let bytes = (0..BLOCKS).flat_map(|block| content(block, 0)).collect();
    let mut backings = BTreeMap::from([(ID, Device::new(bytes, &power))]);
    let recovered = recover(&mut cache).unwrap();
    let saved = write_back_by(5, &mut cache, &recovered, (&mut backings, &BTreeSet::new()), |_| {}).unwrap();
    assert_eq!((saved.blocks, saved.left, saved.failed), (2, 0, vec![]));
    assert_eq!(shown(&backings[&ID])[..2], [[2; 8], [1; 8]]);
    assert_eq!(check(&mut cache, true).unwrap(), []);
}

/// The dump of a cache that was made of this one's dump.
fn dump_again(cache: &mut Device) -> Dump {
    let dump = Dump::new(&recover(cache).unwrap());
    let power: Power = Rc::new(Cell::new(usize::MAX));
    let mut other = Device::new(vec![0; layout().device_bytes() as usize], &power);
    restore(&mut other, &dump).unwrap();
    Dump::new(&recover(&mut other).unwrap())
}
