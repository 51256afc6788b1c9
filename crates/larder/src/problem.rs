//! Errors as people read them: what happened to what, and what can be done.

use std::fmt;

use larder_daemon::config::ConfigError;
use larder_daemon::control_socket::AskError;
use larder_daemon::server::ServeError;
use larder_trace::TraceError;

/// An error with its remedy. Displayed as the two lines `error: …` and `help: …`.
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
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}\nhelp: {}", self.what, self.help)
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
