//! Draining: a volume's dirty blocks are written back until none is left, and meanwhile none becomes dirty.
//!
//! While a volume is drained its writes go to backing and cache, as under `wt`: so the end comes, however much guests write. It has come when no block is
//! dirty, the journal has nothing more to say of that, and a flush of the backing has ended well that began after it: a block may also have ceased to be
//! dirty because a guest's newer data went to the backing. Without a cache device, which was given up, it needs only that flush, unless the volume has failed.
//!
//! Dirty blocks of which the data is lost can never be written back. Draining once ends without them, and whoever asked for it has to look at
//! [`Engine::lost_of`]; else the end comes when guests have written them again, or discarded them.

use crate::{Engine, VolumeId};

/// How far a volume is with being drained.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drain {
    /// It is not.
    #[default]
    Off,
    /// Until the backing durably has all of it, but for what is lost; then [`Drain::Off`].
    Once,
    /// As long as nobody says otherwise; the backing does not have all of it yet.
    On,
    /// Likewise, and the backing durably has all of it.
    Done,
}

impl Drain {
    /// The name in the status: `off`, `once`, `on`, `done`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Once => "once",
            Self::On => "on",
            Self::Done => "done",
        }
    }

    fn is_under_way(self) -> bool {
        matches!(self, Self::Once | Self::On)
    }
}

/// A volume's draining.
#[derive(Debug, Default)]
pub(super) struct Draining {
    pub state: Drain,
    /// The flush of the backing with which it ends is running.
    flushing: bool,
}

impl Engine {
    /// Write back all that is dirty of a volume, and let nothing become dirty, as long as this is `on`. [`Engine::draining`] and [`Engine::dirty_of`]
    /// tell how far it is; follow with [`Engine::next_action`].
    pub fn drain(&mut self, volume: VolumeId, on: bool) {
        self.set_drain(volume, if on { Drain::On } else { Drain::Off });
    }

    /// Write back all that is dirty of a volume once, then go on as before. Nothing new if it is drained anyway, but that its backing is tried at once.
    pub fn drain_once(&mut self, volume: VolumeId) {
        match self.draining(volume) {
            Drain::Off => self.set_drain(volume, Drain::Once),
            _ => self.try_again(volume),
        }
    }

    /// How far a volume is with being drained.
    pub fn draining(&self, volume: VolumeId) -> Drain {
        self.cleaner.volumes[volume.0 as usize].draining.state
    }

    fn set_drain(&mut self, volume: VolumeId, state: Drain) {
        self.cleaner.volumes[volume.0 as usize].draining = Draining { state, flushing: false };
        if state != Drain::Off
            && let Some(durable) = &mut self.durable
        {
            durable.want_soon();
        }
        self.try_again(volume);
    }

    /// Somebody asks for it: a backing that has failed is not left alone any longer.
    fn try_again(&mut self, volume: VolumeId) {
        let state = &mut self.cleaner.volumes[volume.0 as usize];
        (state.pause, state.paused_until, state.failed_since_asked) = (0, 0, false);
        self.go_on_draining(volume);
        self.cleaner.look();
        self.clean();
        self.pump();
    }

    /// True if what is written back is to be called clean at once.
    pub(crate) fn is_draining(&self, volume: VolumeId) -> bool {
        self.draining(volume).is_under_way()
    }

    /// A round of the journal is durable.
    pub(crate) fn go_on_with_drains(&mut self) {
        for volume in 0..self.volumes.len() {
            self.go_on_draining(VolumeId(volume as u16));
        }
    }

    /// Once nothing is dirty any more the backing is flushed for the last time.
    pub(crate) fn go_on_draining(&mut self, volume: VolumeId) {
        let state = &self.cleaner.volumes[volume.0 as usize].draining;
        if state.state.is_under_way()
            && !state.flushing
            && !self.is_paused(volume)
            && self.is_written_back(volume)
        {
            self.flush_backing(volume);
        }
    }

    /// The backing has all that it is to have at the end.
    fn is_written_back(&self, volume: VolumeId) -> bool {
        let dirty = self.dirty_of(volume);
        let once = self.draining(volume) == Drain::Once;
        !self.is_failed(volume) && (dirty == 0 || (once && dirty <= self.lost_of(volume)))
    }

    /// A volume has a dirty block. One whose write was under way when the draining began may come late.
    pub(super) fn drain_further(&mut self, volume: VolumeId) {
        let draining = &mut self.cleaner.volumes[volume.0 as usize].draining;
        draining.flushing = false;
        if draining.state == Drain::Done {
            draining.state = Drain::On;
        }
        if let Some(durable) = self.durable.as_mut().filter(|_| draining.state != Drain::Off) {
            durable.want_soon();
        }
    }

    /// A flush of a volume's backing begins.
    pub(crate) fn drain_flush_begins(&mut self, volume: VolumeId) {
        let says = self.durable.as_ref().is_some_and(|durable| durable.says_clean(volume));
        // The journal of a device that was given up says no more. What it was to say would have made the volume fail.
        let unsaid = !self.cache_failed && (self.owes(volume) || says);
        // Of a volume that has failed the device may have dirty blocks that are not known here any more.
        let clean = self.is_written_back(volume) && !unsaid && !self.is_failed(volume);
        let draining = &mut self.cleaner.volumes[volume.0 as usize].draining;
        draining.flushing = draining.state.is_under_way() && clean;
    }

    /// It has ended.
    pub(crate) fn drain_flush_ends(&mut self, volume: VolumeId, ok: bool) {
        let draining = &mut self.cleaner.volumes[volume.0 as usize].draining;
        if std::mem::take(&mut draining.flushing) && ok {
            draining.state = match draining.state {
                Drain::Once => Drain::Off,
                Drain::On | Drain::Done => Drain::Done,
                Drain::Off => Drain::Off,
            };
        }
    }
}
