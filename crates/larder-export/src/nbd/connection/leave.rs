//! A client that goes to another process while this one stops: it is answered first, and taken along with what it has sent since.

use super::{Connection, Fate, Verdict};
use crate::handover::ClientState;
use crate::nbd::patience::Patience;
use larder_io::Context;

impl Connection {
    /// Take up nothing more, and leave when everything is answered.
    pub(super) fn move_away(&mut self, cx: &mut Context) {
        if self.fate == Fate::Open {
            self.fate = Fate::Moving;
            self.patience = Patience::for_farewell(cx.now());
        }
    }

    /// Have a receive end that is under way: the next process receives what comes.
    pub(super) fn urge(&mut self, cx: &mut Context) {
        if self.is_answered() && self.receive.is_receiving() {
            cx.interrupt(self.socket);
        }
    }

    fn is_answered(&self) -> bool {
        self.executing == 0 && self.send.segments() == 0
    }

    /// Once everything is answered, and nothing works on the socket: let it go.
    pub(super) fn leave(&mut self, cx: &mut Context) -> Verdict {
        if !self.is_answered() || self.receive.is_receiving() {
            self.urge(cx);
            return Verdict::Stay;
        }
        let export = self.seat.as_ref().and_then(|seat| seat.export());
        let Some((export, serving)) = export.zip(self.serving()) else { return Verdict::Stay };
        let (stream, skip) = self.receive.rest();
        let state = ClientState {
            export: export.name.clone(),
            identity: export.identity.clone(),
            bytes: serving.limits.size,
            min_block: serving.limits.min_block,
            flags: serving.limits.flags,
            structured: serving.structured,
            base_allocation: serving.limits.base_allocation,
            skip: skip as u64,
            stream,
        };
        let Some(fd) = cx.detach(self.socket) else { return Verdict::Stay };
        self.receive.release(cx);
        Verdict::Leave { fd, state: Box::new(state) }
    }
}
