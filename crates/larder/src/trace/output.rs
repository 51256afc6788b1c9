//! A trace that is being written: its requests, what is lost of them, and its file.

use std::collections::HashMap;
use std::fs::File;
use std::io;

use larder_trace::{Request, Volume, WriteError};

use super::destination::{Destination, Pending};
use super::encoder::TraceEncoder;
use super::losses::Losses;
use super::options::Care;
use super::text::counted;
use super::{Failure, tell};
use crate::problem::Problem;

/// What is to be done where a format cannot hold something.
const OTHER_FORMAT: &str = "write another format (parquet holds everything), or leave away --strict";

/// A trace under way to its destination. Dropped before the end, it leaves nothing.
pub struct Output {
    encoder: TraceEncoder,
    pending: Pending,
    losses: Losses,
    strict: bool,
    /// The numbers that volumes have in the output, by those that they have in the input.
    numbers: HashMap<u32, u32>,
    /// Requests offered, and those of them that the format holds.
    offered: u64,
    written: u64,
}

impl Output {
    /// Begin.
    pub fn new(destination: Destination, care: Care) -> Result<Self, Failure> {
        let (format, compression) = (destination.format, destination.compression);
        let (file, pending) = destination.open()?;
        let encoder = TraceEncoder::new(file, format, compression, pending.folder());
        let encoder = encoder.map_err(|error| failure(&pending, error))?;
        let losses = Losses::new(format);
        Ok(Self {
            encoder,
            pending,
            losses,
            strict: care.strict,
            numbers: HashMap::new(),
            offered: 0,
            written: 0,
        })
    }

    /// Write a request, as far as the format holds it.
    pub fn write(&mut self, request: &Request, volume: &Volume) -> Result<(), Failure> {
        let is_held = self.losses.note(request);
        let next = self.numbers.len() as u32;
        if is_held {
            let number = *self.numbers.entry(request.volume).or_insert(next);
            if number == next {
                self.losses.note_volume(volume, number);
            }
            let request = Request { volume: number, ..*request };
            self.encoder.write(&request, volume).map_err(|error| failure(&self.pending, error))?;
            self.written += 1;
        }
        self.check()?;
        self.offered += 1;
        Ok(())
    }

    fn check(&self) -> Result<(), Problem> {
        if !self.strict {
            return Ok(());
        }
        let Some(loss) = self.losses.any() else { return Ok(()) };
        let (destination, number, why) = (&self.pending.destination, self.offered, loss.why());
        let format = destination.format;
        let what = format!(
            "{destination}: the format {format} does not hold request {number} (counted from 0) as it is: it {why}"
        );
        Err(Problem::new(what, OTHER_FORMAT))
    }

    /// Write the end of the trace. What is left is to [commit](Written::commit) it.
    pub fn finish(self) -> Result<Written, Failure> {
        let Self { encoder, pending, losses, written, .. } = self;
        let file: File = encoder.finish().map_err(|error| failure(&pending, error))?;
        pending.sync(&file)?;
        Ok(Written { pending, losses, requests: written })
    }
}

fn failure(pending: &Pending, error: WriteError) -> Failure {
    match error {
        WriteError::Io(error) if pending.is_stdout() && error.kind() == io::ErrorKind::BrokenPipe => {
            Failure::Closed
        }
        WriteError::Io(error) => pending.failed(&error).into(),
        error @ WriteError::Name { .. } => {
            let help = "write another format (parquet holds every name), or choose volumes with `larder trace cut --volume`";
            Problem::new(format_args!("{}: {error}", pending.destination), help).into()
        }
        error => Problem::new(
            format_args!("{}: {error}", pending.destination),
            "write another format, such as parquet",
        )
        .into(),
    }
}

/// A trace that is written, but for the name of its file.
pub struct Written {
    pending: Pending,
    losses: Losses,
    requests: u64,
}

impl Written {
    /// Requests written.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// What was lost.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Give the file its name.
    pub fn commit(self) -> Result<(), Problem> {
        self.pending.commit()
    }

    /// Give the file its name, and tell on stderr what was written and what was lost.
    pub fn commit_and_tell(self) -> Result<(), Failure> {
        let destination = &self.pending.destination;
        let requests = counted(self.requests, "request", "requests");
        let told = format!(
            "{}{requests} written to {destination} ({})\n",
            self.losses.told(&destination.to_string()),
            destination.format
        );
        self.commit()?;
        tell(&told);
        Ok(())
    }
}
