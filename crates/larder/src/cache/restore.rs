//! `larder cache restore`: a cache's metadata from a dump.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use larder_engine::format::{Dump, DumpError, Layout, Shape, recover, restore};

use super::guard::Held;
use super::options::Restore;
use super::state::State;
use super::target::Target;
use super::{Done, Outcome, trouble, words};
use crate::output;
use crate::problem::Problem;

/// Make the cache that the dump tells of.
pub fn run(options: &Restore) -> Done {
    let Restore { file, path, force } = options;
    let dump = read(file)?;
    let layout = layout(&dump).map_err(|error| trouble::dump(path, file, &error))?;
    let mut target = Target::open(path)?;
    if !force {
        check(path, &target.held)?;
    }
    target.fit(&layout)?;
    restore(&mut target.cache, &dump).map_err(|error| trouble::dump(path, file, &error))?;
    let recovered = recover(&mut target.cache).map_err(|error| trouble::recover(path, &error))?;
    target.keep();
    let (state, shown) = (State::new(&recovered), path.display());
    let findings = words::count(recovered.findings());
    let mut text = format!(
        "{shown}: cache {} with {}, {} of them dirty\n",
        dump.uuid,
        words::blocks(state.blocks, "", layout.block_bytes()),
        state.dirty_blocks
    );
    if findings > 0 {
        let found = words::counted(findings, "finding");
        text += &format!("The dump contradicts itself ({found}): larder cache check {shown}\n");
    }
    text += &format!("Whether each block's data is in its slot tells larder cache check --data {shown}\n");
    output::print(&text)?;
    Ok(if findings == 0 { Outcome::Well } else { Outcome::NotWell })
}

fn read(file: &Path) -> Result<Dump, Problem> {
    let opened: io::Result<Box<dyn Read>> = if file == Path::new("-") {
        Ok(Box::new(io::stdin()))
    } else {
        File::open(file).map(|file| Box::new(file) as _)
    };
    let opened = opened.map_err(|error| {
        Problem::new(
            format_args!("{}: {error}", file.display()),
            "name a file that larder cache dump has written",
        )
    })?;
    serde_json::from_reader(BufReader::new(opened)).map_err(|error| {
        Problem::new(
            format_args!("{}: is no dump: {error}", file.display()),
            "give a file that larder cache dump has written, unchanged",
        )
    })
}

/// Before anything is written.
fn layout(dump: &Dump) -> Result<Layout, DumpError> {
    Ok(Layout::new(Shape {
        block_bytes: dump.block_bytes,
        sector_bytes: dump.sector_bytes,
        slots: dump.slots,
        records: dump.journal_records,
        volume_table_bytes: dump.volume_table_bytes,
    })?)
}

/// Even a sound cache is not overwritten unasked: what it learned since the dump would be forgotten.
fn check(path: &Path, held: &Held) -> Result<(), Problem> {
    held.check(path)?;
    match held {
        Held::Cache { uuid, .. } => Err(Problem::new(
            format_args!("{} holds the cache {uuid}, and its metadata would be replaced", path.display()),
            "if it was not used since the dump was made: --force; else stale data would be served",
        )),
        _ => Ok(()),
    }
}
