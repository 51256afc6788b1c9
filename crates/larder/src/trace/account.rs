//! `larder record --account`: what the daemon did while it was recorded, beside the trace, for `larder simulate --like`.

use std::path::{Path, PathBuf};

use larder_daemon::record::account::{self, Decided, Setup};

use super::record::Options;
use crate::output;
use crate::problem::Problem;

/// An account under way.
pub struct Account {
    path: PathBuf,
    account: account::Account,
}

impl Account {
    /// One that goes to this file, of the trace that the options name.
    pub fn new(path: &Path, options: &Options) -> Result<Self, Problem> {
        output::check(path)?;
        if options.out == "-" {
            let what = "an account says where its trace is, and stdout is nowhere";
            return Err(Problem::new(what, "name a file for the trace: --out host.parquet"));
        }
        let trace = trace_from(Path::new(&options.out), path);
        let version = env!("CARGO_PKG_VERSION").into();
        let account = account::Account { version, trace, ..account::Account::default() };
        Ok(Self { path: path.to_owned(), account })
    }

    /// How the daemon stands.
    pub fn begin(&mut self, setup: &Setup) {
        self.account.setup = setup.clone();
    }

    /// What it decided; before its first decision, where the tenants stand.
    pub fn decided(&mut self, decided: &Decided) {
        match decided.seconds > 0.0 {
            true => self.account.decided(decided.clone()),
            false => self.account.setup.tenants.extend(decided.tenants.iter().cloned()),
        }
    }

    /// Write the file.
    pub fn save(&self) -> Result<(), Problem> {
        self.account.save(&self.path).map_err(|error| output::cannot_write(&self.path, &error))
    }
}

/// Where a trace is, as seen from the folder of the account.
fn trace_from(trace: &Path, account: &Path) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (trace, account) = (absolute(trace), absolute(account));
    let beside = account.parent().and_then(|folder| trace.strip_prefix(folder).ok());
    beside.unwrap_or(&trace).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_moved_together_stay_together() {
        let from = |trace: &str, account: &str| trace_from(Path::new(trace), Path::new(account));
        assert_eq!(from("/a/b/host.parquet", "/a/b/host.json"), "host.parquet");
        assert_eq!(from("/a/b/host.parquet", "/a/host.json"), "b/host.parquet");
        assert_eq!(from("/c/host.parquet", "/a/host.json"), "/c/host.parquet");
    }
}
