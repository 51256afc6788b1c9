//! How long a start takes to read all metadata of a cache of any size, by the daemon's own code, and how long the engine takes to build its index
//! from it.
//!
//! The cache is a sparse file: its metadata is real, written by the format's own writers, its data are holes. Every slot is mapped once; then
//! random dirty blocks are overwritten until the journal's ring has been gone round, and the process is as good as killed: what a start has to
//! replay is as much as it can be.
//!
//!     recovery [GIB] [FOLDER] [--index]
//!
//! 1024 GiB (the default) take 10 GiB of disk and 5 GiB of memory, and 17 GiB more of memory with `--index`.

use larder_engine::format::{
    BlockId, Contents, Entry, Epoch, JournalWriter, Layout, Medium, MediumError, MediumMut, Recovered,
    Session, Superblock, TableWriter, Uuid, Volume, VolumeTable, format, recover,
};
use larder_engine::{Engine, EngineConfig, FreePool, WritePolicy};
use larder_io::{CachePlan, CacheSpec};
use std::error::Error;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

const BLOCK: u32 = 4096;
/// Entries of a commit while the image is made.
const COMMIT: u64 = 1 << 16;
/// In the list of what slots hold: nothing; and the bit of a dirty block.
const NOTHING: u32 = u32::MAX;
const DIRTY: u32 = 1 << 31;

/// The file while it is made. It is new, so what was not written is zeroes.
struct Image(File, u64);

fn failed(offset: u64) -> impl Fn(io::Error) -> MediumError {
    move |error| MediumError { offset, reason: error.to_string() }
}

impl Medium for Image {
    fn bytes(&self) -> u64 {
        self.1
    }
    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        self.0.read_exact_at(into, offset).map_err(failed(offset))
    }
}

impl MediumMut for Image {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.0.write_all_at(bytes, offset).map_err(failed(offset))
    }
    fn flush(&mut self) -> Result<(), MediumError> {
        Ok(())
    }
    fn zero(&mut self, _: u64, _: u64) -> Result<(), MediumError> {
        Ok(())
    }
}

/// A cache in use: every mapping that it has, and what writes them down.
struct Cache {
    image: Image,
    layout: Layout,
    journal: JournalWriter,
    table: TableWriter,
    /// By slot: the block, with [`DIRTY`].
    held: Vec<u32>,
    free: u32,
}

fn contents(held: u32) -> Option<Contents> {
    let block = BlockId { volume: 0, block: u64::from(held & !DIRTY) };
    (held != NOTHING).then_some(Contents {
        block,
        dirty: held & DIRTY != 0,
        epoch: Epoch::NONE,
        crc: held.wrapping_mul(0x9e37_79b1),
    })
}

impl Cache {
    /// An empty one, with a volume that is as large.
    fn make(path: &Path, layout: Layout) -> Result<Self, Box<dyn Error>> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        file.set_len(layout.device_bytes())?;
        let mut image = Image(file, layout.device_bytes());
        format(&mut image, &Superblock::new(Uuid([7; 16]), layout))?;
        let Session { superblock, journal, table, .. } = recover(&mut image)?.open()?;
        let superblock = Superblock { may_hold_dirty: true, volumes_generation: 1, ..superblock };
        let volumes = VolumeTable { generation: 1, volumes: vec![volume(&layout)] };
        let bytes = volumes.encode(&layout, superblock.salt())?;
        image.write(layout.volume_table_offset(volumes.copy()), &bytes)?;
        image.write(superblock.offset(), &superblock.encode())?;
        Ok(Self { image, layout, journal, table, held: vec![NOTHING; layout.slots() as usize], free: 0 })
    }

    /// Map every slot but one, each to a block that lies elsewhere, one of four dirty.
    fn fill(&mut self) -> Result<(), Box<dyn Error>> {
        let slots = self.layout.slots();
        for slot in 1..slots {
            // An odd factor: no block comes twice where their number is a power of two; it is rounded down to one.
            let blocks = 1 << slots.ilog2();
            let block = if slot < blocks { slot.wrapping_mul(0x9e37_79b1) % blocks } else { slot };
            self.map(slot, block | if slot.is_multiple_of(4) { DIRTY } else { 0 }, None)?;
        }
        Ok(())
    }

    /// Overwrite random blocks until `records` more records are written.
    fn overwrite(&mut self, records: u64) -> Result<(), Box<dyn Error>> {
        let (until, mut state) = (self.journal.sealed() + records, 7);
        while self.journal.sealed() < until {
            let old = random(&mut state) as u32 % self.layout.slots();
            let held = self.held[old as usize];
            if held != NOTHING {
                let slot = std::mem::replace(&mut self.free, old);
                self.held[old as usize] = NOTHING;
                self.map(slot, held | DIRTY, Some(old))?;
            }
        }
        Ok(())
    }

    fn map(&mut self, slot: u32, held: u32, old: Option<u32>) -> Result<(), Box<dyn Error>> {
        self.held[slot as usize] = held;
        let Contents { block, dirty, epoch, crc } = contents(held).ok_or("a slot holds something")?;
        self.journal.push(Entry::Map { block, dirty, epoch, slot, crc, old })?;
        if self.journal.room_entries() < COMMIT || u64::from(slot) % COMMIT == 0 {
            self.commit()?;
        }
        Ok(())
    }

    /// Records, then the pages that are due, as after a flush.
    fn commit(&mut self) -> Result<(), Box<dyn Error>> {
        for piece in self.journal.seal() {
            self.image.write(piece.offset, &piece.bytes)?;
        }
        let written = self.table.issued();
        self.journal.flushed(self.journal.sealed());
        self.table.flushed(written);
        self.journal.checkpointed(self.table.tail());
        let (held, mut page) = (&self.held, vec![0; 4096]);
        while let Some(write) =
            self.table.write_due(&self.journal, |slot| contents(held[slot as usize]), &mut page)
        {
            self.image.write(write.offset, &page)?;
        }
        Ok(())
    }
}

fn volume(layout: &Layout) -> Volume {
    let bytes = u64::from(layout.slots()) * u64::from(BLOCK);
    Volume { id: 0, name: "v".into(), uuid: Uuid([8; 16]), bytes, identity: "v".into() }
}

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 20
}

/// What this process has read so far, and its processor time in user mode and in the kernel, in seconds.
fn spent() -> (f64, f64, f64) {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let read = io.lines().find_map(|line| line.strip_prefix("rchar: ")).and_then(|text| text.parse().ok());
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = stat
        .rsplit(") ")
        .next()
        .map(|rest| rest.split(' ').map(|field| field.parse().unwrap_or(0.0)).collect())
        .unwrap_or_default();
    // Linux counts them in hundredths of a second.
    (read.unwrap_or(0.0), fields.get(11).unwrap_or(&0.0) / 100.0, fields.get(12).unwrap_or(&0.0) / 100.0)
}

/// Run the daemon's check of an existing cache, and tell what it took.
fn start(spec: CacheSpec) -> Result<CachePlan, Box<dyn Error>> {
    let (before, began) = (spent(), Instant::now());
    let plan = CachePlan::check_kept(spec)?;
    let (after, elapsed) = (spent(), began.elapsed().as_secs_f64());
    let (read, user, kernel) = (after.0 - before.0, after.1 - before.1, after.2 - before.2);
    println!(
        "recovery: {elapsed:.1} s here, {read:.3e} bytes read, {user:.1} s of processor time in user mode, {kernel:.1} s in the kernel"
    );
    println!("at 1 GB/s, reading and computing in turn: {:.1} s", read / 1e9 + user);
    Ok(plan)
}

/// No slot is free: all that matter are mapped.
struct NoSlots;

impl FreePool for NoSlots {
    fn take(&mut self, _: usize, _: &mut Vec<u32>) -> bool {
        false
    }
    fn give(&mut self, slots: &mut Vec<u32>) {
        slots.clear();
    }
}

fn index(recovered: &Recovered, layout: &Layout) -> Result<(), Box<dyn Error>> {
    let config = EngineConfig { block_bytes: BLOCK, cache_align: 512, cache_blocks: layout.slots() };
    let mut engine = Engine::new(config, Box::new(NoSlots));
    let tenant = engine.add_tenant(layout.slots(), WritePolicy::WriteBack);
    engine.add_volume(tenant, volume(layout).bytes);
    let (before, began) = (spent(), Instant::now());
    engine.open_cache(recovered, vec![volume(layout)])?;
    let (elapsed, user, bytes) = (began.elapsed().as_secs_f64(), spent().1 - before.1, engine.memory_bytes());
    println!(
        "the engine's index: {elapsed:.1} s here, {user:.1} s of processor time in user mode, {bytes:.3e} bytes for {} blocks",
        engine.occupied(tenant)
    );
    Ok(())
}

fn measure(path: &Path, gib: u64, with_index: bool) -> Result<(), Box<dyn Error>> {
    let layout = Layout::for_data_bytes(BLOCK, 512, gib << 30)?;
    let began = Instant::now();
    let mut cache = Cache::make(path, layout)?;
    cache.fill()?;
    cache.overwrite(layout.records())?;
    cache.commit()?;
    let (sealed, tail) = (cache.journal.sealed(), cache.journal.tail());
    println!(
        "{gib} GiB: {} slots, {} pages in two copies, {} records in the ring, of which {} are to be replayed; made in {:.0} s",
        layout.slots(),
        layout.pages(),
        layout.records(),
        sealed + 1 - tail,
        began.elapsed().as_secs_f64()
    );
    cache.image.0.sync_all()?;
    drop(cache);
    let plan = start(CacheSpec { path: path.into(), size: gib << 30, block_bytes: BLOCK })?;
    let recovered = plan.recovered().ok_or("it goes on with what it found")?;
    println!("{} blocks are cached; findings: {}", recovered.blocks().count(), recovered.findings().len());
    if with_index { index(recovered, &layout) } else { Ok(()) }
}

fn main() -> Result<(), Box<dyn Error>> {
    let (options, places): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|word| word.starts_with("--"));
    let gib = places.first().map_or(Ok(1024), |text| text.parse())?;
    let folder = places.get(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let path = folder.join(format!("larder-recovery-{}.cache", std::process::id()));
    let measured = measure(&path, gib, options.iter().any(|option| option == "--index"));
    fs::remove_file(&path)?;
    measured
}
