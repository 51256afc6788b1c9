//! `larder reload`: have a running daemon read its configuration again, so that tenants and volumes come and go.

use larder_daemon::server::Reloaded;

use crate::cli;
use crate::drain;
use crate::output::tell;
use crate::problem::Problem;
use crate::status;

/// Ask until volumes that leave are written back, and all is as the file says.
pub fn reload(options: &cli::Reload) -> Result<(), Problem> {
    let socket = status::socket(&options.daemon)?;
    loop {
        let Reloaded { added, removed, draining } = status::obeyed(&socket, "reload")?;
        if !draining.is_empty() {
            drain::watch(&socket, &draining)?;
            continue;
        }
        return match (added.is_empty(), removed.is_empty()) {
            (true, true) => tell("nothing has changed"),
            (false, true) => tell(format_args!("added {}", added.join(", "))),
            (true, false) => tell(format_args!("removed {}", removed.join(", "))),
            (false, false) => {
                tell(format_args!("added {}; removed {}", added.join(", "), removed.join(", ")))
            }
        };
    }
}
