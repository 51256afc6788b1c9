//! The buffers that device operations work on, and who holds them.
//!
//! A buffer belongs to a region (a guest request's or a staging buffer's) for as long as any device operation holds it. The
//! engine promises never to end a request or free a staging buffer too early; here the promise is checked, since memory
//! safety rests on it. A buffer that should go while it is held is leaked instead, and its region refuses the hold's return.

use crate::Buffer;

/// Regions named by small dense numbers.
#[derive(Default)]
pub(crate) struct Regions {
    regions: Vec<Region>,
}

#[derive(Default)]
struct Region {
    buffer: Option<Buffer>,
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

/// The buffer was still held: it has been leaked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StillHeld;

impl Regions {
    /// Put a buffer (or none: a flush) into a region. One that is there already has been forgotten by the engine: leaked.
    pub fn put(&mut self, index: u32, buffer: Option<Buffer>) {
        let index = index as usize;
        if index >= self.regions.len() {
            self.regions.resize_with(index + 1, Region::default);
        }
        let region = &mut self.regions[index];
        if let Some(forgotten) = std::mem::replace(&mut region.buffer, buffer) {
            std::mem::forget(forgotten);
            region.generation = region.generation.wrapping_add(1);
            region.holds = 0;
        }
    }

    /// The memory at `offset`, if `len` bytes of it are inside the buffer.
    #[inline]
    pub fn memory(&self, index: u32, offset: u32, len: u32) -> Option<*mut u8> {
        let buffer = self.regions.get(index as usize)?.buffer.as_ref()?;
        let end = u64::from(offset) + u64::from(len);
        (end <= buffer.capacity() as u64).then(|| buffer.as_raw().wrapping_add(offset as usize))
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

    /// Take the buffer out of a region.
    #[inline]
    pub fn take(&mut self, index: u32) -> Result<Option<Buffer>, StillHeld> {
        let Some(region) = self.regions.get_mut(index as usize) else { return Ok(None) };
        let buffer = region.buffer.take();
        if region.holds == 0 {
            return Ok(buffer);
        }
        region.holds = 0;
        region.generation = region.generation.wrapping_add(1);
        std::mem::forget(buffer);
        Err(StillHeld)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region() -> Regions {
        let mut regions = Regions::default();
        regions.put(2, Buffer::alloc(4096));
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
        regions.put(2, Buffer::alloc(4096));
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
        assert_eq!(regions.take(2).unwrap().unwrap().capacity(), 4096);
        assert!(regions.take(2).unwrap().is_none());
    }
}
