//! The cache device as [`larder_engine::format`] reads and writes it at a start: by blocking calls, in memory that suits direct
//! I/O, with progress in the log where there is much to read.

use crate::Buffer;
use crate::file::FileDevice;
use larder_engine::format::{Medium, MediumError, MediumMut};
use std::io;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Bytes moved by one call.
const STEP_BYTES: usize = 1 << 20;
/// Between two lines in the log.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// A cache device while nothing else uses it.
pub(super) struct CacheMedium<'d> {
    device: &'d FileDevice,
    step: Buffer,
    read_bytes: u64,
    told: Instant,
}

impl<'d> CacheMedium<'d> {
    pub fn new(device: &'d FileDevice) -> io::Result<Self> {
        let step = Buffer::alloc(STEP_BYTES).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { device, step, read_bytes: 0, told: Instant::now() })
    }

    fn tell(&mut self, bytes: usize) {
        self.read_bytes += bytes as u64;
        if self.told.elapsed() >= TELL_EVERY {
            self.told = Instant::now();
            let (path, mib) = (self.device.path().display(), self.read_bytes >> 20);
            tracing::info!(cache = %path, "reading what the cache holds: {mib} MiB of metadata so far");
        }
    }
}

impl Medium for CacheMedium<'_> {
    fn bytes(&self) -> u64 {
        self.device.bytes()
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        for (at, piece) in (offset..).step_by(STEP_BYTES).zip(into.chunks_mut(STEP_BYTES)) {
            let step = &mut self.step[..piece.len()];
            self.device.file().read_exact_at(step, at).map_err(|error| failed(at, &error))?;
            piece.copy_from_slice(step);
        }
        self.tell(into.len());
        Ok(())
    }
}

impl MediumMut for CacheMedium<'_> {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        for (at, piece) in (offset..).step_by(STEP_BYTES).zip(bytes.chunks(STEP_BYTES)) {
            let step = &mut self.step[..piece.len()];
            step.copy_from_slice(piece);
            self.device.file().write_all_at(step, at).map_err(|error| failed(at, &error))?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        self.device.file().sync_data().map_err(|error| failed(0, &error))
    }
}

fn failed(offset: u64, error: &io::Error) -> MediumError {
    MediumError { offset, reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Odd memory, more than a step, through O_DIRECT where the file system has it.
    #[test]
    fn what_is_written_is_read_from_memory_of_any_alignment() {
        for place in [".", "/dev/shm"] {
            let file = tempfile::NamedTempFile::new_in(place).unwrap();
            file.as_file().set_len(4 << 20).unwrap();
            let device = FileDevice::open_backing(file.path()).unwrap();
            let mut medium = CacheMedium::new(&device).unwrap();
            let data: Vec<u8> = (0..(2 << 20) + 8193_u32).map(|at| (at / 7) as u8).collect();
            medium.write(4096, &data[1..]).unwrap();
            medium.flush().unwrap();
            let mut found = vec![0; data.len()];
            medium.read(4096, &mut found[1..]).unwrap();
            assert!(found[1..] == data[1..]);
            let error = medium.read(medium.bytes(), &mut found[..4096]).unwrap_err();
            assert_eq!(error.offset, 4 << 20, "{error}");
        }
    }
}
