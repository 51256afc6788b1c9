//! `larder trace convert`: a trace in another format.

use super::destination::Destination;
use super::interrupt::Interrupt;
use super::options::Convert;
use super::output::Output;
use super::{Failure, Next, for_each};

/// Do what the options say.
pub fn convert(options: &Convert) -> Result<(), Failure> {
    let destination = Destination::new(&options.out, options.to, options.care.force)?;
    destination.check(std::slice::from_ref(&options.input))?;
    let interrupt = Interrupt::listen()?;
    let mut input = options.input.open(options.format)?;
    let mut output = Output::new(destination, options.care)?;
    for_each(&mut input, &interrupt, |request, volume| {
        output.write(request, volume)?;
        Ok(Next::More)
    })?;
    output.finish()?.commit_and_tell()
}
