//! Errors as people read them: what happened to what, and what can be done.

use std::fmt;

use larder_daemon::config::ConfigError;
use larder_daemon::control_socket::AskError;
use larder_daemon::server::ServeError;
use larder_sim::SimError;
use larder_trace::TraceError;

/// An error with its remedy. Displayed as the two lines `error: …` and `help: …`; the second one is left out where there is nothing to say.
#[derive(Debug)]
pub struct Problem {
    what: String,
    help: String,
}

impl Problem {
    /// From its two parts.
    pub fn new(what: impl fmt::Display, help: impl Into<String>) -> Self {
        Self { what: what.to_string(), help: help.into() }
    }

    /// The same, told of something.
    pub fn about(self, subject: impl fmt::Display) -> Self {
        Self { what: format!("{subject}: {}", self.what), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.help.as_str() {
            "" => write!(f, "error: {}", self.what),
            help => write!(f, "error: {}\nhelp: {help}", self.what),
        }
    }
}

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        Self::new(&error, error.help())
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Self {
        Self::new(&error, error.help())
    }
}

impl From<ServeError> for Problem {
    fn from(error: ServeError) -> Self {
        Self::new(&error, error.help())
    }
}

impl From<TraceError> for Problem {
    fn from(error: TraceError) -> Self {
        let help = match &error {
            TraceError::Open { .. } => "name a trace that is there and readable, - for stdin, or gen:SPEC",
            TraceError::Unknown { .. } => "name its format with --format, if it is one of these",
            TraceError::Read { .. } => "the file is damaged or incomplete: fetch it again",
            TraceError::Syntax { .. } => {
                "mend that place; if the trace is in another format, name it with --format"
            }
        };
        Self::new(&error, help)
    }
}

impl From<SimError<TraceError>> for Problem {
    fn from(error: SimError<TraceError>) -> Self {
        let help = match error {
            SimError::Source(error) => return error.into(),
            SimError::CacheSize { .. } => "give a smaller --size, or a larger --block",
            SimError::TooManyRuns { .. } => "ask for fewer policies or sizes at a time",
            SimError::EmptyInterval | SimError::TooManyIntervals { .. } => {
                "give a longer --interval, or fewer runs"
            }
            SimError::NoForesight(_) | SimError::TooLong(_) => {
                "take a shorter part of the trace (--limit), or leave belady out"
            }
            SimError::Bank(_) => "ask for other policies",
            SimError::TooManySegments(_) => "give a larger --block",
            SimError::TooManyBlocks(_) => {
                "look at a sample of them (--sample 8192), or give a larger --block"
            }
        };
        Self::new(error, help)
    }
}
