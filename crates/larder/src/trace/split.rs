//! `larder trace split`: a file for each volume, tenant or interval of a trace.

mod files;
mod names;
mod passes;

use larder_trace::Volume;

use super::interrupt::Interrupt;
use super::options::{By, Split};
use super::output::Output;
use super::{Failure, Next, for_each};
use files::Files;

/// Do what the options say.
pub fn split(options: &Split) -> Result<(), Failure> {
    let interrupt = Interrupt::listen()?;
    match options.by {
        By::Volume => passes::split(options, &interrupt, Volume::to_string),
        By::Tenant => passes::split(options, &interrupt, |volume| volume.tenant.clone()),
        By::Time => by_time(options, &interrupt),
    }
}

/// A file is written at a time: time does not go back.
fn by_time(options: &Split, interrupt: &Interrupt) -> Result<(), Failure> {
    let mut input = options.trace.open(options.format)?;
    let mut files = Files::new(options)?;
    let every_ns = u64::try_from(options.every.as_nanos()).unwrap_or(u64::MAX);
    let mut first_ns = None;
    let mut current: Option<(u64, Output)> = None;
    for_each(&mut input, interrupt, |request, volume| {
        let first_ns = *first_ns.get_or_insert(request.time_ns);
        let interval = request.time_ns.saturating_sub(first_ns) / every_ns;
        if current.as_ref().is_none_or(|(number, _)| interval > *number) {
            if let Some((_, whole)) = current.take() {
                files.keep(whole.finish()?);
            }
            current = Some((interval, files.create(&format!("{interval:06}"))?));
        }
        if let Some((_, output)) = &mut current {
            output.write(request, volume)?;
        }
        Ok(Next::More)
    })?;
    if let Some((_, whole)) = current {
        files.keep(whole.finish()?);
    }
    files.commit_and_tell()
}
