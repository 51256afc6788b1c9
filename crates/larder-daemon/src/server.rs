//! The daemon's life: check everything, start everything, wait for a signal, stop everything.
//!
//! Nothing is written before everything that can be judged has been judged. The order at the start is therefore:
//! configuration, backings, cache device (all that a kept cache holds is read), addresses, control socket ([`check`] ends
//! here), and only then what makes a new device a cache, the analyzer and the reactors. The order at the end is: reactors (which
//! finish what is in flight, flush the backings, write what the cache keeps and remove their sockets), analyzer, control socket, and last the lock on the cache device.

mod astray;
mod checked;
mod difference;
mod error;
mod inherited;
mod leaving;
mod plan;
mod reload;
mod running;
mod set;
mod signals;
mod sockets;

use std::path::{self, Path};

use crate::config::Config;
use crate::manager;
use checked::Checked;
use inherited::Inherited;
use running::Running;
use signals::Signals;
use sockets::Sockets;

pub use checked::{loop_tenant, write_budget};
pub use error::ServeError;
pub(crate) use reload::Reloader;
pub use reload::{ReloadError, Reloaded};
pub use set::Set;

/// Find out whether a configuration can be served: open its backings and its cache device, listen on its addresses, and let
/// go of all that again. Nothing is written but socket files, which are gone afterwards.
///
/// # Errors
/// The first thing that stands in the way.
pub fn check(config: &Config) -> Result<(), ServeError> {
    let checked = Checked::new(config, false)?;
    drop(Sockets::bind(config, &mut Inherited::default())?);
    drop(checked);
    Ok(())
}

/// Serve a configuration until SIGTERM or SIGINT. A second signal ends the process at once. With SIGHUP, or when the control socket is asked to, the file at `path`
/// is read again, and tenants and volumes come and go as it says.
///
/// Where a service manager has started this process it hears how far the daemon is, its sockets are used, and it keeps what the next daemon goes on with.
///
/// # Errors
/// When it cannot be started (then nothing has been written, unless starting threads was what failed), when a reactor
/// ends by itself, or when not everything could be finished in the end.
pub fn serve(config: &Config, path: &Path) -> Result<(), ServeError> {
    let inherited = Inherited::take()?;
    let signals = Signals::catch()?;
    let absolute = path::absolute(path);
    let path = absolute.map_err(|source| ServeError::Os { action: "find the configuration file", source })?;
    let settings = set::load(config)?;
    let mut effective = config.clone();
    settings.apply(&mut effective)?;
    let checked = Checked::new(&effective, inherited.has(&config.control.socket))?;
    let running = Running::start(&effective, path, checked, (config.clone(), settings), inherited)?;
    running.announce();
    let watchdog = running.watchdog()?;
    let alive = signals.wait(|| running.is_alive(), || running.reload());
    manager::stopping();
    drop(watchdog);
    running.stop()?;
    if alive { Ok(()) } else { Err(ServeError::ReactorEnded) }
}
