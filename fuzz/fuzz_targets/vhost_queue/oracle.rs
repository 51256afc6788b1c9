//! What a chain of descriptors names, told slowly from the descriptors as they were read, each once.

use crate::chain::{BrokenChain, Segment};
use crate::limits::DESCRIPTORS_MAX;
use crate::memory::{Access, Memory};
use vm_memory::{GuestAddress, GuestMemory, Permissions};

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// What the device reads, and what it writes.
pub type Named = (Vec<Segment>, Vec<Segment>);

/// The chain from `head` of a table of `size` descriptors, by what the walk saw of it. Anything else that it saw is a fault of its.
pub fn walk(
    memory: &Memory,
    seen: &[Access],
    table: u64,
    size: u16,
    head: u16,
) -> Result<Named, BrokenChain> {
    let mut seen = seen.iter();
    let outcome = follow(memory, &mut seen, table, size.into(), head.into());
    assert!(seen.next().is_none(), "more was read than the chain has: something was read twice");
    outcome
}

fn follow<'a>(
    memory: &Memory,
    seen: &mut impl Iterator<Item = &'a Access>,
    mut table: u64,
    mut size: u64,
    mut index: u64,
) -> Result<Named, BrokenChain> {
    let (mut named, mut indirect) = (Named::default(), false);
    for _ in 0..DESCRIPTORS_MAX {
        let place =
            table.checked_add(16 * index).filter(|place| index < size && memory.peek(*place, 16).is_some());
        let Some(place) = place else { return Err(BrokenChain::Outside) };
        let read = seen.next().expect("a descriptor is read before it is judged");
        assert_eq!((read.start, read.bytes.len(), read.writes), (place, 16, false), "another place was read");
        let (start, rest) = read.bytes.split_first_chunk().expect("16 bytes");
        let [l0, l1, l2, l3, f0, f1, n0, n1] = rest else { unreachable!("8 bytes") };
        let (start, len) = (u64::from_le_bytes(*start), u32::from_le_bytes([*l0, *l1, *l2, *l3]));
        let (flags, next) = (u16::from_le_bytes([*f0, *f1]), u16::from_le_bytes([*n0, *n1]));
        if flags & INDIRECT != 0 {
            if indirect || flags & NEXT != 0 || len % 16 != 0 {
                return Err(BrokenChain::Indirect);
            }
            (table, size, index, indirect) = (start, u64::from(len / 16), 0, true);
            continue;
        }
        if flags & WRITE == 0 && !named.1.is_empty() {
            return Err(BrokenChain::Order);
        }
        if len > 0 {
            if !memory.check_range(GuestAddress(start), len as usize, Permissions::Read) {
                return Err(BrokenChain::Outside);
            }
            let list = if flags & WRITE == 0 { &mut named.0 } else { &mut named.1 };
            list.push(Segment { start: GuestAddress(start), len });
        }
        if flags & NEXT == 0 {
            return Ok(named);
        }
        index = next.into();
    }
    Err(BrokenChain::Endless)
}
