//! `larder cache writeback`: all dirty blocks to their backings.

mod backings;
mod report;

use larder_engine::format::recover;
use larder_io::offline::{StoppedCache, dirty_blocks, write_back};

use super::bar::Bar;
use super::options::Writeback;
use super::{Done, Outcome, trouble};
use crate::output;
pub use backings::Named;
use report::Report;

/// Save what the options say.
pub fn run(options: &Writeback) -> Done {
    let path = &options.path;
    let mut cache = StoppedCache::open(path)?;
    let recovered = recover(&mut cache).map_err(|error| trouble::recover(path, &error))?;
    // Told before anything is opened.
    recovered.open().map_err(|error| trouble::recover(path, &error))?;
    let dirty = dirty_blocks(&recovered);
    let chosen = backings::choose(&recovered, &dirty, options)?;
    let (mut disks, elsewhere) = backings::open(&recovered, &chosen)?;
    let block_bytes = u64::from(recovered.superblock().layout.block_bytes());
    let blocks: u64 = chosen.keys().filter_map(|volume| dirty.get(volume)).sum();
    let bar = Bar::new("writing back", blocks * block_bytes);
    let saved = write_back(&mut cache, &recovered, &mut disks, &elsewhere, |bytes| bar.add(bytes));
    drop(bar);
    let saved = saved.map_err(|error| trouble::write_back(path, &error))?;
    let after = recover(&mut cache).map_err(|error| trouble::recover(path, &error))?;
    let report = Report::new(&recovered, &chosen, &dirty, &dirty_blocks(&after), &saved, &elsewhere);
    output::print(&if options.json { output::json(&report) } else { report.text(path) })?;
    Ok(if saved.left == 0 { Outcome::Well } else { Outcome::NotWell })
}
