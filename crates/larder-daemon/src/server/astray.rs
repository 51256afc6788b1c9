//! Volumes that a cache has blocks of and no volume of the configuration is: which they are, and what differs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use larder_engine::format::{Contents, Recovered, Volume};
use larder_io::backing_of;

use super::checked::of_number;

/// Volumes that are named before the rest is counted.
const NAMED: usize = 8;

/// A cache with dirty blocks of volumes that are not configured as they were.
#[derive(Debug)]
pub struct Stray {
    /// The cache.
    pub cache: PathBuf,
    /// Never empty.
    volumes: Vec<StrayVolume>,
}

/// One of them, as the cache's volume table has it.
#[derive(Debug)]
struct StrayVolume {
    name: String,
    backing: String,
    bytes: u64,
    dirty_blocks: usize,
    why: Difference,
}

/// Why the configured volume is not the one that the cache knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// No volume has its name.
    NoSuchName,
    /// No volume has its name, and the volume of this one has its backing.
    Renamed(String),
    /// The path or URI is another one.
    Backing(String),
    /// There is another file at the path.
    File,
    /// There is another disk behind the path.
    Disk,
    /// The backing has this size now, in place of the other one.
    Size(u64, u64),
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchName => f.write_str("no volume of this name is configured"),
            Self::Renamed(name) => {
                write!(f, "no volume of this name is configured, and volume \"{name}\" has its backing")
            }
            Self::Backing(now) => write!(f, "this volume is configured with another backing, {now}"),
            Self::File => f.write_str("the file was replaced by another one of its name"),
            Self::Disk => f.write_str("another disk is behind that name now"),
            Self::Size(now, known) => write!(f, "its backing has {now} bytes now instead of {known}"),
        }
    }
}

/// What keeps a volume that the cache knows from being one of those that are configured; it is none of them.
pub(super) fn difference(known: &Volume, configured: &[Volume]) -> Difference {
    let Some(now) = configured.iter().find(|volume| volume.name == known.name) else {
        let same = configured.iter().find(|volume| volume.identity == known.identity);
        return same.map_or(Difference::NoSuchName, |volume| Difference::Renamed(volume.name.clone()));
    };
    let is_file = |volume: &Volume| volume.identity.contains(" [inode ");
    match () {
        () if now.identity == known.identity => Difference::Size(now.bytes, known.bytes),
        () if backing_of(&now.identity) != backing_of(&known.identity) => {
            Difference::Backing(backing_of(&now.identity).to_owned())
        }
        () if is_file(now) && is_file(known) => Difference::File,
        () => Difference::Disk,
    }
}

/// Blocks that a cache has, by slot; of a block with several versions the newest.
pub(super) fn newest(recovered: &Recovered) -> impl Iterator<Item = (u32, Contents)> + '_ {
    let versions = recovered.versions();
    recovered.blocks().filter(move |(slot, _)| versions.get(slot).is_none_or(|it| !it.is_superseded))
}

/// Volumes whose blocks are dropped, clean as they are.
#[derive(Debug)]
pub(super) struct Cold {
    /// Name, blocks, and why.
    volumes: Vec<(String, usize, Difference)>,
}

impl Cold {
    /// Those that a cache has blocks of, and that are not `configured` as they were.
    pub fn find(recovered: &Recovered, configured: &[Volume]) -> Self {
        let known = of_number(configured.iter().map(|volume| (volume, ())), recovered);
        let mut blocks: BTreeMap<u16, usize> = BTreeMap::new();
        // Most starts find all volumes again, and need not look at each block.
        if recovered.volumes().volumes.iter().all(|volume| known.contains_key(&volume.id)) {
            return Self { volumes: Vec::new() };
        }
        for (_, contents) in newest(recovered) {
            if !known.contains_key(&contents.block.volume) {
                *blocks.entry(contents.block.volume).or_default() += 1;
            }
        }
        let named = blocks.iter().filter_map(|(&id, &blocks)| {
            let known = recovered.volumes().get(id)?;
            Some((known.name.clone(), blocks, difference(known, configured)))
        });
        Self { volumes: named.collect() }
    }

    /// Blocks of all of them.
    pub fn blocks(&self) -> usize {
        self.volumes.iter().map(|(_, blocks, _)| blocks).sum()
    }

    /// Tell of them in the log.
    pub fn tell(&self) {
        for (volume, blocks, why) in self.volumes.iter().take(NAMED) {
            let what = match why {
                Difference::NoSuchName | Difference::Renamed(_) => "is gone",
                _ => "starts cold",
            };
            tracing::warn!(volume, blocks, "{what}: {why}");
        }
        let more = self.volumes.len().saturating_sub(NAMED);
        if more > 0 {
            tracing::warn!(more, "more volumes are gone or start cold");
        }
    }
}

impl Stray {
    /// What of a cache is dirty and of no volume that `is_known`; `None` where that is nothing, or of volumes that the cache has no name for.
    pub(super) fn find(
        cache: &Path,
        recovered: &Recovered,
        configured: &[Volume],
        is_known: impl Fn(u16) -> bool,
    ) -> Option<Self> {
        let mut dirty: BTreeMap<u16, BTreeSet<u64>> = BTreeMap::new();
        for (_, contents) in recovered.blocks().filter(|(_, contents)| contents.dirty) {
            if !is_known(contents.block.volume) {
                dirty.entry(contents.block.volume).or_default().insert(contents.block.block);
            }
        }
        let named = dirty.iter().filter_map(|(&id, blocks)| {
            let known = recovered.volumes().get(id)?;
            Some(StrayVolume {
                name: known.name.clone(),
                backing: backing_of(&known.identity).to_owned(),
                bytes: known.bytes,
                dirty_blocks: blocks.len(),
                why: difference(known, configured),
            })
        });
        let volumes: Vec<StrayVolume> = named.collect();
        (!volumes.is_empty()).then(|| Self { cache: cache.to_path_buf(), volumes })
    }

    /// What the operator can do.
    pub(super) fn help(&self) -> String {
        let cache = self.cache.display();
        format!(
            "configure that volume again as it was (name, backing, size), or save its data: larder cache info {cache} names it, larder cache writeback {cache} writes it to its backing"
        )
    }
}

impl fmt::Display for Stray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named: Vec<_> = self.volumes.iter().take(NAMED).map(ToString::to_string).collect();
        write!(
            f,
            "the cache {} holds dirty data of a volume that is not there: {}",
            self.cache.display(),
            named.join("; ")
        )?;
        match self.volumes.len().saturating_sub(NAMED) {
            0 => Ok(()),
            more => write!(f, "; and of more volumes: {more}"),
        }
    }
}

impl fmt::Display for StrayVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, backing, bytes, dirty_blocks, why } = self;
        write!(f, "volume \"{name}\" on {backing}, {bytes} bytes (dirty blocks: {dirty_blocks}): {why}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_engine::format::Uuid;

    fn volume(name: &str, identity: &str, bytes: u64) -> Volume {
        Volume { id: 0, name: name.into(), uuid: Uuid([7; 16]), bytes, identity: identity.into() }
    }

    #[test]
    fn what_differs_is_told() {
        let known = volume("db", "/srv/db.img [inode 7, made 1.5]", 4096);
        let cases = [
            (volume("web", "/srv/web.img [inode 9]", 4096), "no volume of this name is configured"),
            (volume("web", &known.identity, 4096), "volume \"web\" has its backing"),
            (volume("db", "/srv/db2.img [inode 7, made 1.5]", 4096), "another backing, /srv/db2.img"),
            (volume("db", "/srv/db.img [inode 8, made 1.5]", 4096), "the file was replaced"),
            (volume("db", "/srv/db.img [wwid naa.5]", 4096), "another disk is behind"),
            (volume("db", &known.identity, 512), "has 512 bytes now instead of 4096"),
        ];
        for (now, words) in cases {
            let told = difference(&known, &[volume("other", "/srv/o.img", 512), now]).to_string();
            assert!(told.contains(words), "{words}: {told}");
        }
        assert_eq!(difference(&known, &[]), Difference::NoSuchName);
    }
}
