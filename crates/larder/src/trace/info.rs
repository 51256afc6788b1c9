//! `larder trace info`: what traces hold.

mod findings;
mod footprint;
mod report;
mod sizes;

use std::io::{self, Write};

use super::interrupt::Interrupt;
use super::options::Info;
use super::{Failure, Next, for_each};
use crate::input::TraceName;
use findings::{Count, Findings};

/// Print what the options say.
pub fn show(options: &Info) -> Result<(), Failure> {
    let mut all = Vec::new();
    for (number, trace) in options.traces.iter().enumerate() {
        let findings = find(trace, options)?;
        if options.json {
            all.push(findings);
        } else {
            let gap = if number == 0 { "" } else { "\n" };
            print(&format!("{gap}{}", report::render(&findings)))?;
        }
    }
    match &all[..] {
        [] => Ok(()),
        [one] => print(&json(one)),
        several => print(&json(several)),
    }
}

fn find(trace: &TraceName, options: &Info) -> Result<Findings, Failure> {
    let mut input = trace.open(options.format)?;
    let mut count = Count::new(options.block);
    for_each(&mut input, &Interrupt::never(), |request, _| {
        count.request(request);
        Ok(Next::More)
    })?;
    Ok(count.findings(trace.to_string(), &input, options.format.is_none()))
}

fn json<T: serde::Serialize + ?Sized>(findings: &T) -> String {
    serde_json::to_string_pretty(findings).expect("numbers and text are always JSON") + "\n"
}

fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Failure::of_stdout(&error))
}
