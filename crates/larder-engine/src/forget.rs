//! Everything cached of a volume leaves, and the journal durably says so: before somebody else writes to its backing, or it goes away.

use crate::{Engine, RequestKind, VolumeId};

impl Engine {
    /// Drop everything clean that is cached of a volume, in steps of [`Engine::trim`]; until all has left the volume is served by its backing alone.
    /// [`Engine::go_on_forgetting`] tells when a crash brings nothing of it back. Drain the volume first: what is dirty stays.
    pub fn forget_volume(&mut self, volume: VolumeId) {
        self.distrust(volume);
    }

    /// True once nothing that was cached of a volume can come back, not even after a crash. Follow with [`Engine::next_action`], and ask again when
    /// something has ended.
    pub fn go_on_forgetting(&mut self, volume: VolumeId) -> bool {
        if self.volume(volume).distrusted {
            return false;
        }
        let Some(durable) = self.durable.as_mut().filter(|durable| !durable.is_latched()) else {
            return true;
        };
        let freed = !durable.frees_anything_of(volume);
        if !freed {
            durable.want_soon();
            self.pump();
        }
        freed
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
