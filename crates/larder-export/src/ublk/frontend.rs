//! The block devices of a reactor: every call of the reactor finds its device here, and what a device needs beside the reactor is begun here.

use super::attach::{Attached, UblkError, Wanted, attach, disk_path, open_control, resize};
use super::detach::{End, detach, remove};
use super::device::{Device, Phase, Place};
use super::link;
use super::mark::Mark;
use super::state::{UblkPlace, UblkStanding, UblkState};
use crate::front::ExportCommand;
use larder_engine::{IoError, SECTOR_BYTES, VolumeId};
use larder_io::{Buffer, Context, Event, Frontend, Handle, VolumeInfo};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Enough for the driver's commands.
const STACK_BYTES: usize = 256 << 10;
/// How long the reactor may take to begin with a device.
const SERVE_WITHIN: Duration = Duration::from_secs(10);

/// What other threads may tell the block devices.
#[derive(Debug)]
pub struct UblkCommand(Command);

#[derive(Debug)]
enum Command {
    /// From the thread of a device.
    Thread {
        /// The device's place among the reactor's.
        device: usize,
        told: Told,
    },
    /// Make another volume a block device.
    Serve(Box<UblkVolume>),
    /// Remove a volume's device, if nobody has it open; whether that was so is answered.
    Remove { volume: VolumeId, answer: Sender<bool> },
}

impl UblkCommand {
    /// Make another volume a block device.
    pub fn serve(volume: UblkVolume) -> Self {
        Self(Command::Serve(Box::new(volume)))
    }

    /// Remove a volume's device. Answered with false where somebody has it open, or it is being made: then it is served as before.
    pub fn remove(volume: VolumeId, answer: Sender<bool>) -> Self {
        Self(Command::Remove { volume, answer })
    }
}

/// What the thread of a device tells the reactor. Who waits for an answer that never comes learns so from the hung-up channel.
#[derive(Debug)]
enum Told {
    /// Fetch its requests; answered when that has begun.
    Serve { file: File, id: u32, depth: u16, answer: Sender<io::Result<()>> },
    /// The host has it.
    Up,
    /// There will be none.
    Failed,
    /// It stays for the next daemon.
    Leave,
    /// It was stopped: close it; answered when that is done.
    Close { answer: Sender<()> },
    /// It was removed.
    Gone,
}

/// A volume that is to be a block device.
#[derive(Debug)]
pub struct UblkVolume {
    /// Its name, also that of the device's link. It does not begin with a dot, and has no slash.
    pub name: String,
    /// Its backing, as it was configured: a device waits for the same one.
    pub backing: String,
    /// Its number on the reactor.
    pub volume: VolumeId,
    /// Size and block sizes.
    pub info: VolumeInfo,
    /// Where it is told how the device stands.
    pub state: UblkState,
}

impl UblkVolume {
    fn device(self, index: usize) -> Device {
        let Self { name, backing, volume, info, state } = self;
        Device::new(index, name, backing, volume, info, state)
    }
}

/// The block devices of one reactor.
#[derive(Debug)]
pub struct UblkFrontend {
    reactor: Option<Handle<ExportCommand>>,
    devices: Vec<Device>,
    stopping: bool,
}

impl UblkFrontend {
    /// None.
    pub fn none() -> Self {
        Self { reactor: None, devices: Vec::new(), stopping: false }
    }

    /// The devices of the reactor with this handle.
    pub fn new(reactor: Handle<ExportCommand>, volumes: Vec<UblkVolume>) -> Self {
        let devices = volumes.into_iter().enumerate().map(|(index, volume)| volume.device(index)).collect();
        Self { reactor: Some(reactor), devices, stopping: false }
    }

    fn obey(&mut self, cx: &mut Context, index: usize, told: Told) {
        let Some(device) = self.devices.get_mut(index) else { return };
        match told {
            Told::Serve { file, id, depth, answer } => {
                flush_for_the_kernel();
                // A thread that waits no more leaves the device as it is: it does not start.
                let _ = answer.send(device.serve(cx, file, id, depth));
            }
            Told::Up => {
                device.phase = Phase::Serving;
                if self.stopping {
                    self.end(index);
                }
            }
            Told::Failed => device.phase = Phase::Over,
            Told::Gone => {
                device.phase = Phase::Over;
                device.has_left(true);
            }
            Told::Leave if !self.stopping => {
                device.phase = Phase::Serving;
                device.has_left(false);
            }
            Told::Leave => {
                device.has_left(false);
                tracing::info!(
                    volume = device.name,
                    "the block device is in use, and stays for the next start"
                );
                device.phase = Phase::Leaving;
            }
            Told::Close { answer } => {
                device.closing = Some(answer);
                self.close_aborted(cx, index);
            }
        }
    }

    /// Close a device for which nothing comes any more, if that is so.
    fn close_aborted(&mut self, cx: &mut Context, index: usize) {
        let Some(device) = self.devices.get_mut(index).filter(|device| device.is_aborted()) else { return };
        if let Some(answer) = device.closing.take() {
            device.close(cx);
            // A thread that waits no more leaves it to the next start.
            let _ = answer.send(());
        } else if device.phase == Phase::Serving {
            device.close(cx);
            device.phase = Phase::Over;
            tracing::error!(volume = device.name, "somebody else has removed the block device");
            if let Some(id) = device.id {
                link::remove(Path::new(link::LINKS), &device.name, &disk_path(id));
            }
            let why = "somebody else has removed the device; a restart of larder makes a new one";
            device.state.set(UblkStanding::Absent(why.into()));
        }
    }

    /// Begin with a device's end.
    fn end(&mut self, index: usize) {
        let (Some(device), Some(reactor)) = (self.devices.get_mut(index), &self.reactor) else { return };
        let Some(id) = device.id else { return };
        device.phase = Phase::Ending;
        let way = Way { reactor: reactor.clone(), device: index };
        let name = device.name.clone();
        let body = move || {
            let close = |within| way.ask(|answer| Told::Close { answer }, within);
            way.tell(match detach(id, &name, close) {
                End::Left => Told::Leave,
                End::Removed => Told::Gone,
            });
        };
        if spawn(index, body).is_err() {
            device.phase = if self.stopping { Phase::Leaving } else { Phase::Serving };
            device.has_left(false);
        }
    }

    /// Begin with a volume's device.
    fn begin(&mut self, index: usize) {
        let (Some(device), Some(reactor)) = (self.devices.get_mut(index), &self.reactor) else { return };
        let way = Way { reactor: reactor.clone(), device: index };
        let wanted = Wanted { mark: Mark::new(&device.name, &device.backing), info: device.info };
        let (name, state) = (device.name.clone(), device.state.clone());
        let body = move || {
            let (told, standing) = match bring_up(&way, &name, &wanted) {
                Ok((place, found)) => {
                    let path = place.path().display();
                    let device = place.device.display();
                    match found {
                        true => tracing::info!(volume = name, %device, "serving {path} again"),
                        false => tracing::info!(volume = name, %device, "serving {path}"),
                    }
                    (Told::Up, UblkStanding::Served(place))
                }
                Err(error) => {
                    tracing::error!(volume = name, "no block device: {error}");
                    (Told::Failed, UblkStanding::Absent(error.to_string()))
                }
            };
            state.set(standing);
            way.tell(told);
        };
        if let Err(error) = spawn(index, body) {
            let error = UblkError::Thread(error);
            tracing::error!(volume = device.name, "no block device: {error}");
            device.state.set(UblkStanding::Absent(error.to_string()));
            device.phase = Phase::Over;
        }
    }

    /// Remove a volume's device, if there is one. Its place stays: it is in names of operations.
    fn remove(&mut self, volume: VolumeId, answer: Sender<bool>) {
        let mut devices = self.devices.iter_mut();
        let found = devices.find(|device| device.volume == volume && device.phase != Phase::Over);
        let Some(device) = found else {
            // Here and below, nobody may be there to hear it.
            let _ = answer.send(true);
            return;
        };
        if device.phase == Phase::Serving && !self.stopping {
            let index = device.index;
            device.leaving = Some(answer);
            self.end(index);
        } else {
            let _ = answer.send(false);
        }
    }
}

fn spawn(index: usize, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(format!("ublk-{index}")).stack_size(STACK_BYTES).spawn(body).map(drop)
}

/// The way to the reactor.
struct Way {
    reactor: Handle<ExportCommand>,
    device: usize,
}

impl Way {
    fn tell(&self, told: Told) {
        // A reactor that has ended need not know.
        let command = UblkCommand(Command::Thread { device: self.device, told });
        let _ = self.reactor.frontend(ExportCommand::Ublk(command));
    }

    /// Tell, and wait for the answer. None comes where the reactor is gone.
    fn ask<T>(&self, told: impl FnOnce(Sender<T>) -> Told, within: Duration) -> Result<T, RecvTimeoutError> {
        let (answer, wait) = mpsc::channel();
        self.tell(told(answer));
        wait.recv_timeout(within)
    }
}

/// What a device's first thread does.
fn bring_up(way: &Way, name: &str, wanted: &Wanted) -> Result<(UblkPlace, bool), UblkError> {
    let mut control = open_control()?;
    let Attached { id, depth, file, found, outgrown } = attach(&mut control, wanted)?;
    let served = way.ask(|answer| Told::Serve { file, id, depth, answer }, SERVE_WITHIN);
    let started = match served {
        Ok(Ok(())) if found => {
            control.end_recovery(id).map_err(UblkError::command("go on with a ublk device"))
        }
        Ok(Ok(())) => control.start(id).map_err(UblkError::command("start a ublk device")),
        Ok(Err(error)) => Err(UblkError::Queue(error.to_string())),
        Err(error) => Err(UblkError::Queue(error.to_string())),
    };
    if let Err(error) = started {
        // One that was found has requests that wait: it stays for the next start.
        if !found {
            // The first error is the one to tell.
            let _ = control.stop(id);
            let _ = way.ask(|answer| Told::Close { answer }, SERVE_WITHIN);
            remove(&mut control, id, name);
        }
        return Err(error);
    }
    if outgrown && let Err(error) = resize(id, wanted.info.bytes / SECTOR_BYTES) {
        tracing::warn!(
            volume = name,
            id,
            %error,
            "the volume is larger by now: its block device keeps its size as long as it is in use"
        );
    }
    let device = disk_path(id);
    let link = match link::make(Path::new(link::LINKS), name, &device) {
        Ok(link) => Some(link),
        Err(error) => {
            tracing::error!(volume = name, %error, "cannot make the block device's name in {}", link::LINKS);
            None
        }
    };
    Ok((UblkPlace { id, device, link }, found))
}

impl Frontend for UblkFrontend {
    type Command = UblkCommand;

    fn start(&mut self, _cx: &mut Context) {
        (0..self.devices.len()).for_each(|index| self.begin(index));
    }

    fn command(&mut self, cx: &mut Context, UblkCommand(command): UblkCommand) {
        match command {
            Command::Thread { device, told } => self.obey(cx, device, told),
            Command::Serve(_) if self.stopping => {}
            Command::Serve(volume) => {
                let index = self.devices.len();
                self.devices.push(volume.device(index));
                self.begin(index);
            }
            Command::Remove { volume, answer } => self.remove(volume, answer),
        }
    }

    #[inline]
    fn event(&mut self, cx: &mut Context, event: Event) {
        let Event::Commanded { token, result } = event else { return };
        let Place { device: index, tag } = Place::from_bits(token);
        let Some(device) = self.devices.get_mut(index) else { return };
        if device.fetched(cx, tag, result) {
            self.close_aborted(cx, index);
        }
    }

    #[inline]
    fn reply(&mut self, cx: &mut Context, cookie: u64, result: Result<(), IoError>, buffer: Option<Buffer>) {
        let Place { device, tag } = Place::from_bits(cookie);
        let known = match self.devices.get_mut(device) {
            Some(device) => device.completed(cx, tag, result, buffer),
            None => {
                buffer.into_iter().for_each(|buffer| cx.recycle(buffer));
                false
            }
        };
        if !known {
            tracing::error!(cookie, "BUG: a reply to a request that nobody made");
        }
    }

    fn end_of_batch(&mut self, _cx: &mut Context) {}

    fn tick(&mut self, _cx: &mut Context, _now: Instant) {}

    fn stop(&mut self, _cx: &mut Context) {
        self.stopping = true;
        for index in 0..self.devices.len() {
            if self.devices[index].phase == Phase::Serving {
                self.end(index);
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.devices.iter().all(Device::is_idle)
    }
}

/// This thread writes what the kernel wants out of its memory: where it needs memory itself it must not wait for that.
fn flush_for_the_kernel() {
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: sets a flag of this thread.
    let result = unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
    if result != 0 {
        tracing::debug!(error = %io::Error::last_os_error(), "the kernel is not told that a thread serves block devices");
    }
}
