//! Replacement and admission over block numbers.
//!
//! The simulator, the online analyzer and the live cache run this same code. A policy works on dense handles that its user assigns, keeps its links in memory
//! that the user lays out ([`Nodes`]), and allocates nothing per access. [`Cache`] is such a user: a cache of block numbers in memory.

pub mod admission;
pub mod any;
pub mod belady;
pub mod borrows;
pub mod cache;
pub mod doors;
pub mod index;
pub mod replacement;
pub mod residents;
pub mod spec;
pub mod trial;
pub mod watermarks;
pub mod write_policy;

mod chunked;
mod list;
mod node;
mod random;
mod words;

pub use cache::Cache;
pub use chunked::Chunked;
pub use list::List;
pub use node::{Handle, Links, NONE, Node, Nodes};
pub use random::Rng;
pub use replacement::Replacement;
pub use write_policy::WritePolicy;
