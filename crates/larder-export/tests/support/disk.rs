//! A guest's driver without a guest: the crate `virtio-driver` on a volume's vhost-user socket.

use std::collections::HashMap;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Instant;
use virtio_driver::{
    VhostUser, VirtioBlkConfig, VirtioBlkFeatureFlags, VirtioBlkQueue, VirtioBlkReqBuf, VirtioFeatureFlags,
    VirtioTransport,
};
use vm_memory::{Bytes, MmapRegion, VolatileMemory};

use super::PATIENCE;
use super::rogue::shared_memory;

/// Bytes of the guest's memory for data.
pub const DATA_BYTES: usize = 8 << 20;
const QUEUE_SIZE: u16 = 128;

/// A connected driver.
pub struct Disk {
    transport: VhostUser<VirtioBlkConfig, VirtioBlkReqBuf>,
    queues: Vec<VirtioBlkQueue<'static, u64>>,
    memory: MmapRegion<()>,
    ended: HashMap<u64, i32>,
    next: u64,
}

/// A request that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    queue: usize,
    context: u64,
}

impl Disk {
    /// Connect, and set up some queues.
    pub fn connect(socket: &Path, queues: usize) -> Self {
        let features = VirtioFeatureFlags::VERSION_1
            | VirtioFeatureFlags::RING_EVENT_IDX
            | VirtioFeatureFlags::RING_INDIRECT_DESC;
        let block = VirtioBlkFeatureFlags::FLUSH
            | VirtioBlkFeatureFlags::MQ
            | VirtioBlkFeatureFlags::DISCARD
            | VirtioBlkFeatureFlags::WRITE_ZEROES;
        let mut transport = VhostUser::new(socket.to_str().unwrap(), features.bits() | block.bits()).unwrap();
        let mut queues = VirtioBlkQueue::setup_queues(&mut transport, queues, QUEUE_SIZE).unwrap();
        queues.iter_mut().for_each(|queue| queue.set_used_notif_enabled(true));
        let memory = shared_memory(DATA_BYTES);
        let fd = memory.file_offset().unwrap().file().as_raw_fd();
        // Added while the queues are at work, as this protocol allows.
        transport.map_mem_region(memory.as_ptr() as usize, DATA_BYTES, fd, 0).unwrap();
        Self { transport, queues, memory, ended: HashMap::new(), next: 0 }
    }

    pub fn config(&self) -> VirtioBlkConfig {
        self.transport.get_config().unwrap()
    }

    /// Put data into the guest's memory.
    pub fn put(&self, place: usize, data: &[u8]) {
        self.memory.as_volatile_slice().write_slice(data, place).unwrap();
    }

    /// What is in the guest's memory.
    pub fn get(&self, place: usize, len: usize) -> Vec<u8> {
        let mut data = vec![0; len];
        self.memory.as_volatile_slice().read_slice(&mut data, place).unwrap();
        data
    }

    fn start(&mut self, queue: usize, begin: impl FnOnce(&mut VirtioBlkQueue<'static, u64>, u64)) -> Ticket {
        let context = self.next;
        self.next += 1;
        begin(&mut self.queues[queue], context);
        self.transport.get_submission_notifier(queue).notify().unwrap();
        Ticket { queue, context }
    }

    /// Read into a place of the guest's memory.
    pub fn read(&mut self, queue: usize, offset: u64, place: usize, len: usize) -> Ticket {
        assert!(place + len <= DATA_BYTES);
        let start = self.memory.as_ptr().wrapping_add(place);
        // SAFETY: the range is inside the mapping, which lives as long as the connection.
        self.start(queue, |queue, context| unsafe { queue.read_raw(offset, start, len, context).unwrap() })
    }

    /// Write from a place of the guest's memory.
    pub fn write(&mut self, queue: usize, offset: u64, place: usize, len: usize) -> Ticket {
        assert!(place + len <= DATA_BYTES);
        let start = self.memory.as_ptr().wrapping_add(place);
        // SAFETY: as above.
        self.start(queue, |queue, context| unsafe { queue.write_raw(offset, start, len, context).unwrap() })
    }

    /// Read into pieces of the guest's memory, each given by place and length.
    pub fn read_pieces(&mut self, queue: usize, offset: u64, pieces: &[(usize, usize)]) -> Ticket {
        let pieces: Vec<libc::iovec> = pieces
            .iter()
            .map(|&(place, len)| libc::iovec {
                iov_base: self.memory.as_ptr().wrapping_add(place).cast(),
                iov_len: len,
            })
            .collect();
        // SAFETY: as above.
        self.start(queue, |queue, context| unsafe {
            queue.readv(offset, pieces.as_ptr().cast(), pieces.len(), context).unwrap();
        })
    }

    /// Cut the guest's memory for data short.
    pub fn cut(&self, bytes: u64) {
        self.memory.file_offset().unwrap().file().set_len(bytes).unwrap();
    }

    pub fn flush(&mut self, queue: usize) -> Ticket {
        self.start(queue, |queue, context| queue.flush(context).unwrap())
    }

    pub fn discard(&mut self, queue: usize, offset: u64, len: u64) -> Ticket {
        self.start(queue, |queue, context| queue.discard(offset, len, context).unwrap())
    }

    pub fn write_zeroes(&mut self, queue: usize, offset: u64, len: u64, unmap: bool) -> Ticket {
        self.start(queue, |queue, context| queue.write_zeroes(offset, len, unmap, context).unwrap())
    }

    /// Wait until a request has ended: 0, or an error number made negative.
    pub fn wait(&mut self, ticket: Ticket) -> i32 {
        let began = Instant::now();
        loop {
            let Self { queues, ended, .. } = self;
            ended.extend(queues[ticket.queue].completions().map(|done| (done.context, done.ret)));
            if let Some(result) = ended.remove(&ticket.context) {
                return result;
            }
            assert!(began.elapsed() < PATIENCE, "request {} has no answer", ticket.context);
            let counter = self.transport.get_completion_fd(ticket.queue);
            let mut wanted = libc::pollfd { fd: counter.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one structure, which outlives the call.
            if unsafe { libc::poll(&mut wanted, 1, 1000) } == 1 {
                counter.read().unwrap();
            }
        }
    }

    /// Requests that have ended and were not waited for, with how they ended.
    pub fn ended_so_far(&mut self, queue: usize) -> Vec<(Ticket, i32)> {
        let Self { queues, ended, .. } = self;
        ended.extend(queues[queue].completions().map(|done| (done.context, done.ret)));
        ended.drain().map(|(context, result)| (Ticket { queue, context }, result)).collect()
    }

    /// Write data and wait.
    pub fn write_now(&mut self, offset: u64, data: &[u8]) {
        self.put(0, data);
        let ticket = self.write(0, offset, 0, data.len());
        assert_eq!(self.wait(ticket), 0);
    }

    /// Read data and wait.
    pub fn read_now(&mut self, offset: u64, len: usize) -> Vec<u8> {
        let ticket = self.read(0, offset, 0, len);
        assert_eq!(self.wait(ticket), 0);
        self.get(0, len)
    }
}
