//! Which values each sector may have after a power cut, given what the guests wrote and flushed: independent of caches.
//!
//! A write counts as lost or not as it likes until a flush that began after its end has ended, or until it ends itself with
//! FUA; then everything that had ended before it began is gone for good. After a cut each sector has one of the values left, and
//! the first one seen is the value from then on, also after the next cut.

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
    now: u64,
}

impl Survivors {
    /// Add the next volume; every sector holds the first stamp.
    pub fn add_volume(&mut self, sectors: u64) {
        let first = Kept { value: FIRST, writer: None, begin: 0, end: 0, sure: true };
        self.volumes.push(vec![vec![first]; sectors as usize]);
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
        if kept.iter().all(|kept| kept.writer.is_none()) {
            kept.retain(|kept| Some(kept.value) == seen);
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

    /// The power goes: the values that each sector may have now.
    pub fn cut(&mut self) -> Vec<Vec<Vec<Generation>>> {
        self.begun.clear();
        for kept in self.volumes.iter_mut().flatten().flatten() {
            *kept = Kept { writer: None, begin: 0, end: 0, sure: true, ..*kept };
        }
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
}
