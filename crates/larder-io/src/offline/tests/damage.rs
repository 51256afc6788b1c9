//! Arbitrary damage of an image: no tool panics, nor does an engine that starts on what was recovered; and none saves anything but what a block held.

use super::start::start;
use super::world::{BLOCK, End, World};
use crate::offline::{Content, content, write_back};
use larder_engine::format::*;
use larder_policy::Rng;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A change of some bytes from a place on; or the end of the device there.
#[derive(Clone, Copy, Debug)]
enum Wound {
    Flip,
    Zero,
    Rubbish,
    Cut,
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics_and_nothing_wrong_is_saved(
        seed in 0u64..20,
        wounds in prop::collection::vec(
            (prop::sample::select(vec![Wound::Flip, Wound::Flip, Wound::Zero, Wound::Rubbish, Wound::Cut]),
             any::<u64>(), 1usize..5000, any::<bool>()),
            1..6,
        ),
        repaired: bool,
    ) {
        let end = [End::CleanStop, End::PowerCut, End::Killed][(seed % 3) as usize];
        let (mut world, mut rng) = (World::new(seed, end), Rng::new(seed));
        let metadata = super::world::layout().data_offset();
        for (wound, at, len, in_metadata) in wounds {
            let bytes = &mut world.cache.bytes;
            let room = if in_metadata { metadata.min(bytes.len() as u64) } else { bytes.len() as u64 };
            let start = (at % room.max(1)) as usize;
            let end = (start + len).min(bytes.len());
            match wound {
                Wound::Flip if start < bytes.len() => bytes[start] ^= 1 << (at % 8),
                Wound::Zero => bytes[start.min(end)..end].fill(0),
                Wound::Rubbish => {
                    bytes[start.min(end)..end].iter_mut().for_each(|byte| *byte = rng.next_u64() as u8);
                }
                Wound::Cut if at % 4 == 0 => bytes.truncate(start),
                Wound::Flip | Wound::Cut => {}
            }
        }
        world.cache.durable = world.cache.bytes.clone();
        let old: Vec<_> = world.backings.values().map(|backing| backing.bytes.clone()).collect();
        let found = content(&mut world.cache).unwrap();
        let findings = check(&mut world.cache, true);
        prop_assert!(findings.is_err() || found == Content::Cache);
        if repaired {
            let _ = repair(&mut world.cache);
        }
        let Ok(recovered) = recover(&mut world.cache) else { return Ok(()) };
        prop_assert!(restore(&mut world.cache.clone(), &Dump::new(&recovered)).is_ok());
        // Where it may be opened it is.
        let _ = start(&world.cache.bytes, &recovered);
        let Ok(saved) = write_back(&mut world.cache, &recovered, &mut world.backings, &BTreeSet::new(), |_| {}) else { return Ok(()) };
        for failed in &saved.failed {
            prop_assert!(!failed.why.to_string().is_empty());
        }
        // Each block of each backing is as it was, or holds some version that a guest wrote.
        for (old, (id, backing)) in old.iter().zip(&world.backings) {
            let blocks = old.chunks(BLOCK as usize).zip(backing.bytes.chunks(BLOCK as usize));
            for (block, (old, new)) in (0..).zip(blocks) {
                let written = world.dirty.get(&BlockId { volume: *id, block });
                let known = old == new || written.is_some_and(|all| all.iter().any(|one| one == new));
                prop_assert!(known, "block {block} of volume {id} is invented");
            }
        }
    }
}

#[test]
fn an_engine_starts_on_what_nobody_has_damaged() {
    for seed in 0..6 {
        let mut world = World::new(seed, [End::CleanStop, End::PowerCut, End::Killed][(seed % 3) as usize]);
        let recovered = recover(&mut world.cache).unwrap();
        assert_eq!(start(&world.cache.bytes, &recovered), Ok(()));
    }
}
