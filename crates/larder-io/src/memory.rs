//! The memory that device operations work on, and who holds it: buffers, and what frontends lend.
//!
//! A buffer or a loan belongs to a region (a guest request's or a staging buffer's) for as long as any device operation holds it. The
//! engine promises never to end a request or free a staging buffer too early; here the promise is checked, since memory
//! safety rests on it. A buffer that should go while it is held is leaked instead, and its region refuses the hold's return.

use crate::loan::Place;
use crate::{Buffer, Loan};

/// Regions named by small dense numbers.
#[derive(Default)]
pub(crate) struct Regions {
    regions: Vec<Region>,
}

/// What is in a region.
#[derive(Debug)]
pub(crate) enum Held {
    Own(Buffer),
    Lent(Loan),
}

impl Held {
    /// Bytes of it that a request may have.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Own(buffer) => buffer.len() as u64,
            Self::Lent(loan) => loan.bytes() as u64,
        }
    }
}

#[derive(Default)]
struct Region {
    memory: Option<Held>,
    holds: u32,
    generation: u32,
}

/// A device operation's hold on a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hold {
    pub class: RegionClass,
    index: u32,
    generation: u32,
}

/// Which of the reactor's two sets of regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegionClass {
    Guest,
    Stage,
}

/// The memory was still held: it has been leaked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StillHeld;

impl Regions {
    /// Put memory (or none: a flush) into a region. What is there already has been forgotten by the engine: leaked.
    pub fn put(&mut self, index: u32, memory: Option<Held>) {
        let index = index as usize;
        if index >= self.regions.len() {
            self.regions.resize_with(index + 1, Region::default);
        }
        let region = &mut self.regions[index];
        if let Some(forgotten) = std::mem::replace(&mut region.memory, memory) {
            std::mem::forget(forgotten);
            region.generation = region.generation.wrapping_add(1);
            region.holds = 0;
        }
    }

    /// The memory at `offset` of a buffer, if `len` bytes of it are inside.
    #[inline]
    pub fn memory(&self, index: u32, offset: u32, len: u32) -> Option<*mut u8> {
        let Some(Held::Own(buffer)) = &self.regions.get(index as usize)?.memory else { return None };
        let end = u64::from(offset) + u64::from(len);
        (end <= buffer.capacity() as u64).then(|| buffer.as_raw().wrapping_add(offset as usize))
    }

    /// What was lent, where that is what is in a region.
    #[inline]
    pub fn loan(&self, index: u32) -> Option<&Loan> {
        match &self.regions.get(index as usize)?.memory {
            Some(Held::Lent(loan)) => Some(loan),
            _ => None,
        }
    }

    /// The loan that an operation holds.
    pub fn held_loan(&self, hold: Hold) -> Option<&Loan> {
        let region = self.regions.get(hold.index as usize)?;
        if region.generation == hold.generation { self.loan(hold.index) } else { None }
    }

    /// Where `len` bytes at `offset` of a region are, and whether they are lent.
    #[inline]
    pub fn place(&self, index: u32, offset: u32, len: u32) -> Option<(Place, bool)> {
        match self.loan(index) {
            Some(loan) => Some((loan.place(offset, len)?, true)),
            None => Some((Place::One(self.memory(index, offset, len)?), false)),
        }
    }

    /// Hold a region for a device operation.
    #[inline]
    pub fn hold(&mut self, class: RegionClass, index: u32) -> Option<Hold> {
        let region = self.regions.get_mut(index as usize)?;
        region.holds += 1;
        Some(Hold { class, index, generation: region.generation })
    }

    /// A device operation has ended.
    #[inline]
    pub fn release(&mut self, hold: Hold) {
        if let Some(region) = self.regions.get_mut(hold.index as usize)
            && region.generation == hold.generation
        {
            region.holds = region.holds.saturating_sub(1);
        }
    }

    /// Take the memory out of a region.
    #[inline]
    pub fn take(&mut self, index: u32) -> Result<Option<Held>, StillHeld> {
        let Some(region) = self.regions.get_mut(index as usize) else { return Ok(None) };
        let memory = region.memory.take();
        if region.holds == 0 {
            return Ok(memory);
        }
        region.holds = 0;
        region.generation = region.generation.wrapping_add(1);
        std::mem::forget(memory);
        Err(StillHeld)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer() -> Option<Held> {
        Buffer::alloc(4096).map(Held::Own)
    }

    fn region() -> Regions {
        let mut regions = Regions::default();
        regions.put(2, buffer());
        regions
    }

    #[test]
    fn memory_is_bounded_by_the_buffer() {
        let regions = region();
        assert!(regions.memory(2, 4096 - 512, 512).is_some());
        assert_eq!(regions.memory(2, 4096 - 512, 513), None);
        assert_eq!(regions.memory(2, u32::MAX, u32::MAX), None);
        assert_eq!(regions.memory(1, 0, 0), None);
        assert_eq!(regions.memory(99, 0, 0), None);
    }

    #[test]
    fn a_held_buffer_is_never_given_out() {
        let mut regions = region();
        let hold = regions.hold(RegionClass::Guest, 2).unwrap();
        assert_eq!(regions.take(2).unwrap_err(), StillHeld);
        regions.put(2, buffer());
        let other = regions.hold(RegionClass::Guest, 2).unwrap();
        regions.release(hold);
        assert_eq!(regions.take(2).unwrap_err(), StillHeld, "a late release counted for the new buffer");
        regions.release(other);
    }

    #[test]
    fn a_released_buffer_comes_back() {
        let mut regions = region();
        let holds = [0; 2].map(|_| regions.hold(RegionClass::Stage, 2).unwrap());
        holds.into_iter().for_each(|hold| regions.release(hold));
        assert_eq!(regions.take(2).unwrap().unwrap().bytes(), 4096);
        assert!(regions.take(2).unwrap().is_none());
    }
}
