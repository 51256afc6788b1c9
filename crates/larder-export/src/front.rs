//! The frontend of a reactor: every way in which its volumes are served, side by side.
//!
//! Whose an event or a reply is tells the topmost bit of its token or cookie: [`VHOST`] is set in all those of vhost-user, and in
//! none of NBD.

use crate::nbd::{NbdCommand, NbdFrontend};
use crate::vhost::{VhostCommand, VhostFrontend};
use larder_engine::{IoError, VolumeId};
use larder_io::{Buffer, Context, Event, Frontend, VolumeInfo};
use std::time::Instant;

/// Set in the tokens and cookies of vhost-user.
pub(crate) const VHOST: u64 = 1 << 63;

/// What other threads may tell a reactor's frontend.
#[derive(Debug)]
pub enum ExportCommand {
    /// For the NBD server.
    Nbd(NbdCommand),
    /// For the vhost-user devices.
    Vhost(VhostCommand),
}

/// Serves the volumes of one reactor in every way.
#[derive(Debug)]
pub struct Exports {
    nbd: NbdFrontend,
    vhost: VhostFrontend,
}

impl Exports {
    /// These two.
    pub fn new(nbd: NbdFrontend, vhost: VhostFrontend) -> Self {
        Self { nbd, vhost }
    }
}

/// Whose event it is.
fn is_vhost(event: &Event) -> bool {
    match event {
        Event::Accepted { token, .. }
        | Event::Received { token, .. }
        | Event::Sent { token, .. }
        | Event::Signalled { token, .. }
        | Event::SignalSent { token } => token & VHOST != 0,
        Event::CalledAgain => false,
    }
}

impl Frontend for Exports {
    type Command = ExportCommand;

    fn start(&mut self, cx: &mut Context) {
        self.nbd.start(cx);
        self.vhost.start(cx);
    }

    fn command(&mut self, cx: &mut Context, command: ExportCommand) {
        match command {
            ExportCommand::Nbd(command) => self.nbd.command(cx, command),
            ExportCommand::Vhost(command) => self.vhost.command(cx, command),
        }
    }

    #[inline]
    fn event(&mut self, cx: &mut Context, event: Event) {
        match is_vhost(&event) {
            true => self.vhost.event(cx, event),
            false => self.nbd.event(cx, event),
        }
    }

    #[inline]
    fn reply(&mut self, cx: &mut Context, cookie: u64, result: Result<(), IoError>, buffer: Option<Buffer>) {
        match cookie & VHOST != 0 {
            true => self.vhost.reply(cx, cookie, result, buffer),
            false => self.nbd.reply(cx, cookie, result, buffer),
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
    }

    fn is_idle(&self) -> bool {
        self.nbd.is_idle() && self.vhost.is_idle()
    }

    #[inline]
    fn has_news(&self) -> bool {
        self.vhost.has_news()
    }

    fn before_sleep(&mut self, cx: &mut Context) -> bool {
        self.vhost.before_sleep(cx)
    }
}
