//! What the engine itself costs: processor time per 4 KiB read hit and write hit, without devices and without memory to move, and bytes of
//! memory per cached block. With a second argument, on that many threads, each with an engine of its own.
//!
//! Device operations end at once, in the order in which they come; checksums are made up. So the figures are the engine's own: locks, index,
//! replacement, journal.
//!
//!     engine_cost [SLOTS] [THREADS]

#![expect(clippy::disallowed_methods, reason = "the library is pure; this measures it on several threads")]

use larder_engine::format::{
    Layout, Medium, MediumError, MediumMut, Superblock, Uuid, Volume, format, recover,
};
use larder_engine::{
    Action, DeviceOp, Engine, EngineConfig, FreePool, OpKind, Request, RequestId, RequestKind, Target,
    TenantId, VolumeId, WritePolicy,
};

const BLOCK: u64 = 4096;

/// Free slots, in order.
struct Slots(Vec<u32>);

impl FreePool for Slots {
    fn take(&mut self, count: usize, into: &mut Vec<u32>) -> bool {
        into.extend(self.0.drain(self.0.len() - count.min(self.0.len())..));
        !self.0.is_empty()
    }
    fn give(&mut self, slots: &mut Vec<u32>) {
        self.0.append(slots);
    }
}

/// The cache device's metadata, in memory: its data is never looked at.
struct Disk {
    bytes: u64,
    metadata: Vec<u8>,
}

impl Disk {
    fn new(layout: &Layout) -> Self {
        Self { bytes: layout.device_bytes(), metadata: vec![0; layout.data_offset() as usize] }
    }
}

impl Medium for Disk {
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        into.copy_from_slice(&self.metadata[offset as usize..][..into.len()]);
        Ok(())
    }
}

impl MediumMut for Disk {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.metadata[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
    fn flush(&mut self) -> Result<(), MediumError> {
        Ok(())
    }
}

struct Bench {
    engine: Engine,
    sums: Vec<u32>,
    metadata: u64,
    data: u64,
}

impl Bench {
    fn new(slots: u32, policy: WritePolicy, kept: bool) -> Self {
        let config = EngineConfig { block_bytes: BLOCK as u32, cache_align: 512, cache_blocks: slots };
        let bytes = u64::from(slots) * BLOCK;
        let quota = slots - slots / 32;
        let mut bench = Self {
            engine: Engine::new(config, Box::new(Slots((0..slots).rev().collect()))),
            sums: vec![7; 256],
            metadata: 0,
            data: 0,
        };
        let tenant = bench.engine.add_tenant(quota, policy);
        bench.engine.add_volume(tenant, bytes);
        if kept {
            let layout = Layout::for_slots(BLOCK as u32, 512, slots.into()).expect("a possible cache");
            let mut disk = Disk::new(&layout);
            format(&mut disk, &Superblock::new(Uuid([1; 16]), layout)).expect("memory takes it");
            let recovered = recover(&mut disk).expect("it was formatted");
            let volume = Volume { id: 0, name: "v".into(), identity: "v".into(), uuid: Uuid([2; 16]), bytes };
            bench.engine.open_cache(&recovered, vec![volume]).expect("it is new");
        }
        bench.carry_out();
        bench
    }

    /// End every operation as it comes.
    fn carry_out(&mut self) {
        while let Some(action) = self.engine.next_action() {
            match action {
                Action::Device(DeviceOp { id, target, kind, sums }) => {
                    if let OpKind::Write { len, .. } = kind {
                        match target {
                            Target::Cache => self.data += u64::from(len),
                            Target::CacheMeta => self.metadata += u64::from(len),
                            Target::Backing(_) => {}
                        }
                    }
                    let count = sums.map_or(0, |sums| u64::from(sums.bytes()).div_ceil(BLOCK) as usize);
                    self.engine.complete_summed(id, Ok(()), &self.sums[..count]);
                }
                Action::Load { stage } => drop(self.engine.take_load(stage)),
                _ => {}
            }
        }
    }

    fn ask(&mut self, kind: RequestKind, block: u64, blocks: u64) {
        let (offset, len) = (block * BLOCK, blocks * BLOCK);
        self.engine.submit(Request { id: RequestId(0), volume: VolumeId(0), kind, offset, len, fua: false });
        self.carry_out();
    }
}

/// Numbers that follow no order.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Nanoseconds that this thread was on a processor: what else runs does not count.
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}

/// Nanoseconds per request on random blocks that are cached.
fn time(bench: &mut Bench, kind: RequestKind, blocks: u64, requests: u64, flush_every: u64) -> f64 {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let start = processor_time();
    for n in 1..=requests {
        bench.ask(kind, random(&mut state) % blocks, 1);
        if flush_every > 0 && n % flush_every == 0 {
            bench.ask(RequestKind::Flush, 0, 0);
        }
    }
    (processor_time() - start) / requests as f64
}

fn measure(slots: u32, policy: WritePolicy, kept: bool, report: bool) -> [f64; 2] {
    let mut bench = Bench::new(slots, policy, kept);
    let blocks = u64::from(slots) * 3 / 4;
    for block in (0..blocks).step_by(256) {
        bench.ask(RequestKind::Read, block, 256.min(blocks - block));
    }
    let held = bench.engine.occupied(TenantId(0));
    let requests = 4_000_000;
    let read = time(&mut bench, RequestKind::Read, blocks, requests, 0);
    let write = time(&mut bench, RequestKind::Write, blocks, requests, 0);
    (bench.metadata, bench.data) = (0, 0);
    let flushed = time(&mut bench, RequestKind::Write, blocks, requests / 4, 32);
    if report {
        let memory = bench.engine.memory_bytes() as f64 / f64::from(held);
        let share = 100.0 * bench.metadata as f64 / (bench.metadata + bench.data).max(1) as f64;
        println!(
            "{} {:9}  read hit {read:5.0} ns  write hit {write:5.0} ns  with a flush every 32 {flushed:5.0} ns  metadata {share:4.2} % of SSD writes  {memory:4.1} bytes a block",
            policy.as_str(),
            if kept { "kept" } else { "not kept" },
        );
    }
    [read, write]
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let slots = arguments.next().unwrap_or(262_144);
    let threads: usize = arguments.next().unwrap_or(1) as usize;
    if threads == 1 {
        measure(slots, WritePolicy::WriteThrough, false, true);
        measure(slots, WritePolicy::WriteThrough, true, true);
        measure(slots, WritePolicy::WriteBack, true, true);
        return;
    }
    let one = measure(slots, WritePolicy::WriteBack, true, false);
    let run = |_| std::thread::spawn(move || measure(slots, WritePolicy::WriteBack, true, false));
    let all: Vec<_> = (0..threads).map(run).collect();
    let all: Vec<[f64; 2]> = all.into_iter().map(|thread| thread.join().expect("it ends")).collect();
    for (at, what) in ["read hits", "write hits"].into_iter().enumerate() {
        let rate: f64 = all.iter().map(|times| one[at] / times[at]).sum();
        println!("{threads} engines on {threads} threads: {rate:.2} times the {what} of one");
    }
}
