//! The size of a block as people write it.

use larder_daemon::units::parse_size;
use larder_sim::BlockSize;

/// What `--block` takes.
pub fn size(text: &str) -> Result<BlockSize, String> {
    let bytes = parse_size(text).map_err(|error| error.to_string())?;
    BlockSize::new(bytes).map_err(|error| error.to_string())
}
