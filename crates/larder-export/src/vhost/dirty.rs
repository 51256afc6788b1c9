//! Which of the guest's pages were written for it, while it is being migrated: its hypervisor copies them again.
//!
//! The hypervisor shares a bitmap with a bit for each page of 4 KiB of the guest's address space, and says from when to when it wants it (the feature
//! `VHOST_F_LOG_ALL`). Writes to guest memory go through `vm-memory`, which tells each region's [`Watched`] of them: data, status bytes and used rings; what devices
//! write themselves `lend.rs` tells.
//! Bits are set after the write, and taken away by the hypervisor before it copies, so that none is missed.

use super::fault::Guard;
use super::memory::has_bytes;
use std::fmt;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use vhost::vhost_user::message::VhostUserLog;
use vhost::vhost_user::{Error, Result};
use vm_memory::bitmap::{Bitmap, NewBitmap, RefSlice, WithBitmapSlice};
use vm_memory::{FileOffset, MmapRegion, VolatileMemory};

/// Bytes of guest memory that a bit is for.
const PAGE_BYTES: u64 = 4096;

/// The bitmap of a connection, for all regions of its guest's memory.
#[derive(Debug, Default)]
pub(super) struct DirtyLog {
    wanted: AtomicBool,
    bits: RwLock<Option<Bits>>,
}

/// What the hypervisor shares.
struct Bits {
    mapping: MmapRegion<()>,
    /// Behind the mapping, so that it goes first.
    _guard: Guard,
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bits for {} pages", self.mapping.size() * 8)
    }
}

impl DirtyLog {
    /// Use this bitmap from here on.
    pub fn share(&self, told: &VhostUserLog, file: File) -> Result<()> {
        has_bytes(&file, told.mmap_offset, told.mmap_size)?;
        let len = usize::try_from(told.mmap_size).map_err(|_| Error::InvalidParam)?;
        let mapping = MmapRegion::from_file(FileOffset::new(file, told.mmap_offset), len)
            .map_err(|_| Error::InvalidParam)?;
        let guard = Guard::new(mapping.as_ptr(), mapping.size()).map_err(Error::ReqHandlerError)?;
        *self.bits.write().unwrap_or_else(PoisonError::into_inner) = Some(Bits { mapping, _guard: guard });
        Ok(())
    }

    /// The hypervisor wants to know of writes, or no longer. False where that is new.
    pub fn want(&self, on: bool) -> bool {
        self.wanted.swap(on, Ordering::SeqCst) == on
    }

    /// These bytes of the guest were written.
    #[cold]
    fn note(&self, start: u64, len: u64) {
        let bits = self.bits.read().unwrap_or_else(PoisonError::into_inner);
        let (Some(bits), Some(last)) = (&*bits, len.checked_sub(1)) else { return };
        for page in start / PAGE_BYTES..=start.saturating_add(last) / PAGE_BYTES {
            // What has no bit is not copied by anybody.
            let byte = usize::try_from(page / 8).ok();
            let byte = byte.and_then(|at| bits.mapping.get_atomic_ref::<AtomicU8>(at).ok());
            if let Some(byte) = byte {
                byte.fetch_or(1 << (page % 8), Ordering::SeqCst);
            }
        }
    }
}

/// A region's part: where it is, and the log. Without those nothing is noted.
#[derive(Debug, Default)]
pub(super) struct Watched(OnceLock<(u64, Arc<DirtyLog>)>);

impl Watched {
    /// Note writes to this region, which begins there in the guest's address space.
    pub fn watch(&self, guest: u64, log: &Arc<DirtyLog>) {
        // It is told once, when it is made.
        let _ = self.0.set((guest, Arc::clone(log)));
    }
}

impl<'a> WithBitmapSlice<'a> for Watched {
    type S = RefSlice<'a, Self>;
}

impl Bitmap for Watched {
    #[inline]
    fn mark_dirty(&self, offset: usize, len: usize) {
        if let Some((guest, log)) = self.0.get()
            && log.wanted.load(Ordering::Relaxed)
        {
            log.note(guest.saturating_add(offset as u64), len as u64);
        }
    }

    fn dirty_at(&self, _: usize) -> bool {
        false
    }

    #[inline]
    fn slice_at(&self, offset: usize) -> RefSlice<'_, Self> {
        RefSlice::new(self, offset)
    }
}

impl NewBitmap for Watched {
    fn with_len(_: usize) -> Self {
        Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::GuestRam;
    use super::*;
    use std::os::unix::fs::FileExt;
    use vhost::vhost_user::message::VhostUserMemoryRegion;
    use vm_memory::{Bytes, GuestAddress};

    const MIB: u64 = 1 << 20;

    fn file(bytes: u64) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(bytes).unwrap();
        file
    }

    /// The pages whose bits are set, which are taken away.
    fn pages(bits: &File) -> Vec<u64> {
        let mut bytes = vec![0; 4096];
        bits.read_exact_at(&mut bytes, 0).unwrap();
        bits.write_all_at(&vec![0; 4096], 0).unwrap();
        (0..8 * 4096).filter(|page| bytes[*page as usize / 8] >> (page % 8) & 1 != 0).collect()
    }

    #[test]
    fn pages_are_noted_by_the_guests_addresses_while_that_is_wanted() {
        let mut ram = GuestRam::new();
        let region = VhostUserMemoryRegion::new(16 * MIB, MIB, 0x7000_0000, 0);
        ram.add(&region, file(MIB)).unwrap();
        let (memory, bits) = (ram.snapshot(), file(4096));
        let write = |at: u64, len: usize| {
            memory.write_slice(&vec![1; len], GuestAddress(16 * MIB + at)).unwrap();
            pages(&bits)
        };
        assert_eq!(write(0, 10), [0; 0], "there is no bitmap");
        ram.log().share(&VhostUserLog::new(4096, 0), bits.try_clone().unwrap()).unwrap();
        assert_eq!(write(0, 10), [0; 0], "it is not wanted");
        assert!(!ram.log().want(true) && ram.log().want(true));
        assert_eq!(write(0, 10), [4096]);
        assert_eq!(write(4095, 2), [4096, 4097]);
        assert_eq!(write(8192, 8193), [4098, 4099, 4100]);
        memory.read_slice(&mut [0; 64], GuestAddress(16 * MIB)).unwrap();
        assert_eq!(pages(&bits), [0; 0], "reads change nothing");
        ram.log().want(false);
        assert_eq!(write(0, 10), [0; 0]);
    }

    #[test]
    fn a_bitmap_that_is_too_short_is_no_harm() {
        let ram = GuestRam::new();
        let log = ram.log();
        assert!(log.share(&VhostUserLog::new(8192, 0), file(4096)).is_err(), "longer than its file");
        log.share(&VhostUserLog::new(1, 0), file(4096)).unwrap();
        log.want(true);
        log.note(0, u64::from(u32::MAX));
        log.note(u64::MAX, u64::MAX);
        log.note(0, 0);
    }
}
