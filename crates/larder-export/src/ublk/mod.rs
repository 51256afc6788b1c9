//! A volume as a block device of the host, `/dev/larder/NAME`, through the kernel's ublk driver (Linux 6.5 or later).
//!
//! The driver hands the requests for `/dev/ublkbN` to the reactor through commands on `/dev/ublkcN` that wait in the reactor's own
//! ring: a turn of the reactor takes all that have come, and gives back all that have ended, with the one system call that it
//! makes anyway. Data is copied by the driver between the request and a buffer of the reactor's, once, when it is asked to.
//! What takes its time (adding a device, starting, stopping and removing it) is done by a thread that lives that long.
//!
//! A device outlives the daemon: killed, it leaves the device waiting, and the next daemon finds it by a mark that the driver
//! keeps with it, goes on with it, and gets the requests again that were not answered. A daemon that ends in order removes its
//! devices, except those that somebody has open.
//!
//! One file per role: `abi` (the driver's structures), `control` (its commands), `mark` and `attach` (finding the device of a volume,
//! or making it), `in_use` (who has it open), `detach` (the end), `link` (its name), `frontend` (dispatch of the reactor's calls), `device` (a volume and its requests),
//! `queue` (commands and descriptors), `request` (descriptors to requests), `state` (what others are told), `limits`.

mod abi;
mod attach;
mod control;
mod detach;
mod device;
mod frontend;
mod in_use;
pub mod limits;
mod link;
mod mark;
mod queue;
mod request;
mod state;

pub use attach::UblkError;
pub use frontend::{UblkCommand, UblkFrontend, UblkVolume};
pub use link::LINKS;
pub use state::{UblkPlace, UblkStanding, UblkState};
