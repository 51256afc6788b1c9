//! What the engine itself costs: processor time per 4 KiB read hit and write hit, without devices and without memory to move, and bytes of
//! memory per cached block. With a second argument, on that many threads, each with an engine of its own: by the clock on the wall, and at the same time. Ends with 1 where a goal is missed:
//! 200 ns for a read hit, 400 ns for a write hit under write-back, 32 bytes a block but for what doors remember, and for each engine more nine tenths of one's rate.
//!
//! Device operations end at once, in the order in which they come; checksums are made up. So the figures are the engine's own: locks, index,
//! replacement, journal; under write-back alone where all may be dirty, as a cache is measured whose cleaner works at other times, then with doors that ask of which kind each request is and partitions that lend, as under `larder`, and
//! then with the cleaner, which has to write back a block for most of those that are written.
//!
//! Each figure is the lowest of eight parts of a run, with their median: where others use the same memory and caches, that is the noise. How fast memory is meanwhile is told
//! by accesses that follow one another through as much memory as an index of that many slots takes.
//!
//!     engine_cost [SLOTS] [THREADS]

#![expect(clippy::disallowed_methods, reason = "the library is pure; this measures it on several threads")]

use std::process::ExitCode;
use std::sync::{Barrier, LazyLock};
use std::time::Instant;

use larder_engine::format::{
    Layout, Medium, MediumError, MediumMut, Superblock, Uuid, Volume, format, recover,
};
use larder_engine::{
    Action, DeviceOp, DirtyLimits, Engine, EngineConfig, FreeSlots, OpKind, Request, RequestId, RequestKind,
    Target, TenantId, VolumeId, WritePolicy,
};

const BLOCK: u64 = 4096;

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
    fn new(slots: u32, policy: WritePolicy, kept: bool, limits: DirtyLimits) -> Self {
        let config = EngineConfig { block_bytes: BLOCK as u32, cache_align: 512, cache_blocks: slots };
        let bytes = u64::from(slots) * BLOCK;
        let quota = slots - slots / 32;
        let mut bench = Self {
            engine: Engine::new(config, Box::new(FreeSlots::below(slots))),
            sums: vec![7; 256],
            metadata: 0,
            data: 0,
        };
        let tenant = bench.engine.add_tenant(quota, policy);
        bench.engine.set_dirty_limits(tenant, limits);
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

    /// Bytes for a block, when as many are cached as may be. (With fewer each slot is used some time, too: it takes as much, for fewer blocks.)
    fn memory_when_full(&mut self, slots: u32) -> f64 {
        for block in (0..u64::from(slots)).step_by(256) {
            self.ask(RequestKind::Read, block, 256.min(u64::from(slots) - block));
        }
        self.engine.memory_bytes() as f64 / f64::from(self.engine.occupied(TenantId(0)))
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

/// Nanoseconds since some moment.
type Clock = fn() -> f64;

/// Those on the wall.
fn wall_time() -> f64 {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGAN.elapsed().as_nanos() as f64
}

/// Those that this thread was on a processor: what else runs does not count.
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells");
    text.split(' ').next().and_then(|first| first.parse().ok()).expect("a number")
}

/// Parts of a run.
const PARTS: u64 = 8;

/// Nanoseconds of one thing, in parts of a run.
struct Cost {
    lowest: f64,
    median: f64,
}

impl Cost {
    /// Do something so many times.
    fn of(times: u64, clock: Clock, mut what: impl FnMut(u64)) -> Self {
        let part = times / PARTS;
        let mut parts: Vec<f64> = (0..PARTS)
            .map(|at| {
                let start = clock();
                (at * part..(at + 1) * part).for_each(&mut what);
                (clock() - start) / part as f64
            })
            .collect();
        parts.sort_by(f64::total_cmp);
        Self { lowest: parts[0], median: parts[parts.len() / 2] }
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:3.0} ns ({:3.0})", self.lowest, self.median)
    }
}

/// Requests for random blocks that are cached.
fn time(
    bench: &mut Bench,
    clock: Clock,
    kind: RequestKind,
    blocks: u64,
    requests: u64,
    flush_every: u64,
) -> Cost {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    Cost::of(requests, clock, |n| {
        bench.ask(kind, random(&mut state) % blocks, 1);
        if flush_every > 0 && (n + 1).is_multiple_of(flush_every) {
            bench.ask(RequestKind::Flush, 0, 0);
        }
    })
}

/// Accesses to memory, each of which says where the next one goes: a line of 64 bytes for two slots.
fn memory(slots: u32, clock: Clock) -> Cost {
    let lines = (slots as usize / 2).max(2);
    let mut next: Vec<[usize; 8]> = (0..lines).map(|at| [at; 8]).collect();
    // One circle through all of them (Sattolo).
    let mut state = 1;
    for at in (1..lines).rev() {
        next.swap(at, random(&mut state) as usize % at);
    }
    let mut at = 0;
    Cost::of(8_000_000, clock, |_| at = std::hint::black_box(next[at][0]))
}

/// No cleaner: as if it worked at other times.
const ALL_DIRTY: DirtyLimits = DirtyLimits { rest: 100, max: 100, age: u32::MAX };

/// What a cache is like.
#[derive(Clone, Copy)]
struct Cache {
    policy: WritePolicy,
    kept: bool,
    limits: DirtyLimits,
    /// Requests are asked of which kind they are, as under the allocator `larder`.
    doors: bool,
}

impl Cache {
    fn of(policy: WritePolicy, kept: bool) -> Self {
        Self { policy, kept, limits: DirtyLimits::default(), doors: false }
    }

    fn name(self) -> &'static str {
        match (self.kept, self.policy) {
            _ if self.doors => "doors",
            (false, _) => "not kept",
            (true, WritePolicy::WriteBack) if self.limits == ALL_DIRTY => "all dirty",
            (true, WritePolicy::WriteBack) => "cleaned",
            (true, _) => "kept",
        }
    }
}

/// Engines that are measured at the same time begin each kind of request together.
#[derive(Clone, Copy)]
struct Together<'b> {
    barrier: &'b Barrier,
    clock: Clock,
}

/// What was found: nanoseconds for a read hit and a write hit, and bytes of memory for a block. Beside other engines also for an access to memory: the machine's limit.
struct Found {
    read: Cost,
    write: Cost,
    memory: f64,
    access: Option<Cost>,
}

fn measure(slots: u32, cache: Cache, report: bool, Together { barrier, clock }: Together) -> Found {
    let Cache { policy, kept, limits, doors } = cache;
    let mut bench = Bench::new(slots, policy, kept, limits);
    bench.engine.set_doors(doors.then_some(slots));
    bench.engine.set_lending(doors);
    let blocks = u64::from(slots) * 3 / 4;
    for block in (0..blocks).step_by(256) {
        bench.ask(RequestKind::Read, block, 256.min(blocks - block));
    }
    let requests = 4_000_000;
    let mut time = |kind, flush_every| {
        barrier.wait();
        time(&mut bench, clock, kind, blocks, requests, flush_every)
    };
    let read = time(RequestKind::Read, 0);
    let write = time(RequestKind::Write, 0);
    (bench.metadata, bench.data) = (0, 0);
    if !report {
        barrier.wait();
        let access = Some(memory(slots, clock));
        return Found { read, write, memory: bench.memory_when_full(slots), access };
    }
    let flushed = self::time(&mut bench, clock, RequestKind::Write, blocks, requests, 32);
    let share = 100.0 * bench.metadata as f64 / (bench.metadata + bench.data).max(1) as f64;
    let memory = bench.memory_when_full(slots);
    println!(
        "{} {:9} read hit {read}  write hit {write}  with a flush every 32 {flushed}  metadata {share:4.2} % of SSD writes  {memory:4.1} bytes a block",
        policy.as_str(),
        cache.name(),
    );
    Found { read, write, memory, access: None }
}

/// Nanoseconds for a read hit, and for a write hit under write-back.
const READ_GOAL: f64 = 200.0;
const WRITE_GOAL: f64 = 400.0;
/// Bytes of memory for a block; what doors remember is not of the cache.
const MEMORY_GOAL: f64 = 32.0;
/// Rounds in which several engines and one take turns.
const ROUNDS: usize = 7;
/// Of the rate of one engine, what each does beside others.
const RATE_GOAL: f64 = 0.9;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().expect("a number"));
    let slots = arguments.next().unwrap_or(262_144);
    let threads: usize = arguments.next().unwrap_or(1) as usize;
    let reached = if threads == 1 { one(slots) } else { several(slots, threads) };
    if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One engine, of every kind. True if the goals were reached.
fn one(slots: u32) -> bool {
    println!(
        "lowest of {PARTS} parts of a run (and their median), on one core, {slots} slots; memory of that size takes {}",
        memory(slots, processor_time)
    );
    let all_dirty = Cache { limits: ALL_DIRTY, ..Cache::of(WritePolicy::WriteBack, true) };
    let caches = [
        Cache::of(WritePolicy::WriteThrough, false),
        Cache::of(WritePolicy::WriteThrough, true),
        all_dirty,
        Cache { doors: true, ..all_dirty },
        Cache::of(WritePolicy::WriteBack, true),
    ];
    let barrier = Barrier::new(1);
    let together = Together { barrier: &barrier, clock: processor_time };
    let mut reached = true;
    for cache in caches {
        let Found { read, write, memory, .. } = measure(slots, cache, true, together);
        let misses = [
            (read.lowest > READ_GOAL, format!("a read hit takes {:.0} ns", read.lowest)),
            (write.lowest > WRITE_GOAL, format!("a write hit takes {:.0} ns", write.lowest)),
            (memory > MEMORY_GOAL && !cache.doors, format!("a block takes {memory:.1} bytes")),
        ];
        for (_, what) in misses.iter().filter(|(missed, _)| *missed) {
            println!("MISSED: {what} ({} {})", cache.policy.as_str(), cache.name());
            reached = false;
        }
    }
    reached
}

/// Several at the same time, beside one alone. True if the goal was reached.
fn several(slots: u32, threads: usize) -> bool {
    let cleaned = Cache::of(WritePolicy::WriteBack, true);
    let run = |count: usize| -> Vec<Found> {
        let barrier = Barrier::new(count);
        let together = Together { barrier: &barrier, clock: wall_time };
        std::thread::scope(|scope| {
            let started: Vec<_> =
                (0..count).map(|_| scope.spawn(move || measure(slots, cleaned, false, together))).collect();
            started.into_iter().map(|thread| thread.join().expect("it ends")).collect()
        })
    };
    // In turn, as the machine is slower for a while now and then.
    let mut alone = vec![run(1).swap_remove(0)];
    let mut together = Vec::new();
    for _ in 0..ROUNDS {
        together.push(run(threads));
        alone.push(run(1).swap_remove(0));
    }
    let mut reached = true;
    for (what, is_goal, cost) in [
        ("read hits", true, (|found: &Found| found.read.median) as fn(&Found) -> f64),
        ("write hits", true, |found| found.write.median),
        ("accesses to memory, the machine's limit,", false, |found| {
            found.access.as_ref().map_or(f64::NAN, |access| access.median)
        }),
    ] {
        let rate = |(all, around): (&Vec<Found>, &[Found])| -> f64 {
            let one = (cost(&around[0]) + cost(&around[1])) / 2.0;
            all.iter().map(|found| one / cost(found)).sum()
        };
        let mut rates: Vec<f64> = together.iter().zip(alone.windows(2)).map(rate).collect();
        rates.sort_by(f64::total_cmp);
        let (least, median, most) = (rates[0], rates[ROUNDS / 2], rates[ROUNDS - 1]);
        println!(
            "{threads} engines on {threads} threads: {median:.2} times the {what} of one, by the clock on the wall ({least:.2} to {most:.2}; {ROUNDS} rounds in turn, median)"
        );
        reached &= !is_goal || median >= RATE_GOAL * threads as f64;
    }
    reached
}
