//! Files and block devices as the reactor uses them: opened and probed at start, then driven without blocking.

mod errors;
mod extents;
mod open;
mod operation;
mod runner;
mod write_run;

pub use errors::OpenError;
pub use open::FileDevice;
pub(crate) use open::{Access, Creation, check_kind};
pub(crate) use operation::FileOperation;
pub(crate) use runner::FileRunner;
pub(crate) use write_run::WriteRun;
