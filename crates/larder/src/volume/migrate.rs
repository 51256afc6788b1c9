//! `larder volume migrate`: a guest leaves for another host, live, over a backing that both reach.

use larder_daemon::control::Request;
use larder_daemon::volumes::{Done, MigrationStep};

use crate::cli;
use crate::drain;
use crate::output::tell;
use crate::problem::Problem;
use crate::status;

/// Take one step.
pub fn step(step: &cli::Migrate) -> Result<(), Problem> {
    let (options, which) = match step {
        cli::Migrate::Prepare(options) => (options, MigrationStep::Prepare),
        cli::Migrate::Complete(options) => (options, MigrationStep::Complete),
        cli::Migrate::Abort(options) => (options, MigrationStep::Abort),
    };
    let socket = status::socket(&options.daemon)?;
    let name = &options.name;
    let Done {} = status::obeyed(&socket, &Request::migrate_line(name, which))?;
    match which {
        MigrationStep::Prepare => {
            let left = drain::watch(&socket, std::slice::from_ref(name))?;
            tell(format_args!(
                "{name}: the backing has all of it ({left}); migrate the guest now, then `larder volume migrate complete {name}`"
            ))
        }
        MigrationStep::Complete => tell(format_args!(
            "{name}: nothing is cached of it any more; its guest may come back at any time"
        )),
        MigrationStep::Abort => tell(format_args!("{name}: blocks may become dirty again")),
    }
}
