//! A file for each group of volumes. Only so many are written at a time, so a trace with more groups is read several times.

use std::collections::HashMap;
use std::ops::Range;

use larder_trace::{Format, Volume};

use super::files::{FILES_MAX, Files, too_many};
use crate::problem::Problem;
use crate::trace::interrupt::Interrupt;
use crate::trace::options::Split;
use crate::trace::output::Output;
use crate::trace::{Failure, Next, for_each};

/// Files written at a time: parquet and oracle-general hold tens of MiB of each, compressors a few.
fn files_max(options: &Split) -> usize {
    match options.to {
        Format::Parquet | Format::OracleGeneral => 16,
        _ if options.compress.is_some() => 64,
        _ => 256,
    }
}

/// The groups of volumes met so far, numbered as they come.
struct Groups<N> {
    /// The name of a volume's group.
    name: N,
    /// By volume.
    numbers: Vec<Option<usize>>,
    by_name: HashMap<String, usize>,
}

impl<N: Fn(&Volume) -> String> Groups<N> {
    fn number(&mut self, index: u32, volume: &Volume) -> usize {
        let index = index as usize;
        if self.numbers.len() <= index {
            self.numbers.resize(index + 1, None);
        }
        if let Some(number) = self.numbers[index] {
            return number;
        }
        let next = self.by_name.len();
        let number = *self.by_name.entry((self.name)(volume)).or_insert(next);
        self.numbers[index] = Some(number);
        number
    }
}

/// Write a file for each group; `name` is that of a volume's group.
pub fn split(
    options: &Split,
    interrupt: &Interrupt,
    name: impl Fn(&Volume) -> String,
) -> Result<(), Failure> {
    let mut files = Files::new(options)?;
    let mut groups = Groups { name, numbers: Vec::new(), by_name: HashMap::new() };
    let at_a_time = files_max(options);
    let mut window = 0..at_a_time;
    pass(options, interrupt, &mut groups, &mut files, &window)?;
    while groups.by_name.len() > window.end {
        window = window.end..window.end + at_a_time;
        pass(options, interrupt, &mut groups, &mut files, &window)?;
    }
    files.commit_and_tell()
}

/// Read the trace, and write the files of the groups in `window`.
fn pass<N: Fn(&Volume) -> String>(
    options: &Split,
    interrupt: &Interrupt,
    groups: &mut Groups<N>,
    files: &mut Files,
    window: &Range<usize>,
) -> Result<(), Failure> {
    let mut input = options.trace.open(options.format)?;
    let mut outputs: Vec<Option<Output>> = Vec::new();
    outputs.resize_with(window.len(), || None);
    for_each(&mut input, interrupt, |request, volume| {
        let number = groups.number(request.volume, volume);
        check_count(options, number + 1)?;
        if window.contains(&number) {
            let output = match &mut outputs[number - window.start] {
                Some(output) => output,
                none => none.insert(files.create(&(groups.name)(volume))?),
            };
            output.write(request, volume)?;
        }
        Ok(Next::More)
    })?;
    for output in outputs.into_iter().flatten() {
        files.keep(output.finish()?);
    }
    Ok(())
}

/// An error if a trace cannot be split into so many files.
fn check_count(options: &Split, count: usize) -> Result<(), Problem> {
    let (trace, most) = (&options.trace, files_max(options));
    if count > FILES_MAX {
        return Err(too_many(trace));
    }
    if count > most && !trace.is_repeatable() {
        let what =
            format!("{trace}: splits into more than {most} files, for which it would have to be read again");
        return Err(Problem::new(what, "save it to a file first"));
    }
    Ok(())
}
