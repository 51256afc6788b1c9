//! The traces of tenants, opened anew for every run.

use std::path::PathBuf;
use std::sync::Arc;

use larder_trace::{Format, GeneratorSpec, Request, Trace, TraceError};

use super::workload::Workload;
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

/// The traces of a workload's tenants. Each can be opened now.
pub fn openers(workload: &Workload, format: Option<Format>) -> Result<Vec<Opener>, Problem> {
    let opener = |trace: &crate::input::TraceName| {
        trace.open(format)?;
        let generated = trace.generator();
        let file = trace.path().map(|path| Opener::File(path.to_owned(), format));
        // What can be opened is one of the two, since pipes were refused before.
        generated
            .map(Opener::Generated)
            .or(file)
            .ok_or_else(|| Problem::new(format_args!("{trace} is no trace"), "name a file, or gen:SPEC"))
    };
    workload.tenants.iter().map(|tenant| opener(&tenant.trace)).collect()
}
