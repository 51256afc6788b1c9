//! `larder cache format`: an empty cache.

use larder_daemon::units::HumanSize;
use larder_engine::format::{self, Layout, Medium, Superblock};
use larder_io::offline::new_uuid;

use super::guard::Held;
use super::options::Format;
use super::target::{Target, layout_problem};
use super::{Done, Outcome, trouble, words};
use crate::output;
use crate::problem::Problem;

/// Make the cache that the options tell of.
pub fn run(options: &Format) -> Done {
    let path = &options.path;
    if options.size.is_none() && !path.exists() {
        let what = format!("{} does not exist", path.display());
        return Err(Problem::new(what, "check the path, or give a --size to create a file"));
    }
    let mut target = Target::open(path)?;
    if !options.force {
        target.held.check(path)?;
    }
    let layout = layout(options, &target)?;
    target.fit(&layout)?;
    let uuid = new_uuid().map_err(|error| {
        Problem::new(format_args!("cannot read /dev/urandom: {error}"), "mount /dev, and try again")
    })?;
    let superblock = Superblock::new(uuid, layout);
    format::format(&mut target.cache, &superblock).map_err(|error| trouble::medium(path, &error))?;
    output::print(&text(options, &superblock, &target.held))?;
    target.keep();
    Ok(Outcome::Well)
}

fn layout(options: &Format, target: &Target) -> Result<Layout, Problem> {
    let (block, device) = (options.block_size, target.cache.sector_bytes());
    let sector = options.sector.unwrap_or(device);
    if sector < device {
        return Err(Problem::new(
            format_args!("{} is written in units of {device} bytes, not of {sector}", options.path.display()),
            format!("leave --sector out, or give --sector {device}"),
        ));
    }
    match options.size {
        Some(size) => Layout::for_data_bytes(block, sector, size),
        None => Layout::for_device_bytes(block, sector, target.cache.bytes()),
    }
    .map_err(layout_problem)
}

fn text(options: &Format, superblock: &Superblock, held: &Held) -> String {
    let shown = options.path.display();
    let gone = match held {
        Held::Nothing => String::new(),
        Held::VersionOne => format!("{shown}: was a cache of format 1\n"),
        Held::Cache { uuid, state, block_bytes } => {
            let dirty = match state.dirty_blocks {
                0 => String::new(),
                dirty => format!(", {dirty} of them dirty"),
            };
            format!(
                "{shown}: cache {uuid} is gone, with {}{dirty}\n",
                words::blocks(state.blocks, "", *block_bytes)
            )
        }
        Held::Damaged(_) => format!("{shown}: the damaged cache is gone\n"),
        Held::Foreign => format!("{shown}: what it held is gone\n"),
    };
    let layout = superblock.layout;
    let blocks = layout.blocks(options.size.unwrap_or(u64::MAX));
    let spare = match layout.slots() - blocks {
        0 => String::new(),
        1 => ", and a slot to spare".into(),
        spare => format!(", and {spare} slots to spare"),
    };
    format!(
        "{gone}{shown}: an empty cache of {}, {} each{spare}; {} of metadata in sectors of {} bytes; UUID {}\n",
        words::blocks(blocks.into(), "", layout.block_bytes()),
        HumanSize(layout.block_bytes().into()),
        HumanSize(layout.data_offset()),
        layout.sector_bytes(),
        superblock.uuid
    )
}
