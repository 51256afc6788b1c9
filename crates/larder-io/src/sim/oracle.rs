//! Which values each sector of each volume may show, given what the guests asked for and when.
//!
//! A sector is a register. A write takes effect somewhere between its submission and its reply. A read may see every
//! write that overlaps it in time, and those before it that no completed write has followed: what the history allows a disk. A
//! failed write, and a discard, may or may not have taken effect, so they supersede nothing.
//! Where several values are possible and nobody is writing, the first value seen is the value from then on: seeing it **pins** it.

use super::stamp::{self, Generation, ZEROES};
use larder_engine::{IoError, Request, RequestId, RequestKind, SECTOR_BYTES, VolumeId};
use std::collections::BTreeMap;
use std::ops::Range;

/// The generation that every sector holds at first.
pub const FIRST: Generation = 1;

const NEVER: u64 = u64::MAX;

/// A value that a sector may have, with the life of the write that brought it.
#[derive(Clone, Copy, Debug)]
struct Version {
    value: Generation,
    writer: Option<RequestId>,
    begin: u64,
    end: u64,
    /// A read that begins at this time or later cannot see it.
    dead_at: u64,
}

impl Version {
    /// Nobody alive has written it.
    fn left(value: Generation) -> Self {
        Self { value, writer: None, begin: 0, end: 0, dead_at: NEVER }
    }
}

/// A sector of a write that ended while nobody else was writing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Its number in the volume.
    pub sector: u64,
    /// Nobody wrote it at any time between the write's submission and its reply.
    pub alone: bool,
}

/// The model of all volumes.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    volumes: Vec<Vec<Vec<Version>>>,
    /// Requests in flight, with the time of their submission.
    live: BTreeMap<RequestId, u64>,
    now: u64,
    generation: Generation,
}

impl Oracle {
    /// A model without volumes.
    pub fn new() -> Self {
        Self { generation: FIRST, ..Self::default() }
    }

    /// Add the next volume; every sector holds the stamp of [`FIRST`].
    pub fn add_volume(&mut self, sectors: u64) -> VolumeId {
        let volume = VolumeId(self.volumes.len() as u16);
        self.volumes.push(vec![vec![Version::left(FIRST)]; sectors as usize]);
        volume
    }

    /// All requests are gone, without an answer: what they wrote may have taken effect.
    pub fn abandon(&mut self) {
        self.now += 1;
        self.live.clear();
        let now = self.now;
        let open = self.volumes.iter_mut().flatten().flatten().filter(|version| version.end == NEVER);
        open.for_each(|version| version.end = now);
    }

    /// The power went: all requests are gone, and each sector has one of these values.
    pub fn restart(&mut self, values: &[Vec<Vec<Generation>>]) {
        self.live.clear();
        for (volume, values) in (0..).map(VolumeId).zip(values) {
            self.restart_volume(volume, values);
        }
    }

    /// The same for one volume; its requests are gone.
    pub fn restart_volume(&mut self, volume: VolumeId, values: &[Vec<Generation>]) {
        let left = |sector: &Vec<Generation>| sector.iter().map(|&value| Version::left(value)).collect();
        self.volumes[usize::from(volume.0)] = values.iter().map(left).collect();
    }

    /// Somebody else has written all of a volume, which now has this many sectors, with stamps of the generation that is returned.
    pub fn rewrite(&mut self, volume: VolumeId, sectors: u64) -> Generation {
        self.generation += 1;
        self.volumes[usize::from(volume.0)] = vec![vec![Version::left(self.generation)]; sectors as usize];
        self.generation
    }

    /// A volume has this many sectors from now on; those that come hold zeroes.
    pub fn resize(&mut self, volume: VolumeId, sectors: u64) {
        self.volumes[usize::from(volume.0)].resize(sectors as usize, vec![Version::left(ZEROES)]);
    }

    /// A valid request is submitted. Returns the data that a write has to carry.
    pub fn begin(&mut self, request: &Request) -> Vec<u8> {
        self.now += 1;
        self.live.insert(request.id, self.now);
        let Some(value) = self.value_of(request.kind) else { return Vec::new() };
        let version =
            Version { value, writer: Some(request.id), begin: self.now, end: NEVER, dead_at: NEVER };
        for sector in sectors(request) {
            self.versions(request.volume, sector).push(version);
        }
        let mut data = Vec::new();
        if request.kind == RequestKind::Write {
            data.resize(request.len as usize, 0);
            stamp::fill(request.volume, request.offset / SECTOR_BYTES, value, &mut data);
        }
        data
    }

    /// A request is replied to; `data` is what a read has read. Panics if it read what it may not.
    /// Returns the sectors whose value can now be looked at on the backing.
    pub fn end(&mut self, request: &Request, result: Result<(), IoError>, data: &[u8]) -> Vec<Settled> {
        self.now += 1;
        let begin = self.live.remove(&request.id).unwrap_or_else(|| panic!("{request:?} is not in flight"));
        let oldest = self.live.values().copied().min().unwrap_or(self.now);
        let is_read = request.kind == RequestKind::Read;
        let strict = result.is_ok() && request.kind != RequestKind::Discard;
        let mut settled = Vec::new();
        for (n, sector) in sectors(request).enumerate() {
            if is_read && result.is_ok() {
                let bytes = &data[n * SECTOR_BYTES as usize..][..SECTOR_BYTES as usize];
                self.see(request.volume, sector, begin, bytes);
            } else if !is_read {
                settled.extend(self.end_write(request, sector, strict));
            }
            self.versions(request.volume, sector).retain(|v| v.dead_at > oldest);
        }
        settled
    }

    /// The content of a sector is looked at while nobody writes it. Panics if it may not be so; pins it.
    pub fn observe(&mut self, volume: VolumeId, sector: u64, bytes: &[u8]) {
        self.now += 1;
        let now = self.now;
        self.see(volume, sector, now, bytes);
    }

    /// True if a sector may be so now. Pins nothing.
    pub fn may_be(&self, volume: VolumeId, sector: u64, bytes: &[u8]) -> bool {
        let seen = stamp::read(volume, sector, bytes);
        let versions = &self.volumes[usize::from(volume.0)][sector as usize];
        versions.iter().any(|v| Some(v.value) == seen && v.dead_at > self.now)
    }

    /// Sectors of a volume.
    pub fn sectors(&self, volume: VolumeId) -> u64 {
        self.volumes[usize::from(volume.0)].len() as u64
    }

    fn value_of(&mut self, kind: RequestKind) -> Option<Generation> {
        match kind {
            RequestKind::Write => {
                self.generation += 1;
                Some(self.generation)
            }
            RequestKind::Discard | RequestKind::WriteZeroes { .. } => Some(ZEROES),
            RequestKind::Read | RequestKind::Flush => None,
        }
    }

    /// A read that began at `begin` and ends now saw `bytes`.
    fn see(&mut self, volume: VolumeId, sector: u64, begin: u64, bytes: &[u8]) {
        let now = self.now;
        let versions = self.versions(volume, sector);
        let seen = stamp::read(volume, sector, bytes);
        let legal = versions.iter().any(|v| Some(v.value) == seen && v.dead_at > begin);
        assert!(
            legal,
            "{volume:?} sector {sector} reads as {seen:?} in {begin}..{now} (starts with {:02x?}); allowed: {versions:?}",
            &bytes[..8]
        );
        // Nobody wrote since before the read began: the value has been the one seen since the last writer ended.
        if versions.iter().all(|v| v.end < begin) {
            let since = versions.iter().map(|v| v.end).max().unwrap_or(0);
            let others = versions.iter_mut().filter(|v| Some(v.value) != seen);
            others.for_each(|v| v.dead_at = v.dead_at.min(since));
        }
    }

    fn end_write(&mut self, request: &Request, sector: u64, strict: bool) -> Option<Settled> {
        let now = self.now;
        let versions = self.versions(request.volume, sector);
        let at = versions.iter().position(|v| v.writer == Some(request.id) && v.end == NEVER);
        let at = at.unwrap_or_else(|| panic!("sector {sector} is not being written by {request:?}"));
        versions[at].end = now;
        let begin = versions[at].begin;
        if strict {
            versions.iter_mut().filter(|v| v.end < begin).for_each(|v| v.dead_at = v.dead_at.min(now));
        }
        let settled = versions.iter().all(|v| v.end != NEVER);
        let alone = versions.iter().enumerate().all(|(n, v)| n == at || v.end < begin);
        settled.then_some(Settled { sector, alone })
    }

    fn versions(&mut self, volume: VolumeId, sector: u64) -> &mut Vec<Version> {
        &mut self.volumes[usize::from(volume.0)][sector as usize]
    }
}

/// The sectors that a request names.
fn sectors(request: &Request) -> Range<u64> {
    match request.kind {
        RequestKind::Flush => 0..0,
        _ => request.offset / SECTOR_BYTES..(request.offset + request.len) / SECTOR_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOLUME: VolumeId = VolumeId(0);

    /// A request for sector 0; even names write, odd names read.
    fn ask(id: u32) -> Request {
        let kind = if id.is_multiple_of(2) { RequestKind::Write } else { RequestKind::Read };
        Request { id: RequestId(id), volume: VOLUME, kind, offset: 0, len: 512, fua: false }
    }

    fn oracle() -> Oracle {
        let mut oracle = Oracle::new();
        oracle.add_volume(4);
        oracle
    }

    fn stamp_of(generation: Generation) -> Vec<u8> {
        let mut bytes = vec![0; 512];
        stamp::fill(VOLUME, 0, generation, &mut bytes);
        bytes
    }

    /// True if a read by this name may end now with this generation.
    fn may_end(oracle: &Oracle, id: u32, generation: Generation) -> bool {
        let mut copy = oracle.clone();
        let run = std::panic::AssertUnwindSafe(|| copy.end(&ask(id), Ok(()), &stamp_of(generation)));
        std::panic::catch_unwind(run).is_ok()
    }

    #[test]
    fn a_completed_write_is_all_that_a_later_read_sees() {
        let mut oracle = oracle();
        assert_eq!(oracle.begin(&ask(0)), stamp_of(2));
        oracle.begin(&ask(1));
        assert!(may_end(&oracle, 1, 1) && may_end(&oracle, 1, 2), "both, while the write is in flight");
        assert_eq!(oracle.end(&ask(0), Ok(()), &[]), [Settled { sector: 0, alone: true }]);
        oracle.begin(&ask(3));
        assert!(may_end(&oracle, 1, 1), "the older read may have been served before the write");
        assert!(!may_end(&oracle, 3, 1) && may_end(&oracle, 3, 2));
    }

    #[test]
    fn a_failed_write_leaves_either_and_the_first_sight_pins_it() {
        let mut oracle = oracle();
        oracle.begin(&ask(0));
        oracle.end(&ask(0), Err(IoError::Io), &[]);
        oracle.begin(&ask(1));
        oracle.begin(&ask(3));
        assert!(may_end(&oracle, 1, 1) && may_end(&oracle, 1, 2));
        oracle.end(&ask(1), Ok(()), &stamp_of(1));
        assert!(may_end(&oracle, 3, 1) && !may_end(&oracle, 3, 2));
    }

    #[test]
    fn of_two_overlapping_writes_either_stays() {
        let mut oracle = oracle();
        oracle.begin(&ask(0));
        oracle.begin(&ask(2));
        assert_eq!(oracle.end(&ask(2), Ok(()), &[]), []);
        assert_eq!(oracle.end(&ask(0), Ok(()), &[]), [Settled { sector: 0, alone: false }]);
        oracle.begin(&ask(1));
        assert!(!may_end(&oracle, 1, 1) && may_end(&oracle, 1, 2) && may_end(&oracle, 1, 3));
        oracle.observe(VOLUME, 0, &stamp_of(3));
        assert!(!may_end(&oracle, 1, 2) && may_end(&oracle, 1, 3));
    }

    #[test]
    fn a_pin_holds_only_while_nobody_writes() {
        let mut oracle = oracle();
        oracle.begin(&ask(0));
        oracle.begin(&ask(1));
        oracle.end(&ask(1), Ok(()), &stamp_of(2));
        oracle.begin(&ask(3));
        assert!(may_end(&oracle, 3, 1), "a disk may be read before and after at once while it is written");
    }
}
