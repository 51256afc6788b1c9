//! Reads to memory that was lent: what the reactor itself moves there, and the way around for reads that do not get there.
//!
//! A read to lent memory may fail because the memory is gone, or is not to the device's liking. That must not count against the device, so such a read is made once more,
//! to memory of the reactor's, and copied from there. The same way go reads that begin when nobody waits for them any more.

use super::Driver;
use crate::backing::Device;
use crate::command::{Command, Ended, Ticket};
use crate::lane::Lane;
use crate::loan::Place;
use crate::{Buffer, Loan};
use larder_engine::{Buf, BufOwner, IoError, Sums, VolumeId};

/// A read that goes to memory of the reactor's first.
#[derive(Debug)]
pub(super) struct Detour {
    buffer: Buffer,
    /// Where in the loan its first byte belongs.
    at: u32,
}

impl Driver {
    /// True where reads of a volume may have lent memory: NBD backings do not write to it, and what goes there by a detour takes memory that nobody has counted.
    pub fn may_borrow(&self, volume: VolumeId) -> bool {
        matches!(self.devices.get(usize::from(volume.0) + 1), Some(Device::File(_)))
    }

    /// True where a read may go straight to the memory that it was lent.
    #[inline]
    pub(super) fn may_go_straight(&self, device: usize, ticket: &Ticket) -> bool {
        let loan = ticket.hold.and_then(|hold| self.guests.held_loan(hold));
        matches!(self.devices[device], Device::File(_)) && loan.is_some_and(Loan::is_wanted)
    }

    /// Have a read go to memory of the reactor's first.
    #[cold]
    pub(super) fn detour(&mut self, lane: &mut Lane, device: usize, command: Command) {
        let Command { ticket, kind, len, lent, .. } = command;
        let buffer = usize::try_from(len).ok().and_then(|len| self.pool.take_beyond(len));
        let (Some(op), Some(at), Some(buffer)) = (ticket.op, lent, buffer) else {
            tracing::error!(bytes = len, "out of memory for a read: it fails");
            self.stats[device].in_flight += 1;
            return self.ended.push_back(Ended {
                device,
                ticket,
                kind,
                result: Err(IoError::Io),
                again: None,
            });
        };
        let command = Command { memory: Place::One(buffer.as_raw()), lent: None, ..command };
        self.detours.insert(op.0, Detour { buffer, at });
        self.run(lane, device, command);
    }

    /// A read has ended, and its memory is still held: what came by a detour goes where it belongs.
    #[inline]
    pub(super) fn end_detour(&mut self, ticket: &Ticket, result: Result<(), IoError>) {
        if self.detours.is_empty() {
            return;
        }
        let Some(Detour { buffer, at }) = ticket.op.and_then(|op| self.detours.remove(&op.0)) else { return };
        if let (Ok(()), Some(loan)) = (result, ticket.hold.and_then(|hold| self.guests.held_loan(hold))) {
            loan.write(at, &buffer);
        }
        self.pool.give(buffer);
    }

    /// The checksums of a read to lent memory: of what was read, where that is known, and else of what is there now.
    pub(super) fn sums_of_lent(&mut self, op: u32, sums: Sums, buf: Buf) -> Option<Vec<u32>> {
        let BufOwner::Guest(request) = buf.owner else { return None };
        let loan = self.guests.loan(request.0)?;
        let bytes = sums.bytes() as usize;
        if let Some(detour) = self.detours.get(&op) {
            return Some(sums.of(detour.buffer.get(..bytes)?).collect());
        }
        self.scratch.resize(bytes, 0);
        loan.read(buf.offset, &mut self.scratch);
        Some(sums.of(&self.scratch).collect())
    }

    /// Copy to lent memory. False where that is not what `to` is.
    #[inline]
    pub(super) fn copy_to_lent(&self, from: *const u8, to: Buf, len: u32) -> bool {
        let BufOwner::Guest(request) = to.owner else { return false };
        let Some(loan) = self.guests.loan(request.0) else { return false };
        // SAFETY: the caller has found these bytes in a live buffer that nobody writes now.
        loan.write(to.offset, unsafe { std::slice::from_raw_parts(from, len as usize) });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::driver;
    use super::super::{Reply, RequestKind};
    use super::*;
    use crate::frontend::GuestRequest;
    use crate::loan::tests::Owner;
    use crate::memory::Held;

    const PAGE: usize = 4096;

    fn ask(driver: &mut Driver, lane: &mut Lane, kind: RequestKind, memory: Held) -> Reply {
        let asked = GuestRequest { volume: VolumeId(0), kind, offset: 0, len: memory.bytes(), fua: false };
        driver.submit(lane, asked, Some(memory), 3);
        while driver.replies.is_empty() && driver.has_work() {
            driver.continue_inline();
            driver.end_next(lane);
        }
        driver.next_reply().expect("the devices are in memory")
    }

    fn write(driver: &mut Driver, lane: &mut Lane, len: usize) -> Vec<u8> {
        let mut buffer = driver.pool.take(len).unwrap();
        buffer.iter_mut().zip(0..).for_each(|(byte, n)| *byte = (n / 512 + n) as u8);
        let data = buffer.to_vec();
        let reply = ask(driver, lane, RequestKind::Write, Held::Own(buffer));
        assert_eq!(reply.result, Ok(()));
        driver.pool.give(reply.buffer.expect("it comes back"));
        data
    }

    #[test]
    fn reads_fill_what_was_lent_piece_by_piece() {
        let mut lane = Lane::new().unwrap();
        let mut driver = driver(&mut lane);
        let data = write(&mut driver, &mut lane, 3 * PAGE);
        let owner = Owner::new(8 * PAGE);
        // The second from the cache.
        for _ in 0..2 {
            let loan = owner.lend(&[(5 * PAGE, PAGE), (2 * PAGE, 2 * PAGE)]).unwrap();
            let reply = ask(&mut driver, &mut lane, RequestKind::Read, Held::Lent(loan));
            assert_eq!((reply.result, reply.buffer.is_none()), (Ok(()), true));
            let bytes = owner.bytes();
            assert_eq!([&bytes[5 * PAGE..6 * PAGE], &bytes[2 * PAGE..4 * PAGE]].concat(), data);
            owner.memory.lock().unwrap().fill(0);
        }
        assert_eq!(driver.pool.used_bytes(), 0);
    }

    #[test]
    fn nothing_is_written_where_nobody_waits_for_it() {
        let mut lane = Lane::new().unwrap();
        let mut driver = driver(&mut lane);
        write(&mut driver, &mut lane, 2 * PAGE);
        let owner = Owner::new(2 * PAGE);
        owner.left.store(true, std::sync::atomic::Ordering::Relaxed);
        let loan = owner.lend(&[(0, 2 * PAGE)]).unwrap();
        assert_eq!(ask(&mut driver, &mut lane, RequestKind::Read, Held::Lent(loan)).result, Ok(()));
        assert!(owner.bytes().iter().all(|&byte| byte == 0));
        assert_eq!((driver.detours.len(), driver.pool.used_bytes()), (0, 0));
    }

    #[test]
    fn writes_do_not_borrow() {
        let mut lane = Lane::new().unwrap();
        let mut driver = driver(&mut lane);
        let loan = Owner::new(PAGE).lend(&[(0, PAGE)]).unwrap();
        assert_eq!(
            ask(&mut driver, &mut lane, RequestKind::Write, Held::Lent(loan)).result,
            Err(IoError::Invalid)
        );
    }

    /// As when the system refuses to write to memory that is gone: the device is not to blame.
    #[test]
    fn a_read_that_does_not_get_there_is_made_again() {
        let mut lane = Lane::new().unwrap();
        let mut driver = driver(&mut lane);
        let data = write(&mut driver, &mut lane, 2 * PAGE);
        let owner = Owner::new(2 * PAGE);
        let asked = GuestRequest {
            volume: VolumeId(0),
            kind: RequestKind::Read,
            offset: 0,
            len: 2 * PAGE as u64,
            fua: false,
        };
        driver.submit(&mut lane, asked, owner.lend(&[(0, 2 * PAGE)]).map(Held::Lent), 3);
        let Ended { device, ticket, kind, .. } = driver.ended.pop_front().unwrap();
        assert_eq!((device, &owner.bytes()), (0, &data), "it is a hit");
        owner.memory.lock().unwrap().fill(0);
        let command = Command {
            ticket,
            kind,
            offset: driver.data_offset,
            len: 2 * PAGE as u64,
            memory: Place::NONE,
            lent: Some(0),
            fua: false,
        };
        let again = Some(Box::new(command));
        driver.ended.push_back(Ended { device, ticket, kind, result: Err(IoError::Io), again });
        while driver.end_next(&mut lane) {}
        assert_eq!(driver.next_reply().unwrap().result, Ok(()));
        assert_eq!(owner.bytes(), data);
        assert!(driver.detours.is_empty());
        assert_eq!((driver.stats[0].errors, driver.stats[0].in_flight, driver.pool.used_bytes()), (0, 0, 0));
    }
}
