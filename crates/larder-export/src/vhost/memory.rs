//! The guest's memory, as the hypervisor shares it, and where in it the queues are.
//!
//! Regions come as descriptors to be mapped. What works on one snapshot of the memory keeps that mapped until it is done, whatever
//! the hypervisor takes away meanwhile. Guest memory is only ever copied from or to, or lent to devices
//! (`lend.rs`), and nobody has references to it: it changes under our eyes.

use super::dirty::{DirtyLog, Watched};
use super::fault::Guard;
use super::limits::MEMORY_REGIONS_MAX;
use super::view::Memory;
use std::fs::File;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use vhost::vhost_user::message::VhostUserMemoryRegion;
use vhost::vhost_user::{Error, Result};
use vm_memory::{GuestAddress, GuestRegionMmap};

/// A guest's memory as it is at some time, mapped and guarded as long as anybody works on it.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    memory: Memory,
    /// Behind the mappings, so that they go first.
    guards: Vec<Arc<Guard>>,
    fate: Arc<Fate>,
}

/// What has become of the memory of a connection, whichever of its snapshots somebody works on.
#[derive(Debug, Default)]
struct Fate {
    hurt: AtomicBool,
    over: AtomicBool,
}

impl Snapshot {
    /// Some of it was gone when it was copied while a request was executed.
    pub fn note_hurt(&self) {
        self.fate.hurt.store(true, Ordering::Relaxed);
    }

    /// True where that was so: there may be zeroes by now in place of anything.
    #[inline]
    pub fn is_hurt(&self) -> bool {
        self.fate.hurt.load(Ordering::Relaxed)
    }

    /// Nobody waits for answers any more: the hypervisor may use its memory for something else.
    pub fn leave(&self) {
        self.fate.over.store(true, Ordering::Relaxed);
    }

    /// True until then.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        !self.fate.over.load(Ordering::Relaxed)
    }
}

impl Deref for Snapshot {
    type Target = Memory;

    fn deref(&self) -> &Memory {
        &self.memory
    }
}

/// The memory of a guest, and how its hypervisor names it.
#[derive(Debug)]
pub(super) struct GuestRam {
    now: Arc<Snapshot>,
    /// Of the regions, in the order of their guards.
    names: Vec<Name>,
    log: Arc<DirtyLog>,
}

/// Where the hypervisor has a region in its own address space, by which it tells where the queues are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    user: u64,
    guest: u64,
    len: u64,
}

impl GuestRam {
    /// No memory yet.
    pub fn new() -> Self {
        Self { now: Arc::default(), names: Vec::new(), log: Arc::default() }
    }

    /// As it is now.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.now)
    }

    /// Which of its pages were written.
    pub fn log(&self) -> &DirtyLog {
        &self.log
    }

    /// Have these regions in place of all others.
    pub fn replace(&mut self, regions: &[VhostUserMemoryRegion], files: Vec<File>) -> Result<()> {
        let fate = Arc::clone(&self.now.fate);
        let now = Arc::new(Snapshot { fate, ..Snapshot::default() });
        let mut fresh = Self { now, names: Vec::new(), log: Arc::clone(&self.log) };
        regions.iter().zip(files).try_for_each(|(region, file)| fresh.add(region, file))?;
        *self = fresh;
        Ok(())
    }

    /// Have one more region.
    pub fn add(&mut self, region: &VhostUserMemoryRegion, file: File) -> Result<()> {
        if self.names.len() >= MEMORY_REGIONS_MAX {
            return Err(Error::InvalidParam);
        }
        has_bytes(&file, region.mmap_offset, region.memory_size)?;
        let mapping = region.mmap_region::<Watched>(file)?;
        let name = Name::of(region);
        mapping.bitmap().watch(name.guest, &self.log);
        let guard = Guard::new(mapping.as_ptr(), mapping.size()).map_err(Error::ReqHandlerError)?;
        let mapped = GuestRegionMmap::new(mapping, GuestAddress(name.guest)).ok_or(Error::InvalidParam)?;
        let memory = self.now.with(mapped).map_err(|_| Error::InvalidParam)?;
        let guards = self.now.guards.iter().cloned().chain([Arc::new(guard)]).collect();
        self.now = Arc::new(Snapshot { memory, guards, fate: Arc::clone(&self.now.fate) });
        self.names.push(name);
        Ok(())
    }

    /// Do without a region.
    pub fn remove(&mut self, region: &VhostUserMemoryRegion) -> Result<()> {
        let gone = Name::of(region);
        let place = self.names.iter().position(|name| *name == gone).ok_or(Error::InvalidParam)?;
        let memory = self.now.without(GuestAddress(gone.guest), gone.len).map_err(|_| Error::InvalidParam)?;
        let mut guards = self.now.guards.clone();
        guards.remove(place);
        self.now = Arc::new(Snapshot { memory, guards, fate: Arc::clone(&self.now.fate) });
        self.names.remove(place);
        Ok(())
    }

    /// An address of the hypervisor as one of the guest.
    pub fn translate(&self, user: u64) -> Result<GuestAddress> {
        let inside = |name: &&Name| user >= name.user && user - name.user < name.len;
        let name = self.names.iter().find(inside).ok_or(Error::InvalidParam)?;
        Ok(GuestAddress(name.guest + (user - name.user)))
    }
}

/// Refuse a file that ends before the mapping does: touching what is behind its end would end the daemon.
pub(super) fn has_bytes(file: &File, offset: u64, len: u64) -> Result<()> {
    let there = file.metadata().map_err(Error::ReqHandlerError)?.len();
    let end = offset.checked_add(len).ok_or(Error::InvalidParam)?;
    if end <= there { Ok(()) } else { Err(Error::InvalidParam) }
}

impl Name {
    fn of(region: &VhostUserMemoryRegion) -> Self {
        Self { user: region.user_addr, guest: region.guest_phys_addr, len: region.memory_size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vm_memory::{Bytes, GuestMemory, GuestMemoryBackend};

    const MIB: u64 = 1 << 20;

    fn file() -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(MIB).unwrap();
        file
    }

    fn region(guest: u64, user: u64) -> VhostUserMemoryRegion {
        VhostUserMemoryRegion::new(guest, MIB, user, 0)
    }

    #[test]
    fn addresses_of_the_hypervisor_are_translated() {
        let mut ram = GuestRam::new();
        ram.replace(&[region(0, 0x7000_0000), region(4 * MIB, 0x9000_0000)], vec![file(), file()]).unwrap();
        assert_eq!(ram.translate(0x7000_1000).unwrap(), GuestAddress(0x1000));
        assert_eq!(ram.translate(0x9000_0010).unwrap(), GuestAddress(4 * MIB + 0x10));
        assert!(ram.translate(0x7000_0000 + MIB).is_err(), "behind the end");
        assert!(ram.translate(0).is_err());
    }

    #[test]
    fn a_region_lives_as_long_as_somebody_works_on_it() {
        let mut ram = GuestRam::new();
        ram.add(&region(0, 0x7000_0000), file()).unwrap();
        let before = ram.snapshot();
        ram.remove(&region(0, 0x7000_0000)).unwrap();
        assert!(ram.translate(0x7000_0000).is_err());
        assert_eq!(ram.snapshot().physical_memory().unwrap().num_regions(), 0);
        before.write_slice(b"still there", GuestAddress(0x100)).unwrap();
    }

    /// Whichever of its snapshots a request works on.
    #[test]
    fn what_has_become_of_the_memory_is_known_to_all_of_its_connection() {
        let mut ram = GuestRam::new();
        ram.add(&region(0, 0x7000_0000), file()).unwrap();
        let before = ram.snapshot();
        ram.add(&region(4 * MIB, 0x9000_0000), file()).unwrap();
        let added = ram.snapshot();
        ram.remove(&region(4 * MIB, 0x9000_0000)).unwrap();
        let removed = ram.snapshot();
        ram.replace(&[region(0, 0x7000_0000)], vec![file()]).unwrap();
        let all = [before, added, removed, ram.snapshot()];
        assert!(all.iter().all(|snapshot| snapshot.is_wanted() && !snapshot.is_hurt()));
        all[0].note_hurt();
        all[1].leave();
        assert!(all.iter().all(|snapshot| !snapshot.is_wanted() && snapshot.is_hurt()));
        let other = GuestRam::new().snapshot();
        assert!(other.is_wanted() && !other.is_hurt(), "of another connection");
    }

    #[test]
    fn what_overlaps_or_is_unknown_is_refused() {
        let mut ram = GuestRam::new();
        ram.add(&region(0, 0x7000_0000), file()).unwrap();
        assert!(ram.add(&region(MIB / 2, 0x9000_0000), file()).is_err());
        assert!(ram.remove(&region(4 * MIB, 0x9000_0000)).is_err());
        assert!(ram.replace(&[region(0, 0), region(0, MIB)], vec![file(), file()]).is_err());
        assert_eq!(ram.translate(0x7000_0000).unwrap(), GuestAddress(0), "the old regions stay");
        let too_long = VhostUserMemoryRegion::new(8 * MIB, 2 * MIB, 0, 0);
        assert!(ram.add(&too_long, file()).is_err(), "longer than its file");
    }
}
