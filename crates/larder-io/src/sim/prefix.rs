//! Whether a backing alone is what its volume was after some of its flushes, and maybe some of what was written later: what ordered write-back promises.
//!
//! A write counts as *flushed* from the moment when a flush has ended that began after its end, or when it ends itself with FUA. Writes that are submitted after
//! that come later in the order. So whatever a backing holds of what was submitted at some moment, it holds all that was flushed by then, or something newer of the
//! same sector. What was flushed stays so over crashes: the cache has it.

use super::oracle::FIRST;
use super::stamp::{self, Generation, ZEROES};
use super::{Rng, SimDevice};
use larder_engine::{Request, RequestId, RequestKind, SECTOR_BYTES, VolumeId};
use std::collections::BTreeMap;

const NEVER: u64 = u64::MAX;

#[derive(Clone, Copy, Debug)]
struct Version {
    value: Generation,
    writer: Option<RequestId>,
    begin: u64,
    end: u64,
    /// It surely took effect, so that a flush makes it last.
    sure: bool,
    flushed: u64,
}

/// What was written to all sectors of all volumes, and when it was flushed.
#[derive(Clone, Debug, Default)]
pub struct Prefix {
    volumes: Vec<Vec<Vec<Version>>>,
    begun: BTreeMap<RequestId, u64>,
    now: u64,
}

impl Version {
    fn first(value: Generation) -> Self {
        Self { value, writer: None, begin: 0, end: 0, sure: true, flushed: 0 }
    }
}

impl Prefix {
    /// Add the next volume; every sector holds the first stamp.
    pub fn add_volume(&mut self, sectors: u64) {
        self.volumes.push(vec![vec![Version::first(FIRST)]; sectors as usize]);
    }

    /// Somebody else has written all of a volume, which now has this many sectors.
    pub fn rewrite(&mut self, volume: VolumeId, sectors: u64, value: Generation) {
        self.volumes[usize::from(volume.0)] = vec![vec![Version::first(value)]; sectors as usize];
    }

    /// Nothing is known of the order of what was written to a volume so far.
    pub fn forget(&mut self, volume: VolumeId) {
        for version in self.volumes[usize::from(volume.0)].iter_mut().flatten() {
            (version.begin, version.end, version.sure, version.flushed) = (0, 0, false, NEVER);
        }
    }

    /// A volume has this many sectors from now on; those that come hold zeroes.
    pub fn resize(&mut self, volume: VolumeId, sectors: u64) {
        self.volumes[usize::from(volume.0)].resize(sectors as usize, vec![Version::first(ZEROES)]);
    }

    /// A request is submitted with this data.
    pub fn begin(&mut self, request: &Request, data: &[u8]) {
        self.now += 1;
        self.begun.insert(request.id, self.now);
        if matches!(request.kind, RequestKind::Read | RequestKind::Flush) {
            return;
        }
        let first = request.offset / SECTOR_BYTES;
        let stamp =
            data.get(..SECTOR_BYTES as usize).and_then(|data| stamp::read(request.volume, first, data));
        let version = Version {
            value: stamp.unwrap_or(ZEROES),
            writer: Some(request.id),
            begin: self.now,
            end: NEVER,
            sure: false,
            flushed: NEVER,
        };
        self.sectors(request).for_each(|sector| sector.push(version));
    }

    /// It has ended.
    pub fn end(&mut self, request: &Request, ok: bool) {
        self.now += 1;
        let now = self.now;
        let begun = self.begun.remove(&request.id).unwrap_or(now);
        match request.kind {
            RequestKind::Flush if ok => {
                let versions = self.volumes[usize::from(request.volume.0)].iter_mut().flatten();
                let covered = versions.filter(|version| version.sure && version.end < begun);
                covered.for_each(|version| version.flushed = version.flushed.min(now));
            }
            RequestKind::Flush | RequestKind::Read => {}
            kind => {
                let sure = ok && kind != RequestKind::Discard;
                let id = request.id;
                for sector in self.sectors(request) {
                    for version in sector.iter_mut().filter(|v| v.writer == Some(id) && v.end == NEVER) {
                        (version.end, version.sure) = (now, sure);
                        version.flushed = if sure && request.fua { now } else { NEVER };
                    }
                }
            }
        }
    }

    /// All requests are gone, without an answer; and maybe what nobody has flushed.
    pub fn abandon(&mut self) {
        self.now += 1;
        self.begun.clear();
        for version in self.volumes.iter_mut().flatten().flatten() {
            version.end = version.end.min(self.now);
            version.sure &= version.flushed != NEVER;
        }
    }

    /// What nobody has flushed of a volume may be gone; none of its requests is in flight.
    pub fn set_back(&mut self, volume: VolumeId) {
        let versions = self.volumes[usize::from(volume.0)].iter_mut().flatten();
        versions.for_each(|version| version.sure &= version.flushed != NEVER);
    }

    /// Panics unless what a power cut of the backing alone may leave of it is the volume after some of its flushes.
    pub fn check(&self, volume: VolumeId, backing: &SimDevice, rng: &mut Rng) {
        let image = backing.after_cut(rng);
        let mut shown = Vec::new();
        let mut latest = (0, 0);
        for (sector, versions) in (0u64..).zip(&self.volumes[usize::from(volume.0)]) {
            let mut bytes = [0; SECTOR_BYTES as usize];
            image.read(sector * SECTOR_BYTES, &mut bytes);
            let Some(value) = stamp::read(volume, sector, &bytes) else {
                panic!("{volume:?} sector {sector} of its backing is nothing that was written");
            };
            let of = || versions.iter().filter(|version| version.value == value);
            // Where several writes have written the same, it may be any of them.
            let begin = of().map(|version| version.begin).min();
            let begin =
                begin.unwrap_or_else(|| panic!("{volume:?} sector {sector} of its backing is {value}"));
            let end = of().map(|version| version.end).max().unwrap_or(NEVER);
            shown.push((value, end));
            latest = latest.max((begin, sector));
        }
        for (sector, (&(value, end), versions)) in
            (0u64..).zip(shown.iter().zip(&self.volumes[usize::from(volume.0)]))
        {
            let missing = versions.iter().find(|version| version.begin > end && version.flushed < latest.0);
            assert!(
                missing.is_none(),
                "the backing of {volume:?} is no prefix of its flushes: sector {sector} is {value}, without {missing:?}; sector {} was submitted at {}",
                latest.1,
                latest.0
            );
        }
    }

    fn sectors(&mut self, request: &Request) -> impl Iterator<Item = &mut Vec<Version>> {
        let (start, end) = (request.offset / SECTOR_BYTES, (request.offset + request.len) / SECTOR_BYTES);
        self.volumes[usize::from(request.volume.0)][start as usize..end as usize].iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::FaultModel;

    const VOLUME: VolumeId = VolumeId(0);

    fn ask(id: u32, kind: RequestKind, sector: u64) -> Request {
        Request { id: RequestId(id), volume: VOLUME, kind, offset: sector * 512, len: 512, fua: false }
    }

    fn stamp_of(sector: u64, value: Generation) -> [u8; 512] {
        let mut bytes = [0; 512];
        stamp::fill(VOLUME, sector, value, &mut bytes);
        bytes
    }

    /// Sector 0 is written, flushed, and sector 1 is written after that.
    fn history() -> Prefix {
        let mut prefix = Prefix::default();
        prefix.add_volume(2);
        for (id, kind, sector) in
            [(1, RequestKind::Write, 0), (2, RequestKind::Flush, 0), (3, RequestKind::Write, 1)]
        {
            let request = ask(id, kind, sector);
            prefix.begin(&request, &stamp_of(sector, Generation::from(id) + 4));
            prefix.end(&request, true);
        }
        prefix
    }

    fn holds(values: [Generation; 2]) -> bool {
        let mut device = SimDevice::new(1024, FaultModel::default(), 1);
        for (sector, value) in (0..).zip(values) {
            device.content_mut().write(sector * 512, &stamp_of(sector, value));
        }
        std::panic::catch_unwind(|| history().check(VOLUME, &device, &mut Rng::new(1))).is_ok()
    }

    #[test]
    fn what_comes_after_a_flush_is_never_there_without_what_came_before() {
        assert!(holds([FIRST, FIRST]) && holds([5, FIRST]) && holds([5, 7]));
        assert!(!holds([FIRST, 7]));
        assert!(!holds([9, FIRST]), "nobody wrote that");
    }
}
