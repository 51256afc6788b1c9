//! What a policy keeps per block: two links and a tag, in memory that its user lays out.
//!
//! A policy knows blocks by *handles*: dense numbers that its user assigns, to blocks that are resident and to *ghosts* (blocks that the policy
//! remembers though their data is gone). The simulator keeps a block's node beside its key, the live engine beside its entry; both
//! lend their nodes to the policy at each call ([`Nodes`]), so a policy has no index and no keys of its own.

/// A block's number with its user. Never [`NONE`].
pub type Handle = u32;

/// No block: the end of a list.
pub const NONE: Handle = u32::MAX;

/// A block's place on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Links {
    /// The neighbour towards the newest.
    pub newer: Handle,
    /// The neighbour towards the oldest.
    pub older: Handle,
}

impl Links {
    /// On no list.
    pub const NEW: Self = Self { newer: NONE, older: NONE };
}

/// A block's place on a list, and what its policy notes about it: 12 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its place.
    pub links: Links,
    /// The policy's own note: which list it is on, how often it was used. Zero when the policy first sees the block.
    pub tag: u32,
}

impl Node {
    /// On no list, without a note.
    pub const NEW: Self = Self { links: Links::NEW, tag: 0 };
}

/// The nodes of all blocks that a user's policies know.
///
/// A node that is given to a policy by `insert` is [`Node::NEW`] or as the same policy left it. Several policies (one per partition) may share the
/// nodes of one user: each touches only the handles that were given to it. A user whose policies all do without tags
/// ([`crate::any::AnyReplacement::keeps_tags`]) need not have any.
pub trait Nodes {
    /// A block's links.
    ///
    /// # Panics
    /// If the user has no such handle.
    fn links(&self, handle: Handle) -> &Links;

    /// A block's links, to change.
    ///
    /// # Panics
    /// If the user has no such handle.
    fn links_mut(&mut self, handle: Handle) -> &mut Links;

    /// What its policy notes about a block.
    ///
    /// # Panics
    /// If the user has no such handle, or no tags.
    fn tag(&self, handle: Handle) -> u32;

    /// The same, to change.
    ///
    /// # Panics
    /// If the user has no such handle, or no tags.
    fn tag_mut(&mut self, handle: Handle) -> &mut u32;

    /// The block that a handle stands for: a number that is the block's own as long as its user knows it.
    fn key(&self, handle: Handle) -> u64;
}

/// Nodes in a vector, for tests of a policy or a list alone: the key is the handle.
impl Nodes for Vec<Node> {
    #[inline]
    fn links(&self, handle: Handle) -> &Links {
        &self[handle as usize].links
    }

    #[inline]
    fn links_mut(&mut self, handle: Handle) -> &mut Links {
        &mut self[handle as usize].links
    }

    #[inline]
    fn tag(&self, handle: Handle) -> u32 {
        self[handle as usize].tag
    }

    #[inline]
    fn tag_mut(&mut self, handle: Handle) -> &mut u32 {
        &mut self[handle as usize].tag
    }

    fn key(&self, handle: Handle) -> u64 {
        u64::from(handle)
    }
}
