//! A hypervisor's connection: what it says of the guest's memory and queues, and what it is told of the device.
//!
//! The protocol (messages, descriptors passed along, acknowledgements) is the `vhost` crate's. This thread keeps what the
//! hypervisor said; the reactor is told of a queue when that is to be served, with everything it needs, and of changes since.
//! Nothing here is on the way of a request.

use super::channel::Channel;
use super::config::{ConfigSpace, LOG_ALL, PROTOCOL_FEATURES, features, has_event_index, writes_through};
use super::fault::was_hurt;
use super::frontend::{Told, VhostCommand};
use super::limits::{MEMORY_REGIONS_MAX, QUEUE_SIZE_MAX, QUEUES_MAX};
use super::memory::GuestRam;
use super::record::Records;
use super::ring::RingSetup;
use crate::front::ExportCommand;
use larder_io::{Handle, VolumeInfo};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use vhost::VhostUserMemoryRegionBase;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight,
    VhostUserLog, VhostUserMemoryRegion, VhostUserProtocolFeatures, VhostUserShMemConfig, VhostUserSharedMsg,
    VhostUserSingleMemoryRegion, VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{BackendReqHandler, Error, GpuBackend, Result, VhostUserBackendReqHandlerMut};
use virtio_queue::{Queue, QueueT};

/// Enough for the longest message; connections are as many as guests.
const STACK_BYTES: usize = 256 << 10;

/// Serve a connection on a thread of its own.
pub(super) fn start(
    stream: UnixStream,
    link: Link,
    channel: &Arc<Channel>,
    info: &VolumeInfo,
) -> io::Result<()> {
    let (state, device) = (State::new(info, Arc::clone(channel)), link.device);
    let (channel, ahead) = (Arc::clone(channel), stream.try_clone()?);
    let body = move || {
        let handler = Arc::new(Mutex::new(Hypervisor { link: &link, state }));
        let mut requests = BackendReqHandler::from_stream(stream, handler);
        // A request that fails ends the connection: where the hypervisor waits for more than an acknowledgement, it would wait for ever.
        let error = loop {
            let next = channel.look(&ahead).map_err(Error::SocketBroken);
            if let Err(error) = next.and_then(|()| requests.handle_request()) {
                break error;
            }
        };
        let left = matches!(error, Error::Disconnected | Error::PartialMessage | Error::SocketBroken(_));
        drop(requests);
        // A reactor that has ended need not know.
        let _ = link.tell(Told::Over { error: (!left).then(|| error.to_string()) });
    };
    thread::Builder::new().name(format!("vhost-{device}")).stack_size(STACK_BYTES).spawn(body)?;
    Ok(())
}

/// The way to the reactor. It learns in any case that the connection is over.
pub(super) struct Link {
    reactor: Handle<ExportCommand>,
    device: usize,
    number: u64,
}

impl Link {
    /// From the connection of this number on a device.
    pub fn new(reactor: Handle<ExportCommand>, device: usize, number: u64) -> Self {
        Self { reactor, device, number }
    }

    fn tell(&self, told: Told) -> Result<()> {
        let command = VhostCommand::session(self.device, self.number, told);
        self.reactor.frontend(ExportCommand::Vhost(command)).map_err(|_| Error::BackendInternalError)
    }

    /// Tell, and wait for the answer. None comes where the reactor could not do it, or is gone.
    fn ask<T>(&self, told: impl FnOnce(Sender<T>) -> Told) -> Result<T> {
        let (answer, wait) = mpsc::channel();
        self.tell(told(answer))?;
        wait.recv().map_err(|_| Error::BackendInternalError)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // For a thread that ends otherwise than by itself: of one that did, the reactor knows.
        let _ = self.tell(Told::Over { error: None });
    }
}

/// A queue, as far as the hypervisor has told of it.
#[derive(Debug, Default)]
struct QueueState {
    size: u16,
    /// Of descriptors, available ring and used ring, in the hypervisor's address space.
    addresses: Option<[u64; 3]>,
    /// Where to begin in the available ring.
    base: u16,
    kick: Option<File>,
    call: Option<File>,
    enabled: bool,
    running: bool,
}

/// All that the hypervisor has told.
struct State {
    offered: u64,
    acked: u64,
    config: ConfigSpace,
    /// Knows the volume's size of now.
    channel: Arc<Channel>,
    ram: GuestRam,
    queues: Vec<QueueState>,
    records: Option<Arc<Records>>,
}

impl State {
    fn new(info: &VolumeInfo, channel: Arc<Channel>) -> Self {
        Self {
            offered: features(info),
            acked: 0,
            config: ConfigSpace::new(info),
            channel,
            ram: GuestRam::new(),
            queues: (0..QUEUES_MAX).map(|_| QueueState::default()).collect(),
            records: None,
        }
    }

    fn queue(&mut self, index: u32) -> Result<&mut QueueState> {
        self.queues.get_mut(index as usize).ok_or(Error::InvalidParam)
    }

    /// Everything that the reactor needs to serve a queue.
    fn setup(&mut self, index: u16) -> Result<RingSetup> {
        let memory = self.ram.snapshot();
        let event_index = has_event_index(self.acked);
        let state = &self.queues[usize::from(index)];
        let [descriptors, available, used] = state.addresses.ok_or(Error::InvalidParam)?;
        let invalid = |_| Error::InvalidParam;
        let mut queue = Queue::new(QUEUE_SIZE_MAX).map_err(invalid)?;
        queue.try_set_size(state.size).map_err(invalid)?;
        queue.try_set_desc_table_address(self.ram.translate(descriptors)?).map_err(invalid)?;
        queue.try_set_avail_ring_address(self.ram.translate(available)?).map_err(invalid)?;
        queue.try_set_used_ring_address(self.ram.translate(used)?).map_err(invalid)?;
        queue.set_event_idx(event_index);
        queue.set_ready(true);
        if !queue.is_valid(&**memory) {
            return Err(Error::InvalidParam);
        }
        let used_index = queue.used_idx(&**memory, Ordering::Acquire).map_err(invalid)?.0;
        let records = self.records.as_ref();
        let mut record = records.and_then(|records| records.queue(index, state.size));
        let again = record.as_mut().map_or_else(Vec::new, |record| record.recover(used_index));
        // With a record, the guest's memory and the record say together how far the last daemon was. Its hypervisor does not
        // know that where the daemon was killed.
        let next = match &record {
            Some(_) => used_index.wrapping_add(again.len() as u16),
            None => state.base,
        };
        if was_hurt() {
            return Err(Error::InvalidParam);
        }
        queue.set_next_avail(next);
        queue.set_next_used(used_index);
        let owned = |file: &Option<File>| file.as_ref().map(File::try_clone).transpose();
        let (kick, call) = (owned(&state.kick), owned(&state.call));
        let kick = kick.map_err(Error::ReqHandlerError)?.ok_or(Error::InvalidParam)?;
        let call = call.map_err(Error::ReqHandlerError)?.map(OwnedFd::from);
        Ok(RingSetup { queue, memory, kick: kick.into(), call, record, again })
    }
}

/// Answers the hypervisor.
struct Hypervisor<'a> {
    link: &'a Link,
    state: State,
}

impl Hypervisor<'_> {
    /// Have the reactor serve a queue where everything for it is there, and not serve it where something is missing.
    fn settle(&mut self, index: u16) -> Result<()> {
        let queue = self.state.queue(index.into())?;
        let wanted = queue.enabled && queue.kick.is_some();
        match (queue.running, wanted) {
            (false, true) => {
                let setup = Box::new(self.state.setup(index)?);
                self.link.ask(|answer| Told::Start { ring: index, setup, answer })?;
                self.state.queues[usize::from(index)].running = true;
            }
            (true, false) => {
                let base = self.link.ask(|answer| Told::Stop { ring: index, answer })?;
                let queue = &mut self.state.queues[usize::from(index)];
                (queue.running, queue.base) = (false, base);
            }
            _ => {}
        }
        Ok(())
    }

    /// Stop all queues, and forget of them what a driver that begins anew tells again.
    fn stop_all(&mut self, forget: bool) -> Result<()> {
        for index in 0..QUEUES_MAX {
            self.state.queues[usize::from(index)].enabled = false;
            self.settle(index)?;
            if forget {
                self.state.queues[usize::from(index)] = QueueState::default();
            }
        }
        Ok(())
    }

    /// The guest's memory has changed.
    fn tell_memory(&self) -> Result<()> {
        match self.state.queues.iter().any(|queue| queue.running) {
            true => self.link.ask(|answer| Told::Memory { memory: self.state.ram.snapshot(), answer }),
            false => Ok(()),
        }
    }

    fn tell_write_cache(&self) -> Result<()> {
        self.link.tell(Told::WritesThrough(writes_through(self.state.acked, self.state.config.writeback())))
    }
}

impl VhostUserBackendReqHandlerMut for Hypervisor<'_> {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        self.stop_all(false)
    }

    fn reset_device(&mut self) -> Result<()> {
        self.stop_all(true)
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(self.state.offered)
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        if features & !self.state.offered != 0 {
            return Err(Error::InvalidParam);
        }
        self.state.acked = features;
        if features & PROTOCOL_FEATURES == 0 {
            // Such a hypervisor has no message to enable a queue.
            self.state.queues.iter_mut().for_each(|queue| queue.enabled = true);
        }
        self.tell_write_cache()?;
        match self.state.ram.log().want(features & LOG_ALL != 0) {
            true => Ok(()),
            // The answer comes behind all writes that do not know of it.
            false => self.tell_memory(),
        }
    }

    fn set_mem_table(
        &mut self,
        regions: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy: Option<bool>,
    ) -> Result<Option<Vec<VhostUserMemoryRegionBase>>> {
        self.state.ram.replace(regions, files)?;
        self.tell_memory().map(|()| None)
    }

    fn set_vring_num(&mut self, index: u32, size: u32) -> Result<()> {
        let size = u16::try_from(size).ok().filter(|size| size.is_power_of_two() && *size <= QUEUE_SIZE_MAX);
        self.state.queue(index)?.size = size.ok_or(Error::InvalidParam)?;
        Ok(())
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        _flags: VhostUserVringAddrFlags,
        descriptors: u64,
        used: u64,
        available: u64,
        _log: u64,
    ) -> Result<()> {
        let (queue, addresses) = (self.state.queue(index)?, Some([descriptors, available, used]));
        // A migration begins and ends with the same addresses, and another flag for the log: that has all writes in any case.
        if queue.running && queue.addresses != addresses {
            return Err(Error::InvalidParam);
        }
        queue.addresses = addresses;
        Ok(())
    }

    fn set_vring_base(&mut self, index: u32, base: u32) -> Result<()> {
        self.state.queue(index)?.base = u16::try_from(base).map_err(|_| Error::InvalidParam)?;
        Ok(())
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        let queue = self.state.queue(index)?;
        queue.kick = None;
        self.settle(index as u16)?;
        let queue = self.state.queue(index)?;
        queue.call = None;
        Ok(VhostUserVringState::new(index, queue.base.into()))
    }

    fn set_vring_kick(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        let queue = self.state.queue(index.into())?;
        if queue.running {
            return Err(Error::InvalidParam);
        }
        // Without a counter the queue would have to be looked at all the time.
        queue.kick = Some(fd.ok_or(Error::InvalidParam)?);
        self.settle(index.into())
    }

    fn set_vring_call(&mut self, index: u8, fd: Option<File>) -> Result<()> {
        let queue = self.state.queue(index.into())?;
        queue.call = fd;
        if !queue.running {
            return Ok(());
        }
        let call = queue.call.as_ref().map(File::try_clone).transpose().map_err(Error::ReqHandlerError)?;
        self.link.tell(Told::Call { ring: index.into(), call: call.map(OwnedFd::from) })
    }

    fn set_vring_err(&mut self, index: u8, _fd: Option<File>) -> Result<()> {
        self.state.queue(index.into()).map(|_| ())
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::LOG_SHMFD
            | VhostUserProtocolFeatures::BACKEND_REQ
            | VhostUserProtocolFeatures::INFLIGHT_SHMFD
            | VhostUserProtocolFeatures::RESET_DEVICE
            | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS)
    }

    fn set_protocol_features(&mut self, _features: u64) -> Result<()> {
        Ok(())
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(QUEUES_MAX.into())
    }

    fn set_vring_enable(&mut self, index: u32, enable: bool) -> Result<()> {
        self.state.queue(index)?.enabled = enable;
        self.settle(index as u16)
    }

    fn get_config(&mut self, offset: u32, size: u32, _flags: VhostUserConfigFlags) -> Result<Vec<u8>> {
        self.state.config.set_bytes(self.state.channel.bytes());
        Ok(self.state.config.read(offset, size))
    }

    fn set_config(&mut self, offset: u32, bytes: &[u8], _flags: VhostUserConfigFlags) -> Result<()> {
        match self.state.config.write(offset, bytes) {
            true => self.tell_write_cache(),
            false => Err(Error::InvalidParam),
        }
    }

    fn get_inflight_fd(&mut self, wanted: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        Records::create(wanted.num_queues, wanted.queue_size)
    }

    fn set_inflight_fd(&mut self, told: &VhostUserInflight, file: File) -> Result<()> {
        self.state.records = Some(Arc::new(Records::map(told, file)?));
        Ok(())
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        Ok(MEMORY_REGIONS_MAX as u64)
    }

    fn add_mem_region(
        &mut self,
        region: &VhostUserSingleMemoryRegion,
        file: File,
        _postcopy: Option<bool>,
    ) -> Result<Option<VhostUserMemoryRegionBase>> {
        self.state.ram.add(region, file)?;
        self.tell_memory().map(|()| None)
    }

    fn remove_mem_region(&mut self, region: &VhostUserSingleMemoryRegion) -> Result<()> {
        self.state.ram.remove(region)?;
        self.tell_memory()
    }

    fn set_gpu_socket(&mut self, _gpu: GpuBackend) -> Result<()> {
        Err(Error::InvalidOperation("this is a disk"))
    }

    fn get_shared_object(&mut self, _uuid: VhostUserSharedMsg) -> Result<File> {
        Err(Error::InvalidOperation("no objects are shared"))
    }

    fn set_device_state_fd(
        &mut self,
        _direction: VhostTransferStateDirection,
        _phase: VhostTransferStatePhase,
        _fd: File,
    ) -> Result<Option<File>> {
        Err(Error::InvalidOperation("the device has no state to transfer"))
    }

    fn check_device_state(&mut self) -> Result<()> {
        Err(Error::InvalidOperation("the device has no state to transfer"))
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        Err(Error::InvalidOperation("no memory is shared"))
    }

    fn set_log_base(&mut self, log: &VhostUserLog, file: File) -> Result<()> {
        self.state.ram.log().share(log, file)
    }
}
