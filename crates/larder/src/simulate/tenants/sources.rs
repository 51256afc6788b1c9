//! The traces of tenants, opened anew for every run.

use std::path::PathBuf;
use std::sync::Arc;

use larder_sim::tenants::Pace;
use larder_trace::{Format, GeneratorSpec, Request, Trace, TraceError};

use super::options::Arrivals;
use super::workload::{Tenant, Workload};
use crate::input::{Input, PartOf};
use crate::metered::Requests;
use crate::problem::Problem;

/// A trace that can be opened again and again.
#[derive(Clone, Debug)]
pub enum Opener {
    /// A file, in a format if one is named.
    File(PathBuf, Option<Format>),
    /// One tenant's requests of a file.
    OfTenant(PathBuf, Option<Format>, PartOf),
    /// Requests made on the spot.
    Generated(GeneratorSpec),
    /// Requests in memory, for many runs over the same ones.
    Held(Arc<[Request]>),
}

impl Opener {
    /// Open it from its beginning.
    pub fn open(&self) -> Result<Requests, TraceError> {
        let input = match self {
            Self::File(path, format) => Input::Trace(Box::new(Trace::open(path, *format)?)),
            Self::OfTenant(path, format, part) => {
                Input::OfTenant(Box::new(Trace::open(path, *format)?), part.clone())
            }
            Self::Generated(spec) => Input::Generated(Box::new(spec.open()), spec.volumes()),
            Self::Held(requests) => Input::Held(Arc::clone(requests), 0),
        };
        Ok(Requests::Other(input))
    }
}

/// The traces of a workload's tenants. Each can be opened now, and has times if its requests are to come by them.
pub fn openers(
    workload: &Workload,
    format: Option<Format>,
    arrivals: &Arrivals,
) -> Result<Vec<Opener>, Problem> {
    let opener = |tenant: &Tenant| {
        let trace = &tenant.trace;
        let mut opened = trace.open(format)?;
        let by_time = matches!(tenant.settings.pace(Workload::pace(arrivals)), Pace::Open { .. });
        let mut first = Vec::new();
        // What an empty file would be cannot be told.
        if by_time
            && !opened.format().is_none_or(Format::has_times)
            && opened.read_batch(&mut first, 1).is_ok()
            && !first.is_empty()
        {
            let what =
                format!("tenant {}: {trace} has no times at which its requests could come", tenant.name);
            return Err(Problem::new(what, "keep a number of them outstanding instead: --closed 8"));
        }
        let generated = trace.generator();
        let file = trace.path().map(|path| Opener::File(path.to_owned(), format));
        // What can be opened is one of the two, since pipes were refused before.
        generated
            .map(Opener::Generated)
            .or(file)
            .ok_or_else(|| Problem::new(format_args!("{trace} is no trace"), "name a file, or gen:SPEC"))
    };
    workload.tenants.iter().map(opener).collect()
}
