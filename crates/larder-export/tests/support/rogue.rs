//! A hypervisor and a driver that do as they please: the `vhost` crate's side of the protocol, and queues written by hand.
//!
//! The end-to-end tests of the crate `larder` have a daemon's disk driven by it too.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Instant;
use vhost::vhost_user::message::{VhostUserConfigFlags, VhostUserInflight, VhostUserProtocolFeatures};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use virtio_queue::desc::split::Descriptor;
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap, MmapRegion};
use vmm_sys_util::eventfd::{EFD_NONBLOCK, EventFd};

use super::PATIENCE;

/// Bytes of its memory, which begins at address 0.
pub const MEMORY: u64 = 1 << 20;
/// Descriptors of its only queue.
pub const SIZE: u16 = 16;
/// Where the parts of the queue are.
pub const TABLE: u64 = 0;
pub const AVAILABLE: u64 = 0x1000;
pub const USED: u64 = 0x2000;
/// Where a request's header, data and status are.
pub const HEADER: u64 = 0x3000;
pub const STATUS: u64 = 0x3800;
pub const DATA: u64 = 0x4000;

const EVENT_INDEX: u64 = 1 << 29;
const VERSION_1: u64 = 1 << 32;
const INDIRECT: u64 = 1 << 28;
const FLUSH: u64 = 1 << 9;
const PROTOCOL_FEATURES: u64 = 1 << 30;

pub const NEXT: u16 = 1;
pub const WRITE: u16 = 2;

/// A connection with one queue.
pub struct Rogue {
    pub frontend: Frontend,
    pub memory: GuestMemoryMmap<()>,
    pub file: File,
    pub kick: EventFd,
    pub call: EventFd,
}

impl Rogue {
    /// Connect and say what is needed before a queue.
    pub fn connect(socket: &Path) -> Self {
        Self::connect_with(socket, 0)
    }

    /// The same, with an index of events: it is told of answers only behind the one that it names.
    pub fn connect_with_event_index(socket: &Path) -> Self {
        Self::connect_with(socket, EVENT_INDEX)
    }

    fn connect_with(socket: &Path, more: u64) -> Self {
        let mut frontend = Frontend::connect(socket, 1).unwrap();
        frontend.set_owner().unwrap();
        let offered = frontend.get_features().unwrap();
        let wanted = VERSION_1 | INDIRECT | FLUSH | PROTOCOL_FEATURES | more;
        assert_eq!(offered & wanted, wanted);
        frontend.set_features(wanted).unwrap();
        let protocol = VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::INFLIGHT_SHMFD
            | VhostUserProtocolFeatures::CONFIGURE_MEM_SLOTS;
        let offered = frontend.get_protocol_features().unwrap();
        assert!(offered.contains(protocol), "{offered:?}");
        frontend.set_protocol_features(protocol).unwrap();
        frontend.set_hdr_flags(vhost::vhost_user::message::VhostUserHeaderFlag::NEED_REPLY);
        let mapping = shared_memory(MEMORY as usize);
        let file = mapping.file_offset().unwrap().file().try_clone().unwrap();
        let region = vm_memory::GuestRegionMmap::new(mapping, GuestAddress(0)).unwrap();
        let memory = GuestMemoryMmap::from_regions(vec![region]).unwrap();
        let rogue = Self {
            frontend,
            memory,
            file,
            kick: EventFd::new(EFD_NONBLOCK).unwrap(),
            call: EventFd::new(EFD_NONBLOCK).unwrap(),
        };
        rogue.share_memory();
        rogue
    }

    /// Connect, and have the queue served.
    pub fn serving(socket: &Path) -> Self {
        let mut rogue = Self::connect(socket);
        rogue.begin();
        rogue
    }

    fn share_memory(&self) {
        let region = self.memory.iter().next().unwrap();
        self.frontend
            .set_mem_table(&[VhostUserMemoryRegionInfo::from_guest_region(region).unwrap()])
            .unwrap();
    }

    /// An address of the guest as the hypervisor's own.
    pub fn address(&self, guest: u64) -> u64 {
        self.memory.get_host_address(GuestAddress(guest)).unwrap() as u64
    }

    /// Have the queue served from its beginning.
    pub fn begin(&mut self) {
        self.begin_at([TABLE, AVAILABLE, USED].map(|part| self.address(part))).unwrap();
    }

    /// The same with table, available ring and used ring at any addresses, given as the hypervisor's own.
    pub fn begin_at(&mut self, [table, available, used]: [u64; 3]) -> vhost::Result<()> {
        let config = VringConfigData {
            queue_max_size: SIZE,
            queue_size: SIZE,
            flags: 0,
            desc_table_addr: table,
            used_ring_addr: used,
            avail_ring_addr: available,
            log_addr: None,
        };
        self.frontend.set_vring_num(0, SIZE)?;
        self.frontend.set_vring_base(0, 0)?;
        self.frontend.set_vring_addr(0, &config)?;
        self.frontend.set_vring_kick(0, &self.kick)?;
        self.frontend.set_vring_call(0, &self.call)?;
        self.frontend.set_vring_enable(0, true)
    }

    /// Give the daemon memory that it has written before, or new memory, for what is in flight.
    pub fn remember(&mut self, kept: Option<(VhostUserInflight, File)>) -> (VhostUserInflight, File) {
        let (told, file) = kept.unwrap_or_else(|| {
            self.frontend.get_inflight_fd(&VhostUserInflight::new(0, 0, 1, SIZE)).unwrap()
        });
        self.frontend.set_inflight_fd(&told, file.as_raw_fd()).unwrap();
        (told, file)
    }

    /// Write a descriptor.
    pub fn describe(&self, index: u16, start: u64, len: u32, flags: u16, next: u16) {
        let place = GuestAddress(TABLE + 16 * u64::from(index));
        self.memory.write_obj(Descriptor::new(start, len, flags, next), place).unwrap();
    }

    /// Write a request's header.
    pub fn header(&self, place: u64, kind: u32, sector: u64) {
        self.memory.write_obj(kind, GuestAddress(place)).unwrap();
        self.memory.write_obj(sector, GuestAddress(place + 8)).unwrap();
    }

    /// Describe a whole request with three descriptors from `head` on: its data is a block at [`DATA`] times `head + 1`.
    pub fn request(&self, head: u16, kind: u32, sector: u64) {
        let place = u64::from(head);
        let (header, status) = (HEADER + 16 * place, STATUS + place);
        self.header(header, kind, sector);
        self.memory.write_obj(0xff_u8, GuestAddress(status)).unwrap();
        let writes = if kind == 0 { WRITE } else { 0 };
        self.describe(head, header, 16, NEXT, head + 1);
        self.describe(head + 1, DATA + 0x1000 * place, 0x1000, NEXT | writes, head + 2);
        self.describe(head + 2, status, 1, WRITE, 0);
    }

    pub fn status(&self, head: u16) -> u8 {
        self.memory.read_obj(GuestAddress(STATUS + u64::from(head))).unwrap()
    }

    /// Make heads available, and say so.
    pub fn offer(&self, heads: &[u16]) {
        let index: u16 = self.memory.read_obj(GuestAddress(AVAILABLE + 2)).unwrap();
        for (place, head) in (index..).zip(heads) {
            let entry = GuestAddress(AVAILABLE + 4 + 2 * u64::from(place % SIZE));
            self.memory.write_obj(*head, entry).unwrap();
        }
        self.set_available(index.wrapping_add(heads.len() as u16));
    }

    /// Wait until it is told of something given back.
    pub fn wait_for_call(&self) {
        let began = Instant::now();
        while self.call.read().is_err() {
            assert!(began.elapsed() < PATIENCE, "nothing is told");
            std::thread::yield_now();
        }
    }

    pub fn set_available(&self, index: u16) {
        self.memory.store(index, GuestAddress(AVAILABLE + 2), std::sync::atomic::Ordering::Release).unwrap();
        self.kick.write(1).unwrap();
    }

    pub fn used(&self) -> u16 {
        self.memory.load(GuestAddress(USED + 2), std::sync::atomic::Ordering::Acquire).unwrap()
    }

    /// Wait until this many requests were given back.
    pub fn wait_used(&self, count: u16) {
        let began = Instant::now();
        while self.used() != count {
            assert!(began.elapsed() < PATIENCE, "{} of {count} given back", self.used());
            std::thread::yield_now();
        }
    }

    /// True while the daemon answers on this connection.
    pub fn is_connected(&mut self) -> bool {
        let byte = [0];
        self.frontend.get_config(0, 1, VhostUserConfigFlags::empty(), &byte).is_ok()
    }

    /// Wait until the daemon has ended the connection.
    pub fn wait_for_the_end(&mut self) {
        let began = Instant::now();
        while self.is_connected() {
            assert!(began.elapsed() < PATIENCE, "the connection goes on");
        }
    }
}

/// Memory that another process can map.
pub fn shared_memory(bytes: usize) -> MmapRegion<()> {
    let file = File::from(rustix::fs::memfd_create("guest", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
    file.set_len(bytes as u64).unwrap();
    MmapRegion::from_file(FileOffset::new(file, 0), bytes).unwrap()
}
