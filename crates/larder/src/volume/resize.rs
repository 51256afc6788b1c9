//! `larder volume resize`: a volume takes the size that its backing has.

use larder_daemon::units::HumanSize;
use larder_daemon::volumes::Resized;

use crate::cli;
use crate::output::tell;
use crate::problem::Problem;
use crate::status;

/// Ask for it, and tell what came of it.
pub fn resize(options: &cli::OneVolume) -> Result<(), Problem> {
    let socket = status::socket(&options.daemon)?;
    let name = &options.name;
    let Resized { from_bytes, to_bytes, ublk_problem } = status::obeyed(&socket, &format!("resize {name}"))?;
    if let Some(why) = ublk_problem {
        eprintln!("warning: its block device keeps its size: {why}");
    }
    tell(format_args!("{name}: from {} to {} ({to_bytes} bytes)", HumanSize(from_bytes), HumanSize(to_bytes)))
}
