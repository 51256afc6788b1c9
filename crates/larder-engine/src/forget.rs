//! Everything cached of a volume leaves, and the journal durably says so: before somebody else writes to its backing, or it goes away.
//!
//! Until that is so nothing of it enters the cache, not even by a request that was under way when it began: so the end comes, and is one.

use crate::{Engine, Planted, RequestKind, VolumeId};

impl Engine {
    /// Drop everything clean that is cached of a volume, in steps of [`Engine::trim`]; until all has left the volume is served by its backing alone.
    /// [`Engine::go_on_forgetting`] tells when a crash brings nothing of it back. Drain the volume first: what is dirty stays.
    pub fn forget_volume(&mut self, volume: VolumeId) {
        if !self.is_planted(Planted::LeftBehind) {
            self.volume_mut(volume).forgetting = true;
            self.distrust(volume);
        }
    }

    /// True once nothing that was cached of a volume can come back, not even after a crash, and nothing of it is under way. It may be cached again from then on.
    /// Follow with [`Engine::next_action`], and ask again when something has ended.
    pub fn go_on_forgetting(&mut self, volume: VolumeId) -> bool {
        let forgotten = self.is_forgotten(volume);
        if forgotten {
            self.stop_forgetting(volume);
        }
        forgotten
    }

    /// A volume need not be forgotten any more.
    pub fn stop_forgetting(&mut self, volume: VolumeId) {
        let sweeping = self.is_sweeping(volume);
        let volume = self.volume_mut(volume);
        (volume.forgetting, volume.distrusted) = (false, sweeping);
    }

    /// The same as [`Engine::go_on_forgetting`], and it goes on being so.
    pub(crate) fn is_forgotten(&mut self, volume: VolumeId) -> bool {
        if self.is_sweeping(volume) || self.is_asked_of(volume) {
            return false;
        }
        let Some(durable) = &mut self.durable else { return true };
        if durable.is_latched() {
            // The journal says nothing any more. Whoever finds the device again is told so by it, or by who let go of it.
            return durable.is_over();
        }
        let freed = !durable.frees_anything_of(volume);
        if !freed {
            durable.want_soon();
            self.pump();
        }
        freed
    }

    /// True while a request of a volume, or a fill, is under way.
    fn is_asked_of(&self, volume: VolumeId) -> bool {
        !self.volume(volume).fills.is_empty()
            || self.parts.iter().any(|(_, part)| part.volume == volume)
            || self.guests.iter().any(|(_, guest)| guest.request.volume == volume)
    }

    /// True while a request of a guest is under way that may change a volume.
    pub fn is_being_changed(&self, volume: VolumeId) -> bool {
        let changes = |kind| !matches!(kind, RequestKind::Read | RequestKind::Flush);
        self.parts.iter().any(|(_, part)| part.volume == volume && changes(part.kind))
            || self
                .guests
                .iter()
                .any(|(_, guest)| guest.request.volume == volume && changes(guest.request.kind))
    }
}
