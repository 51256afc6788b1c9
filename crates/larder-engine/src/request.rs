//! From a guest's request to parts, and from parts to the reply.
//!
//! A request of any length is checked and cut at block boundaries into parts of bounded size, a few of which run at a time; each takes its own
//! range lock. So one huge request neither holds much memory nor keeps a whole volume locked.

use crate::doors::Asked;
use crate::locks::Owner;
use crate::store::{BLOCK_MAX, BlockKey};
use crate::{
    Action, Buf, BufOwner, Engine, IoError, Kind, Request, RequestId, RequestKind, SECTOR_BYTES, VolumeId,
};
use std::collections::VecDeque;

/// Bytes of a read or write that run as one part.
pub const PART_BYTES: u64 = 1 << 20;

/// Bytes of a discard or write-zeroes that run as one part: no data moves, so they may be larger.
pub const RANGE_PART_BYTES: u64 = 16 << 20;

/// Parts of one request that run at a time.
pub const PARTS_MAX: u32 = 4;

/// A guest request in flight that is more than one part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guest {
    pub request: Request,
    asked: Asked,
    /// Next byte for which no part was started.
    next: u64,
    parts: u32,
    error: Option<IoError>,
}

/// A piece of a guest request that runs under one range lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    /// The request that it is a piece of; `None` if it is all of it.
    pub guest: Option<u32>,
    pub volume: VolumeId,
    pub kind: RequestKind,
    pub id: RequestId,
    /// The request's first byte: where its buffer begins.
    pub origin: u64,
    pub start: u64,
    pub end: u64,
    pub fua: bool,
    pub asked: Asked,
    /// Steps still to come before the part ends.
    pub pending: u32,
    /// Announced to the regions that it writes, which are told of its end.
    pub guarded: bool,
    /// A write to the cache alone.
    pub back: bool,
    /// It may write to a backing whose writes have an order.
    pub past: bool,
    /// Marks that it waits for.
    pub marks: u32,
    /// Rounds of the journal for which it has waited for slots.
    pub rounds: u8,
    pub error: Option<IoError>,
}

impl Part {
    /// Where in the guest's memory a byte of the volume is.
    pub fn buf(&self, byte: u64) -> Buf {
        Buf { owner: BufOwner::Guest(self.id), offset: (byte - self.origin) as u32 }
    }
}

impl Engine {
    /// A guest request arrives: what kind of request it is, where there are doors ([`Engine::set_doors`]). Follow with [`Engine::next_action`] until it is empty.
    ///
    /// A request that is misaligned, beyond the end of its volume, for an unknown volume, or a read or write of 4 GiB or more ends with
    /// [`IoError::Invalid`].
    pub fn submit(&mut self, request: Request) -> Kind {
        if let Err(error) = self.admissible(&request) {
            self.reply(request.id, Err(error));
            return Kind::default();
        }
        self.cleaner.guest_came();
        self.note_stream(&request);
        let asked = self.ask(&request);
        if request.kind == RequestKind::Flush {
            self.flush(request.volume, request.id);
        } else if request.len == 0 {
            self.reply(request.id, Ok(()));
        } else {
            self.begin(request, asked);
        }
        asked.kind
    }

    fn begin(&mut self, request: Request, asked: Asked) {
        if !self.movers.is_empty() {
            self.tell_mover(&request);
        }
        let end = self.part_end(&request, request.offset);
        if end == request.offset + request.len {
            self.alone += 1;
            self.lock_part(new_part(None, &request, asked, request.offset, end));
        } else {
            let guest = Guest { request, asked, next: request.offset, parts: 0, error: None };
            let id = self.guests.insert(guest) as u32;
            self.start_parts(id);
        }
        self.run_granted();
        self.clean();
    }

    /// A request for this byte is about to be submitted. Nothing follows from that, but what is known of its block is at hand then: a driver that says so of several
    /// requests in a row waits for memory once.
    #[inline]
    pub fn expect(&self, volume: VolumeId, offset: u64) {
        let block = self.block_of(offset);
        if block <= BLOCK_MAX {
            std::hint::black_box(self.store.find(BlockKey { volume, block }));
            self.expect_at_doors(volume, block);
        }
    }

    /// Requests and fills in flight: zero when nothing is outstanding.
    pub fn in_flight(&self) -> usize {
        let flushes: usize = self.volumes.iter().map(|v| v.flushes.in_flight()).sum();
        let waiting = self.durable.as_ref().map_or(0, |durable| durable.waiters());
        self.guests.len() + self.alone + self.fills.len() + flushes + waiting + self.flushes_in_order()
    }

    /// True if a request other than a flush is in flight.
    pub(crate) fn has_guests(&self) -> bool {
        // Each has a part at any time.
        !self.parts.is_empty()
    }

    fn admissible(&self, request: &Request) -> Result<(), IoError> {
        let known = self.volumes.get(request.volume.0 as usize).filter(|volume| !volume.gone);
        let volume = known.ok_or(IoError::Invalid)?;
        if volume.failed || self.durable.as_ref().is_some_and(|durable| durable.is_stopping()) {
            return Err(IoError::Io);
        }
        if request.kind == RequestKind::Flush {
            return Ok(());
        }
        let aligned = request.offset.is_multiple_of(SECTOR_BYTES) && request.len.is_multiple_of(SECTOR_BYTES);
        let end = request.offset.checked_add(request.len).ok_or(IoError::Invalid)?;
        let data = matches!(request.kind, RequestKind::Read | RequestKind::Write);
        let too_long = data && request.len > u64::from(u32::MAX);
        if !aligned || end > volume.bytes || too_long { Err(IoError::Invalid) } else { Ok(()) }
    }

    /// Where a part of a request that starts here ends.
    fn part_end(&self, request: &Request, start: u64) -> u64 {
        let end = request.offset + request.len;
        let after = |step: u64| end.min((start / step + 1) * step);
        match request.kind {
            RequestKind::Read => after(PART_BYTES),
            RequestKind::Write if self.markable_bytes() >= PART_BYTES => after(PART_BYTES),
            RequestKind::Write => after(self.markable_bytes()),
            _ => after(RANGE_PART_BYTES.min(self.markable_bytes())),
        }
    }

    /// Start parts of a request until enough run or none is left.
    fn start_parts(&mut self, guest_id: u32) {
        loop {
            let Guest { request, asked, next, parts, .. } = self.guests[guest_id as usize];
            if parts == PARTS_MAX || next == request.offset + request.len {
                return;
            }
            let part_end = self.part_end(&request, next);
            let guest = &mut self.guests[guest_id as usize];
            guest.next = part_end;
            guest.parts += 1;
            self.lock_part(new_part(Some(guest_id), &request, asked, next, part_end));
        }
    }

    #[inline(always)]
    fn lock_part(&mut self, part: Part) {
        let owner = Owner::Part(self.parts.insert(part) as u32);
        let exclusive = part.kind != RequestKind::Read;
        // Where blocks have checksums, a write of a part of one is a write of all of it.
        let (start, end) = match exclusive && self.durable.is_some() {
            true => self.whole_blocks(part.volume, part.start, part.end),
            false => (part.start, part.end),
        };
        let locks = &mut self.volume_mut(part.volume).locks;
        if locks.acquire(start, end, exclusive, owner) {
            self.granted.push_back(owner);
        }
    }

    /// Run the parts whose lock was granted, and those that their ends let go on, until none is left.
    #[inline(always)]
    pub(crate) fn run_granted(&mut self) {
        if !self.granted.is_empty() {
            self.run_those_granted();
        }
    }

    #[inline(never)]
    fn run_those_granted(&mut self) {
        if self.held {
            return self.refuse_granted();
        }
        if self.is_starting() && !self.is_planted(crate::Planted::ServedBeforeStart) {
            return;
        }
        while let Some(owner) = self.granted.pop_front() {
            let Owner::Part(part) = owner else { unreachable!("a fill never waits for its lock") };
            if self.is_refused(part) {
                continue;
            }
            match self.parts[part as usize].kind {
                RequestKind::Read => self.run_read(part),
                RequestKind::Write => self.run_write(part),
                RequestKind::Discard | RequestKind::WriteZeroes { .. } => self.run_range(part),
                RequestKind::Flush => unreachable!("a flush has no parts"),
            }
        }
    }

    /// Who is held waits on; but parts of a volume that has failed end now: other parts of their requests may be lost with the cache device.
    fn refuse_granted(&mut self) {
        let mut waiting = VecDeque::new();
        while let Some(owner) = self.granted.pop_front() {
            let Owner::Part(part) = owner else { unreachable!("a fill never waits for its lock") };
            if !self.is_refused(part) {
                waiting.push_back(owner);
            }
        }
        self.granted = waiting;
    }

    /// A part that has not begun ends at once where its volume is not served any more.
    fn is_refused(&mut self, part_id: u32) -> bool {
        let part = &mut self.parts[part_id as usize];
        let refused = part.pending == 0 && self.volumes[part.volume.0 as usize].failed;
        if refused {
            (part.pending, part.error) = (1, Some(IoError::Io));
            self.part_step(part_id);
        }
        refused
    }

    /// One pending step of a part is done; the part ends with its last.
    pub(crate) fn part_step(&mut self, part_id: u32) {
        let known = &mut self.parts[part_id as usize];
        if known.pending > 1 {
            known.pending -= 1;
            return;
        }
        debug_assert_eq!(known.pending, 1, "a part ends once");
        // Copied before it is changed: what was written just now, and in pieces, would be waited for.
        let part = Part { pending: 0, ..*known };
        known.pending = 0;
        match part.kind {
            RequestKind::Write => self.settle_write(part_id, &part),
            RequestKind::Read | RequestKind::Flush => {}
            RequestKind::Discard | RequestKind::WriteZeroes { .. } => self.settle_range(part_id, &part),
        }
        self.end_part(part_id, &part);
    }

    /// A part's operation on the backing ended, other than a fill's.
    pub(crate) fn end_backing(&mut self, part_id: u32, result: Result<(), IoError>) {
        let part = self.parts[part_id as usize];
        self.volume_mut(part.volume).unflushed |= part.kind != RequestKind::Read;
        if let Err(error) = result {
            self.fail_part(part_id, error);
        }
        self.part_step(part_id);
    }

    /// A part's guest will be told of this error of the backing.
    pub(crate) fn fail_part(&mut self, part_id: u32, error: IoError) {
        let part = &mut self.parts[part_id as usize];
        part.error.get_or_insert(error);
        let volume = part.volume;
        self.stats_mut(volume).backing_errors += 1;
    }

    fn end_part(&mut self, part_id: u32, part: &Part) {
        self.parts.remove(part_id as usize);
        if part.guarded {
            self.unguard(part);
        }
        self.leave_order(part);
        self.unlock(part.volume, Owner::Part(part_id));
        match part.guest {
            None => {
                self.alone -= 1;
                self.end_guest(part, part.end - part.start, part.error);
            }
            Some(guest) => self.end_piece(guest, part),
        }
    }

    /// A part of a request of several has ended.
    fn end_piece(&mut self, guest_id: u32, part: &Part) {
        let guest = &mut self.guests[guest_id as usize];
        guest.parts -= 1;
        guest.error = guest.error.or(part.error);
        if guest.error.is_some() {
            // What was not started yet need not be: the guest is told of the error, and may not count on any of it.
            guest.next = guest.request.offset + guest.request.len;
        }
        self.start_parts(guest_id);
        if self.guests[guest_id as usize].parts == 0 {
            let guest = self.guests.remove(guest_id as usize);
            self.end_guest(part, guest.request.len, guest.error);
        }
    }

    /// The last part of a request has ended, and the request with it.
    fn end_guest(&mut self, part: &Part, bytes: u64, error: Option<IoError>) {
        self.ended_at_doors(part.volume, part.asked, bytes, error.is_none());
        let durably = part.fua && part.kind != RequestKind::Read && self.durable.is_some();
        match error {
            Some(error) => self.reply(part.id, Err(error)),
            None if !durably || self.is_planted(crate::Planted::FuaIgnored) => self.reply(part.id, Ok(())),
            // What was written to the backing is durable, but a slot that it has overtaken is freed only after a flush.
            // Nor may what comes after it reach an ordered backing before it.
            None if self.owes(part.volume) || self.is_ordered(part.volume) => {
                self.flush(part.volume, part.id)
            }
            None => self.reply_when_durable(part.volume, part.id),
        }
    }

    pub(crate) fn unlock(&mut self, volume: VolumeId, owner: Owner) {
        self.volumes[volume.0 as usize].locks.release(owner, &mut self.granted);
    }

    pub(crate) fn reply(&mut self, request: RequestId, result: Result<(), IoError>) {
        self.actions.push_back(Action::Reply { request, result });
    }
}

#[inline(always)]
fn new_part(guest: Option<u32>, request: &Request, asked: Asked, start: u64, end: u64) -> Part {
    Part {
        guest,
        volume: request.volume,
        kind: request.kind,
        id: request.id,
        origin: request.offset,
        start,
        end,
        fua: request.fua,
        asked,
        pending: 0,
        guarded: false,
        back: false,
        past: false,
        marks: 0,
        rounds: 0,
        error: None,
    }
}
