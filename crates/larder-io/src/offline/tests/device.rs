//! A simulated device with a volatile write cache, as cache device and as backing; several of them lose power together.

use crate::offline::Disk;
use larder_engine::format::{Medium, MediumError, MediumMut};
use larder_policy::Rng;
use std::cell::Cell;
use std::io;
use std::rc::Rc;

const SECTOR: usize = 512;

/// How many more writes and flushes there are power for.
pub type Power = Rc<Cell<usize>>;

#[derive(Clone)]
pub struct Device {
    /// What reads see.
    pub bytes: Vec<u8>,
    /// What is durable whatever happens.
    pub durable: Vec<u8>,
    /// Writes since the last flush.
    unflushed: Vec<(usize, Vec<u8>)>,
    power: Power,
    /// Operations that succeed before all fail, though the power stays.
    pub good: usize,
    /// Operations that failed so.
    pub errors: usize,
    /// Places and lengths of all writes.
    pub writes: Vec<(u64, usize)>,
    pub flushes: usize,
    /// Ranges that cannot be read.
    pub unreadable: Vec<std::ops::Range<u64>>,
}

impl Device {
    pub fn new(bytes: Vec<u8>, power: &Power) -> Self {
        Self {
            durable: bytes.clone(),
            bytes,
            unflushed: Vec::new(),
            power: Rc::clone(power),
            good: usize::MAX,
            errors: 0,
            writes: Vec::new(),
            flushes: 0,
            unreadable: Vec::new(),
        }
    }

    /// The power goes: any of the sectors written since the last flush stay, and one of them may be torn.
    pub fn crash(&mut self, rng: &mut Rng) {
        let share = [0.0, 0.5, 0.9, 1.0][rng.below(4) as usize];
        let writes = std::mem::take(&mut self.unflushed);
        let sectors = writes.iter().flat_map(|(start, bytes)| {
            bytes.chunks(SECTOR).enumerate().map(move |(at, sector)| (start + at * SECTOR, sector))
        });
        let torn = rng.below(sectors.clone().count() as u64 * 2 + 1) as usize;
        for (at, (start, sector)) in sectors.enumerate() {
            let kept = if rng.unit() < share { sector.len() } else { 0 };
            let kept = if at == torn { rng.below(sector.len() as u64) as usize } else { kept };
            self.durable[start..start + kept].copy_from_slice(&sector[..kept]);
        }
        self.bytes.clone_from(&self.durable);
    }

    fn step(&mut self) -> Result<(), &'static str> {
        let power = self.power.get();
        self.power.set(power.saturating_sub(1));
        let good = self.good;
        self.good = good.saturating_sub(usize::from(good < usize::MAX));
        match (power, good) {
            (0, _) => Err("no power"),
            (_, 0) => {
                self.errors += 1;
                Err("an error of the device")
            }
            _ => Ok(()),
        }
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), &'static str> {
        self.step()?;
        let start = offset as usize;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        self.unflushed.push((start, bytes.to_vec()));
        self.writes.push((offset, bytes.len()));
        Ok(())
    }

    fn settle(&mut self) -> Result<(), &'static str> {
        self.step()?;
        for (start, bytes) in self.unflushed.drain(..) {
            self.durable[start..start + bytes.len()].copy_from_slice(&bytes);
        }
        self.flushes += 1;
        Ok(())
    }
}

impl Medium for Device {
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        let (start, end) = (offset, offset + into.len() as u64);
        let unreadable = self.unreadable.iter().any(|range| range.start < end && start < range.end);
        match self.bytes.get(start as usize..end as usize) {
            Some(there) if !unreadable => into.copy_from_slice(there),
            _ => return Err(MediumError { offset, reason: "unreadable".into() }),
        }
        Ok(())
    }
}

impl MediumMut for Device {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.put(offset, bytes).map_err(|reason| MediumError { offset, reason: reason.into() })
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        self.settle().map_err(|reason| MediumError { offset: 0, reason: reason.into() })
    }
}

impl Disk for Device {
    fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.put(offset, bytes).map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.settle().map_err(io::Error::other)
    }
}
