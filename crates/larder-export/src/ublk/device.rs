//! A volume as a block device: its requests, from where the driver hands them over to where it gets them back.

use super::abi::RESULT_ABORTED;
use super::limits::BYTES_PER_DEVICE;
use super::queue::Queue;
use super::request::{Asked, answer, parse};
use super::state::{UblkStanding, UblkState};
use crate::front::UBLK;
use larder_engine::{IoError, RequestKind, VolumeId};
use larder_io::{Buffer, Context, GuestRequest, VolumeInfo};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::mpsc::Sender;

/// Names a tag of a device, in the reactor's tokens and cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub device: usize,
    pub tag: u16,
}

impl Place {
    /// As the reactor takes it.
    #[inline]
    pub fn to_bits(self) -> u64 {
        UBLK | (self.device as u64) << 16 | u64::from(self.tag)
    }

    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Self { device: ((bits & !UBLK) >> 16) as usize, tag: bits as u16 }
    }
}

/// Where a device is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It is being made, or found.
    Starting,
    /// It is there.
    Serving,
    /// It is being found out whether it can be removed, and it is; requests are served up to its end.
    Ending,
    /// It stays for the next daemon. What comes now waits for that.
    Leaving,
    /// It is gone, or was never there.
    Over,
}

/// A request in the engine.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    reads: bool,
    bytes: usize,
}

/// A volume on its reactor.
#[derive(Debug)]
pub(super) struct Device {
    /// Its place among the reactor's.
    pub index: usize,
    pub name: String,
    pub backing: String,
    pub volume: VolumeId,
    pub info: VolumeInfo,
    pub state: UblkState,
    pub phase: Phase,
    /// The driver's number for it.
    pub id: Option<u32>,
    /// Who waits until it is closed.
    pub closing: Option<Sender<()>>,
    /// Who wants it removed while the daemon goes on.
    pub leaving: Option<Sender<bool>>,
    queue: Option<Queue>,
    /// By tag.
    in_flight: Vec<Option<InFlight>>,
    /// Tags whose requests wait for memory.
    short: VecDeque<u16>,
    /// Tags for which nothing comes any more.
    aborted: usize,
    requests: u32,
    /// Of data of requests in the engine.
    bytes: usize,
}

impl Device {
    pub fn new(
        index: usize,
        name: String,
        backing: String,
        volume: VolumeId,
        info: VolumeInfo,
        state: UblkState,
    ) -> Self {
        Self {
            index,
            name,
            backing,
            volume,
            info,
            state,
            phase: Phase::Starting,
            id: None,
            closing: None,
            leaving: None,
            queue: None,
            in_flight: Vec::new(),
            short: VecDeque::new(),
            aborted: 0,
            requests: 0,
            bytes: 0,
        }
    }

    /// Fetch its requests from here on.
    pub fn serve(&mut self, cx: &mut Context, file: File, id: u32, depth: u16) -> io::Result<()> {
        let index = self.index;
        let queue = Queue::new(cx, file, depth, |tag| Place { device: index, tag }.to_bits())?;
        self.in_flight = vec![None; depth.into()];
        self.id = Some(id);
        self.queue = Some(queue);
        Ok(())
    }

    /// A command that fetched a request has ended. True where that was the last one: the device is gone.
    #[inline]
    pub fn fetched(&mut self, cx: &mut Context, tag: u16, result: i32) -> bool {
        match result {
            // What comes while it is left is for the next daemon.
            0 if matches!(self.phase, Phase::Leaving | Phase::Over) => {}
            0 if self.short.is_empty() => {
                if !self.begin(cx, tag) {
                    self.short.push_back(tag);
                }
            }
            0 => self.short.push_back(tag),
            error => {
                self.aborted += 1;
                if error != RESULT_ABORTED {
                    tracing::warn!(volume = self.name, tag, error, "the ublk driver refuses a command");
                }
                return self.is_aborted();
            }
        }
        false
    }

    /// True where the driver hands nothing over any more.
    pub fn is_aborted(&self) -> bool {
        self.aborted >= self.in_flight.len()
    }

    /// It was removed, as somebody wanted, or stays.
    pub fn has_left(&mut self, removed: bool) {
        if removed {
            self.state.set(UblkStanding::Absent("it was removed".into()));
        }
        if let Some(answer) = self.leaving.take() {
            // Nobody may be there to hear it.
            let _ = answer.send(removed);
        }
    }

    /// Close the character device.
    pub fn close(&mut self, cx: &mut Context) {
        if let Some(queue) = self.queue.take() {
            queue.close(cx);
        }
        self.short.clear();
    }

    /// Begin with a request. False where there is no memory for it now: the end of another one will bring some.
    fn begin(&mut self, cx: &mut Context, tag: u16) -> bool {
        let Some(descriptor) = self.queue.as_ref().and_then(|queue| queue.descriptor(tag)) else {
            return true;
        };
        let asked = match parse(&descriptor) {
            Ok(asked) => asked,
            Err(refused) => {
                self.commit(cx, tag, refused);
                return true;
            }
        };
        let bytes = asked.data_bytes();
        let buffer = match (bytes, self.requests) {
            (0, _) => None,
            // One request finds memory in any case, and the others wait for its end if they have to.
            (_, 0) => match cx.buffer_beyond(bytes) {
                Some(buffer) => Some(buffer),
                None => {
                    self.commit(cx, tag, -libc::ENOMEM);
                    return true;
                }
            },
            _ if self.bytes >= BYTES_PER_DEVICE => return false,
            _ => match cx.buffer(bytes) {
                Some(buffer) => Some(buffer),
                None => return false,
            },
        };
        self.execute(cx, tag, asked, buffer);
        true
    }

    fn execute(&mut self, cx: &mut Context, tag: u16, asked: Asked, mut buffer: Option<Buffer>) {
        let bytes = asked.data_bytes();
        if asked.kind == RequestKind::Write
            && let (Some(memory), Some(queue)) = (buffer.as_deref_mut(), &self.queue)
            && let Err(error) = queue.read_data(tag, &mut memory[..bytes])
        {
            tracing::warn!(volume = self.name, %error, "cannot copy the data of a write");
            buffer.into_iter().for_each(|buffer| cx.recycle(buffer));
            return self.commit(cx, tag, -libc::EIO);
        }
        let Some(place) = self.in_flight.get_mut(usize::from(tag)) else { return };
        *place = Some(InFlight { reads: asked.kind == RequestKind::Read, bytes });
        self.requests += 1;
        self.bytes += bytes;
        // The device outlives a killed daemon, and so must what it was told of its writes.
        let fua = asked.fua || cx.is_written_back(self.volume);
        let request =
            GuestRequest { volume: self.volume, kind: asked.kind, offset: asked.offset, len: asked.len, fua };
        cx.submit(request, buffer, Place { device: self.index, tag }.to_bits());
    }

    /// A request has ended. False where there was none.
    pub fn completed(
        &mut self,
        cx: &mut Context,
        tag: u16,
        result: Result<(), IoError>,
        buffer: Option<Buffer>,
    ) -> bool {
        let in_flight = self.in_flight.get_mut(usize::from(tag)).and_then(Option::take);
        let mut ending = answer(result, in_flight.map_or(0, |request| request.bytes));
        if let (Some(InFlight { reads: true, bytes }), Ok(()), Some(data), Some(queue)) =
            (in_flight, result, &buffer, &self.queue)
            && let Err(error) = queue.write_data(tag, &data[..bytes])
        {
            tracing::warn!(volume = self.name, %error, "cannot copy the data of a read");
            ending = -libc::EIO;
        }
        buffer.into_iter().for_each(|buffer| cx.recycle(buffer));
        let Some(InFlight { bytes, .. }) = in_flight else { return false };
        self.requests -= 1;
        self.bytes -= bytes;
        self.commit(cx, tag, ending);
        while self.phase != Phase::Leaving
            && let Some(&tag) = self.short.front()
            && self.begin(cx, tag)
        {
            self.short.pop_front();
        }
        true
    }

    #[inline]
    fn commit(&mut self, cx: &mut Context, tag: u16, result: i32) {
        let token = Place { device: self.index, tag }.to_bits();
        if let Some(queue) = &self.queue {
            queue.commit(cx, tag, result, token);
        }
    }

    /// True where the daemon need not wait for it.
    pub fn is_idle(&self) -> bool {
        match self.phase {
            Phase::Over => true,
            Phase::Leaving => self.requests == 0,
            Phase::Starting | Phase::Serving | Phase::Ending => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::VHOST;

    #[test]
    fn places_survive_their_way_through_the_reactor() {
        for device in [0, 1, 16_383] {
            for tag in [0, 127, u16::MAX] {
                let place = Place { device, tag };
                assert_eq!(Place::from_bits(place.to_bits()), place);
                assert_eq!(place.to_bits() & (UBLK | VHOST), UBLK);
            }
        }
    }
}
