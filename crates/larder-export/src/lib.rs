//! How guests reach their volumes: over NBD ([`nbd`]), as the disks of virtual machines over vhost-user ([`vhost`]), and as block
//! devices of the host ([`ublk`]).
//!
//! A reactor has one frontend, [`Exports`], which is all of them.

mod door;
mod front;
mod group;
mod handover;
mod listener;
mod log;
pub mod nbd;
pub mod ublk;
mod users;
pub mod vhost;

pub use front::{ExportCommand, Exports};
pub use group::group_id;
pub use handover::{ClientState, Handed, HandedListener, Heir};
pub use listener::{BindError, ListenAddress, Listener, bind, bind_for_group, bind_with_mode};
pub use users::Users;
