//! Which values each sector may have after a power cut, given what the guests wrote and flushed: independent of caches.
//!
//! A write counts as lost or not as it likes until a flush that began after its end has ended, or until it ends itself with
//! FUA; then everything that had ended before it began is gone for good. After a cut each sector has one of the values left, and
//! the first one seen is the value from then on, also after the next cut.
//!
//! Where the process that served the volume died, and took unflushed writes with it ([`Survivors::lose`]), the same holds, but that the value
//! left may be one that a device's own cache holds: a power cut may still take it, until a flush.

use super::oracle::FIRST;
use super::stamp::{self, Generation, ZEROES};
use larder_engine::{Request, RequestId, RequestKind, SECTOR_BYTES, VolumeId};
use std::collections::BTreeMap;

const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Kept {
    value: Generation,
    /// None for what a cut has left.
    writer: Option<RequestId>,
    begin: u64,
    end: u64,
    /// It surely took effect, so that a flush makes it last.
    sure: bool,
}

/// The values of all sectors of all volumes.
#[derive(Clone, Debug, Default)]
pub struct Survivors {
    volumes: Vec<Vec<Vec<Kept>>>,
    begun: BTreeMap<RequestId, u64>,
    /// Sectors that lost writes while the devices went on, and are not flushed since; with the value that was seen.
    doubtful: BTreeMap<(VolumeId, u64), Option<Generation>>,
    now: u64,
}

impl Kept {
    /// A value that nobody alive has written.
    fn left(value: Generation) -> Self {
        Self { value, writer: None, begin: 0, end: 0, sure: true }
    }
}

impl Survivors {
    /// Add the next volume; every sector holds the first stamp.
    pub fn add_volume(&mut self, sectors: u64) {
        self.volumes.push(vec![vec![Kept::left(FIRST)]; sectors as usize]);
    }

    /// Somebody else has written all of a volume, which now has this many sectors, and it is durable.
    pub fn rewrite(&mut self, volume: VolumeId, sectors: u64, value: Generation) {
        self.forget_doubts(volume);
        self.volumes[usize::from(volume.0)] = vec![vec![Kept::left(value)]; sectors as usize];
    }

    /// A volume has this many sectors from now on; those that come hold zeroes.
    pub fn resize(&mut self, volume: VolumeId, sectors: u64) {
        self.doubtful.retain(|&(of, sector), _| of != volume || sector < sectors);
        self.volumes[usize::from(volume.0)].resize(sectors as usize, vec![Kept::left(ZEROES)]);
    }

    /// A request is submitted with this data.
    pub fn begin(&mut self, request: &Request, data: &[u8]) {
        self.now += 1;
        self.begun.insert(request.id, self.now);
        if matches!(request.kind, RequestKind::Read | RequestKind::Flush) {
            return;
        }
        let first = request.offset / SECTOR_BYTES;
        let value =
            data.get(..SECTOR_BYTES as usize).and_then(|data| stamp::read(request.volume, first, data));
        let kept = Kept {
            value: value.unwrap_or(ZEROES),
            writer: Some(request.id),
            begin: self.now,
            end: NEVER,
            sure: false,
        };
        self.sectors(request).for_each(|sector| sector.push(kept));
    }

    /// It has ended; `data` is what a read has read.
    pub fn end(&mut self, request: &Request, ok: bool, data: &[u8]) {
        self.now += 1;
        let now = self.now;
        let begun = self.begun.remove(&request.id).unwrap_or(now);
        match request.kind {
            RequestKind::Flush if ok => {
                self.settle_doubts(request.volume);
                for sector in &mut self.volumes[usize::from(request.volume.0)] {
                    settle(sector, |kept| kept.end < begun);
                }
            }
            RequestKind::Flush => {}
            RequestKind::Read if ok => {
                for (sector, bytes) in
                    (request.offset / SECTOR_BYTES..).zip(data.chunks(SECTOR_BYTES as usize))
                {
                    self.see(request.volume, sector, bytes);
                }
            }
            RequestKind::Read => {}
            kind => {
                let sure = ok && kind != RequestKind::Discard;
                let id = request.id;
                for sector in self.sectors(request) {
                    for kept in sector.iter_mut().filter(|kept| kept.writer == Some(id) && kept.end == NEVER)
                    {
                        (kept.end, kept.sure) = (now, sure);
                    }
                    if request.fua && sure {
                        settle(sector, |kept| kept.end == now);
                    }
                }
            }
        }
    }

    /// A sector was looked at. What a cut has left is what it is, once it was seen.
    pub fn see(&mut self, volume: VolumeId, sector: u64, bytes: &[u8]) {
        let seen = stamp::read(volume, sector, bytes);
        let kept = &mut self.volumes[usize::from(volume.0)][sector as usize];
        if kept.iter().any(|kept| kept.writer.is_some()) {
            return;
        }
        let legal = kept.iter().any(|kept| Some(kept.value) == seen);
        assert!(legal, "{volume:?} sector {sector} is {seen:?} after a crash, which left {kept:?}");
        match self.doubtful.get_mut(&(volume, sector)) {
            Some(doubt) => *doubt = seen,
            None => kept.retain(|kept| Some(kept.value) == seen),
        }
    }

    /// All requests are gone, without an answer; devices have lost nothing.
    pub fn abandon(&mut self) {
        self.now += 1;
        self.begun.clear();
        let now = self.now;
        let open = self.volumes.iter_mut().flatten().flatten().filter(|kept| kept.end == NEVER);
        open.for_each(|kept| kept.end = now);
    }

    /// The process that served a volume has died, and with it writes that nobody flushed; devices have lost nothing. The values that
    /// each sector may have now. All requests have been abandoned.
    pub fn lose(&mut self, volume: VolumeId) -> Vec<Vec<Generation>> {
        let sectors = &mut self.volumes[usize::from(volume.0)];
        for (number, sector) in (0..).zip(sectors.iter_mut()) {
            match sector.len() {
                // What was seen after an earlier death has been overwritten since, durably.
                1 => drop(self.doubtful.remove(&(volume, number))),
                _ => drop(self.doubtful.insert((volume, number), None)),
            }
            sector.iter_mut().for_each(|kept| *kept = Kept::left(kept.value));
        }
        sectors.iter().map(|sector| sector.iter().map(|kept| kept.value).collect()).collect()
    }

    /// A flush has ended: what was left of these sectors, and was seen since, stays.
    fn settle_doubts(&mut self, volume: VolumeId) {
        let sectors = &mut self.volumes[usize::from(volume.0)];
        for (&(_, sector), seen) in self.doubtful.range((volume, 0)..=(volume, u64::MAX)) {
            if let Some(seen) = *seen {
                sectors[sector as usize].retain(|kept| kept.writer.is_some() || kept.value == seen);
            }
        }
        self.forget_doubts(volume);
    }

    fn forget_doubts(&mut self, volume: VolumeId) {
        self.doubtful.retain(|&(of, _), _| of != volume);
    }

    /// The power goes: the values that each sector may have now.
    pub fn cut(&mut self) -> Vec<Vec<Vec<Generation>>> {
        self.begun.clear();
        self.doubtful.clear();
        self.volumes.iter_mut().flatten().flatten().for_each(|kept| *kept = Kept::left(kept.value));
        let values = |sector: &Vec<Kept>| sector.iter().map(|kept| kept.value).collect();
        self.volumes.iter().map(|volume| volume.iter().map(values).collect()).collect()
    }

    fn sectors(&mut self, request: &Request) -> impl Iterator<Item = &mut Vec<Kept>> {
        let (start, end) = (request.offset / SECTOR_BYTES, (request.offset + request.len) / SECTOR_BYTES);
        self.volumes[usize::from(request.volume.0)][start as usize..end as usize].iter_mut()
    }
}

/// Writes that are durable now end what had ended before them.
fn settle(sector: &mut Vec<Kept>, is_durable: impl Fn(&Kept) -> bool) {
    let durable = sector.iter().filter(|kept| kept.sure && is_durable(kept));
    if let Some(floor) = durable.map(|kept| kept.begin).max() {
        sector.retain(|kept| kept.end >= floor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(id: u32, kind: RequestKind, fua: bool) -> Request {
        Request { id: RequestId(id), volume: VolumeId(0), kind, offset: 0, len: 512, fua }
    }

    fn stamp_of(value: Generation) -> Vec<u8> {
        let mut bytes = vec![0; 512];
        stamp::fill(VolumeId(0), 0, value, &mut bytes);
        bytes
    }

    fn write(survivors: &mut Survivors, id: u32, value: Generation, fua: bool) {
        let request = ask(id, RequestKind::Write, fua);
        survivors.begin(&request, &stamp_of(value));
        survivors.end(&request, true, &[]);
    }

    fn left(survivors: &Survivors) -> Vec<Generation> {
        survivors.clone().cut()[0][0].clone()
    }

    #[test]
    fn a_flush_covers_what_ended_before_it_began() {
        let mut survivors = Survivors::default();
        survivors.add_volume(1);
        write(&mut survivors, 1, 5, false);
        let flush = ask(2, RequestKind::Flush, false);
        survivors.begin(&flush, &[]);
        write(&mut survivors, 3, 6, false);
        assert_eq!(left(&survivors), [1, 5, 6]);
        survivors.end(&flush, true, &[]);
        assert_eq!(left(&survivors), [5, 6]);
        write(&mut survivors, 4, 7, true);
        assert_eq!(left(&survivors), [7]);
    }

    #[test]
    fn what_was_seen_after_a_cut_stays() {
        let mut survivors = Survivors::default();
        survivors.add_volume(1);
        write(&mut survivors, 1, 5, false);
        survivors.cut();
        survivors.see(VolumeId(0), 0, &stamp_of(1));
        assert_eq!(left(&survivors), [1]);
        write(&mut survivors, 1, 8, false);
        survivors.see(VolumeId(0), 0, &stamp_of(8));
        assert_eq!(left(&survivors), [1, 8], "a write that nobody flushed may still be lost");
    }

    #[test]
    fn what_a_dead_process_left_may_be_lost_until_a_flush() {
        let mut survivors = Survivors::default();
        survivors.add_volume(1);
        write(&mut survivors, 1, 5, false);
        survivors.abandon();
        assert_eq!(survivors.lose(VolumeId(0))[0], [1, 5]);
        survivors.see(VolumeId(0), 0, &stamp_of(5));
        assert_eq!(left(&survivors), [1, 5], "it may be in a device's cache");
        let flush = ask(2, RequestKind::Flush, false);
        survivors.begin(&flush, &[]);
        survivors.end(&flush, true, &[]);
        assert_eq!(left(&survivors), [5]);
    }
}
