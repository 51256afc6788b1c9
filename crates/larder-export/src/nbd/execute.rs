//! Requests to the engine, and its answers to replies.

use super::connection::{Connection, Serving};
use super::frontend::Shared;
use super::memory::memory_of;
use larder_engine::{IoError, RequestKind};
use larder_io::{Buffer, Context, Extent, GuestRequest};
use larder_nbd::consts::{BASE_ALLOCATION_ID, STATE_HOLE, STATE_ZERO, cflag};
use larder_nbd::{Command, ErrorCode, Request, reply};

/// A request in the engine. Its number there is the cookie of the reactor's reply.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight {
    /// Number of the connection.
    pub connection: usize,
    request: Request,
    /// A flush has to follow: FUA on a command that the engine has no such flag for.
    then_flush: bool,
}

impl Connection {
    /// Carry out a request that was found good.
    #[inline]
    pub(super) fn execute(
        &mut self,
        cx: &mut Context,
        shared: &mut Shared,
        serving: &Serving,
        request: Request,
        buffer: Option<Buffer>,
    ) {
        if shared.stopping {
            buffer.into_iter().for_each(|buffer| cx.recycle(buffer));
            return self.refuse(cx, shared, serving, &request, ErrorCode::Shutdown);
        }
        let kind = match request.command {
            Command::Read => RequestKind::Read,
            Command::Write => RequestKind::Write,
            Command::Flush => RequestKind::Flush,
            Command::Trim => RequestKind::Discard,
            Command::WriteZeroes => RequestKind::WriteZeroes { no_hole: request.flags & cflag::NO_HOLE != 0 },
            Command::BlockStatus => return self.block_status(cx, shared, serving, &request),
            _ => return self.refuse(cx, shared, serving, &request, ErrorCode::Invalid),
        };
        let fua = request.flags & cflag::FUA != 0;
        let then_flush = fua && request.command == Command::Trim;
        let cookie = shared.requests.insert(InFlight { connection: self.index, request, then_flush }) as u64;
        self.executing += 1;
        self.executing_memory += memory(&request);
        let (offset, len) = (request.offset, u64::from(request.length));
        cx.submit(GuestRequest { volume: serving.volume, kind, offset, len, fua }, buffer, cookie);
    }

    /// The engine is done with a request. Its number is given back unless a flush follows.
    #[inline]
    pub(super) fn completed(
        &mut self,
        cx: &mut Context,
        shared: &mut Shared,
        cookie: u64,
        result: Result<(), IoError>,
        buffer: Option<Buffer>,
    ) {
        let (Some(serving), Some(in_flight)) = (self.serving(), shared.requests.get_mut(cookie as usize))
        else {
            return buffer.into_iter().for_each(|buffer| cx.recycle(buffer));
        };
        if in_flight.then_flush && result.is_ok() {
            in_flight.then_flush = false;
            let flush = GuestRequest {
                volume: serving.volume,
                kind: RequestKind::Flush,
                offset: 0,
                len: 0,
                fua: false,
            };
            return cx.submit(flush, None, cookie);
        }
        let request = shared.requests.remove(cookie as usize).request;
        self.executing -= 1;
        self.executing_memory -= memory(&request);
        match result {
            _ if self.is_closed() => buffer.into_iter().for_each(|buffer| cx.recycle(buffer)),
            Ok(()) => self.succeed(cx, shared, &serving, &request, buffer),
            Err(error) => {
                buffer.into_iter().for_each(|buffer| cx.recycle(buffer));
                self.refuse(cx, shared, &serving, &request, error_code(error));
            }
        }
        self.account(shared);
    }

    /// Answer with success, and with what was read.
    #[inline]
    fn succeed(
        &mut self,
        cx: &mut Context,
        shared: &mut Shared,
        serving: &Serving,
        request: &Request,
        buffer: Option<Buffer>,
    ) {
        let &Request { cookie, offset, length, .. } = request;
        let payload = match (buffer, request.command) {
            (Some(buffer), Command::Read) => Some((buffer, length as usize)),
            (Some(buffer), _) => {
                cx.recycle(buffer);
                None
            }
            (None, _) => None,
        };
        if payload.is_some() && serving.structured {
            self.answer(cx, shared, &reply::data(cookie, offset, length), payload);
        } else {
            // Without payload a simple reply is allowed in any case, and is the shortest.
            self.answer(cx, shared, &reply::simple(cookie, Ok(())), payload);
        }
    }

    /// Answer with an error.
    pub(super) fn refuse(
        &mut self,
        cx: &mut Context,
        shared: &mut Shared,
        serving: &Serving,
        request: &Request,
        code: ErrorCode,
    ) {
        match serving.structured {
            true => self.answer(cx, shared, &reply::error(request.cookie, code), None),
            false => self.answer(cx, shared, &reply::simple(request.cookie, Err(code)), None),
        }
    }

    #[inline]
    fn answer(
        &mut self,
        cx: &mut Context,
        shared: &mut Shared,
        header: &[u8],
        payload: Option<(Buffer, usize)>,
    ) {
        if !self.send.push(cx, &mut shared.spare, header, payload) {
            tracing::error!("BUG: a reply does not fit a send list; the connection is closed");
            self.close(cx, shared);
        }
    }

    /// Tell how a range is allocated.
    fn block_status(&mut self, cx: &mut Context, shared: &mut Shared, serving: &Serving, request: &Request) {
        shared.turn.note_status(&mut self.turn_share);
        let mut extents = std::mem::take(&mut shared.extents);
        extents.clear();
        cx.extents(serving.volume, request.offset, request.length.into(), &mut extents);
        let mut told = describe(&extents, request.length);
        shared.extents = extents;
        if request.flags & cflag::REQ_ONE != 0 {
            told.truncate(1);
        }
        let mut chunk = Vec::with_capacity(reply::CHUNK_BYTES + 4 + 8 * told.len());
        reply::block_status(&mut chunk, request.cookie, BASE_ALLOCATION_ID, &told);
        if !self.send.push_bytes(cx, &mut shared.spare, &chunk) {
            self.refuse(cx, shared, serving, request, ErrorCode::NoMemory);
        }
    }
}

/// Memory of the buffer that a request has while it is in the engine, in bytes.
fn memory(request: &Request) -> usize {
    match request.command {
        Command::Read | Command::Write => memory_of(request.length as usize),
        _ => 0,
    }
}

/// Extents as the protocol tells them: at least one, neighbours differ, none beyond what was asked.
fn describe(extents: &[Extent], length: u32) -> Vec<reply::Extent> {
    let mut told: Vec<reply::Extent> = Vec::new();
    let mut left = length;
    for extent in extents.iter().take_while(|extent| extent.len > 0) {
        let length = u32::try_from(extent.len).unwrap_or(u32::MAX).min(left);
        let flags = if extent.hole { STATE_HOLE | STATE_ZERO } else { 0 };
        left -= length;
        match told.last_mut() {
            _ if length == 0 => break,
            Some(last) if last.flags == flags => last.length += length,
            _ => told.push(reply::Extent { length, flags }),
        }
    }
    if told.is_empty() {
        told.push(reply::Extent { length, flags: 0 });
    }
    told
}

fn error_code(error: IoError) -> ErrorCode {
    match error {
        IoError::Io => ErrorCode::Io,
        IoError::NoSpace => ErrorCode::NoSpace,
        IoError::Invalid => ErrorCode::Invalid,
        IoError::NotSupported => ErrorCode::NotSupported,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Extent = Extent { len: 4096, hole: false };
    const HOLE: Extent = Extent { len: 8192, hole: true };

    fn told(extents: &[Extent], length: u32) -> Vec<(u32, u32)> {
        describe(extents, length).iter().map(|extent| (extent.length, extent.flags)).collect()
    }

    #[test]
    fn extents_are_merged_and_cut() {
        assert_eq!(told(&[DATA, DATA, HOLE, DATA], 16384), [(8192, 0), (8192, 3)]);
        assert_eq!(told(&[HOLE, DATA], 9000), [(8192, 3), (808, 0)]);
        assert_eq!(told(&[Extent { len: u64::MAX, hole: true }], u32::MAX), [(u32::MAX, 3)]);
    }

    #[test]
    fn there_is_always_an_extent() {
        assert_eq!(told(&[], 512), [(512, 0)]);
        assert_eq!(told(&[Extent { len: 0, hole: true }], 512), [(512, 0)]);
    }
}
