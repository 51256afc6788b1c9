//! `larder trace merge`: several traces as one, by time.

mod tenants;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use larder_trace::{Request, Volume};

use super::destination::Destination;
use super::interrupt::Interrupt;
use super::options::Merge;
use super::output::Output;
use super::text::counted;
use super::{BATCH, Failure, tell};
use crate::input::{Input, TraceName};
use crate::problem::Problem;
use tenants::Tenants;

/// Traces that are merged: each is an open file.
const TRACES_MAX: usize = 512;

/// Requests between two looks at the signals.
const UNINTERRUPTED: u64 = BATCH as u64;

/// Do what the options say.
pub fn merge(options: &Merge) -> Result<(), Failure> {
    let destination = Destination::new(&options.out, options.to, options.care.force)?;
    destination.check(&options.traces)?;
    check_traces(&options.traces)?;
    let interrupt = Interrupt::listen()?;
    let mut merged = Merged::new(options)?;
    let mut output = Output::new(destination, options.care)?;
    let mut written = 0u64;
    while let Some((request, volume)) = merged.next()? {
        output.write(&request, &volume)?;
        written += 1;
        if written.is_multiple_of(UNINTERRUPTED) {
            interrupt.check()?;
        }
    }
    tell(&merged.told());
    output.finish()?.commit_and_tell()
}

fn check_traces(traces: &[TraceName]) -> Result<(), Problem> {
    if traces.len() > TRACES_MAX {
        let what =
            format!("{} are too many to merge at a time", counted(traces.len() as u64, "trace", "traces"));
        return Err(Problem::new(what, format!("merge at most {TRACES_MAX}, then what they gave")));
    }
    if traces.iter().filter(|trace| trace.is_stdin()).count() > 1 {
        return Err(Problem::new("stdin can be read only once", "name - once"));
    }
    Ok(())
}

/// The requests of all traces: always the earliest of those that come next. At the same time, the trace named first is first.
struct Merged {
    streams: Vec<Stream>,
    /// The time of the next request of each stream that has one.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    tenants: Tenants,
    /// Volumes met in all traces.
    volumes: u32,
}

impl Merged {
    fn new(options: &Merge) -> Result<Self, Problem> {
        let mut merged =
            Self { streams: Vec::new(), next: BinaryHeap::new(), tenants: Tenants::default(), volumes: 0 };
        for (number, trace) in options.traces.iter().enumerate() {
            merged.streams.push(Stream::new(trace, trace.open(options.format)?, options.align));
            merged.queue(number)?;
        }
        Ok(merged)
    }

    /// Queue the next request of a stream.
    fn queue(&mut self, number: usize) -> Result<(), Problem> {
        if let Some(time_ns) = self.streams[number].next_time()? {
            self.next.push(Reverse((time_ns, number)));
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<(Request, Volume)>, Problem> {
        let Some(Reverse((time_ns, number))) = self.next.pop() else { return Ok(None) };
        let stream = &mut self.streams[number];
        let request = stream.take(time_ns);
        stream.name_volumes(number, &mut self.tenants, &mut self.volumes);
        let (volume, first) = &stream.volumes[request.volume as usize];
        let merged = (Request { volume: *first, ..request }, volume.clone());
        self.queue(number)?;
        Ok(Some(merged))
    }

    /// What the user should know: traces out of order, tenants with other names.
    fn told(&self) -> String {
        let disordered = self.streams.iter().filter(|stream| stream.out_of_order > 0);
        let orders = disordered.map(|stream| {
            let requests = counted(stream.out_of_order, "request", "requests");
            format!("note: {}: {requests} earlier than the one before, and left behind it\n", stream.name)
        });
        orders.collect::<String>() + &self.tenants.told()
    }
}

/// One of the traces.
struct Stream {
    name: TraceName,
    input: Input,
    batch: Vec<Request>,
    /// The next request of the batch.
    at: usize,
    is_aligned: bool,
    /// Subtracted from all times: that of the first request, if the streams are aligned.
    start_ns: Option<u64>,
    last_ns: u64,
    out_of_order: u64,
    /// The volumes met so far as the output calls them, and their numbers there.
    volumes: Vec<(Volume, u32)>,
}

impl Stream {
    fn new(name: &TraceName, input: Input, is_aligned: bool) -> Self {
        Self {
            name: name.clone(),
            input,
            batch: Vec::new(),
            at: 0,
            is_aligned,
            start_ns: None,
            last_ns: 0,
            out_of_order: 0,
            volumes: Vec::new(),
        }
    }

    /// When the next request is to come out; none at the end.
    fn next_time(&mut self) -> Result<Option<u64>, Problem> {
        if self.at == self.batch.len() {
            self.batch.clear();
            self.at = 0;
            self.input.read_batch(&mut self.batch, BATCH)?;
        }
        let Some(request) = self.batch.get(self.at) else { return Ok(None) };
        let start_ns = *self.start_ns.get_or_insert(if self.is_aligned { request.time_ns } else { 0 });
        Ok(Some(request.time_ns.saturating_sub(start_ns)))
    }

    /// The next request, whose time was asked for.
    fn take(&mut self, time_ns: u64) -> Request {
        let request = Request { time_ns, ..self.batch[self.at] };
        self.at += 1;
        self.out_of_order += u64::from(time_ns < self.last_ns);
        self.last_ns = time_ns;
        request
    }

    /// Name and number the volumes that are new.
    fn name_volumes(&mut self, stream: usize, tenants: &mut Tenants, count: &mut u32) {
        for volume in &self.input.volumes()[self.volumes.len()..] {
            let tenant = tenants.name(stream, &self.name, &volume.tenant);
            self.volumes.push((Volume::new(tenant, &volume.disk), *count));
            *count += 1;
        }
    }
}
