//! Which parts of a file hold data: `lseek` tells, at the grain of the file system.

use super::FileDevice;
use crate::extents::{EXTENTS_MAX, push};
use crate::frontend::Extent;
use crate::sys;

impl FileDevice {
    /// The allocation from `offset`, for at most `len` bytes, appended to `into`. A block device, and a file system that
    /// cannot tell, is all data.
    pub(crate) fn extents(&self, offset: u64, len: u64, into: &mut Vec<Extent>) {
        let end = offset.saturating_add(len).min(self.bytes);
        let first = into.len();
        let mut at = offset;
        while at < end && into.len() < first + EXTENTS_MAX {
            let (next, hole) = self.run_at(at, end);
            push(into, first, Extent { len: next - at, hole });
            at = next;
        }
    }

    /// Where the run of data or hole that starts at `at` ends, and which it is.
    fn run_at(&self, at: u64, end: u64) -> (u64, bool) {
        if self.block_device {
            return (end, false);
        }
        match sys::seek(&self.file, at, libc::SEEK_DATA) {
            Ok(None) => (end, true),
            Ok(Some(data)) if data > at => (sector_floor(data, at).min(end), true),
            Ok(Some(_)) => (self.data_end(at, end), false),
            Err(_) => (end, false),
        }
    }

    fn data_end(&self, at: u64, end: u64) -> u64 {
        match sys::seek(&self.file, at, libc::SEEK_HOLE) {
            Ok(Some(hole)) if hole > at => hole.next_multiple_of(512).min(end),
            _ => end,
        }
    }
}

/// A hole that ends inside a sector gives that sector to the data, but never shrinks to nothing.
fn sector_floor(data: u64, at: u64) -> u64 {
    let floor = data / 512 * 512;
    if floor > at { floor } else { data }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const MIB: u64 = 1 << 20;

    fn device(pieces: &[u64]) -> (tempfile::NamedTempFile, FileDevice) {
        let file = tempfile::NamedTempFile::new_in(".").unwrap();
        file.as_file().set_len(8 * MIB).unwrap();
        for &piece in pieces {
            file.as_file().write_all_at(&[7; 65536], piece).unwrap();
        }
        let device = FileDevice::open_backing(file.path()).unwrap();
        (file, device)
    }

    #[test]
    fn holes_and_data_alternate() {
        let (_file, device) = device(&[MIB]);
        let mut found = Vec::new();
        device.extents(0, 8 * MIB, &mut found);
        let data = |len| Extent { len, hole: false };
        let hole = |len| Extent { len, hole: true };
        assert_eq!(found, [hole(MIB), data(65536), hole(7 * MIB - 65536)]);
        found.clear();
        device.extents(MIB + 4096, 8192, &mut found);
        assert_eq!(found, [data(8192)]);
    }

    #[test]
    fn the_number_of_extents_is_bounded() {
        let file = tempfile::NamedTempFile::new_in(".").unwrap();
        file.as_file().set_len(64 * MIB).unwrap();
        for piece in 0..512 {
            file.as_file().write_all_at(&[7; 4096], piece * 131_072).unwrap();
        }
        let device = FileDevice::open_backing(file.path()).unwrap();
        let mut found = Vec::new();
        device.extents(0, 64 * MIB, &mut found);
        assert_eq!(found.len(), 32, "a query must not hold up the reactor for long");
        assert!(found.iter().all(|extent| extent.len > 0));
    }

    #[test]
    fn nothing_is_told_beyond_the_end() {
        let (_file, device) = device(&[]);
        let mut found = Vec::new();
        device.extents(8 * MIB, MIB, &mut found);
        assert!(found.is_empty());
        device.extents(7 * MIB, u64::MAX, &mut found);
        assert_eq!(found, [Extent { len: MIB, hole: true }]);
    }
}
