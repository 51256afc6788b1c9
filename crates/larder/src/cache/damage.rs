//! `larder cache damage`: a cache broken on purpose.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use larder_engine::format::{Harm, Layout, Medium, MediumError, MediumMut, Recovered, recover};
use larder_io::offline::StoppedCache;
use larder_policy::Rng;

use super::options::Damage;
use super::{Done, Outcome, trouble};
use crate::output;
use crate::problem::Problem;

/// One way to break it: a name, with a number or without.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wound {
    name: &'static str,
    /// What the number is; nothing where there is none.
    what: &'static str,
    number: Option<u64>,
}

impl FromStr for Wound {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = match text.split_once('=') {
            Some((name, number)) => (name, Some(number)),
            None => (text, None),
        };
        let known = Harm::NAMES.iter().find(|known| known.0 == name);
        let &(name, what) = known.ok_or("there is no such harm; larder cache damage --list has them")?;
        let number = match (number, what) {
            (Some(_), "") => return Err(format!("{name} takes no number")),
            (Some(number), _) => Some(number.parse().map_err(|_| format!("{number} is no number"))?),
            (None, _) => None,
        };
        match Harm::named(name, number.unwrap_or(0)) {
            Some(_) => Ok(Self { name, what, number }),
            None => Err(format!("there is no such {what}")),
        }
    }
}

impl fmt::Display for Wound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "{}={number}", self.name),
            None => f.write_str(self.name),
        }
    }
}

/// A cache that counts what is written to it.
struct Counted<'m> {
    cache: &'m mut StoppedCache,
    writes: u64,
}

impl Medium for Counted<'_> {
    fn bytes(&self) -> u64 {
        self.cache.bytes()
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        self.cache.read(offset, into)
    }
}

impl MediumMut for Counted<'_> {
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.writes += 1;
        self.cache.write(offset, bytes)
    }

    fn flush(&mut self) -> Result<(), MediumError> {
        self.cache.flush()
    }
}

/// Break what the options say.
pub fn run(options: &Damage) -> Done {
    // Without a path it is --list.
    let Some(path) = options.path.as_deref().filter(|_| !options.list) else {
        output::print(&list())?;
        return Ok(Outcome::Well);
    };
    let mut cache = StoppedCache::open(path)?;
    if cache.is_block_device() && !options.force {
        let what = format!("{} is a block device, and damage is for copies", path.display());
        return Err(Problem::new(what, "copy it to a file, or say --force"));
    }
    let mut rng = Rng::new(options.seed);
    for wound in &options.harms {
        let done = inflict(&mut cache, path, wound, &mut rng)?;
        output::print(&format!("{}: {done}\n", path.display()))?;
    }
    Ok(Outcome::Well)
}

fn list() -> String {
    let line = |&(name, what): &(&str, &str)| {
        let form = if what.is_empty() { name.into() } else { format!("{name}={}", what.to_uppercase()) };
        format!("{form:<18} {}\n", meaning(name))
    };
    Harm::NAMES.iter().map(line).collect()
}

/// What a harm does, in a few words.
fn meaning(name: &str) -> &'static str {
    match name {
        "bit" => "flips this bit of the device, counted from its start",
        "superblock" => "overwrites one copy (0 or 1) of the superblock",
        "superblocks" => "overwrites both copies of the superblock",
        "volume-table" => "overwrites one copy (0 or 1) of the table of volumes",
        "volume-tables" => "overwrites both: nothing tells whose the blocks are",
        "page-newest" => "overwrites the newer copy of a page of the slot table",
        "page-oldest" => "overwrites the older copy of a page of the slot table",
        "page" => "overwrites both copies of a page of the slot table",
        "record" => "overwrites this record of the journal",
        "data" => "flips a bit of the data in this slot",
        "duplicate" => "adds a record that puts the block of this slot into a second one, dirty",
        "beyond-end" => "adds a record of a block past the end of its volume",
        "no-such-slot" => "adds a record of a slot that the cache does not have",
        "misfit" => "adds a record that calls clean what is in a free slot",
        _ => "",
    }
}

/// The harm as it was done, with its number.
fn inflict(cache: &mut StoppedCache, path: &Path, wound: &Wound, rng: &mut Rng) -> Result<Wound, Problem> {
    let trouble = |error| trouble::recover(path, &error);
    let number = match (wound.number, wound.what) {
        (Some(number), _) => Some(number),
        (None, "") => None,
        (None, what) => Some(drawn(&recover(cache).map_err(trouble)?, what, rng)),
    };
    let done = Wound { number, ..*wound };
    let nothing = || {
        Problem::new(
            format_args!("{}: {done} changes nothing: there is nothing there to break", path.display()),
            "give another number; larder cache info and dump tell what is there",
        )
    };
    let harm = Harm::named(done.name, number.unwrap_or(0)).ok_or_else(nothing)?;
    let mut counted = Counted { cache, writes: 0 };
    harm.inflict(&mut counted).map_err(trouble)?;
    if counted.writes == 0 { Err(nothing()) } else { Ok(done) }
}

/// A number that means something in this cache.
fn drawn(recovered: &Recovered, what: &str, rng: &mut Rng) -> u64 {
    let layout: Layout = recovered.superblock().layout;
    match what {
        "bit" => rng.below(layout.data_offset() * 8),
        "copy" => rng.below(2),
        "page" => rng.below(layout.pages().into()),
        "sequence" => {
            let first = recovered.next().saturating_sub(layout.records()).max(1);
            first + rng.below((recovered.next() - first).max(1))
        }
        _ => {
            let used = recovered.blocks().count() as u64;
            let at = rng.below(used.max(1)) as usize;
            recovered.blocks().nth(at).map_or(0, |(slot, _)| slot.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_harm_is_explained() {
        assert!(Harm::NAMES.iter().all(|(name, _)| !meaning(name).is_empty()));
        assert!(list().lines().all(|line| line.len() < 96), "{}", list());
    }

    #[test]
    fn harms_are_read_as_they_are_written() {
        for text in ["bit=77", "bit", "superblocks", "superblock=1"] {
            assert_eq!(text.parse::<Wound>().expect("good").to_string(), text);
        }
        for text in ["fire", "superblock=2", "superblocks=1", "bit=x", "page=4294967296"] {
            assert!(text.parse::<Wound>().is_err(), "{text}");
        }
    }
}
