//! Which blocks wait to be written back, in the order of their addresses: a bit for each, in pieces of 1,024 blocks.

use crate::VolumeId;
use crate::store::{BLOCK_MAX, BlockKey};
use std::collections::BTreeMap;

/// Blocks in a piece.
const PIECE: u64 = 1024;

#[derive(Debug)]
struct Piece {
    bits: [u64; (PIECE / 64) as usize],
    /// When the first of its blocks became dirty, in ticks.
    since: u64,
}

/// The blocks of all volumes. A piece's key is one number, which is compared faster than two: the volume above the piece's number within it.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    pieces: BTreeMap<u64, Piece>,
}

/// A piece's number within its volume has fewer bits: blocks have 40.
const VOLUME_SHIFT: u32 = 48;

fn piece_of(key: BlockKey) -> u64 {
    (u64::from(key.volume.0) << VOLUME_SHIFT) | (key.block / PIECE)
}

/// The first block of a piece.
fn first_of(piece: u64) -> BlockKey {
    let number = piece & ((1 << VOLUME_SHIFT) - 1);
    BlockKey { volume: VolumeId((piece >> VOLUME_SHIFT) as u16), block: number * PIECE }
}

impl Backlog {
    /// True if the block was not there.
    pub fn add(&mut self, key: BlockKey, now: u64) -> bool {
        let piece = self.pieces.entry(piece_of(key));
        let piece = piece.or_insert_with(|| Piece { bits: [0; (PIECE / 64) as usize], since: now });
        let (word, bit) = place(key.block);
        let is_new = piece.bits[word] & bit == 0;
        piece.bits[word] |= bit;
        is_new
    }

    pub fn remove(&mut self, key: BlockKey) {
        let at = piece_of(key);
        let Some(piece) = self.pieces.get_mut(&at) else { return };
        let (word, bit) = place(key.block);
        piece.bits[word] &= !bit;
        if piece.bits == [0; (PIECE / 64) as usize] {
            self.pieces.remove(&at);
        }
    }

    pub fn contains(&self, key: BlockKey) -> bool {
        let (word, bit) = place(key.block);
        self.pieces.get(&piece_of(key)).is_some_and(|piece| piece.bits[word] & bit != 0)
    }

    /// The first block of a volume from this one on.
    pub fn next(&self, from: BlockKey) -> Option<u64> {
        let last = BlockKey { block: BLOCK_MAX, ..from };
        for (&at, piece) in self.pieces.range(piece_of(from)..=piece_of(last)) {
            let first = first_of(at).block;
            if let Some(found) = piece.next(from.block.max(first) - first) {
                return Some(first + found);
            }
        }
        None
    }

    /// The next block of the same piece, from this one on.
    pub fn next_of_piece(&self, from: BlockKey) -> Option<u64> {
        let piece = self.pieces.get(&piece_of(from))?;
        let first = from.block - from.block % PIECE;
        piece.next(from.block - first).map(|found| first + found)
    }

    /// The first block of each piece, and since when it has been waiting.
    pub fn pieces(&self) -> impl Iterator<Item = (BlockKey, u64)> + '_ {
        self.pieces.iter().map(|(&at, piece)| {
            let first = first_of(at);
            (BlockKey { block: first.block + piece.next(0).unwrap_or(0), ..first }, piece.since)
        })
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        self.pieces.len() * (size_of::<Piece>() + size_of::<u64>())
    }
}

impl Piece {
    /// The first bit from this one on.
    fn next(&self, from: u64) -> Option<u64> {
        let (word, _) = place(from);
        let first = self.bits[word] & (u64::MAX << (from % 64));
        let words = std::iter::once(first).chain(self.bits[word + 1..].iter().copied());
        let (at, bits) = (word as u64..).zip(words).find(|(_, bits)| *bits != 0)?;
        Some(at * 64 + u64::from(bits.trailing_zeros()))
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
        fn equals_a_set(ops in prop::collection::vec((0..3u16, 0..5000u64, any::<bool>()), 0..400), from in 0..5000u64) {
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
            prop_assert!(!model.is_empty() || backlog.pieces.is_empty());
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
