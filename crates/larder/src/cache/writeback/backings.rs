//! Which backing each volume's dirty blocks go to.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use larder_daemon::units::HumanSize;
use larder_engine::format::{Recovered, Volume};
use larder_io::offline::{Disk, OpenDisk};

use super::super::options::Writeback;
use crate::problem::Problem;

/// `NAME=BACKING`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    name: String,
    backing: String,
}

impl FromStr for Named {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((name, backing)) if !name.is_empty() && !backing.is_empty() => {
                Ok(Self { name: name.into(), backing: backing.into() })
            }
            _ => Err("write NAME=BACKING, as in db-root=/srv/db.img"),
        }
    }
}

/// The backing of each volume whose dirty blocks are to be saved, and whether it was named in the options; by number.
pub type Chosen = BTreeMap<u16, (String, bool)>;

/// Choose: what the options name, else what the cache has.
pub fn choose(
    recovered: &Recovered,
    dirty: &BTreeMap<u16, u64>,
    options: &Writeback,
) -> Result<Chosen, Problem> {
    let mut named = BTreeMap::new();
    for Named { name, backing } in &options.volumes {
        named.insert(find(recovered, name)?.id, backing.clone());
    }
    let skipped =
        options.skip.iter().map(|name| Ok(find(recovered, name)?.id)).collect::<Result<Vec<_>, Problem>>()?;
    let mut chosen = Chosen::new();
    for &id in dirty.keys().filter(|id| !skipped.contains(id)) {
        // Blocks of no volume are damage, with which it does not come to this.
        let Some(volume) = recovered.volumes().get(id) else { continue };
        let choice = match named.remove(&id) {
            Some(backing) => (backing, true),
            None => (configured(volume)?, false),
        };
        chosen.insert(id, choice);
    }
    check_distinct(recovered, &chosen)?;
    Ok(chosen)
}

/// The volume of this name, or of this number where there is none.
fn find<'r>(recovered: &'r Recovered, name: &str) -> Result<&'r Volume, Problem> {
    let volumes = &recovered.volumes().volumes;
    let mut of_name = volumes.iter().filter(|volume| volume.name == name);
    match (of_name.next(), of_name.next()) {
        (Some(volume), None) => Ok(volume),
        (Some(_), Some(_)) => Err(Problem::new(
            format_args!("the cache knows several volumes called {name}"),
            "name it by its number; larder cache info lists them",
        )),
        (None, _) => {
            let by_number = name.parse().ok().and_then(|id| recovered.volumes().get(id));
            by_number.ok_or_else(|| {
                Problem::new(format_args!("the cache knows no volume {name}"), "larder cache info lists them")
            })
        }
    }
}

/// The backing as it was configured, if it can be opened as such.
fn configured(volume: &Volume) -> Result<String, Problem> {
    let identity = larder_io::backing_of(&volume.identity);
    match identity.starts_with('/') || identity.contains("://") {
        true => Ok(identity.to_owned()),
        false => Err(Problem::new(
            format_args!(
                "the backing of volume {} is known as {identity:?}, which is no path and no URI",
                volume.name
            ),
            format!("say where it is: --volume {}=BACKING", volume.name),
        )),
    }
}

/// Two volumes on one backing: the older of two blocks could overwrite the newer one.
fn check_distinct(recovered: &Recovered, chosen: &Chosen) -> Result<(), Problem> {
    let mut seen = BTreeMap::new();
    for (&id, (backing, _)) in chosen {
        let place =
            std::fs::canonicalize(backing).map_or_else(|_| backing.into(), |path| path.into_os_string());
        if let Some(other) = seen.insert(place, id) {
            let name = |id| super::super::words::volume(recovered.volumes(), id);
            return Err(Problem::new(
                format_args!(
                    "{} ({other}) and {} ({id}) are both to be saved to {backing}",
                    name(other),
                    name(id)
                ),
                "save one elsewhere (--volume NUMBER=BACKING), or leave it in the cache (--skip NUMBER)",
            ));
        }
    }
    Ok(())
}

/// Open them all, before anything is written; and which of them are other disks than the blocks are of.
pub fn open(
    recovered: &Recovered,
    chosen: &Chosen,
) -> Result<(BTreeMap<u16, OpenDisk>, BTreeSet<u16>), Problem> {
    let (mut disks, mut elsewhere) = (BTreeMap::new(), BTreeSet::new());
    for (&id, (backing, named)) in chosen {
        let Some(volume) = recovered.volumes().get(id) else { continue };
        let disk = OpenDisk::open(backing).map_err(|error| {
            let help = format!(
                "{}; --volume {name}=BACKING names another one, --skip {name} leaves its blocks in the cache",
                error.remedy(),
                name = volume.name
            );
            Problem::new(format_args!("volume {}: {error}", volume.name), help)
        })?;
        check_size(volume, backing, *named, disk.bytes())?;
        if !larder_io::is_same_disk(&volume.identity, disk.identity()) {
            elsewhere.insert(id);
            if !named {
                return Err(Problem::new(
                    format_args!(
                        "{backing} is not the disk of volume {}: it was replaced, or its file system is not mounted (it was {}, and is {})",
                        volume.name,
                        volume.identity,
                        disk.identity()
                    ),
                    format!("if its blocks are to go there all the same: --volume {}={backing}", volume.name),
                ));
            }
        }
        disks.insert(id, disk);
    }
    Ok((disks, elsewhere))
}

/// A backing of another size may be another disk. Only one that was named may be larger.
fn check_size(volume: &Volume, backing: &str, named: bool, bytes: u64) -> Result<(), Problem> {
    if bytes == volume.bytes || (bytes > volume.bytes && named) {
        return Ok(());
    }
    let help = match bytes < volume.bytes {
        true => "name one that is large enough".into(),
        false => format!("if it is the right one: --volume {}={backing}", volume.name),
    };
    Err(Problem::new(
        format_args!(
            "{backing} has {bytes} bytes ({}), and volume {} had {} ({})",
            HumanSize(bytes),
            volume.name,
            volume.bytes,
            HumanSize(volume.bytes)
        ),
        help,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_is_named_with_its_backing() {
        let named: Named = "db=nbd+unix:///x?socket=/a=b".parse().expect("good");
        assert_eq!(named, Named { name: "db".into(), backing: "nbd+unix:///x?socket=/a=b".into() });
        assert!(["db", "=x", "db="].iter().all(|text| text.parse::<Named>().is_err()));
    }
}
