//! The HTTP API: what the daemon tells, and what it can be asked to do, for programs; and its metrics, for Prometheus.
//!
//! It runs on a thread of its own with a small runtime; what has to wait for reactors does so on threads that come and go, so neither the reactors nor
//! other clients wait for it. `listen` says where it is reached and by whom, `server` carries connections, `guard` asks for the token,
//! `routes` has what can be asked, `problem` how a request is refused. [`document`] describes all of it as OpenAPI 3.1 (`docs/openapi.json`).

mod guard;
mod listen;
mod problem;
mod routes;
mod server;
mod services;
mod tls;

pub use listen::{ApiListeners, ApiSetupError};
pub use routes::document;
pub use server::ApiServer;
pub(crate) use services::Services;
