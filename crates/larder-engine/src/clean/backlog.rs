//! Which blocks wait to be written back, in the order of their addresses: a bit for each, in pieces of 1,024 blocks.

use crate::VolumeId;
use crate::store::{BLOCK_MAX, BlockKey};
use std::collections::BTreeMap;

/// Blocks in a piece.
const PIECE: u64 = 1024;
/// Pieces in a group.
const GROUP: u64 = 64;
const WORDS: usize = (PIECE / 64) as usize;

#[derive(Debug)]
struct Piece {
    bits: [u64; WORDS],
    /// Which of the words have any.
    words: u16,
    /// When the first of its blocks became dirty, in ticks.
    since: u64,
}

/// Neighbouring pieces: so many blocks that few groups are in the tree, for each write looks there several times.
#[derive(Debug)]
struct Group {
    /// Which pieces there are.
    there: u64,
    pieces: [Option<Box<Piece>>; GROUP as usize],
}

/// The blocks of all volumes. A group's key is one number, which is compared faster than two: the volume above the group's number within it.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    groups: BTreeMap<u64, Box<Group>>,
}

/// A group's number within its volume has fewer bits: blocks have 40.
const VOLUME_SHIFT: u32 = 48;

fn group_of(key: BlockKey) -> u64 {
    (u64::from(key.volume.0) << VOLUME_SHIFT) | (key.block / (PIECE * GROUP))
}

/// The first block of a group.
fn first_of(group: u64) -> BlockKey {
    let number = group & ((1 << VOLUME_SHIFT) - 1);
    BlockKey { volume: VolumeId((group >> VOLUME_SHIFT) as u16), block: number * PIECE * GROUP }
}

/// A block's piece within its group.
fn piece_of(block: u64) -> usize {
    (block / PIECE % GROUP) as usize
}

impl Backlog {
    /// True if the block was not there.
    pub fn add(&mut self, key: BlockKey, now: u64) -> bool {
        let group = self.groups.entry(group_of(key)).or_insert_with(|| Box::new(Group::new()));
        group.add(key.block, now)
    }

    pub fn remove(&mut self, key: BlockKey) {
        let at = group_of(key);
        let Some(group) = self.groups.get_mut(&at) else { return };
        group.remove(key.block);
        if group.there == 0 {
            self.groups.remove(&at);
        }
    }

    pub fn contains(&self, key: BlockKey) -> bool {
        self.piece(key).is_some_and(|piece| piece.contains(key.block))
    }

    /// The first block of a volume from this one on.
    pub fn next(&self, from: BlockKey) -> Option<u64> {
        // Most often it is near.
        if let Some(found) = self.next_of_piece(from) {
            return Some(found);
        }
        let last = BlockKey { block: BLOCK_MAX, ..from };
        for (&at, group) in self.groups.range(group_of(from)..=group_of(last)) {
            let first = first_of(at).block;
            if let Some(found) = group.next(from.block.max(first) - first) {
                return Some(first + found);
            }
        }
        None
    }

    /// The next block of the same piece, from this one on.
    pub fn next_of_piece(&self, from: BlockKey) -> Option<u64> {
        let first = from.block - from.block % PIECE;
        self.piece(from)?.next(from.block - first).map(|found| first + found)
    }

    /// The first block of each piece, and since when it has been waiting.
    pub fn pieces(&self) -> impl Iterator<Item = (BlockKey, u64)> + '_ {
        self.groups.iter().flat_map(|(&at, group)| {
            let first = first_of(at);
            (0..).zip(&group.pieces).filter_map(move |(number, piece)| {
                let piece = piece.as_ref()?;
                let block = first.block + number * PIECE + piece.next(0)?;
                Some((BlockKey { block, ..first }, piece.since))
            })
        })
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let pieces: u32 = self.groups.values().map(|group| group.there.count_ones()).sum();
        self.groups.len() * (size_of::<Group>() + 2 * size_of::<u64>()) + pieces as usize * size_of::<Piece>()
    }

    #[inline]
    fn piece(&self, key: BlockKey) -> Option<&Piece> {
        self.groups.get(&group_of(key))?.pieces[piece_of(key.block)].as_deref()
    }
}

impl Group {
    fn new() -> Self {
        Self { there: 0, pieces: [const { None }; GROUP as usize] }
    }

    fn add(&mut self, block: u64, now: u64) -> bool {
        let at = piece_of(block);
        self.there |= 1 << at;
        let piece = self.pieces[at].get_or_insert_with(|| Box::new(Piece::new(now)));
        let (word, bit) = place(block);
        let is_new = piece.bits[word] & bit == 0;
        piece.bits[word] |= bit;
        piece.words |= 1 << word;
        is_new
    }

    fn remove(&mut self, block: u64) {
        let at = piece_of(block);
        let Some(piece) = &mut self.pieces[at] else { return };
        let (word, bit) = place(block);
        piece.bits[word] &= !bit;
        if piece.bits[word] == 0 {
            piece.words &= !(1 << word);
        }
        if piece.words == 0 {
            self.pieces[at] = None;
            self.there &= !(1 << at);
        }
    }

    /// The first block from this one on, both counted from the group's first.
    fn next(&self, from: u64) -> Option<u64> {
        let first = piece_of(from);
        let there = self.there & (u64::MAX << first);
        let pieces = (0..GROUP).filter(|number| there >> number & 1 != 0);
        pieces
            .filter_map(|number| {
                let start = number * PIECE;
                let piece = self.pieces[number as usize].as_ref()?;
                Some(start + piece.next(from.max(start) - start)?)
            })
            .next()
    }
}

impl Piece {
    fn new(since: u64) -> Self {
        Self { bits: [0; WORDS], words: 0, since }
    }

    fn contains(&self, block: u64) -> bool {
        let (word, bit) = place(block);
        self.bits[word] & bit != 0
    }

    /// The first bit from this one on.
    fn next(&self, from: u64) -> Option<u64> {
        let (word, _) = place(from);
        let here = self.bits[word] & (u64::MAX << (from % 64));
        if here != 0 {
            return Some(word as u64 * 64 + u64::from(here.trailing_zeros()));
        }
        let behind = u32::from(self.words) & (u32::MAX << (word + 1));
        let word = (behind != 0).then(|| behind.trailing_zeros())?;
        Some(u64::from(word) * 64 + u64::from(self.bits[word as usize].trailing_zeros()))
    }
}

fn place(block: u64) -> (usize, u64) {
    ((block % PIECE / 64) as usize, 1 << (block % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn equals_a_set(ops in prop::collection::vec((0..3u16, prop_oneof![0..5000u64, 60_000..70_000u64, 150_000..150_100u64], any::<bool>()), 0..400), from in prop_oneof![0..5000u64, 60_000..160_000u64]) {
            let (mut backlog, mut model) = (Backlog::default(), BTreeSet::new());
            for (volume, block, add) in ops {
                let key = BlockKey { volume: VolumeId(volume), block };
                match add {
                    true => prop_assert_eq!(backlog.add(key, 0), model.insert((volume, block))),
                    false => { backlog.remove(key); model.remove(&(volume, block)); }
                }
                prop_assert_eq!(backlog.contains(key), add);
            }
            for volume in 0..3 {
                let next = model.range((volume, from)..(volume + 1, 0)).next().map(|found| found.1);
                prop_assert_eq!(backlog.next(BlockKey { volume: VolumeId(volume), block: from }), next);
            }
            prop_assert!(!model.is_empty() || backlog.groups.is_empty());
            let firsts: BTreeSet<_> = model.iter().map(|&(volume, block)| (volume, block / PIECE)).collect();
            let pieces: Vec<_> = backlog.pieces().map(|(key, _)| (key.volume.0, key.block / PIECE)).collect();
            prop_assert_eq!(pieces, Vec::from_iter(firsts));
        }
    }

    #[test]
    fn pieces_know_since_when_they_wait() {
        let mut backlog = Backlog::default();
        let key = |block| BlockKey { volume: VolumeId(1), block };
        backlog.add(key(7), 10);
        backlog.add(key(8), 30);
        backlog.add(key(5000), 20);
        assert_eq!(backlog.pieces().collect::<Vec<_>>(), [(key(7), 10), (key(5000), 20)]);
        backlog.remove(key(7));
        assert_eq!(backlog.pieces().collect::<Vec<_>>(), [(key(8), 10), (key(5000), 20)]);
        assert_eq!((backlog.next_of_piece(key(0)), backlog.next_of_piece(key(9))), (Some(8), None));
    }
}
