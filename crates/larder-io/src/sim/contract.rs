//! The engine's side of the contract with its driver, as checks on one operation beside those in flight.

use larder_engine::{Buf, DeviceOp, OpKind, SECTOR_BYTES, Target};

/// First byte on the device, and number of bytes. A flush has none.
pub(super) fn extent(kind: &OpKind) -> (u64, u64) {
    match *kind {
        OpKind::Read { offset, len, .. } | OpKind::Write { offset, len, .. } => (offset, u64::from(len)),
        OpKind::Discard { offset, len } | OpKind::WriteZeroes { offset, len, .. } => (offset, len),
        OpKind::Flush => (0, 0),
    }
}

/// The memory of an operation, and how many bytes of it.
pub(super) fn memory_of(kind: &OpKind) -> Option<(Buf, u32)> {
    match *kind {
        OpKind::Read { len, buf, .. } | OpKind::Write { len, buf, .. } => Some((buf, len)),
        _ => None,
    }
}

/// Panics unless the operation lies inside its device and is aligned as that device needs it.
pub(super) fn check_extent(op: &DeviceOp, device_bytes: u64, align: u64) {
    let (start, len) = extent(&op.kind);
    if matches!(op.kind, OpKind::Flush) {
        return;
    }
    assert!(len > 0, "an empty operation: {op:?}");
    let end = start.checked_add(len);
    assert!(end.is_some_and(|end| end <= device_bytes), "beyond the end, {device_bytes}: {op:?}");
    assert!(start.is_multiple_of(align) && len.is_multiple_of(align), "not aligned to {align}: {op:?}");
    if let Some((buf, _)) = memory_of(&op.kind) {
        assert!(u64::from(buf.offset).is_multiple_of(SECTOR_BYTES), "memory is not aligned: {op:?}");
    }
}

/// Panics if two operations in flight together would race, in memory or on the cache device.
///
/// On a backing they may: guests may write the same sectors at once. On the cache device they may not: a slot has one
/// owner, and what two racing writes leave in it would not be known. (What is read of metadata nobody looks at: the engine only wants to know whether it can be.)
pub(super) fn check_race(new: &DeviceOp, old: &DeviceOp) {
    let fills = |op: &DeviceOp| matches!(op.kind, OpKind::Read { .. });
    if let (Some(a), Some(b)) = (memory_of(&new.kind), memory_of(&old.kind)) {
        let race = (fills(new) || fills(old)) && memory_overlaps(a, b);
        assert!(!race, "two operations race in memory: {new:?} and {old:?}");
    }
    let asks = |op: &DeviceOp| op.target == Target::CacheMeta && fills(op);
    let of_cache = matches!(new.target, Target::Cache | Target::CacheMeta);
    if new.target == old.target && of_cache && !asks(new) && !asks(old) {
        let ((a, a_len), (b, b_len)) = (extent(&new.kind), extent(&old.kind));
        let race = (!fills(new) || !fills(old)) && a < b + b_len && b < a + a_len;
        assert!(!race, "two operations race on the cache device: {new:?} and {old:?}");
    }
}

/// Panics if a copy would race with an operation in flight.
pub(super) fn check_copy(from: Buf, to: Buf, len: u32, old: &DeviceOp) {
    let Some(memory) = memory_of(&old.kind) else { return };
    assert!(!memory_overlaps((to, len), memory), "a copy to {to:?} changes the memory of {old:?}");
    let fills = matches!(old.kind, OpKind::Read { .. });
    assert!(!(fills && memory_overlaps((from, len), memory)), "a copy from {from:?} races with {old:?}");
}

fn memory_overlaps((a, a_len): (Buf, u32), (b, b_len): (Buf, u32)) -> bool {
    let (a_start, b_start) = (u64::from(a.offset), u64::from(b.offset));
    a.owner == b.owner && a_start < b_start + u64::from(b_len) && b_start < a_start + u64::from(a_len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_engine::{BufOwner, OpId, RequestId, StageId, VolumeId};

    fn op(target: Target, read: bool, offset: u64, guest: u32) -> DeviceOp {
        let buf = Buf { owner: BufOwner::Guest(RequestId(guest)), offset: 0 };
        let kind = match read {
            true => OpKind::Read { offset, len: 4096, buf },
            false => OpKind::Write { offset, len: 4096, buf, fua: false },
        };
        DeviceOp { id: OpId(0), target, kind, sums: None }
    }

    #[test]
    fn readers_share_a_slot_and_writers_share_memory() {
        check_race(&op(Target::Cache, true, 0, 1), &op(Target::Cache, true, 0, 2));
        check_race(&op(Target::Cache, false, 0, 1), &op(Target::Backing(VolumeId(0)), false, 0, 1));
        check_race(
            &op(Target::Backing(VolumeId(0)), false, 0, 1),
            &op(Target::Backing(VolumeId(0)), false, 0, 2),
        );
    }

    #[test]
    #[should_panic(expected = "race on the cache device")]
    fn a_slot_has_one_writer() {
        check_race(&op(Target::Cache, false, 0, 1), &op(Target::Cache, true, 2048, 2));
    }

    #[test]
    #[should_panic(expected = "race in memory")]
    fn memory_being_filled_is_not_written_out() {
        check_race(&op(Target::Cache, false, 0, 1), &op(Target::Backing(VolumeId(0)), true, 0, 1));
    }

    #[test]
    #[should_panic(expected = "races with")]
    fn memory_being_filled_is_not_copied() {
        let stage = Buf { owner: BufOwner::Stage(StageId(0)), offset: 0 };
        let guest = Buf { owner: BufOwner::Guest(RequestId(1)), offset: 512 };
        check_copy(guest, stage, 512, &op(Target::Cache, true, 0, 1));
    }

    #[test]
    #[should_panic(expected = "not aligned")]
    fn the_cache_device_needs_alignment() {
        check_extent(&op(Target::Cache, true, 512, 1), 1 << 20, 4096);
    }

    #[test]
    #[should_panic(expected = "beyond the end")]
    fn operations_lie_inside_the_device() {
        check_extent(&op(Target::Cache, true, 8192, 1), 8192, 512);
    }
}
