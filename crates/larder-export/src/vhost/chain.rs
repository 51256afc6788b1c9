//! A request as the guest's driver lays it out: a chain of descriptors, each read once (virtio 1.2, section 2.7.5).
//!
//! The guest may write anything there, at any moment. What is read here is checked here, and never read again.

use super::limits::DESCRIPTORS_MAX;
use super::view::Memory;
use virtio_queue::desc::split::Descriptor;
use vm_memory::{Address, Bytes, GuestAddress, GuestMemory, Permissions};

const DESCRIPTOR_BYTES: u64 = 16;

/// A run of guest memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub start: GuestAddress,
    pub len: u32,
}

/// What a chain names: first what the device reads, then what it writes. Reused from request to request.
#[derive(Debug, Default)]
pub(super) struct Chain {
    pub readable: Vec<Segment>,
    pub writable: Vec<Segment>,
}

/// The driver breaks the rules, so that there may be no place to tell it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BrokenChain {
    #[error("a descriptor is outside the table or the guest's memory")]
    Outside,
    #[error("a chain of descriptors does not end")]
    Endless,
    #[error("a table of indirect descriptors is inside another, or has no whole number of them")]
    Indirect,
    #[error("a descriptor to be read follows one to be written")]
    Order,
    #[error("a request has no place for its status")]
    NoStatus,
}

/// A table of descriptors.
#[derive(Clone, Copy, Debug)]
struct Table {
    start: GuestAddress,
    size: u32,
}

impl Table {
    fn read(self, memory: &Memory, index: u32) -> Result<Descriptor, BrokenChain> {
        let inside = (index < self.size).then_some(u64::from(index) * DESCRIPTOR_BYTES);
        let place = inside.and_then(|offset| self.start.checked_add(offset));
        place.and_then(|place| memory.read_obj(place).ok()).ok_or(BrokenChain::Outside)
    }
}

impl Chain {
    /// Walk the chain that begins at `head` of a queue's table of `size` descriptors.
    pub fn walk(&mut self, memory: &Memory, table: u64, size: u16, head: u16) -> Result<(), BrokenChain> {
        self.readable.clear();
        self.writable.clear();
        let mut table = Table { start: GuestAddress(table), size: size.into() };
        let (mut index, mut indirect) = (u32::from(head), false);
        for _ in 0..DESCRIPTORS_MAX {
            let descriptor = table.read(memory, index)?;
            if descriptor.refers_to_indirect_table() {
                let len = descriptor.len();
                if indirect || descriptor.has_next() || !u64::from(len).is_multiple_of(DESCRIPTOR_BYTES) {
                    return Err(BrokenChain::Indirect);
                }
                table = Table { start: descriptor.addr(), size: len / DESCRIPTOR_BYTES as u32 };
                (index, indirect) = (0, true);
                continue;
            }
            self.add(memory, descriptor)?;
            if !descriptor.has_next() {
                return Ok(());
            }
            index = descriptor.next().into();
        }
        Err(BrokenChain::Endless)
    }

    fn add(&mut self, memory: &Memory, descriptor: Descriptor) -> Result<(), BrokenChain> {
        let segment = Segment { start: descriptor.addr(), len: descriptor.len() };
        let (list, access) = match descriptor.is_write_only() {
            true => (&mut self.writable, Permissions::Write),
            false if !self.writable.is_empty() => return Err(BrokenChain::Order),
            false => (&mut self.readable, Permissions::Read),
        };
        if segment.len > 0 {
            if !memory.check_range(segment.start, segment.len as usize, access) {
                return Err(BrokenChain::Outside);
            }
            list.push(segment);
        }
        Ok(())
    }

    /// Take the last byte off what the device writes: the place for the status.
    pub fn take_status(&mut self) -> Result<GuestAddress, BrokenChain> {
        let last = self.writable.last_mut().ok_or(BrokenChain::NoStatus)?;
        last.len -= 1;
        let place = GuestAddress(last.start.0 + u64::from(last.len));
        if last.len == 0 {
            self.writable.pop();
        }
        Ok(place)
    }

    /// Read this many bytes from the start of what the device reads, and take them off. False where there are fewer.
    pub fn take_front(&mut self, memory: &Memory, into: &mut [u8]) -> bool {
        let (mut filled, mut used_up) = (0, 0);
        for segment in &mut self.readable {
            let len = (into.len() - filled).min(segment.len as usize);
            if len == 0 || memory.read_slice(&mut into[filled..filled + len], segment.start).is_err() {
                break;
            }
            filled += len;
            segment.start = GuestAddress(segment.start.0 + len as u64);
            segment.len -= len as u32;
            used_up += usize::from(segment.len == 0);
        }
        self.readable.drain(..used_up);
        filled == into.len()
    }
}

/// Bytes in all.
pub(super) fn total(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| u64::from(segment.len)).sum()
}

/// Copy from guest memory; `into` is as long as the segments in all. False where the memory is gone.
pub(super) fn gather(memory: &Memory, segments: &[Segment], into: &mut [u8]) -> bool {
    let mut rest = into;
    segments.iter().all(|segment| {
        let (piece, behind) = std::mem::take(&mut rest).split_at_mut(segment.len as usize);
        rest = behind;
        memory.read_slice(piece, segment.start).is_ok()
    })
}

/// Copy to guest memory as much of `from` as there is room for in the segments. False where the memory is gone.
pub(super) fn scatter(memory: &Memory, segments: &[Segment], from: &[u8]) -> bool {
    let mut rest = from;
    segments.iter().all(|segment| {
        let (piece, behind) = rest.split_at(rest.len().min(segment.len as usize));
        rest = behind;
        piece.is_empty() || memory.write_slice(piece, segment.start).is_ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use virtio_bindings::virtio_ring::{VRING_DESC_F_INDIRECT, VRING_DESC_F_NEXT, VRING_DESC_F_WRITE};

    const NEXT: u16 = VRING_DESC_F_NEXT as u16;
    const WRITE: u16 = VRING_DESC_F_WRITE as u16;
    const INDIRECT: u16 = VRING_DESC_F_INDIRECT as u16;
    const MEMORY: u64 = 0x10000;
    const INDIRECT_AT: u64 = 0x800;

    /// Start, length, flags, next.
    type Row = (u64, u32, u16, u16);

    fn memory(tables: &[(u64, &[Row])]) -> Memory {
        let memory = Memory::from_ranges(&[(GuestAddress(0), MEMORY as usize)]).unwrap();
        for (start, table) in tables {
            for (index, &(addr, len, flags, next)) in table.iter().enumerate() {
                let place = GuestAddress(start + 16 * index as u64);
                memory.write_obj(Descriptor::new(addr, len, flags, next), place).unwrap();
            }
        }
        memory
    }

    fn walk(memory: &Memory, head: u16) -> Result<Chain, BrokenChain> {
        let mut chain = Chain::default();
        chain.walk(memory, 0, 16, head).map(|()| chain)
    }

    fn segment(start: u64, len: u32) -> Segment {
        Segment { start: GuestAddress(start), len }
    }

    #[test]
    fn a_read_names_a_header_data_and_a_status() {
        let memory = memory(&[(
            0,
            &[(0x1000, 16, NEXT, 2), (0, 0, 0, 0), (0x2000, 512, NEXT | WRITE, 3), (0x3000, 1, WRITE, 0)],
        )]);
        memory.write_slice(b"sixteen bytes!!!", GuestAddress(0x1000)).unwrap();
        let mut chain = walk(&memory, 0).unwrap();
        let (mut header, status) = ([0; 16], chain.take_status().unwrap());
        assert!(chain.take_front(&memory, &mut header));
        assert_eq!((&header, status), (b"sixteen bytes!!!", GuestAddress(0x3000)));
        assert_eq!((chain.readable.len(), chain.writable), (0, vec![segment(0x2000, 512)]));
    }

    #[test]
    fn any_layout_of_header_and_status_will_do() {
        let memory = memory(&[(
            0,
            &[(0x1000, 10, NEXT, 1), (0x100a, 0, NEXT, 2), (0x100a, 600, NEXT, 3), (0x3000, 513, WRITE, 0)],
        )]);
        let mut chain = walk(&memory, 0).unwrap();
        assert_eq!(chain.take_status().unwrap(), GuestAddress(0x3200));
        assert!(chain.take_front(&memory, &mut [0; 16]));
        assert_eq!(chain.readable, [segment(0x1010, 594)]);
        assert_eq!(chain.writable, [segment(0x3000, 512)]);
    }

    #[test]
    fn an_indirect_table_takes_the_place_of_the_queues() {
        let inner: &[_] = &[(0x1000, 16, NEXT, 1), (0x3000, 1, WRITE, 0)];
        let memory = memory(&[(0, &[(INDIRECT_AT, 32, INDIRECT, 0)]), (INDIRECT_AT, inner)]);
        let chain = walk(&memory, 0).unwrap();
        assert_eq!((chain.readable, chain.writable), (vec![segment(0x1000, 16)], vec![segment(0x3000, 1)]));
    }

    #[test]
    fn drivers_that_break_the_rules_are_told_apart() {
        let broken =
            |table: &[_], inner: &[_]| walk(&memory(&[(0, table), (INDIRECT_AT, inner)]), 0).unwrap_err();
        assert_eq!(broken(&[(0x1000, 16, NEXT, 0)], &[]), BrokenChain::Endless);
        assert_eq!(broken(&[(0x1000, 16, NEXT, 99)], &[]), BrokenChain::Outside);
        assert_eq!(broken(&[(MEMORY - 4, 16, 0, 0)], &[]), BrokenChain::Outside);
        assert_eq!(broken(&[(u64::MAX - 4, 16, 0, 0)], &[]), BrokenChain::Outside);
        assert_eq!(broken(&[(0x1000, 1, WRITE | NEXT, 1), (0x2000, 1, 0, 0)], &[]), BrokenChain::Order);
        assert_eq!(broken(&[(INDIRECT_AT, 17, INDIRECT, 0)], &[]), BrokenChain::Indirect);
        assert_eq!(broken(&[(INDIRECT_AT, 16, INDIRECT | NEXT, 0)], &[]), BrokenChain::Indirect);
        assert_eq!(
            broken(&[(INDIRECT_AT, 16, INDIRECT, 0)], &[(INDIRECT_AT, 16, INDIRECT, 0)]),
            BrokenChain::Indirect
        );
        assert_eq!(broken(&[(INDIRECT_AT, 0, INDIRECT, 0)], &[]), BrokenChain::Outside);
        assert_eq!(walk(&memory(&[]), 16).unwrap_err(), BrokenChain::Outside, "a head outside the table");
        let mut read_only = walk(&memory(&[(0, &[(0x1000, 16, 0, 0)])]), 0).unwrap();
        assert_eq!(read_only.take_status(), Err(BrokenChain::NoStatus));
    }

    #[test]
    fn data_is_gathered_and_scattered() {
        let memory = memory(&[]);
        let segments = [segment(0x1000, 3), segment(0x2000, 2)];
        assert!(scatter(&memory, &segments, b"abcde"));
        let mut back = [0; 5];
        assert!(gather(&memory, &segments, &mut back));
        assert_eq!(&back, b"abcde");
        assert!(scatter(&memory, &segments, b"xy") && gather(&memory, &segments, &mut back));
        assert_eq!(&back, b"xycde", "what does not reach the end leaves the rest");
        assert!(!gather(&memory, &[segment(MEMORY, 1)], &mut [0]));
    }

    proptest! {
        /// Whatever the tables hold, walking ends, and names only memory of the guest.
        #[test]
        fn garbage_never_leads_outside(
            bytes in prop::collection::vec(prop_oneof![Just(0_u8), Just(1), Just(4), any::<u8>()], 0x400),
            head in 0_u16..20,
        ) {
            let memory = memory(&[]);
            memory.write_slice(&bytes, GuestAddress(0)).unwrap();
            if let Ok(mut chain) = walk(&memory, head) {
                let inside = |segment: &Segment| segment.start.0 + u64::from(segment.len) <= MEMORY;
                prop_assert!(chain.readable.iter().chain(&chain.writable).all(inside));
                chain.take_front(&memory, &mut [0; 16]);
                if let Ok(place) = chain.take_status() {
                    prop_assert!(place.0 < MEMORY);
                }
            }
        }
    }
}
