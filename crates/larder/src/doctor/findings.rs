//! What was found: each thing that was looked at, whether it is well, and what to do where it is not.

use std::fmt::{Display, Write};

use serde::Serialize;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It is well.
    Ok,
    /// The daemon serves, and something is worse than it could be, or will go wrong later.
    Warning,
    /// The daemon does not start, or does not serve something that it should.
    Problem,
}

impl Level {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Problem => "problem",
        }
    }
}

/// One thing.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What part of the host it is about: `kernel`, `configuration`, `daemon`, `cache`, `backing` or `permissions`.
    pub area: &'static str,
    /// What it is about: a path, a volume, a limit.
    pub subject: String,
    /// What was found.
    pub message: String,
    /// What to do; `null` where that is nothing.
    pub help: Option<String>,
}

/// The object of `--json`.
#[derive(Debug, Serialize)]
pub struct Report<'a> {
    ok: usize,
    warnings: usize,
    problems: usize,
    findings: &'a [Finding],
}

/// All of them, in the order in which they were found.
#[derive(Debug, Default)]
pub struct Findings {
    all: Vec<Finding>,
    area: &'static str,
}

impl Findings {
    /// What comes now is about this part of the host.
    pub fn begin(&mut self, area: &'static str) {
        self.area = area;
    }

    /// Something is well.
    pub fn ok(&mut self, subject: impl Display, message: impl Display) {
        self.add(Level::Ok, subject, message, None);
    }

    /// Something is worse than it could be.
    pub fn warning(&mut self, subject: impl Display, message: impl Display, help: impl Into<String>) {
        self.add(Level::Warning, subject, message, Some(help.into()));
    }

    /// Something stands in the way.
    pub fn problem(&mut self, subject: impl Display, message: impl Display, help: impl Into<String>) {
        self.add(Level::Problem, subject, message, Some(help.into()));
    }

    fn add(&mut self, level: Level, subject: impl Display, message: impl Display, help: Option<String>) {
        let (subject, message) = (subject.to_string(), message.to_string());
        self.all.push(Finding { level, area: self.area, subject, message, help });
    }

    /// True where something stands in the way.
    pub fn has_problem(&self) -> bool {
        self.count(Level::Problem) > 0
    }

    fn count(&self, level: Level) -> usize {
        self.all.iter().filter(|finding| finding.level == level).count()
    }

    /// All of it for programs.
    pub fn report(&self) -> Report<'_> {
        Report {
            ok: self.count(Level::Ok),
            warnings: self.count(Level::Warning),
            problems: self.count(Level::Problem),
            findings: &self.all,
        }
    }

    /// All of it for people.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for Finding { level, area, subject, message, help } in &self.all {
            let indent = "\n                        ";
            let message = message.replace('\n', indent);
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{:8} {area:14} {subject}: {message}", level.as_str());
            if let Some(help) = help.as_deref().filter(|help| !help.is_empty()) {
                let _ = writeln!(text, "{:8} {:14} help: {}", "", "", help.replace('\n', indent));
            }
        }
        let Report { ok, warnings, problems, .. } = self.report();
        let _ = writeln!(text, "problems: {problems}, warnings: {warnings}, ok: {ok}");
        text
    }
}
