//! Which part of a tenant's blocks is used: S-CAVE's effective cache space (section IV).
//!
//! The paper samples the cache, since its reference counters are nowhere together. Here each hit says which block it is of, so that all are counted: four bytes for each
//! block, as long as somebody wants to know.

use crate::store::EntryId;
use crate::{Engine, TenantId};

/// Blocks that were hit, by the window in which they were hit last.
#[derive(Debug, Default)]
pub(crate) struct Hits {
    /// By entry; 0 for none.
    windows: Vec<u32>,
    tenants: Vec<Window>,
    /// The last number that was given to a window.
    last: u32,
}

/// A tenant's window: since it was last asked for.
#[derive(Clone, Copy, Debug)]
struct Window {
    number: u32,
    /// Blocks that were hit in it, and are still there.
    hit: u32,
}

impl Hits {
    pub(crate) fn memory_bytes(&self) -> usize {
        self.windows.capacity() * size_of::<u32>() + self.tenants.capacity() * size_of::<Window>()
    }

    fn begin(&mut self) -> Window {
        if self.last == u32::MAX {
            // Numbers begin again, and so do all windows.
            *self = Self::default();
        }
        self.last += 1;
        Window { number: self.last, hit: 0 }
    }

    #[inline]
    fn window(&mut self, tenant: TenantId) -> &mut Window {
        let at = usize::from(tenant.0);
        while self.tenants.len() <= at {
            let window = self.begin();
            self.tenants.push(window);
        }
        &mut self.tenants[at]
    }

    #[inline]
    fn hit(&mut self, tenant: TenantId, entry: EntryId) {
        let at = entry as usize;
        if self.windows.len() <= at {
            self.windows.resize(at + 1, 0);
        }
        let Window { number, .. } = *self.window(tenant);
        if std::mem::replace(&mut self.windows[at], number) != number {
            self.window(tenant).hit += 1;
        }
    }

    fn gone(&mut self, tenant: TenantId, entry: EntryId) {
        let Some(window) = self.windows.get_mut(entry as usize) else { return };
        let number = std::mem::take(window);
        let window = self.window(tenant);
        window.hit -= u32::from(number == window.number);
    }

    fn moved(&mut self, from: EntryId, to: EntryId) {
        let number = self.windows.get_mut(from as usize).map_or(0, std::mem::take);
        if number > 0 {
            let at = to as usize;
            if self.windows.len() <= at {
                self.windows.resize(at + 1, 0);
            }
            self.windows[at] = number;
        }
    }

    fn take(&mut self, tenant: TenantId) -> u32 {
        let hit = self.window(tenant).hit;
        let next = self.begin();
        *self.window(tenant) = next;
        hit
    }
}

impl Engine {
    /// Whether it is looked at which blocks are hit.
    pub fn watch_hits(&mut self, watch: bool) {
        if self.hits.is_some() != watch {
            self.hits = watch.then(Hits::default);
        }
    }

    /// The share (0 to 1) of a tenant's blocks that was hit since this was asked last; none where it holds nothing, or nobody looked.
    pub fn take_effective(&mut self, tenant: TenantId) -> Option<f64> {
        let hit = self.hits.as_mut()?.take(tenant);
        let held = self.occupied(tenant);
        (held > 0).then(|| f64::from(hit) / f64::from(held))
    }

    /// A block is hit.
    #[inline]
    pub(crate) fn note_hit(&mut self, tenant: TenantId, entry: EntryId) {
        if let Some(hits) = &mut self.hits {
            hits.hit(tenant, entry);
        }
    }

    /// A block's entry has another number.
    #[inline]
    pub(crate) fn note_moved(&mut self, from: EntryId, to: EntryId) {
        if let Some(hits) = &mut self.hits {
            hits.moved(from, to);
        }
    }

    /// A tenant's block leaves.
    pub(crate) fn note_gone(&mut self, tenant: usize, entry: EntryId) {
        if let Some(hits) = &mut self.hits {
            // Tenants have numbers of 16 bits.
            hits.gone(TenantId(tenant as u16), entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TenantId = TenantId(0);
    const B: TenantId = TenantId(3);

    #[test]
    fn blocks_count_once_in_a_window_and_as_long_as_they_are_there() {
        let mut hits = Hits::default();
        [7, 7, 9, 300].into_iter().for_each(|entry| hits.hit(A, entry));
        hits.hit(B, 8);
        hits.gone(A, 9);
        hits.gone(A, 10);
        assert_eq!((hits.take(A), hits.take(A)), (2, 0));
        hits.hit(A, 7);
        assert_eq!((hits.take(A), hits.take(B)), (1, 1), "each tenant has windows of its own");
        // A hit of an earlier window is none of this one.
        hits.hit(A, 7);
        hits.take(A);
        hits.hit(A, 8);
        hits.gone(A, 7);
        assert_eq!(hits.take(A), 1);
        // Another tenant's block where one was.
        hits.hit(A, 5);
        hits.gone(A, 5);
        hits.hit(B, 5);
        assert_eq!((hits.take(A), hits.take(B)), (0, 1));
        // A block with another number is the same block.
        hits.hit(A, 5);
        hits.moved(5, 900);
        hits.moved(901, 5);
        hits.hit(A, 900);
        hits.gone(A, 5);
        assert_eq!(hits.take(A), 1);
    }

    #[test]
    fn numbers_of_windows_may_run_out() {
        let mut hits = Hits { last: u32::MAX - 2, ..Hits::default() };
        hits.hit(A, 1);
        assert_eq!(hits.take(A), 1);
        hits.hit(A, 1);
        assert_eq!(hits.take(A), 1, "the last number");
        hits.hit(A, 1);
        hits.hit(B, 2);
        assert_eq!((hits.take(A), hits.take(A), hits.take(B)), (1, 0, 1));
    }
}
