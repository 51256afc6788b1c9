//! Guest memory by the guest's addresses, as `virtio-queue` and `vm-memory` read and write it.
//!
//! A request takes some fifteen accesses, nearly each within one region: they find it, and are done. What goes over the border of two regions is put together
//! piece by piece, as `vm-memory` does it with everything.

use super::dirty::Watched;
use std::iter::FusedIterator;
use std::sync::Arc;
use vm_memory::bitmap::BS;
use vm_memory::guest_memory::{GuestMemorySliceIterator, Result};
use vm_memory::{
    GuestAddress, GuestMemory, GuestMemoryBackend, GuestMemoryMmap, GuestMemoryRegion,
    GuestRegionCollectionError, GuestRegionMmap, MemoryRegionAddress, Permissions, VolatileSlice,
};

type Regions = GuestMemoryMmap<Watched>;
type Slice<'a> = VolatileSlice<'a, BS<'a, Watched>>;

/// A guest's regions.
#[derive(Debug, Default)]
pub(super) struct Memory(Regions);

impl Memory {
    /// The same with one more region.
    pub fn with(
        &self,
        region: GuestRegionMmap<Watched>,
    ) -> std::result::Result<Self, GuestRegionCollectionError> {
        self.0.insert_region(Arc::new(region)).map(Self)
    }

    /// The same without a region.
    pub fn without(
        &self,
        start: GuestAddress,
        len: u64,
    ) -> std::result::Result<Self, GuestRegionCollectionError> {
        self.0.remove_region(start, len).map(|(rest, _)| Self(rest))
    }

    /// These bytes, where there are any and one region has them all.
    #[inline]
    fn whole(&self, start: GuestAddress, len: usize) -> Option<Slice<'_>> {
        let region = self.0.find_region(start)?;
        let slice = region.get_slice(MemoryRegionAddress(start.0 - region.start_addr().0), len).ok()?;
        (len > 0).then_some(slice)
    }
}

impl GuestMemory for Memory {
    type PhysicalMemory = Regions;
    type Bitmap = Watched;

    #[inline]
    fn check_range(&self, start: GuestAddress, len: usize, _: Permissions) -> bool {
        self.whole(start, len).is_some() || GuestMemoryBackend::check_range(&self.0, start, len)
    }

    #[inline]
    fn get_slices<'a>(
        &'a self,
        start: GuestAddress,
        len: usize,
        _: Permissions,
    ) -> Result<impl GuestMemorySliceIterator<'a, BS<'a, Watched>>> {
        Ok(match self.whole(start, len) {
            Some(slice) => Slices { next: Some(Ok(slice)), more: None },
            None => {
                let mut more = GuestMemoryBackend::get_slices(&self.0, start, len);
                Slices { next: more.next(), more: Some(more) }
            }
        })
    }

    fn physical_memory(&self) -> Option<&Regions> {
        Some(&self.0)
    }
}

/// The pieces of a run of guest memory, up to the first that is not there.
struct Slices<'a, I> {
    next: Option<Result<Slice<'a>>>,
    /// Those behind it, where there may be some.
    more: Option<I>,
}

impl<'a, I: Iterator<Item = Result<Slice<'a>>>> Iterator for Slices<'a, I> {
    type Item = Result<Slice<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let more = self.more.as_mut().and_then(Iterator::next);
        std::mem::replace(&mut self.next, more)
    }
}

impl<'a, I: FusedIterator<Item = Result<Slice<'a>>>> FusedIterator for Slices<'a, I> {}

impl<'a, I: FusedIterator<Item = Result<Slice<'a>>>> GuestMemorySliceIterator<'a, BS<'a, Watched>>
    for Slices<'a, I>
{
    #[inline]
    fn stop_on_error(self) -> Result<impl Iterator<Item = Slice<'a>>> {
        match self {
            Self { next: Some(Err(error)), .. } => Err(error),
            good => Ok(good.map_while(Result::ok)),
        }
    }
}

#[cfg(test)]
impl Memory {
    /// Memory of this process.
    pub fn from_ranges(
        ranges: &[(GuestAddress, usize)],
    ) -> std::result::Result<Self, vm_memory::mmap::FromRangesError> {
        Regions::from_ranges(ranges).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vm_memory::Bytes;

    /// Two regions side by side, a hole, another one.
    const RANGES: [(GuestAddress, usize); 3] =
        [(GuestAddress(0), 0x1000), (GuestAddress(0x1000), 0x1000), (GuestAddress(0x3000), 0x1000)];

    proptest! {
        /// Whatever is asked for, the answer and the memory are as with `vm-memory` alone.
        #[test]
        fn equals_what_vm_memory_does(
            accesses in prop::collection::vec((prop_oneof![0..0x4100_u64, 0xff0..0x1010_u64, u64::MAX - 0x20..=u64::MAX], 0..0x40_usize, any::<bool>()), 1..40),
        ) {
            let (memory, model) = (Memory::from_ranges(&RANGES).unwrap(), Regions::from_ranges(&RANGES).unwrap());
            for (byte, (start, len, write)) in (1_u8..).zip(accesses) {
                let start = GuestAddress(start);
                prop_assert_eq!(
                    memory.check_range(start, len, Permissions::Read),
                    GuestMemoryBackend::check_range(&model, start, len)
                );
                if write {
                    let told = |result: Result<usize>| result.map_err(|error| error.to_string());
                    let bytes = vec![byte; len];
                    prop_assert_eq!(told(memory.write(&bytes, start)), told(model.write(&bytes, start)));
                } else {
                    let (mut mine, mut others) = (vec![0; len], vec![0; len]);
                    prop_assert_eq!(memory.read_slice(&mut mine, start).is_ok(), model.read_slice(&mut others, start).is_ok());
                    prop_assert_eq!(mine, others);
                }
            }
            for (start, len) in RANGES {
                let (mut mine, mut others) = (vec![0; len], vec![0; len]);
                memory.read_slice(&mut mine, start).unwrap();
                model.read_slice(&mut others, start).unwrap();
                prop_assert_eq!(mine, others);
            }
        }
    }
}
