//! Guest memory lent for reads: devices write straight to it, without a buffer of the reactor's between.
//!
//! Only memory that any device takes is lent, in whole pages; what the guest wants elsewhere is copied. Writes are always copied: the guest may change its memory at any
//! moment, and a block would differ from its checksum, or the cache from the backing.

use super::chain::Segment;
use super::fault::was_hurt;
use super::memory::Snapshot;
use larder_io::{Lender, Loan};
use std::sync::Arc;
use vm_memory::bitmap::Bitmap;
use vm_memory::{GuestMemory, Permissions};

impl Lender for Snapshot {
    fn touched(&self) {
        if was_hurt() {
            self.note_hurt();
        }
    }

    fn is_wanted(&self) -> bool {
        Self::is_wanted(self)
    }
}

/// Lend these segments; `None` where they do not suit, or are not there.
pub(super) fn lend(memory: &Arc<Snapshot>, segments: &[Segment]) -> Option<Loan> {
    let mut pieces = Vec::with_capacity(segments.len().saturating_sub(1));
    let mut only = None;
    for segment in segments {
        let slices = memory.get_slices(segment.start, segment.len as usize, Permissions::Write).ok()?;
        for slice in slices {
            let slice = slice.ok()?;
            let piece = (slice.ptr_guard_mut().as_ptr(), slice.len());
            // Most reads have one piece, for which there need be no list.
            pieces.extend(only.replace(piece));
        }
    }
    let lender = Arc::<Snapshot>::clone(memory);
    // SAFETY: the pieces are inside mappings of the snapshot, which keeps them until it is dropped, and guards them: where their file is cut short, touching
    // them is handled. Guest memory is only ever copied from or to: nobody has references to it.
    unsafe { Loan::new(pieces.into_iter().chain(only), lender) }
}

/// Devices have written to these segments: note it as what the reactor writes itself is noted.
pub(super) fn note_written(memory: &Snapshot, segments: &[Segment]) {
    for segment in segments {
        let Ok(slices) = memory.get_slices(segment.start, segment.len as usize, Permissions::Write) else {
            continue;
        };
        slices.flatten().for_each(|slice| slice.bitmap().mark_dirty(0, slice.len()));
    }
}
