//! Which checksums a driver computes over the data of an operation: the engine never sees a byte.

use crate::format::{BlockId, Salt};

/// The checksums of the blocks that an operation reads or writes, whole blocks one after the other. The driver computes
/// them over the operation's memory when it has ended well, and hands them over with its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    pub(crate) salt: Salt,
    pub(crate) first: BlockId,
    pub(crate) block_bytes: u32,
    pub(crate) bytes: u32,
}

impl Sums {
    /// Bytes that they cover, from the start of the operation's memory: the last block of a volume may end before the
    /// operation does.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// One checksum for each block of `data`, which has [`Sums::bytes`] bytes.
    pub fn of<'d>(&self, data: &'d [u8]) -> impl Iterator<Item = u32> + use<'d> {
        let Self { salt, first, block_bytes, .. } = *self;
        let blocks = data.chunks(block_bytes as usize).zip(first.block..);
        blocks.map(move |(data, block)| salt.block(BlockId { block, ..first }, data))
    }
}
