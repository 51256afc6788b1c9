//! Replacement and admission over block numbers.
//!
//! The simulator, the online analyzer and the live cache run this same code. Today it holds LRU ([`lru`]); every policy works on
//! dense handles that its user assigns, keeps its links in memory that grows in steps ([`Chunked`]), and allocates nothing
//! per access.

pub mod lru;

mod chunked;
pub use chunked::Chunked;
