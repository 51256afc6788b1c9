//! For each access of a trace, at which position the same block is used next.

use crate::index::{Index, hash};

/// The block is not used again, or not before its data becomes invalid.
pub const NEVER: u32 = u32::MAX;

/// The next use after each access of a trace: 4 bytes per access.
#[derive(Clone, Debug)]
pub struct NextUses {
    after: Vec<u32>,
}

/// A trace is too long to look ahead over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Belady's replacement cannot look ahead over more than 2^32 - 1 accesses")]
pub struct TooLong;

impl NextUses {
    /// Of a sequence of accesses, none of which invalidates.
    ///
    /// # Errors
    /// [`TooLong`].
    pub fn of(keys: impl IntoIterator<Item = u64>) -> Result<Self, TooLong> {
        let mut builder = NextUsesBuilder::default();
        keys.into_iter().try_for_each(|key| builder.push(key, false))?;
        Ok(builder.finish())
    }

    /// Accesses in the trace.
    pub fn len(&self) -> usize {
        self.after.len()
    }

    /// True without accesses.
    pub fn is_empty(&self) -> bool {
        self.after.is_empty()
    }

    /// The position at which the block that is accessed at `position` is used next, or [`NEVER`]; also behind the end.
    #[inline]
    pub fn after(&self, position: usize) -> u32 {
        self.after.get(position).copied().unwrap_or(NEVER)
    }
}

/// Takes the accesses of a trace one by one, in order. Per distinct block it holds 12 bytes and an index.
#[derive(Clone, Debug, Default)]
pub struct NextUsesBuilder {
    after: Vec<u32>,
    index: Index,
    /// The distinct blocks, and where each was accessed last.
    blocks: Vec<(u64, u32)>,
}

impl NextUsesBuilder {
    /// The next access. One that `invalidates` (a write under the policy `ro`) ends what the cache knows of the block: it is no use of it.
    ///
    /// # Errors
    /// [`TooLong`]; the access is not taken.
    #[inline]
    pub fn push(&mut self, key: u64, invalidates: bool) -> Result<(), TooLong> {
        let position =
            u32::try_from(self.after.len()).ok().filter(|&position| position != NEVER).ok_or(TooLong)?;
        self.after.push(NEVER);
        let hash = hash(key);
        let Some(block) = self.index.find(hash, |block| self.blocks[block as usize].0 == key) else {
            self.index.insert(hash, self.blocks.len() as u32);
            self.blocks.push((key, position));
            return Ok(());
        };
        let last = std::mem::replace(&mut self.blocks[block as usize].1, position);
        if !invalidates {
            self.after[last as usize] = position;
        }
        Ok(())
    }

    /// The next uses of all accesses taken.
    pub fn finish(self) -> NextUses {
        NextUses { after: self.after }
    }
}
