//! What is on a device that is to become a cache, and whether that may go.

use std::path::Path;

use larder_engine::format::{Medium, Severity, recover};
use larder_io::offline::{Content, StoppedCache, content};

use super::state::State;
use super::{trouble, words};
use crate::problem::Problem;

/// What was found.
pub enum Held {
    /// Nothing.
    Nothing,
    /// A cache of format 1, which keeps nothing over a stop.
    VersionOne,
    /// A cache, all of which is known.
    Cache {
        /// Its name.
        uuid: String,
        /// What it holds.
        state: State,
        /// Bytes in a block.
        block_bytes: u32,
    },
    /// A cache that may hold dirty data, or not: why nobody knows.
    Damaged(String),
    /// Something else.
    Foreign,
}

/// Look.
pub fn look(cache: &mut StoppedCache) -> Result<Held, Problem> {
    if cache.bytes() == 0 {
        return Ok(Held::Nothing);
    }
    let path = cache.path().to_path_buf();
    match content(cache).map_err(|error| trouble::medium(&path, &error))? {
        Content::Nothing => return Ok(Held::Nothing),
        Content::VersionOne => return Ok(Held::VersionOne),
        Content::Foreign => return Ok(Held::Foreign),
        Content::Cache => {}
    }
    let recovered = match recover(cache) {
        Ok(recovered) => recovered,
        Err(error) => return Ok(Held::Damaged(error.to_string())),
    };
    let worst = recovered.findings().iter().find(|finding| finding.severity() == Severity::Dirty);
    Ok(match worst {
        Some(finding) => Held::Damaged(finding.to_string()),
        None => Held::Cache {
            uuid: recovered.superblock().uuid.to_string(),
            state: State::new(&recovered),
            block_bytes: recovered.superblock().layout.block_bytes(),
        },
    })
}

impl Held {
    /// Refuse to overwrite what nobody else has: dirty data, and what is not ours.
    pub fn check(&self, path: &Path) -> Result<(), Problem> {
        let shown = path.display();
        match self {
            Self::Nothing | Self::VersionOne => Ok(()),
            Self::Cache { state: State { dirty_blocks: 0, .. }, .. } => Ok(()),
            Self::Cache { state, block_bytes, .. } => Err(Problem::new(
                format_args!(
                    "{shown} holds {} that the backings do not have",
                    words::blocks(state.dirty_blocks, "dirty ", *block_bytes)
                ),
                format!("save them first: larder cache writeback {shown}; --force gives them up"),
            )),
            Self::Damaged(why) => Err(Problem::new(
                format_args!("{shown} holds a damaged cache, which may have dirty data: {why}"),
                format!("larder cache repair {shown} tells what can be kept; --force gives it all up"),
            )),
            Self::Foreign => Err(Problem::new(
                format_args!("{shown} holds something else: it is neither empty nor a Larder cache"),
                format!("see what it is (file -s {shown}; wipefs {shown}); --force overwrites it"),
            )),
        }
    }
}
