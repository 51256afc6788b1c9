//! The memory of a simulated host: guest buffers and staging buffers, by name.
//!
//! It polices its use: a name must be live, a range must lie inside its buffer, and the data of a guest's write must not
//! change. Fresh memory holds [`GARBAGE`], so that bytes which nobody wrote are known when they turn up somewhere.

use larder_engine::{Buf, BufOwner, RequestId, StageId};
use std::collections::BTreeMap;

/// What memory holds before it is written.
pub const GARBAGE: u8 = 0xee;

#[derive(Clone, Debug)]
struct Buffer {
    bytes: Vec<u8>,
    read_only: bool,
}

/// Buffers by owner.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    guests: BTreeMap<RequestId, Buffer>,
    stages: BTreeMap<StageId, Buffer>,
}

impl Memory {
    /// Add a guest's buffer: data to write, which nobody may change, or room for what is read.
    pub fn add_guest(&mut self, request: RequestId, bytes: Vec<u8>, read_only: bool) {
        let old = self.guests.insert(request, Buffer { bytes, read_only });
        assert!(old.is_none(), "{request:?} is in flight already");
    }

    /// Take a guest's buffer away.
    pub fn remove_guest(&mut self, request: RequestId) -> Vec<u8> {
        let buffer = self.guests.remove(&request);
        buffer.unwrap_or_else(|| panic!("{request:?} is not in flight")).bytes
    }

    /// Add a staging buffer.
    pub fn add_stage(&mut self, stage: StageId, bytes: u32) {
        let buffer = Buffer { bytes: vec![GARBAGE; bytes as usize], read_only: false };
        assert!(self.stages.insert(stage, buffer).is_none(), "{stage:?} is allocated already");
    }

    /// Take a staging buffer away.
    pub fn remove_stage(&mut self, stage: StageId) {
        assert!(self.stages.remove(&stage).is_some(), "{stage:?} is freed, but not allocated");
    }

    /// Staging buffers that are allocated.
    pub fn stages(&self) -> usize {
        self.stages.len()
    }

    /// Bytes of the staging buffers that are allocated.
    pub fn stage_bytes(&self) -> u64 {
        self.stages.values().map(|b| b.bytes.len() as u64).sum()
    }

    /// The bytes of a range.
    pub fn read(&self, buf: Buf, len: u32) -> &[u8] {
        let buffer = match buf.owner {
            BufOwner::Guest(id) => self.guests.get(&id),
            BufOwner::Stage(id) => self.stages.get(&id),
        };
        let buffer = buffer.unwrap_or_else(|| panic!("{:?} is not live", buf.owner));
        let range = buf.offset as usize..buf.offset as usize + len as usize;
        buffer.bytes.get(range).unwrap_or_else(|| panic!("{buf:?} + {len} is beyond {}", buffer.bytes.len()))
    }

    /// The bytes of a range, to be written.
    pub fn write(&mut self, buf: Buf, len: u32) -> &mut [u8] {
        let buffer = match buf.owner {
            BufOwner::Guest(id) => self.guests.get_mut(&id),
            BufOwner::Stage(id) => self.stages.get_mut(&id),
        };
        let buffer = buffer.unwrap_or_else(|| panic!("{:?} is not live", buf.owner));
        assert!(!buffer.read_only, "the data of a guest's write would be changed: {buf:?}");
        let (total, range) = (buffer.bytes.len(), buf.offset as usize..buf.offset as usize + len as usize);
        buffer.bytes.get_mut(range).unwrap_or_else(|| panic!("{buf:?} + {len} is beyond {total}"))
    }

    /// Copy between two buffers of different owners.
    pub fn copy(&mut self, from: Buf, to: Buf, len: u32) {
        assert!(from.owner != to.owner, "a copy within {:?}", from.owner);
        let bytes = self.read(from, len).to_vec();
        self.write(to, len).copy_from_slice(&bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guest(offset: u32) -> Buf {
        Buf { owner: BufOwner::Guest(RequestId(1)), offset }
    }

    fn memory(read_only: bool) -> Memory {
        let mut memory = Memory::default();
        memory.add_guest(RequestId(1), vec![1; 512], read_only);
        memory.add_stage(StageId(0), 1024);
        memory
    }

    #[test]
    fn copies_what_was_written() {
        let mut memory = memory(true);
        let stage = Buf { owner: BufOwner::Stage(StageId(0)), offset: 512 };
        assert_eq!((memory.stages(), memory.stage_bytes()), (1, 1024));
        assert_eq!(memory.read(stage, 2), [GARBAGE; 2]);
        memory.copy(guest(500), stage, 12);
        assert_eq!(memory.read(stage, 13)[11..], [1, GARBAGE]);
    }

    #[test]
    #[should_panic(expected = "is beyond 512")]
    fn refuses_a_range_beyond_the_end() {
        memory(true).read(guest(500), 13);
    }

    #[test]
    #[should_panic(expected = "would be changed")]
    fn refuses_to_change_what_a_guest_writes() {
        memory(true).write(guest(0), 1);
    }

    #[test]
    #[should_panic(expected = "is not live")]
    fn refuses_memory_that_was_given_back() {
        let mut memory = memory(false);
        memory.remove_stage(StageId(0));
        memory.read(Buf { owner: BufOwner::Stage(StageId(0)), offset: 0 }, 1);
    }
}
