//! Where requests come from: a trace, or anything that makes them.

use std::convert::Infallible;

use larder_trace::{Request, Trace, TraceError};

/// A stream of requests, read once in batches.
pub trait Source: Send {
    /// Why reading may fail.
    type Error: Send;

    /// Append the next requests to `out`, at most `max`; false at the end.
    fn read(&mut self, out: &mut Vec<Request>, max: usize) -> Result<bool, Self::Error>;
}

impl Source for Trace {
    type Error = TraceError;

    fn read(&mut self, out: &mut Vec<Request>, max: usize) -> Result<bool, TraceError> {
        self.read_batch(out, max)
    }
}

/// The requests of an iterator.
#[derive(Clone, Debug)]
pub struct Requests<I>(
    /// The iterator.
    pub I,
);

impl<I: Iterator<Item = Request> + Send> Source for Requests<I> {
    type Error = Infallible;

    fn read(&mut self, out: &mut Vec<Request>, max: usize) -> Result<bool, Infallible> {
        let before = out.len();
        out.extend(self.0.by_ref().take(max));
        Ok(out.len() > before)
    }
}
