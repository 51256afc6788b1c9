//! Where the requests of a trace go on a target: volumes side by side, offsets folded where that is wanted, requests in whole
//! units of the target.

use larder_io::BUFFER_MAX;
use larder_trace::{Request, RequestKind, Volume};
use serde::Serialize;

/// A request goes out in pieces of at most so many bytes.
const PIECE_MAX: u64 = BUFFER_MAX as u64;

/// Where a volume begins when several lie side by side: at a multiple of this.
const VOLUME_ALIGN: u64 = 1 << 20;

/// What the target is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// On the trace's clock.
    pub time_ns: u64,
    pub kind: RequestKind,
    pub offset: u64,
    pub len: u64,
}

/// Which requests are replayed, and where.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Volumes by name; all where none is named.
    pub chosen: Vec<String>,
    /// Leave out what changes the target.
    pub reads_only: bool,
    /// Fold what lies behind the end of the target into it.
    pub wrap: bool,
    /// Size of the target in bytes.
    pub bytes: u64,
    /// Its smallest request.
    pub align: u64,
    /// Where each volume of the trace begins; empty as long as nobody knows.
    pub starts: Vec<u64>,
}

/// What was changed of the trace's requests, or left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Changes {
    /// Reads and writes of nothing, which were left out.
    pub empty_requests: u64,
    /// Writes, flushes and discards that were left out.
    pub left_out_requests: u64,
    /// Requests made larger, to whole units of the target.
    pub rounded_requests: u64,
    /// Requests that were folded into the target.
    pub wrapped_requests: u64,
}

impl Changes {
    /// Count together.
    pub fn add(&mut self, more: &Self) {
        self.empty_requests += more.empty_requests;
        self.left_out_requests += more.left_out_requests;
        self.rounded_requests += more.rounded_requests;
        self.wrapped_requests += more.wrapped_requests;
    }
}

/// A request cannot be replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// It lies behind the end of the target, which would have to be so large.
    Beyond { needs_bytes: u64 },
    /// A second volume, in a trace of which nobody knows how large the first one is.
    SecondVolume,
}

impl Layout {
    /// Volumes side by side; `ends` are their sizes. Those that are not chosen take no room. The bytes that all of them take.
    pub fn place(&mut self, volumes: &[Volume], ends: &[u64]) -> u64 {
        let (mut next, mut end) = (0_u64, 0);
        self.starts.clear();
        for (volume, &bytes) in volumes.iter().zip(ends) {
            self.starts.push(next);
            if self.is_chosen(volume) && bytes > 0 {
                end = next.saturating_add(bytes).checked_next_multiple_of(self.align).unwrap_or(u64::MAX);
                next = end.checked_next_multiple_of(VOLUME_ALIGN).unwrap_or(u64::MAX);
            }
        }
        end
    }

    /// True if the requests for this volume are replayed.
    pub fn is_chosen(&self, volume: &Volume) -> bool {
        self.chosen.is_empty() || self.chosen.contains(&volume.to_string())
    }

    /// True if requests of this kind are replayed.
    pub fn takes(&self, kind: RequestKind) -> bool {
        !self.reads_only || kind == RequestKind::Read
    }

    /// Append the pieces of a request for a chosen volume.
    pub fn pieces(
        &self,
        request: &Request,
        changes: &mut Changes,
        into: &mut Vec<Piece>,
    ) -> Result<(), Misfit> {
        let Request { time_ns, kind, .. } = *request;
        if !self.takes(kind) {
            changes.left_out_requests += 1;
            return Ok(());
        }
        if kind == RequestKind::Flush {
            into.push(Piece { time_ns, kind, offset: 0, len: 0 });
            return Ok(());
        }
        if request.len == 0 {
            changes.empty_requests += 1;
            return Ok(());
        }
        let (offset, end) = self.units(request, changes)?;
        let size = self.size();
        if end > size {
            if !self.wrap {
                return Err(Misfit::Beyond { needs_bytes: end });
            }
            changes.wrapped_requests += 1;
        }
        // A longer one would go over the same bytes again.
        let (mut at, mut left) = (offset % size, (end - offset).min(size));
        while left > 0 {
            let most = if kind == RequestKind::Discard { u64::MAX } else { PIECE_MAX };
            let len = left.min(size - at).min(most);
            into.push(Piece { time_ns, kind, offset: at, len });
            (at, left) = ((at + len) % size, left - len);
        }
        Ok(())
    }

    /// The bytes of the target that requests may use: whole units.
    fn size(&self) -> u64 {
        self.bytes / self.align * self.align
    }

    /// The request's first byte and the one behind its last, in whole units, with its volume at its place.
    fn units(&self, request: &Request, changes: &mut Changes) -> Result<(u64, u64), Misfit> {
        let start = match (self.starts.get(request.volume as usize), request.volume) {
            (Some(&start), _) => start,
            (None, 0) => 0,
            (None, _) => return Err(Misfit::SecondVolume),
        };
        let beyond = Misfit::Beyond { needs_bytes: u64::MAX };
        let offset = start.checked_add(request.offset).ok_or(beyond)?;
        let end = offset.checked_add(request.len.into()).ok_or(beyond)?;
        let whole =
            (offset / self.align * self.align, end.checked_next_multiple_of(self.align).ok_or(beyond)?);
        changes.rounded_requests += u64::from(whole != (offset, end));
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn layout(bytes: u64, align: u64) -> Layout {
        let (chosen, starts) = (Vec::new(), Vec::new());
        Layout { chosen, reads_only: false, wrap: false, bytes, align, starts }
    }

    fn request(kind: RequestKind, volume: u32, offset: u64, len: u32) -> Request {
        Request { time_ns: 7, volume, kind, offset, len }
    }

    fn pieces(layout: &Layout, request: Request) -> Result<(Vec<(u64, u64)>, Changes), Misfit> {
        let (mut changes, mut pieces) = (Changes::default(), Vec::new());
        layout.pieces(&request, &mut changes, &mut pieces)?;
        assert!(pieces.iter().all(|piece| piece.kind == request.kind && piece.time_ns == 7));
        Ok((pieces.iter().map(|piece| (piece.offset, piece.len)).collect(), changes))
    }

    #[test]
    fn requests_become_whole_units() {
        let read = |offset, len| request(RequestKind::Read, 0, offset, len);
        let rounded = Changes { rounded_requests: 1, ..Changes::default() };
        let target = layout(MIB, 4096);
        assert_eq!(pieces(&target, read(8192, 4096)), Ok((vec![(8192, 4096)], Changes::default())));
        assert_eq!(pieces(&target, read(8191, 2)), Ok((vec![(4096, 8192)], rounded)));
        assert_eq!(pieces(&layout(MIB, 512), read(8191, 2)), Ok((vec![(7680, 1024)], rounded)));
        assert_eq!(pieces(&target, read(8191, 0)).map(|(pieces, _)| pieces), Ok(vec![]));
        let huge = read(0, 65 << 20);
        let expected = [(0, 32 * MIB), (32 * MIB, 32 * MIB), (64 * MIB, MIB)];
        assert_eq!(pieces(&layout(1 << 30, 512), huge).map(|(pieces, _)| pieces), Ok(expected.to_vec()));
    }

    #[test]
    fn what_lies_behind_the_end_is_refused_or_folded() {
        let mut target = layout(MIB + 512, 4096);
        let write = request(RequestKind::Write, 0, MIB - 4096, 8192);
        assert_eq!(pieces(&target, write), Err(Misfit::Beyond { needs_bytes: MIB + 4096 }));
        target.wrap = true;
        let (folded, changes) = pieces(&target, write).expect("it is folded");
        assert_eq!((folded, changes.wrapped_requests), (vec![(MIB - 4096, 4096), (0, 4096)], 1));
        let (far, _) = pieces(&target, request(RequestKind::Read, 0, 7 * MIB + 4096, 4096)).expect("folded");
        assert_eq!(far, [(4096, 4096)]);
        let (long, _) = pieces(&target, request(RequestKind::Discard, 0, 4096, u32::MAX)).expect("folded");
        assert_eq!(long, [(4096, MIB - 4096), (0, 4096)], "nothing twice");
        let last = request(RequestKind::Read, 0, u64::MAX - 8, 8);
        assert_eq!(pieces(&target, last), Err(Misfit::Beyond { needs_bytes: u64::MAX }));
    }

    #[test]
    fn volumes_lie_side_by_side() {
        let volumes = ["a", "b", "c"].map(|name| Volume::new("", name));
        let mut target = layout(10 * MIB, 512);
        assert_eq!(target.place(&volumes, &[5000, MIB, 100]), 2 * MIB + 512);
        assert_eq!(target.starts, [0, MIB, 2 * MIB]);
        let second = request(RequestKind::Read, 1, 512, 512);
        assert_eq!(pieces(&target, second).map(|(pieces, _)| pieces), Ok(vec![(MIB + 512, 512)]));
        target.chosen = vec!["b".into()];
        assert_eq!((target.place(&volumes, &[5000, MIB, 100]), target.starts[1]), (MIB, 0));
        target.starts.clear();
        assert_eq!(pieces(&target, second), Err(Misfit::SecondVolume));
    }

    #[test]
    fn reads_alone_change_nothing() {
        let target = Layout { reads_only: true, ..layout(MIB, 512) };
        for kind in [RequestKind::Write, RequestKind::Flush, RequestKind::Discard] {
            let (pieces, changes) = pieces(&target, request(kind, 0, 0, 512)).expect("left out");
            assert_eq!((pieces.len(), changes.left_out_requests), (0, 1), "{kind:?}");
        }
    }
}
