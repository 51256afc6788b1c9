//! The vhost-user devices of a reactor: every call of the reactor finds its device and its queue here.

use super::channel::Channel;
use super::device::{Device, Session, Shared, Token};
use super::memory::Snapshot;
use super::ring::{Phase, Ring, RingSetup};
use super::session;
use crate::door::Door;
use crate::front::{ExportCommand, VHOST};
use crate::handover::Heir;
use crate::listener::Listener;
use crate::users::Users;
use larder_engine::{IoError, VolumeId};
use larder_io::{Buffer, Context, Event, Frontend, Handle, VolumeInfo};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

/// What other threads may tell the devices.
#[derive(Debug)]
pub struct VhostCommand(Command);

#[derive(Debug)]
enum Command {
    /// From a connection's thread.
    Session {
        /// The device's place among the reactor's.
        device: usize,
        /// The connection's number.
        session: u64,
        told: Told,
    },
    /// Serve another volume.
    Serve(Box<VhostVolume>),
    /// Serve a volume no more, if no hypervisor has it; whether that was so is answered.
    Close { volume: VolumeId, answer: Sender<bool> },
}

impl VhostCommand {
    /// Serve another volume.
    pub fn serve(volume: VhostVolume) -> Self {
        Self(Command::Serve(Box::new(volume)))
    }

    /// Serve a volume no more. Answered with false where a hypervisor has it, or something of the last one is in flight: then it is served as before.
    pub fn close(volume: VolumeId, answer: Sender<bool>) -> Self {
        Self(Command::Close { volume, answer })
    }

    /// What a connection's thread tells.
    pub(super) fn session(device: usize, session: u64, told: Told) -> Self {
        Self(Command::Session { device, session, told })
    }
}

/// What a connection's thread tells the reactor. Who waits for an answer that never comes learns so from the hung-up channel.
#[derive(Debug)]
pub(super) enum Told {
    /// Serve a queue; answered when that is so.
    Start { ring: u16, setup: Box<RingSetup>, answer: Sender<()> },
    /// Serve a queue no more; answered with the index of the next request that would have been taken, once all others were
    /// given back.
    Stop { ring: u16, answer: Sender<u16> },
    /// The guest's memory is another; answered when no queue is looked for in the old one.
    Memory { memory: Arc<Snapshot>, answer: Sender<()> },
    /// The guest of this queue is told by another counter.
    Call { ring: u16, call: Option<OwnedFd> },
    /// Every write is to be durable when it completes, or not.
    WritesThrough(bool),
    /// The connection is over, after this where its hypervisor did not just leave.
    Over { error: Option<String> },
}

/// A volume that is to be served.
#[derive(Debug)]
pub struct VhostVolume {
    /// Its name; guests see the first 20 bytes as the disk's serial number.
    pub name: String,
    /// Its number on the reactor.
    pub volume: VolumeId,
    /// Size and block sizes.
    pub info: VolumeInfo,
    /// Where hypervisors connect: a Unix socket, for this volume alone.
    pub listener: Listener,
    /// Counts the hypervisors that have connected.
    pub users: Users,
}

impl VhostVolume {
    fn device(self, index: usize) -> Device {
        let Self { name, volume, info, listener, users } = self;
        Device::new(index, name, volume, info, Door::new(listener), users)
    }
}

/// The vhost-user devices of one reactor.
#[derive(Debug)]
pub struct VhostFrontend {
    reactor: Handle<ExportCommand>,
    devices: Vec<Device>,
    shared: Shared,
    /// Connections there were.
    sessions: u64,
    /// Requests were given back since the queues were looked at.
    given_back: bool,
    stopping: bool,
    /// Who has the listeners when this stops.
    heir: Option<Heir>,
}

impl VhostFrontend {
    /// The devices of the reactor with this handle.
    pub fn new(reactor: Handle<ExportCommand>, volumes: Vec<VhostVolume>) -> Self {
        let devices = volumes.into_iter().enumerate().map(|(index, volume)| volume.device(index)).collect();
        Self {
            reactor,
            devices,
            shared: Shared::new(),
            sessions: 0,
            given_back: false,
            stopping: false,
            heir: None,
        }
    }

    /// Leave the listeners to this heir when it stops. Hypervisors connect again.
    pub fn set_heir(&mut self, heir: Heir) {
        self.heir = Some(heir);
    }

    /// Accept hypervisors for every volume that has none.
    fn open_doors(&mut self, cx: &mut Context) {
        for device in self.devices.iter_mut().filter(|device| device.session.is_none()) {
            device.door.open(cx, Token::Accept { device: device.index }.to_bits());
        }
    }

    fn accepted(&mut self, cx: &mut Context, index: usize, result: io::Result<OwnedFd>) {
        let Some(device) = self.devices.get_mut(index) else { return };
        let Some(fd) = device.door.accepted(cx, result).filter(|_| !self.stopping) else { return };
        let stream = UnixStream::from(fd);
        self.sessions += 1;
        let number = self.sessions;
        let channel = Arc::new(Channel::new(device.info.bytes));
        let begun = stream.try_clone().and_then(|ours| {
            let link = session::Link::new(self.reactor.clone(), device.index, number);
            session::start(ours, link, &channel, &device.info)
        });
        match begun {
            Ok(()) => {
                if self.shared.log(index).allows() {
                    tracing::info!(volume = device.name, "a hypervisor has connected");
                }
                device.session = Some(Session { number, stream, channel, _user: device.users.take() });
                // Until the driver says what it can.
                device.writes_through = true;
            }
            Err(error) if self.shared.log(index).allows() => {
                tracing::warn!(volume = device.name, %error, "cannot serve a hypervisor");
            }
            Err(_) => {}
        }
    }

    /// A device whose hypervisor is gone may have another once nothing of the old one is left.
    fn renew(&mut self, cx: &mut Context, index: usize) {
        let Some(device) = self.devices.get_mut(index) else { return };
        if !self.stopping && device.session.is_none() && device.is_empty() {
            device.door.open(cx, Token::Accept { device: index }.to_bits());
        }
    }

    fn obey(&mut self, cx: &mut Context, device: usize, told: Told) {
        let shared = &mut self.shared;
        let Some(device) = self.devices.get_mut(device) else { return };
        match told {
            // An error is told by not answering.
            Told::Start { .. } if self.stopping => {}
            Told::Start { ring: number, setup, answer } => match Ring::new(cx, *setup) {
                Ok(ring) => match device.add_ring(cx, shared, number, ring) {
                    // A connection that is over need not know.
                    true => drop(answer.send(())),
                    false => tracing::error!(volume = device.name, "BUG: a queue is started twice"),
                },
                Err(error) if shared.log(device.index).allows() => {
                    tracing::warn!(volume = device.name, %error, "cannot use a queue's event counters");
                }
                Err(_) => {}
            },
            Told::Stop { ring: number, answer } => {
                if let Some(ring) = device.ring(number) {
                    ring.end(answer);
                    device.wake(shared, number);
                }
            }
            Told::Memory { memory, answer } => {
                let mut inside = true;
                device.rings().for_each(|(_, ring)| inside &= ring.set_memory(&memory));
                match inside {
                    true => drop(answer.send(())),
                    false => device.hang_up(),
                }
            }
            Told::Call { ring: number, call } => {
                if let Some(ring) = device.ring(number) {
                    match ring.set_call(cx, call) {
                        Ok(()) => device.wake(shared, number),
                        Err(_) => device.hang_up(),
                    }
                }
            }
            Told::WritesThrough(on) => device.writes_through = on,
            Told::Over { error } => {
                match error {
                    _ if !shared.log(device.index).allows() => {}
                    None => tracing::info!(volume = device.name, "a hypervisor has left"),
                    Some(error) => {
                        tracing::warn!(volume = device.name, error, "a hypervisor's connection ends");
                    }
                }
                device.session = None;
                device.abandon(shared);
            }
        }
    }

    /// A volume has another size: whoever uses it is told.
    pub fn resized(&mut self, volume: VolumeId, info: VolumeInfo) {
        for device in self.devices.iter_mut().filter(|device| device.volume == volume) {
            device.info = info;
            device.session.iter().for_each(|session| session.channel.resize(info.bytes));
        }
    }

    /// Serve a volume no more; false where somebody uses it. Its device keeps its place, which is in names of operations.
    fn close(&mut self, cx: &mut Context, volume: VolumeId) -> bool {
        let mut of_it = self.devices.iter_mut().filter(|device| device.volume == volume);
        let unused = of_it.all(|device| device.session.is_none() && device.is_empty());
        if unused {
            let of_it = self.devices.iter_mut().filter(|device| device.volume == volume);
            of_it.for_each(|device| device.door.close(cx));
        }
        unused
    }

    /// The daemon stops: a device that has given everything back lets its hypervisor go, which may connect to the next daemon.
    fn part(&mut self) {
        for device in &mut self.devices {
            if device.session.is_some()
                && device.rings().all(|(_, ring)| ring.is_quiet() || ring.phase == Phase::Dead)
            {
                device.hang_up();
            }
        }
    }
}

impl Frontend for VhostFrontend {
    type Command = VhostCommand;

    fn start(&mut self, cx: &mut Context) {
        self.open_doors(cx);
    }

    fn command(&mut self, cx: &mut Context, VhostCommand(command): VhostCommand) {
        match command {
            Command::Session { device: index, session, told } => {
                let now = self.devices.get(index).and_then(|device| device.session.as_ref());
                if now.is_some_and(|now| now.number == session) {
                    self.obey(cx, index, told);
                    self.renew(cx, index);
                }
            }
            Command::Serve(_) if self.stopping => {}
            Command::Serve(volume) => {
                let index = self.devices.len();
                self.devices.push(volume.device(index));
                self.renew(cx, index);
            }
            Command::Close { volume, answer } => {
                // Nobody may be there to hear it.
                let _ = answer.send(self.close(cx, volume));
            }
        }
    }

    #[inline]
    fn event(&mut self, cx: &mut Context, event: Event) {
        let bits = match &event {
            Event::Accepted { token, .. } | Event::Signalled { token, .. } | Event::SignalSent { token } => {
                *token
            }
            Event::Received { .. } | Event::Sent { .. } | Event::Commanded { .. } | Event::CalledAgain => {
                return;
            }
        };
        match (event, Token::from_bits(bits)) {
            (Event::Accepted { result, .. }, Token::Accept { device }) => self.accepted(cx, device, result),
            (_, Token::Kick { device, ring: number }) => {
                let Some(device) = self.devices.get_mut(device) else { return };
                let Some(ring) = device.ring(number) else { return };
                ring.watched();
                ring.watch(cx, bits);
                device.wake(&mut self.shared, number);
            }
            (_, Token::Call { device, ring: number }) => {
                let Some(device) = self.devices.get_mut(device) else { return };
                let Some(ring) = device.ring(number) else { return };
                ring.signalled(cx, bits);
                if ring.phase != Phase::Serving {
                    device.wake(&mut self.shared, number);
                }
            }
            _ => {}
        }
    }

    #[inline]
    fn reply(&mut self, cx: &mut Context, cookie: u64, result: Result<(), IoError>, buffer: Option<Buffer>) {
        let request = self.shared.requests.try_remove((cookie & !VHOST) as usize);
        let Some((request, device)) = request.and_then(|request| {
            let device = self.devices.get_mut(request.device)?;
            Some((request, device))
        }) else {
            tracing::error!(cookie, "BUG: a reply to a request that nobody made");
            return buffer.into_iter().for_each(|buffer| cx.recycle(buffer));
        };
        device.completed(cx, &mut self.shared, request, result, buffer);
        self.given_back = true;
    }

    #[inline]
    fn end_of_batch(&mut self, cx: &mut Context) {
        self.given_back = false;
        if self.shared.awake.is_empty() {
            return;
        }
        // Those that wake while this runs have their turn in the next batch.
        let awake = std::mem::take(&mut self.shared.awake);
        let mut stay = Vec::with_capacity(awake.len());
        for (index, number) in awake {
            let Some(device) = self.devices.get_mut(index) else { continue };
            if device.turn(cx, &mut self.shared, number) {
                stay.push((index, number));
            } else if device.session.is_none() {
                self.renew(cx, index);
            }
        }
        stay.append(&mut self.shared.awake);
        self.shared.awake = stay;
        if self.stopping {
            self.part();
        }
    }

    fn tick(&mut self, cx: &mut Context, _now: Instant) {
        if !self.stopping {
            (0..self.devices.len()).for_each(|index| self.renew(cx, index));
        } else {
            self.devices.iter_mut().for_each(|device| device.door.urge(cx));
        }
        for device in &self.devices {
            let suppressed = self.shared.log(device.index).renew();
            if suppressed > 0 {
                tracing::warn!(
                    volume = device.name,
                    suppressed,
                    "more messages about its guest were left out"
                );
            }
        }
    }

    fn stop(&mut self, cx: &mut Context) {
        self.stopping = true;
        for device in &mut self.devices {
            match &self.heir {
                Some(heir) => device.door.leave(cx, Some(heir)),
                None => device.door.close(cx),
            }
            device.rings().for_each(|(_, ring)| ring.quiesce());
            device.wake_all(&mut self.shared);
        }
        self.part();
    }

    fn is_idle(&self) -> bool {
        let done =
            |device: &Device| device.session.is_none() && device.is_empty() && !device.door.is_leaving();
        self.devices.iter().all(done)
    }

    #[inline]
    fn has_news(&self) -> bool {
        self.shared.awake.iter().any(|&(device, ring)| self.devices[device].has_news(ring))
    }

    #[inline]
    fn wants_turn(&self) -> bool {
        self.given_back
    }

    fn before_sleep(&mut self, _cx: &mut Context) -> bool {
        let awake = std::mem::take(&mut self.shared.awake);
        let mut news = false;
        for &(index, number) in &awake {
            news |= self.devices[index].listen(&mut self.shared, number);
        }
        if news {
            self.shared.awake = awake;
            return true;
        }
        for (index, number) in awake {
            if let Some(ring) = self.devices[index].ring(number) {
                ring.awake = false;
            }
        }
        false
    }
}
