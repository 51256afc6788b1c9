//! The device that is to become a cache: opened, or created, and long enough.

use std::fs;
use std::path::Path;

use larder_daemon::units::{ExactSize, HumanSize};
use larder_engine::format::{Layout, LayoutError, Medium};
use larder_io::offline::{StoppedCache, StoppedError};

use super::guard::{self, Held};
use crate::problem::Problem;

/// A device. A file that was created for it goes again unless it is kept.
pub struct Target {
    pub cache: StoppedCache,
    pub held: Held,
    created: bool,
    kept: bool,
}

impl Target {
    /// Open what is there, or create a file.
    pub fn open(path: &Path) -> Result<Self, Problem> {
        let created = !path.exists();
        let mut cache = if created { StoppedCache::create(path) } else { StoppedCache::open(path) }?;
        let held = guard::look(&mut cache)?;
        Ok(Self { cache, held, created, kept: false })
    }

    /// Make room for a layout.
    pub fn fit(&mut self, layout: &Layout) -> Result<(), Problem> {
        let (needed, bytes) = (layout.device_bytes(), self.cache.bytes());
        let path = self.cache.path().to_path_buf();
        let shown = path.display();
        if self.cache.is_block_device() && needed > bytes {
            let most = Layout::for_device_bytes(layout.block_bytes(), layout.sector_bytes() as u32, bytes);
            let most = most.map_or(0, |most| most.device_bytes() - most.data_offset());
            return Err(Problem::new(
                format_args!(
                    "{shown} has {}, and the cache would take {}",
                    HumanSize(bytes),
                    HumanSize(needed)
                ),
                format!("give a --size of at most {}", ExactSize(most)),
            ));
        }
        self.cache.grow(needed).map_err(|error| match error {
            StoppedError::Os { ref source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                Problem::new(
                    format_args!("no room for {shown}: the cache takes {}", HumanSize(needed)),
                    "give a smaller --size, or free some space",
                )
            }
            other => other.into(),
        })
    }

    /// It is a cache now.
    pub fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if self.created && !self.kept {
            // The error that led here is the one to tell.
            let _ = fs::remove_file(self.cache.path());
        }
    }
}

/// Sizes that make no cache.
pub fn layout_problem(error: LayoutError) -> Problem {
    let help = match error {
        LayoutError::Block(_) => "give a --block-size from 4KiB to 128KiB, a power of two",
        LayoutError::Sector(_) => "give a --sector of 512 or 4KiB",
        _ => "give a larger --size, or with very many blocks a larger --block-size",
    };
    Problem::new(error, help)
}
