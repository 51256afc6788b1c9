//! A request's way through cache and devices.

use larder_alloc::control::{Kind, Offer, ServedBy};
use larder_locality::{Op as BlockOp, block_keys};
use larder_policy::trial::{Action, Outcome};
use larder_trace::{Request, RequestKind};

use super::super::TenantsError;
use super::super::device::Op;
use super::super::result::DayWrites;
use super::super::store::Access;
use super::{Event, Run, cpu};
use crate::Source;
use std::cmp::Reverse;
use std::ops::Range;

/// Nanoseconds of a day.
const DAY_NS: u64 = 86_400_000_000_000;

/// A request that was served.
#[derive(Clone, Copy, Debug)]
struct Served {
    kind: Kind,
    by: ServedBy,
    offer: Offer,
}

impl<S: Source> Run<'_, S> {
    /// A request comes now: when it is done.
    pub(super) fn serve(&mut self, tenant: usize, request: &Request) -> Result<u64, TenantsError<S::Error>> {
        let (action, op) = match request.kind {
            RequestKind::Read => (Action::Read, BlockOp::Read),
            RequestKind::Write => (Action::Write, BlockOp::Write),
            RequestKind::Discard => (Action::Discard, BlockOp::Discard),
            RequestKind::Flush => return Ok(self.now),
        };
        self.idle.request(self.now);
        self.cut(tenant, request)?;
        self.monitor(tenant, op, request);
        let (kind, may) = match action {
            Action::Read | Action::Write => self.ask(tenant, action == Action::Write, request),
            Action::Discard | Action::Flush => (Kind::default(), true),
        };
        let closed = !may || (action == Action::Read && self.bypasses(tenant, request));
        // As in the daemon: nobody waits for dirty blocks to be written back, what finds no room goes past the cache.
        let stuck = self.guests[tenant].has_room_at > self.now;
        self.traffic.clear();
        let leaves_first = kind.leaves_first();
        self.count_held(tenant);
        let access =
            Access { tenant, action, keys: &self.buffer, closed, stuck, leaves_first, now_ns: self.now };
        self.store.access(&access, &self.owners, &mut self.traffic);
        self.count_held(tenant);
        debug_assert!(self.store.holds_no_more_than_there_is());
        let done = match action {
            Action::Read => self.read(tenant, kind),
            Action::Write => self.write(tenant, kind),
            Action::Discard | Action::Flush => return Ok(self.now),
        };
        Ok(done)
    }

    fn count_held(&mut self, tenant: usize) {
        self.guests[tenant].row.held.go_on(self.store.resident(tenant), self.now);
    }

    /// The request's blocks go to the buffer, as keys.
    fn cut(&mut self, tenant: usize, request: &Request) -> Result<(), TenantsError<S::Error>> {
        let volume = (tenant, request.volume);
        if self.last_volume.0 != volume {
            let number = self.volumes.len() as u32;
            self.last_volume = (volume, *self.volumes.entry(volume).or_insert(number));
        }
        let blocks = self.block.blocks_of(request);
        self.buffer.clear();
        let room = (blocks.end - blocks.start) as usize;
        self.keys.extend(&mut self.buffer, self.last_volume.1, &blocks, room)?;
        // A request lies in one segment, or in two.
        for &key in self.buffer.first().into_iter().chain(self.buffer.last()) {
            let segment = (key >> 32) as usize;
            if segment >= self.owners.len() {
                self.owners.resize(segment + 1, tenant);
            }
        }
        Ok(())
    }

    /// The loop sees the request, its blocks with the keys that the daemon gave them where it is known what the daemon saw.
    fn monitor(&mut self, tenant: usize, op: BlockOp, request: &Request) {
        let mut full = false;
        let mut rest = &self.buffer[..];
        if let Some(keys) = self.daemon_keys(request) {
            full = self.control.observe(tenant, op, keys);
            rest = &[];
        }
        while let Some(&first) = rest.first() {
            // Keys follow each other but where a segment ends.
            let in_segment = ((first | 0xffff_ffff) - first).saturating_add(1);
            let count = rest.len().min(usize::try_from(in_segment).unwrap_or(usize::MAX));
            full |= self.control.observe(tenant, op, first..first + count as u64);
            rest = &rest[count..];
        }
        if full {
            let before = cpu();
            self.control.analyze(tenant);
            self.control_cpu += (cpu() - before).as_secs_f64();
        }
    }

    /// Of which kind the request is, and whether it may write to the SSD. Blocks are told apart by their keys, now and then wrongly: as in the daemon.
    fn ask(&mut self, tenant: usize, write: bool, request: &Request) -> (Kind, bool) {
        let now = self.seconds();
        match self.daemon_keys(request) {
            Some(keys) => {
                let keys: Vec<u64> = keys.collect();
                self.control.ask(tenant, write, &keys, now)
            }
            None => self.control.ask(tenant, write, &self.buffer, now),
        }
    }

    /// The keys that the daemon gave the request's blocks, where that is known.
    fn daemon_keys(&self, request: &Request) -> Option<Range<u64>> {
        let volume = u16::try_from(request.volume).ok().filter(|_| self.followed.has_samples())?;
        Some(block_keys(volume, self.block.blocks_of(request)))
    }

    /// A long sequential stream of reads passes by the cache, where the allocator's system has it so.
    fn bypasses(&mut self, tenant: usize, request: &Request) -> bool {
        let Some(limit) = self.profile.bypass_sequential_bytes else { return false };
        let (volume, end, bytes) = &mut self.guests[tenant].stream;
        let goes_on = *volume == request.volume && *end == request.offset;
        *bytes = if goes_on { *bytes + u64::from(request.len) } else { request.len.into() };
        (*volume, *end) = (request.volume, request.offset + u64::from(request.len));
        *bytes >= limit
    }

    fn read(&mut self, tenant: usize, kind: Kind) -> u64 {
        let (now, mut done) = (self.now, self.now);
        let (hits, entered) = (self.traffic.count(Outcome::Hit), self.traffic.count(Outcome::Entered));
        let blocks = self.buffer.len() as u64;
        if hits > 0 {
            done = done.max(self.machine.ssd(now, Op::Read, self.buffer[0], hits));
        }
        let (missing, mut brought) = (|at: usize| self.traffic.outcomes[at] != Outcome::Hit, 0);
        for (place, length) in bridged(&self.buffer, missing, self.machine.bridged_blocks()) {
            done = done.max(self.machine.backing(tenant, now, Op::Read, place, length));
            brought += length;
        }
        if entered > 0 {
            self.machine.ssd(now, Op::Write, self.buffer[0], entered);
        }
        self.write_back_for(tenant);
        let count = &mut self.guests[tenant].count;
        count.block_reads += blocks;
        count.read_hits += hits;
        count.backing_reads += brought;
        count.ssd_writes.fill += entered;
        count.read_requests += 1;
        self.written_to_ssd(tenant, entered);
        let by = if hits == blocks { ServedBy::ReadHit } else { ServedBy::ReadMiss };
        self.done(
            tenant,
            Served { kind, by, offer: Offer { offered: blocks - hits, ..Offer::default() } },
            done,
        )
    }

    fn write(&mut self, tenant: usize, kind: Kind) -> u64 {
        let (now, mut done) = (self.now, self.now);
        let blocks = self.buffer.len() as u64;
        let to_ssd = blocks - self.traffic.count(Outcome::Passed);
        if to_ssd > 0 {
            done = done.max(self.machine.ssd(now, Op::Write, self.buffer[0], to_ssd));
        }
        let through = self.traffic.through;
        let mut to_backing = 0;
        for (place, length) in
            runs(&self.buffer, |at| through || self.traffic.outcomes[at] == Outcome::Passed)
        {
            done = done.max(self.machine.backing(tenant, now, Op::Write, place, length));
            to_backing += length;
        }
        self.write_back_for(tenant);
        let count = &mut self.guests[tenant].count;
        count.block_writes += blocks;
        count.backing_writes += to_backing;
        count.ssd_writes.guest_write += to_ssd;
        self.written_to_ssd(tenant, to_ssd);
        let by = if to_backing == 0 { ServedBy::CachedWrite } else { ServedBy::BackingWrite };
        self.done(
            tenant,
            Served {
                kind,
                by,
                offer: Offer { offered: blocks, taken: to_ssd, resident: self.traffic.count(Outcome::Hit) },
            },
            done,
        )
    }

    /// Dirty blocks that left are written back, and neighbours with them.
    pub(super) fn write_back(&mut self) {
        let mut keys: Vec<u64> = self.traffic.written_back().collect();
        keys.sort_unstable();
        for (place, left) in runs(&keys, |_| true) {
            let owner = self.owners[(place >> 32) as usize];
            let (place, length) = self.store.clean_around(owner, (place, left), self.machine.run_blocks());
            self.guests[owner].count.backing_writes += length;
            let begin = self.machine.write_back(owner, self.now, length, left);
            self.events.push(Reverse((begin, Event::WriteBack(owner, place, length))));
        }
    }

    /// Dirty blocks that left for a request are written back. Where too many wait for that, the tenant has no room for others until they are fewer.
    fn write_back_for(&mut self, tenant: usize) {
        if self.traffic.written_back().next().is_none() {
            return;
        }
        self.write_back();
        let owners = self.traffic.written_back().map(|key| self.owners[(key >> 32) as usize]);
        let mut owners: Vec<usize> = owners.chain([tenant]).collect();
        owners.sort_unstable();
        owners.dedup();
        let cleaned = owners.into_iter().map(|owner| self.machine.when_cleaned(owner, self.now));
        self.guests[tenant].has_room_at = cleaned.max().unwrap_or(self.now);
    }

    pub(super) fn written_to_ssd(&mut self, tenant: usize, blocks: u64) {
        if blocks > 0 {
            self.control.ssd_written(tenant, blocks);
            self.guests[tenant].row.ssd_blocks += blocks;
            let day = self.now / DAY_NS;
            match self.by_day.last_mut().filter(|last| last.day == day) {
                Some(last) => last.blocks += blocks,
                None => self.by_day.push(DayWrites { day, blocks }),
            }
        }
    }

    fn done(&mut self, tenant: usize, served: Served, done: u64) -> u64 {
        let Served { kind, by, offer } = served;
        let done = self
            .followed
            .took(self.now, tenant, by, kind.shape_served())
            .map_or(done, |took| self.now + took);
        let took = done - self.now;
        self.control.offered(tenant, kind, by, offer, took as f64 / 1e9);
        let guest = &mut self.guests[tenant];
        let hit = matches!(by, ServedBy::ReadHit | ServedBy::CachedWrite);
        match by {
            ServedBy::ReadHit | ServedBy::ReadMiss => guest.reads.add(took),
            ServedBy::CachedWrite | ServedBy::BackingWrite => guest.writes.add(took),
        }
        guest.hits += u64::from(hit);
        guest.row.requests += 1;
        guest.row.hits += u64::from(hit);
        guest.row.sum_ns += took;
        guest.last_done = guest.last_done.max(done);
        self.control.served(tenant, by, took as f64 / 1e9);
        let left = self.traffic.written_back().count() as u64;
        if left > 0 {
            self.control.written_back(tenant, left, 0.0);
        }
        self.requests += 1;
        done
    }
}

/// Runs of keys that follow each other, each from one that is `missing` to another, over others between them that are `most` at most: first key and length.
fn bridged(keys: &[u64], missing: impl Fn(usize) -> bool, most: usize) -> impl Iterator<Item = (u64, u64)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let begin = (at..keys.len()).find(|&at| missing(at))?;
        at = begin + 1;
        for next in begin + 1..keys.len() {
            if next - at > most || keys[next] != keys[begin] + (next - begin) as u64 {
                break;
            }
            if missing(next) {
                at = next + 1;
            }
        }
        Some((keys[begin], (at - begin) as u64))
    })
}

/// Runs of keys that follow each other, of those for which `wanted` says so: first key and length.
pub(super) fn runs(keys: &[u64], wanted: impl Fn(usize) -> bool) -> impl Iterator<Item = (u64, u64)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < keys.len() && !wanted(at) {
            at += 1;
        }
        let begin = at;
        while at < keys.len() && wanted(at) && keys[at] == keys[begin] + (at - begin) as u64 {
            at += 1;
        }
        (begin < at).then(|| (keys[begin], (at - begin) as u64))
    })
}
