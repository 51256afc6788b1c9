//! The daemon around the engine: configuration, the loop of an epoch, the status, and the wiring of all parts.
//!
//! [`config`] says what `larder.toml` may say. [`server`] checks it against the machine, starts the reactors, and stops
//! them. [`warm_start`] says what tenants begin with where the cache was kept. [`analyzer`] is the thread around the loop of an epoch ([`epoch`] decides, [`actuator`] puts the decisions into
//! steps, [`decisions`] has the last of them and what came, as the reactors tell in [`reports`]). `collector` puts the [`status`] together that the [`control_socket`] tells; [`control`] has what else it can be asked. [`api`] serves the same over HTTP, and [`metrics`] to Prometheus. [`hosted`] says who is here, [`exported`] how clients reach them.
//! [`volumes`] is what can be done to one volume in use, [`migration`] which of them are leaving. [`keeper`] looks after a cache device that fails and comes back; [`loss`] is what it alone has, [`last_cache`] says which was used last.
//! [`settings`] is what operators have changed while it runs. [`record`] hands guests' requests to who wants them as a trace.
//! [`wear`] tells when the cache's SSD will be worn out, [`block_device`] which that is.
//! [`manager`] talks to the service manager, [`watchdog`] tells it that the daemon lives, and [`handed`] is what it keeps for the next daemon.

pub mod actuator;
pub mod analyzer;
pub mod api;
pub mod block_device;
pub mod budget_file;
mod collector;
pub mod config;
pub mod control;
pub mod control_socket;
mod damage;
pub mod decisions;
mod durable_file;
pub mod epoch;
pub mod exported;
pub mod handed;
pub mod hosted;
pub mod keeper;
pub mod last_cache;
pub mod loss;
pub mod manager;
pub mod metrics;
pub mod migration;
pub mod placement;
pub mod record;
pub mod reports;
pub mod server;
pub mod settings;
pub mod status;
pub mod units;
pub mod volumes;
pub mod warm_start;
pub mod watchdog;
pub mod wear;
