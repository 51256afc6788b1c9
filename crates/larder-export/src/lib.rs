//! How guests reach their volumes: today over NBD ([`nbd`]).

mod group;
pub mod nbd;

pub use group::group_id;
