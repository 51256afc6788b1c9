//! What the guest's driver reads of the device: its features and its configuration space (virtio 1.2, section 5.2.3 to 5.2.4).

use super::limits::{CLEAR_SECTORS_MAX, QUEUES_MAX, SEGMENTS_TOLD};
use larder_engine::SECTOR_BYTES;
use larder_io::VolumeInfo;
use virtio_bindings::virtio_blk::{
    VIRTIO_BLK_F_BLK_SIZE, VIRTIO_BLK_F_CONFIG_WCE, VIRTIO_BLK_F_DISCARD, VIRTIO_BLK_F_FLUSH,
    VIRTIO_BLK_F_MQ, VIRTIO_BLK_F_RO, VIRTIO_BLK_F_SEG_MAX, VIRTIO_BLK_F_TOPOLOGY, VIRTIO_BLK_F_WRITE_ZEROES,
};
use virtio_bindings::virtio_config::VIRTIO_F_VERSION_1;
use virtio_bindings::virtio_ring::{VIRTIO_RING_F_EVENT_IDX, VIRTIO_RING_F_INDIRECT_DESC};

/// vhost-user's own feature bit, among those of virtio: there are protocol features.
pub(super) const PROTOCOL_FEATURES: u64 = 1 << 30;

/// Likewise vhost's own: the hypervisor wants to know which pages of the guest are written.
pub(super) const LOG_ALL: u64 = 1 << 26;

/// Bytes of the configuration space that have a meaning here.
const CONFIG_BYTES: usize = 60;
/// Where the driver switches the write cache on and off.
const WRITEBACK_AT: usize = 32;

/// A feature as its bit.
const fn bit(feature: u32) -> u64 {
    1 << feature
}

/// What the device can do.
pub(super) fn features(info: &VolumeInfo) -> u64 {
    let always = bit(VIRTIO_F_VERSION_1)
        | bit(VIRTIO_RING_F_EVENT_IDX)
        | bit(VIRTIO_RING_F_INDIRECT_DESC)
        | bit(VIRTIO_BLK_F_SEG_MAX)
        | bit(VIRTIO_BLK_F_BLK_SIZE)
        | bit(VIRTIO_BLK_F_FLUSH)
        | bit(VIRTIO_BLK_F_TOPOLOGY)
        | bit(VIRTIO_BLK_F_CONFIG_WCE)
        | bit(VIRTIO_BLK_F_MQ)
        | PROTOCOL_FEATURES
        | LOG_ALL;
    let writes = bit(VIRTIO_BLK_F_DISCARD) | bit(VIRTIO_BLK_F_WRITE_ZEROES);
    always | if info.read_only { bit(VIRTIO_BLK_F_RO) } else { writes }
}

/// True where the driver is told when to look at the used ring by an index in it.
pub(super) fn has_event_index(acked: u64) -> bool {
    acked & bit(VIRTIO_RING_F_EVENT_IDX) != 0
}

/// True where every write has to be durable when it completes (virtio 1.2, section 5.2.6.2): the driver cannot flush, or it has
/// switched the write cache off.
pub(super) fn writes_through(acked: u64, writeback: bool) -> bool {
    acked & bit(VIRTIO_BLK_F_FLUSH) == 0 || acked & bit(VIRTIO_BLK_F_CONFIG_WCE) != 0 && !writeback
}

/// The configuration space.
#[derive(Clone, Debug)]
pub(super) struct ConfigSpace {
    bytes: [u8; CONFIG_BYTES],
}

impl ConfigSpace {
    /// That of a volume, with the write cache on.
    pub fn new(info: &VolumeInfo) -> Self {
        let preferred = info.preferred_block.max(info.min_block);
        let blocks = preferred / info.min_block.max(1);
        let granularity = preferred / SECTOR_BYTES as u32;
        let mut space = Self { bytes: [0; CONFIG_BYTES] };
        space.put(0, &(info.bytes / SECTOR_BYTES).to_le_bytes()); // capacity
        space.put(12, &SEGMENTS_TOLD.to_le_bytes()); // seg_max
        space.put(20, &info.min_block.to_le_bytes()); // blk_size
        space.put(24, &[blocks.ilog2() as u8]); // physical_block_exp
        space.put(26, &u16::try_from(blocks).unwrap_or(0).to_le_bytes()); // min_io_size
        space.put(WRITEBACK_AT, &[1]);
        space.put(34, &QUEUES_MAX.to_le_bytes()); // num_queues
        space.put(36, &CLEAR_SECTORS_MAX.to_le_bytes()); // max_discard_sectors
        space.put(40, &1_u32.to_le_bytes()); // max_discard_seg
        space.put(44, &granularity.to_le_bytes()); // discard_sector_alignment
        space.put(48, &CLEAR_SECTORS_MAX.to_le_bytes()); // max_write_zeroes_sectors
        space.put(52, &1_u32.to_le_bytes()); // max_write_zeroes_seg
        space.put(56, &[1]); // write_zeroes_may_unmap
        space
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// The volume has another size.
    pub fn set_bytes(&mut self, bytes: u64) {
        self.put(0, &(bytes / SECTOR_BYTES).to_le_bytes());
    }

    /// A part of it; zeroes beyond its end.
    pub fn read(&self, offset: u32, len: u32) -> Vec<u8> {
        let from = self.bytes.iter().skip(offset as usize).copied();
        from.chain(std::iter::repeat(0)).take(len as usize).collect()
    }

    /// The driver writes. False where that is nothing that it may write.
    pub fn write(&mut self, offset: u32, bytes: &[u8]) -> bool {
        let &[value @ (0 | 1)] = bytes else { return false };
        let there = offset as usize == WRITEBACK_AT;
        if there {
            self.bytes[WRITEBACK_AT] = value;
        }
        there
    }

    /// True while the driver has the write cache switched on.
    pub fn writeback(&self) -> bool {
        self.bytes[WRITEBACK_AT] != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: VolumeInfo =
        VolumeInfo { bytes: 1 << 30, min_block: 512, preferred_block: 4096, read_only: false };

    fn number(space: &ConfigSpace, offset: u32, len: u32) -> u64 {
        let mut bytes = space.read(offset, len);
        bytes.resize(8, 0);
        u64::from_le_bytes(bytes.try_into().unwrap())
    }

    #[test]
    fn the_space_says_what_the_volume_is() {
        let space = ConfigSpace::new(&INFO);
        assert_eq!(number(&space, 0, 8), 2 << 20, "capacity in sectors of 512 bytes");
        assert_eq!(number(&space, 20, 4), 512);
        assert_eq!(number(&space, 24, 1), 3, "eight logical blocks in a physical one");
        assert_eq!(number(&space, 26, 2), 8);
        assert_eq!(number(&space, 44, 4), 8);
    }

    #[test]
    fn beyond_its_end_it_reads_as_zeroes() {
        let space = ConfigSpace::new(&INFO);
        assert_eq!(space.read(56, 8), [1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(space.read(u32::MAX, 2), [0, 0]);
    }

    #[test]
    fn only_the_write_cache_can_be_written() {
        let mut space = ConfigSpace::new(&INFO);
        let before = space.read(0, 60);
        assert!(
            !space.write(0, &[1])
                && !space.write(32, &[2])
                && !space.write(32, &[0, 0])
                && !space.write(32, &[])
        );
        assert_eq!(space.read(0, 60), before);
        assert!(space.write(32, &[0]) && !space.writeback());
    }

    #[test]
    fn without_flushes_or_write_cache_writes_go_through() {
        let all = features(&INFO);
        assert!(!writes_through(all, true) && writes_through(all, false));
        assert!(writes_through(all & !bit(VIRTIO_BLK_F_FLUSH), true));
        assert!(
            !writes_through(all & !bit(VIRTIO_BLK_F_CONFIG_WCE), false),
            "nobody can have switched it off"
        );
    }

    #[test]
    fn a_read_only_volume_says_so() {
        let told = features(&VolumeInfo { read_only: true, ..INFO });
        assert_ne!(told & bit(VIRTIO_BLK_F_RO), 0);
        assert_eq!(told & (bit(VIRTIO_BLK_F_DISCARD) | bit(VIRTIO_BLK_F_WRITE_ZEROES)), 0);
    }
}
