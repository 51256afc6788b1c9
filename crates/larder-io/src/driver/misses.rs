//! Which guest requests had to wait for a backing: those whose own memory is read from it or written to it, and those that share a staging buffer with data
//! that was read from it (fills, writes of a part of a block).

use super::Driver;
use larder_engine::{Buf, BufOwner, OpKind, RequestId};

impl Driver {
    /// An operation on a backing starts.
    #[inline]
    pub(super) fn waits_for_backing(&mut self, kind: &OpKind) {
        match *kind {
            OpKind::Read { buf: Buf { owner: BufOwner::Stage(stage), .. }, .. } => {
                self.from_backing.insert(stage.0);
            }
            OpKind::Read { buf: Buf { owner: BufOwner::Guest(request), .. }, .. }
            | OpKind::Write { buf: Buf { owner: BufOwner::Guest(request), .. }, .. } => self.missed(request),
            // What is cleaned, and what moves no data of a guest's.
            _ => {}
        }
    }

    /// Data is copied between two owners.
    pub(super) fn note_copy(&mut self, from: BufOwner, to: BufOwner) {
        if let (BufOwner::Stage(stage), BufOwner::Guest(request))
        | (BufOwner::Guest(request), BufOwner::Stage(stage)) = (from, to)
            && self.from_backing.contains(&stage.0)
        {
            self.missed(request);
        }
    }

    fn missed(&mut self, request: RequestId) {
        if let Some(flight) = self.requests.get_mut(request.0 as usize) {
            flight.missed = true;
        }
    }
}
