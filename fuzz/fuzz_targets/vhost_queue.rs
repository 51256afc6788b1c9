//! Arbitrary guest memory against a queue of a vhost-user disk: rings, descriptors, tables of them, headers; also a record of what
//! is in flight, and a guest that changes its memory between any two accesses.
//!
//! The daemon's own sources are built into this program, on a memory that logs every access (`memory`). What a walk found must be
//! what each descriptor said when it was read, once (`oracle`), and nothing but the rings and what the chain names is touched.
//!
//! The input: flags, the number of changes, the changes (4 bytes each), the bytes of the record (as many as the flags say), and what the memory begins with.
#![no_main]
#![allow(dead_code, reason = "of the daemon's sources, this uses a part")]

extern crate larder_io as real_io;
// The sources under test find the reactor's side of them here.
extern crate self as larder_io;

#[path = "../../crates/larder-export/src/vhost/chain.rs"]
mod chain;
#[path = "../../crates/larder-export/src/vhost/fault.rs"]
mod fault;
#[path = "../../crates/larder-export/src/vhost/limits.rs"]
mod limits;
#[path = "vhost_queue/memory.rs"]
mod memory;
#[path = "vhost_queue/oracle.rs"]
mod oracle;
#[path = "../../crates/larder-export/src/vhost/record.rs"]
mod record;
#[path = "../../crates/larder-export/src/vhost/request.rs"]
mod request;
#[path = "../../crates/larder-export/src/vhost/ring.rs"]
mod ring;
/// Memory that changes under our eyes, in place of a guest's.
mod view {
    pub use super::memory::Memory;
}

pub use real_io::BUFFER_MAX;

use chain::{Chain, Segment, gather, scatter, total};
use libfuzzer_sys::fuzz_target;
use limits::{CLEAR_SECTORS_MAX, DESCRIPTORS_MAX, REQUEST_BYTES_MAX};
use memory::{Access, Change, Memory, Snapshot};
use record::Records;
use request::{Asked, Status, parse};
use ring::{Phase, Ring, RingSetup};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use virtio_queue::{Queue, QueueT};
use vm_memory::{Bytes, GuestAddress};

/// A counter of the guest's.
#[derive(Clone, Copy, Debug)]
pub struct SocketId;

/// The reactor: what a queue asks of it comes to nothing.
#[derive(Debug, Default)]
pub struct Context {
    /// Additions to counters that are under way.
    signals: u32,
}

impl Context {
    pub fn adopt_counter(&mut self, counter: OwnedFd) -> io::Result<SocketId> {
        drop(counter);
        Ok(SocketId)
    }

    pub fn watch(&mut self, _: SocketId, _: u64) {}

    pub fn signal(&mut self, _: SocketId, _: u64) {
        self.signals += 1;
        assert_eq!(self.signals, 1, "one at a time");
    }

    pub fn close(&mut self, _: SocketId) {}
}

const TABLE: u64 = 0;
const AVAILABLE: u64 = 0x100;
/// With 16 descriptors, it ends two bytes before the region does.
const USED: u64 = 0x8000 - 8 - 8 * 16;
/// Requests that are taken from one input at most.
const REQUESTS_MAX: usize = 64;
/// Data of a request that is moved here.
const BYTES_MOVED_MAX: u64 = 1 << 20;

struct Kept {
    records: Arc<Records>,
    file: File,
    bytes: usize,
}

thread_local! {
    /// Made once: a system call for each input would cost more than all else.
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// The record of a queue, which begins with these bytes.
fn record(size: u16, bytes: &[u8]) -> record::Record {
    KEPT.with_borrow_mut(|kept| {
        let kept = kept.get_or_insert_with(|| {
            let (told, file) = Records::create(1, 16).expect("memory");
            let mapped = Records::map(&told, file.try_clone().expect("a descriptor")).expect("a mapping");
            Kept { records: Arc::new(mapped), file, bytes: told.mmap_size as usize }
        });
        let mut image = vec![0; kept.bytes];
        let len = bytes.len().min(image.len());
        image[..len].copy_from_slice(&bytes[..len]);
        kept.file.write_all_at(&image, 0).expect("the record's memory");
        kept.records.queue(0, size).expect("room for a queue of this size")
    })
}

/// Make descriptors of a table and of the one behind the rings name places near the guest's memory: few inputs do by themselves.
fn tame(image: &mut [u8]) {
    for (index, row) in image.chunks_exact_mut(16).enumerate() {
        if index < 16 || (64..96).contains(&index) {
            row[2] &= 1;
            row[3..8].fill(0);
            row[10..12].fill(0);
            row[13] = 0;
            row[14] &= 0x1f;
            row[15] = 0;
        }
    }
}

fn queue(flags: u8, next: u16, used: u16) -> Queue {
    let mut queue = Queue::new(limits::QUEUE_SIZE_MAX).expect("a size that is allowed");
    queue.set_size([16, 8, 4, 1][usize::from(flags & 3)]);
    queue.try_set_desc_table_address(GuestAddress(TABLE)).expect("an aligned table");
    queue.try_set_avail_ring_address(GuestAddress(AVAILABLE)).expect("an aligned ring");
    queue.try_set_used_ring_address(GuestAddress(USED)).expect("an aligned ring");
    queue.set_event_idx(flags & 4 != 0);
    queue.set_ready(true);
    queue.set_next_avail(next);
    queue.set_next_used(used);
    queue
}

fn within(access: &Access, start: u64, len: u64) -> bool {
    access.start >= start && access.end() <= start + len
}

/// A queue under test.
struct Bench {
    ring: Ring,
    memory: Arc<Snapshot>,
    size: u16,
    used: u16,
}

impl Bench {
    /// What the queue did with its rings is all that it did.
    fn only_rings(&self) {
        let size = u64::from(self.size);
        for access in self.memory.take_log() {
            let available = !access.writes && within(&access, AVAILABLE, 6 + 2 * size);
            let used = within(&access, USED, 6 + 8 * size);
            assert!(available || used, "the rings are not there: {access:x?}");
        }
    }

    /// Give a request back, with what the guest then finds.
    fn end(&mut self, head: u16, written: u32) -> bool {
        let given = self.ring.ended(head, written);
        self.only_rings();
        if given.is_err() {
            return false;
        }
        let place = USED + 4 + 8 * u64::from(self.used % self.size);
        self.used = self.used.wrapping_add(1);
        let expected = [u32::from(head).to_le_bytes(), written.to_le_bytes()].concat();
        // The guest may have changed it since; only then is it another.
        assert!(
            self.memory.0.peek(place, 8) == Some(expected) || self.memory.0.has_changed(),
            "a wrong used entry"
        );
        true
    }
}

/// Everything that a chain names is in the guest's memory, and is no more than it can be.
fn all_inside(memory: &Memory, segments: &[Segment]) {
    assert!(segments.len() <= DESCRIPTORS_MAX);
    for segment in segments {
        assert!(segment.len > 0 && memory.is_inside(segment.start.0, segment.len), "{segment:x?} is outside");
    }
}

/// Move a request's data, as the device does, and touch nothing else.
fn transfer(memory: &Memory, chain: &Chain, writable: &[Segment], asked: Asked) {
    let Asked::Volume { kind, offset, len } = asked else { return };
    assert_eq!(offset % 512, 0);
    let (segments, writes) = match kind {
        larder_engine::RequestKind::Read => (&chain.writable, true),
        larder_engine::RequestKind::Write => (&chain.readable, false),
        _ => return assert!(len <= u64::from(CLEAR_SECTORS_MAX) * 512),
    };
    assert!(len <= REQUEST_BYTES_MAX as u64 && len == total(segments));
    if len > BYTES_MOVED_MAX {
        return;
    }
    let mut buffer = vec![0x5a; len as usize];
    match writes {
        true => assert!(scatter(memory, segments, &buffer)),
        false => assert!(gather(memory, segments, &mut buffer)),
    }
    for access in memory.take_log() {
        let named = |segment: &Segment| within(&access, segment.start.0, segment.len.into());
        let list = if writes { writable } else { &chain.readable };
        assert!(access.writes == writes && list.iter().any(named), "not named: {access:x?}");
    }
}

/// A request that was taken: false where it broke the queue.
fn execute(bench: &mut Bench, head: u16) -> Option<(u16, u32)> {
    let memory = Arc::clone(&bench.memory);
    let memory = &memory.0;
    let (table, size) = bench.ring.table();
    let mut chain = Chain::default();
    let walked = chain.walk(memory, table, size, head);
    let seen = memory.take_log();
    assert!(seen.len() <= DESCRIPTORS_MAX, "a walk without end");
    let told = oracle::walk(memory, &seen, table, size, head);
    walked.ok().map_or_else(
        || assert_eq!(told, Err(walked.expect_err("it is none"))),
        |()| assert_eq!(told, Ok((chain.readable.clone(), chain.writable.clone()))),
    );
    walked.ok()?;
    all_inside(memory, &chain.readable);
    all_inside(memory, &chain.writable);
    let (readable, writable) = (chain.readable.clone(), chain.writable.clone());
    let parsed = parse(&mut chain, memory).ok();
    let seen = memory.take_log();
    assert!(
        seen.iter().map(|access| access.bytes.len()).sum::<usize>() <= 32,
        "more than a header and a range"
    );
    for access in seen {
        let named = |segment: &Segment| within(&access, segment.start.0, segment.len.into());
        assert!(!access.writes && readable.iter().any(named), "not named: {access:x?}");
    }
    assert_eq!(parsed.is_none(), writable.is_empty(), "a status has its place, or the chain is broken");
    let parsed = parsed?;
    let last = writable.last().expect("just seen");
    assert_eq!(parsed.status.0, last.start.0 + u64::from(last.len) - 1);
    all_inside(memory, &chain.readable);
    all_inside(memory, &chain.writable);
    transfer(memory, &chain, &writable, parsed.asked);
    assert!(memory.write_obj(Status::Ok.to_byte(), parsed.status).is_ok());
    memory.take_log();
    Some((head, total(&writable) as u32))
}

fn serve(bench: &mut Bench, flags: u8, mut again: VecDeque<u16>) {
    let mut cx = Context::default();
    let mut waiting = VecDeque::new();
    for round in 0..REQUESTS_MAX {
        bench.ring.has_news();
        let taken = bench.ring.take();
        bench.only_rings();
        let Ok(Some(head)) = taken else { break };
        if let Some(index) = again.pop_front() {
            assert_eq!(head.index, index, "what was in flight comes first, in its order");
        }
        if round == 3 && flags & 8 != 0 {
            bench.ring.put_back(head);
            bench.only_rings();
            // The next is this one again, or what the guest made of it.
            let Ok(Some(_)) = bench.ring.take() else { break };
            bench.only_rings();
        }
        let Some(done) = execute(bench, head.index) else { break };
        bench.ring.began(head);
        waiting.push_back(done);
        // Some are given back late, and not in their order.
        if flags & 16 == 0 || round % 3 == 2 {
            while let Some((head, written)) =
                if round % 2 == 0 { waiting.pop_back() } else { waiting.pop_front() }
            {
                if !bench.end(head, written) {
                    return;
                }
            }
            if bench.ring.notify(&mut cx, 0).is_err() || bench.ring.hush().is_err() {
                break;
            }
            if round % 2 == 0 && std::mem::take(&mut cx.signals) > 0 {
                bench.ring.signalled(&mut cx, 0);
            }
            bench.only_rings();
        }
    }
    let listened = bench.ring.listen();
    bench.only_rings();
    if flags & 32 != 0 || listened.is_err() {
        bench.ring.die();
        assert_eq!(bench.ring.phase, Phase::Dead);
        for (head, written) in waiting {
            assert!(bench.ring.ended(head, written).is_ok());
        }
        assert!(bench.memory.take_log().is_empty(), "a dead queue's memory is not touched");
        return;
    }
    for (head, written) in waiting {
        if !bench.end(head, written) {
            return;
        }
    }
    assert_eq!(bench.ring.in_flight, 0);
}

fuzz_target!(|data: &[u8]| {
    let [flags, count, rest @ ..] = data else { return };
    let (changes, rest) = rest.split_at(rest.len().min(4 * usize::from(count % 32)));
    let changes: Vec<Change> = changes
        .chunks_exact(4)
        .map(|one| Change { gap: one[0], place: u16::from_le_bytes([one[1], one[2]]), flip: one[3] })
        .collect();
    let (kept, image) = rest.split_at(rest.len().min(if flags & 64 != 0 { 272 } else { 0 }));
    let mut image = image[..image.len().min(0x2000)].to_vec();
    if flags & 128 == 0 {
        tame(&mut image);
    }
    let memory = Arc::new(Snapshot(Memory::new(&image, changes)));
    let queue = queue(*flags, 0, 0);
    let size = queue.size();
    let mut record = (flags & 64 != 0).then(|| record(size, kept));
    let again = record.as_mut().map_or_else(Vec::new, |record| record.recover(0));
    assert!(again.len() <= size.into() && again.iter().all(|head| *head < size));
    let counter = || File::open("/dev/null").expect("a descriptor").into();
    let setup = RingSetup {
        queue,
        memory: Arc::clone(&memory),
        kick: counter(),
        call: Some(counter()),
        record,
        again: again.clone(),
    };
    let ring = Ring::new(&mut Context::default(), setup).expect("counters are adopted");
    serve(&mut Bench { ring, memory, size, used: 0 }, *flags, again.into());
});
