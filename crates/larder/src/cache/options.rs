//! The options of `larder cache` and its commands, with their help texts.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use larder_daemon::units::parse_size;

use super::damage::Wound;
use super::writeback::Named;
use crate::cli::Daemon;

const ABOUT: &str = "\
PATH is the cache's file or block device, as [cache] path in larder.toml has it. No daemon may have it open: stop it first. Only attach asks a
daemon that runs.

Exit code: 0 all is well; 1 it is not: check has findings, repair needs --yes, dirty blocks remain after writeback;
2 nothing could be done: no cache, in use, damaged beyond use, or an error of a device.";

const FORMAT_EXAMPLES: &str = "\
Examples:
  larder cache format /var/lib/larder/cache.img --size 10GiB
  larder cache format /dev/nvme0n1p3 --block-size 8KiB";

const DUMP_EXAMPLES: &str = "\
Examples:
  larder cache dump /var/lib/larder/cache.img -o cache.json
  larder cache dump /var/lib/larder/cache.img | jq '[.blocks[] | select(.dirty)] | length'";

const WRITEBACK_EXAMPLES: &str = "\
Examples:
  larder cache writeback /var/lib/larder/cache.img
  larder cache writeback /var/lib/larder/cache.img --volume db-root=/mnt/rescue/db.img --skip scratch";

const DAMAGE_EXAMPLES: &str = "\
Examples:
  larder cache damage --list
  larder cache damage copy.img superblock=1 page=0
  larder cache damage copy.img bit bit bit --seed 7";

/// Options of `larder cache`.
#[derive(Debug, Args)]
#[command(after_help = ABOUT, arg_required_else_help = true)]
pub struct CacheOptions {
    /// What to do.
    #[command(subcommand)]
    pub command: CacheCommand,
}

/// What to do with a cache.
#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Have a running daemon use its cache device again, which has failed and is back. By itself it looks every few seconds.
    Attach(Daemon),
    /// Make an empty cache. What holds dirty data, or anything else, is left alone without --force.
    #[command(after_help = FORMAT_EXAMPLES)]
    Format(Format),
    /// Tell what a cache is, how it was left, and what it holds of each volume.
    Info(Look),
    /// Look for damage: of all metadata, with --data of the cached blocks, too.
    ///
    /// Exit code: 0 sound, 1 there are findings, 2 it cannot be used at all. A finding is a note (nothing is known to be lost), costs clean
    /// blocks (the backings have them), or may cost dirty ones.
    Check(Check),
    /// Write a cache's metadata as JSON. Damage does not stop it: what can be used is told.
    #[command(after_help = DUMP_EXAMPLES)]
    Dump(Dump),
    /// Make a cache's metadata from a dump. The data of its blocks must be in their slots.
    ///
    /// Blocks that changed after the dump was made are taken for what they were: use it at once, or not at all.
    Restore(Restore),
    /// Make a damaged cache consistent, and tell what it costs. Where dirty data may be lost, only with --yes.
    ///
    /// What is certain is kept, dirty blocks too; what is not is named. It may be cut short, and run again. Keep a copy of the
    /// device, or at least what `larder cache check` says, before it.
    Repair(Repair),
    /// Save all dirty blocks to their backings, without the daemon.
    ///
    /// In order of address, each block held against its checksum. A block is called clean when its backing has it durably:
    /// it may be cut short at any moment, and run again. Blocks that fail their checksum are named, and kept. Guests must not
    /// use the backings meanwhile.
    #[command(after_help = WRITEBACK_EXAMPLES)]
    Writeback(Writeback),
    /// Break a cache in a chosen way, to try the other commands, on a copy.
    #[command(after_help = DAMAGE_EXAMPLES)]
    Damage(Damage),
}

/// Options of `larder cache format`.
#[derive(Debug, Args)]
pub struct Format {
    /// The cache: a block device, or a file, which is created where it is absent.
    pub path: PathBuf,
    /// Cached data, as cache.size has it; metadata (about 1 %) comes on top [default: what fits on the device].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub size: Option<u64>,
    /// The unit of caching, a power of two from 4KiB to 128KiB.
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = short_size)]
    pub block_size: u32,
    /// The unit of writing, 512 or 4KiB [default: the device's].
    #[arg(long, value_name = "SIZE", value_parser = short_size)]
    pub sector: Option<u32>,
    /// Whatever it holds may go, dirty data too.
    #[arg(long)]
    pub force: bool,
}

/// Options of `larder cache info`.
#[derive(Debug, Args)]
pub struct Look {
    /// The cache.
    pub path: PathBuf,
    /// Print JSON: sizes in bytes or blocks, as the keys say.
    #[arg(long)]
    pub json: bool,
}

/// Options of `larder cache check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The cache.
    pub path: PathBuf,
    /// Read every cached block, too, and hold it against its checksum.
    #[arg(long)]
    pub data: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `larder cache dump`.
#[derive(Debug, Args)]
pub struct Dump {
    /// The cache.
    pub path: PathBuf,
    /// Write to this file instead of stdout; it appears when it is whole.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace the file if it is there.
    #[arg(long, requires = "output")]
    pub force: bool,
}

/// Options of `larder cache restore`.
#[derive(Debug, Args)]
pub struct Restore {
    /// What `larder cache dump` wrote; - for stdin.
    pub file: PathBuf,
    /// The cache: a block device, or a file, which is created where it is absent.
    pub path: PathBuf,
    /// Replace the metadata of the cache, or whatever else is there.
    #[arg(long)]
    pub force: bool,
}

/// Options of `larder cache repair`.
#[derive(Debug, Args)]
pub struct Repair {
    /// The cache.
    pub path: PathBuf,
    /// Go on although dirty data may be lost. Without it, what would be lost is told, and nothing is changed.
    #[arg(long)]
    pub yes: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `larder cache writeback`.
#[derive(Debug, Args)]
pub struct Writeback {
    /// The cache.
    pub path: PathBuf,
    /// Where a volume's blocks go, instead of the backing that it had: a file, a block device, or an NBD URI. NAME may be the
    /// volume's number, as `larder cache info` tells it.
    #[arg(long = "volume", value_name = "NAME=BACKING")]
    pub volumes: Vec<Named>,
    /// Leave this volume's blocks in the cache.
    #[arg(long, value_name = "NAME")]
    pub skip: Vec<String>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Options of `larder cache damage`.
#[derive(Debug, Args)]
pub struct Damage {
    /// The cache, best a copy.
    #[arg(required_unless_present = "list")]
    pub path: Option<PathBuf>,
    /// What to do to it: NAME=NUMBER, or NAME for a random number.
    #[arg(value_name = "HARM", required_unless_present = "list")]
    pub harms: Vec<Wound>,
    /// What random numbers are drawn from.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Also break a block device.
    #[arg(long)]
    pub force: bool,
    /// List the names, and what their numbers are.
    #[arg(long, exclusive = true)]
    pub list: bool,
}

fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

fn short_size(text: &str) -> Result<u32, String> {
    size(text).and_then(|bytes| u32::try_from(bytes).map_err(|_| format!("{text} is too large")))
}
