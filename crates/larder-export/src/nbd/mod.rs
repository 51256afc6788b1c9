//! The NBD server, as the frontend of a reactor.
//!
//! [`crate::bind`] makes a [`crate::Listener`]; an [`ExportTable`] says which volumes it offers, and on which reactor each lives; an
//! [`NbdFrontend`] serves them on its reactor's ring. A listener belongs to one reactor. A client that chooses a volume of another
//! reactor is handed over there, so that a volume is only ever touched by its own reactor.
//!
//! One file per role: `exports` (what is offered), `frontend` (dispatch of the reactor's calls),
//! `connection` (state and lifecycle), `receive` (bytes to requests), `execute` (requests to the engine, and back), `send`
//! (replies to the socket), `memory` (whose share of it), `resume` (clients of another process), `turn` (what one turn of the reactor takes on), `patience`, `limits`.

mod connection;
mod execute;
mod exports;
mod frontend;
pub mod limits;
mod memory;
mod patience;
mod receive;
mod resume;
mod send;
mod turn;

pub use exports::{Export, ExportTable};
pub use frontend::{NbdCommand, NbdFrontend};
pub use resume::Unresumed;
