//! The frontend of a reactor: every way in which its volumes are served, side by side.
//!
//! Whose an event or a reply is tell the topmost bits of its token or cookie: [`VHOST`] is set in all those of vhost-user, [`UBLK`] in
//! those of ublk, neither in those of NBD.

use crate::handover::Heir;
use crate::nbd::{NbdCommand, NbdFrontend};
use crate::ublk::{UblkCommand, UblkFrontend};
use crate::vhost::{VhostCommand, VhostFrontend};
use larder_engine::{IoError, VolumeId};
use larder_io::{Buffer, Context, Event, Frontend, VolumeInfo};
use std::time::Instant;

/// Set in the tokens and cookies of vhost-user.
pub(crate) const VHOST: u64 = 1 << 63;
/// Set in the tokens and cookies of ublk, where [`VHOST`] is not.
pub(crate) const UBLK: u64 = 1 << 62;

/// What other threads may tell a reactor's frontend.
#[derive(Debug)]
pub enum ExportCommand {
    /// For the NBD server.
    Nbd(NbdCommand),
    /// For the vhost-user devices.
    Vhost(VhostCommand),
    /// For the block devices.
    Ublk(UblkCommand),
    /// What is to be told before the end, where another process goes on: listeners and clients are left to it.
    Leave(Heir),
}

/// Serves the volumes of one reactor in every way.
#[derive(Debug)]
pub struct Exports {
    nbd: NbdFrontend,
    vhost: VhostFrontend,
    ublk: UblkFrontend,
}

impl Exports {
    /// These two, without block devices.
    pub fn new(nbd: NbdFrontend, vhost: VhostFrontend) -> Self {
        Self { nbd, vhost, ublk: UblkFrontend::none() }
    }

    /// With these block devices.
    pub fn with_ublk(self, ublk: UblkFrontend) -> Self {
        Self { ublk, ..self }
    }
}

/// Whose token or cookie it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Nbd,
    Vhost,
    Ublk,
}

impl Owner {
    #[inline]
    fn of(bits: u64) -> Self {
        match (bits & VHOST != 0, bits & UBLK != 0) {
            (true, _) => Self::Vhost,
            (false, true) => Self::Ublk,
            (false, false) => Self::Nbd,
        }
    }
}

#[inline]
fn owner(event: &Event) -> Owner {
    match event {
        Event::Accepted { token, .. }
        | Event::Received { token, .. }
        | Event::Sent { token, .. }
        | Event::Signalled { token, .. }
        | Event::SignalSent { token }
        | Event::Commanded { token, .. } => Owner::of(*token),
        Event::CalledAgain => Owner::Nbd,
    }
}

impl Frontend for Exports {
    type Command = ExportCommand;

    fn start(&mut self, cx: &mut Context) {
        self.nbd.start(cx);
        self.vhost.start(cx);
        self.ublk.start(cx);
    }

    fn command(&mut self, cx: &mut Context, command: ExportCommand) {
        match command {
            ExportCommand::Nbd(command) => self.nbd.command(cx, command),
            ExportCommand::Vhost(command) => self.vhost.command(cx, command),
            ExportCommand::Ublk(command) => self.ublk.command(cx, command),
            ExportCommand::Leave(heir) => {
                self.nbd.set_heir(heir.clone());
                self.vhost.set_heir(heir);
            }
        }
    }

    #[inline]
    fn event(&mut self, cx: &mut Context, event: Event) {
        match owner(&event) {
            Owner::Nbd => self.nbd.event(cx, event),
            Owner::Vhost => self.vhost.event(cx, event),
            Owner::Ublk => self.ublk.event(cx, event),
        }
    }

    #[inline]
    fn reply(&mut self, cx: &mut Context, cookie: u64, result: Result<(), IoError>, buffer: Option<Buffer>) {
        match Owner::of(cookie) {
            Owner::Nbd => self.nbd.reply(cx, cookie, result, buffer),
            Owner::Vhost => self.vhost.reply(cx, cookie, result, buffer),
            Owner::Ublk => self.ublk.reply(cx, cookie, result, buffer),
        }
    }

    #[inline]
    fn end_of_batch(&mut self, cx: &mut Context) {
        self.nbd.end_of_batch(cx);
        self.vhost.end_of_batch(cx);
    }

    fn resized(&mut self, _: &mut Context, volume: VolumeId, info: VolumeInfo) {
        self.vhost.resized(volume, info);
    }

    fn tick(&mut self, cx: &mut Context, now: Instant) {
        self.nbd.tick(cx, now);
        self.vhost.tick(cx, now);
    }

    fn stop(&mut self, cx: &mut Context) {
        self.nbd.stop(cx);
        self.vhost.stop(cx);
        self.ublk.stop(cx);
    }

    fn is_idle(&self) -> bool {
        self.nbd.is_idle() && self.vhost.is_idle() && self.ublk.is_idle()
    }

    #[inline]
    fn has_news(&self) -> bool {
        self.vhost.has_news()
    }

    #[inline]
    fn wants_turn(&self) -> bool {
        self.vhost.wants_turn()
    }

    fn before_sleep(&mut self, cx: &mut Context) -> bool {
        self.vhost.before_sleep(cx)
    }
}
