//! How guests reach their volumes: today over NBD ([`nbd`]).

pub mod nbd;
