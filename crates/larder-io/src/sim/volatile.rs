//! What a power cut leaves of a device's writes since its last flush: of each sector any value that it had since then, and one
//! sector torn.

use super::{Rng, SparseBytes};
use larder_engine::{OpId, SECTOR_BYTES};
use std::collections::BTreeMap;
use std::ops::Range;

type Bytes = [u8; SECTOR_BYTES as usize];

#[derive(Clone, Debug)]
struct Version {
    bytes: Bytes,
    op: OpId,
    /// The number of the completion that ended the write.
    done: Option<u64>,
}

#[derive(Clone, Debug)]
struct Sector {
    durable: Bytes,
    /// Later ones, in order.
    versions: Vec<Version>,
}

/// The sectors of a device that are not durable as they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Volatile {
    sectors: BTreeMap<u64, Sector>,
}

impl Volatile {
    /// A sector is about to change, by this operation.
    pub fn write(&mut self, sector: u64, before: Bytes, bytes: Bytes, op: OpId) {
        let sector = self.sectors.entry(sector);
        let sector = sector.or_insert_with(|| Sector { durable: before, versions: Vec::new() });
        sector.versions.push(Version { bytes, op, done: None });
    }

    /// An operation on these sectors has ended, as this completion; `fua`: what it wrote is durable.
    pub fn finish(&mut self, op: OpId, sectors: Range<u64>, completion: u64, fua: bool) {
        for (_, sector) in self.sectors.range_mut(sectors.clone()) {
            let mine = |version: &&mut Version| version.op == op && version.done.is_none();
            sector.versions.iter_mut().filter(mine).for_each(|version| version.done = Some(completion));
            if fua {
                sector.settle(|version| version.done == Some(completion));
            }
        }
        if fua {
            let durable = self.sectors.range(sectors).filter(|(_, sector)| sector.versions.is_empty());
            let durable: Vec<u64> = durable.map(|(&number, _)| number).collect();
            durable.iter().for_each(|number| drop(self.sectors.remove(number)));
        }
    }

    /// The device ends here.
    pub fn truncate(&mut self, sectors: u64) {
        self.sectors.split_off(&sectors);
    }

    /// A flush has ended that covers the first `covers` completions.
    pub fn flush(&mut self, covers: u64) {
        for sector in self.sectors.values_mut() {
            sector.settle(|version| version.done.is_some_and(|done| done <= covers));
        }
        self.sectors.retain(|_, sector| !sector.versions.is_empty());
    }

    /// The power goes; one sector may be torn where the device does not keep them whole.
    pub fn cut(&mut self, bytes: &mut SparseBytes, tears: bool, rng: &mut Rng) {
        let sectors = std::mem::take(&mut self.sectors);
        let torn = if tears { rng.below(2 * sectors.len() as u64) } else { u64::MAX };
        let share = [0.0, 0.5, 0.9, 1.0][rng.below(4) as usize];
        for (at, (number, sector)) in (0..).zip(sectors) {
            let newest = &sector.versions[rng.below(sector.versions.len() as u64) as usize].bytes;
            let mut left = if rng.chance(share) { *newest } else { sector.durable };
            if at == torn {
                let cut = 1 + rng.below(SECTOR_BYTES - 1) as usize;
                left = sector.durable;
                left[..cut].copy_from_slice(&newest[..cut]);
            }
            bytes.write(number * SECTOR_BYTES, &left);
        }
    }
}

impl Sector {
    /// The last version of these is durable.
    fn settle(&mut self, is_durable: impl Fn(&Version) -> bool) {
        if let Some(last) = self.versions.iter().rposition(is_durable) {
            self.durable = self.versions[last].bytes;
            self.versions.drain(..=last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values that the first sector may have after a cut.
    fn left(volatile: &Volatile) -> Vec<u8> {
        let mut seen: Vec<u8> = (0..200)
            .map(|seed| {
                let mut bytes = SparseBytes::new(512);
                volatile.clone().cut(&mut bytes, true, &mut Rng::new(seed));
                let mut sector = [0; 512];
                bytes.read(0, &mut sector);
                if sector[0] == sector[511] { sector[0] } else { 99 }
            })
            .collect();
        seen.sort_unstable();
        seen.dedup();
        seen
    }

    #[test]
    fn a_flush_keeps_what_had_ended_before_it_began() {
        let mut volatile = Volatile::default();
        volatile.write(0, [1; 512], [2; 512], OpId(5));
        volatile.finish(OpId(5), 0..1, 1, false);
        volatile.write(0, [2; 512], [3; 512], OpId(6));
        assert_eq!(left(&volatile), [1, 2, 3, 99]);
        volatile.flush(1);
        assert_eq!(left(&volatile), [2, 3, 99]);
        volatile.finish(OpId(6), 0..1, 2, true);
        assert!(volatile.sectors.is_empty());
    }
}
