//! How guests reach their volumes: over NBD ([`nbd`]), and as the disks of virtual machines over vhost-user ([`vhost`]).
//!
//! A reactor has one frontend, [`Exports`], which is both.

mod door;
mod front;
mod group;
mod listener;
mod log;
pub mod nbd;
mod users;
pub mod vhost;

pub use front::{ExportCommand, Exports};
pub use group::group_id;
pub use listener::{BindError, ListenAddress, Listener, bind, bind_for_group};
pub use users::Users;
