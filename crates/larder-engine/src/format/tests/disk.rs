//! A simulated cache device: a vector with a volatile write cache. It holds the metadata; what is written of the data lies beside it, and the rest reads as zeroes.

use crate::format::{Layout, Medium, MediumError, MediumMut};
use larder_policy::Rng;
use std::collections::BTreeMap;

#[derive(Clone)]
pub struct Disk {
    /// What reads see.
    pub bytes: Vec<u8>,
    /// What is durable whatever happens.
    durable: Vec<u8>,
    /// The same of what is behind those bytes, by sector.
    data: [BTreeMap<usize, Vec<u8>>; 2],
    /// Writes since the last flush, by sector, in order.
    unflushed: Vec<(usize, Vec<u8>)>,
    sector: usize,
    size: u64,
    /// Bytes written so far.
    pub written: u64,
    /// Ranges that cannot be read.
    pub unreadable: Vec<std::ops::Range<u64>>,
}

impl Disk {
    pub fn new(layout: &Layout) -> Self {
        let bytes = vec![0; layout.data_offset() as usize];
        Self {
            durable: bytes.clone(),
            bytes,
            data: Default::default(),
            unflushed: Vec::new(),
            sector: layout.sector_bytes(),
            size: layout.device_bytes(),
            written: 0,
            unreadable: Vec::new(),
        }
    }

    /// The same with room for data.
    pub fn with_data(layout: &Layout) -> Self {
        let mut disk = Self::new(layout);
        disk.bytes.resize(layout.device_bytes() as usize, 0);
        disk.durable = disk.bytes.clone();
        disk
    }

    /// Other bytes, durably, in place of whole sectors.
    pub fn replace(&mut self, start: usize, bytes: &[u8]) {
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.put_durable(start, bytes);
    }

    /// True if nothing is in the device's own cache alone.
    pub fn is_flushed(&self) -> bool {
        self.unflushed.is_empty()
    }

    /// The power goes: of each sector any write since the last flush may be the last that happened, and one of them
    /// was cut in the middle.
    pub fn crash(&mut self, rng: &mut Rng) {
        let unflushed = std::mem::take(&mut self.unflushed);
        let torn = rng.below(unflushed.len() as u64 * 2) as usize;
        let share = [0.0, 0.5, 0.9, 1.0][rng.below(4) as usize];
        for (at, (start, sector)) in unflushed.into_iter().enumerate() {
            let kept = if rng.unit() < share { sector.len() } else { 0 };
            let kept = if at == torn { 1 + rng.below(sector.len() as u64 - 1) as usize } else { kept };
            self.put_durable(start, &sector[..kept]);
        }
        self.bytes.clone_from(&self.durable);
        self.data[0] = self.data[1].clone();
    }

    /// The start of a sector, or all of it.
    fn put_durable(&mut self, start: usize, bytes: &[u8]) {
        let there = match start < self.durable.len() {
            true => &mut self.durable[start..],
            false => self.data[1].entry(start).or_insert_with(|| vec![0; self.sector]),
        };
        there[..bytes.len()].copy_from_slice(bytes);
    }
}

impl Medium for Disk {
    fn bytes(&self) -> u64 {
        self.size
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        let (start, end) = (offset, offset + into.len() as u64);
        if end > self.size || self.unreadable.iter().any(|range| range.start < end && start < range.end) {
            return Err(MediumError { offset, reason: "unreadable".into() });
        }
        into.fill(0);
        if let Some(there) = self.bytes.get(start as usize..) {
            let len = there.len().min(into.len());
            into[..len].copy_from_slice(&there[..len]);
        }
        let behind = self.data[0].range(start as usize..end as usize);
        for (at, sector) in behind {
            let at = at - start as usize;
            into[at..at + sector.len()].copy_from_slice(sector);
        }
        Ok(())
    }
}

impl MediumMut for Disk {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        assert!(offset.is_multiple_of(self.sector as u64) && bytes.len().is_multiple_of(self.sector));
        let start = offset as usize;
        let is_beside = start >= self.bytes.len();
        if !is_beside {
            self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        }
        for (at, sector) in bytes.chunks(self.sector).enumerate() {
            let at = start + at * self.sector;
            if is_beside {
                self.data[0].insert(at, sector.to_vec());
            }
            self.unflushed.push((at, sector.to_vec()));
        }
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        for (start, sector) in std::mem::take(&mut self.unflushed) {
            self.put_durable(start, &sector);
        }
        Ok(())
    }
}

/// A device that fails after so many writes, in the middle of the next one.
pub struct Cut {
    pub disk: Disk,
    pub left: usize,
}

impl Medium for Cut {
    fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        self.disk.read(offset, into)
    }
}

impl MediumMut for Cut {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        let Some(left) = self.left.checked_sub(1) else {
            let start = offset as usize;
            self.disk.bytes[start..start + 8].copy_from_slice(&bytes[..8]);
            return Err(MediumError { offset, reason: "cut".into() });
        };
        self.left = left;
        self.disk.write(offset, bytes)
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        self.disk.flush()
    }
}
