//! How far the budget of SSD writes is used up, kept over restarts: else each would begin a new period, and with it a new budget.
//!
//! It is written every half minute, and at the end: a daemon that is killed forgets what was written since. Where it cannot be kept, that is in the log, and nothing else changes.

use std::path::PathBuf;

use larder_alloc::control::BudgetView;
use serde::{Deserialize, Serialize};

use crate::durable_file;

/// Seconds between two writes of the file.
const SAVE_SECONDS: f64 = 30.0;

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Kept {
    period_seconds: f64,
    /// When the period began, in seconds since 1970.
    began_unix_seconds: f64,
    written_bytes: f64,
    /// The budget had no period before.
    #[serde(default)]
    first: bool,
}

/// The file, if there is to be one.
#[derive(Debug, Default)]
pub struct BudgetFile {
    path: Option<PathBuf>,
    next_save: f64,
}

impl BudgetFile {
    /// At this place.
    pub fn at(path: PathBuf) -> Self {
        Self { path: Some(path), next_save: 0.0 }
    }

    /// Of the period of this length that is under way: bytes written, the seconds since it began, and whether it is the first one. `None` where none is.
    pub fn under_way(&self, period_seconds: f64, unix_seconds: f64) -> Option<(f64, f64, bool)> {
        let path = self.path.as_ref()?;
        let kept: Kept = match durable_file::load(path) {
            Ok(kept) => kept?,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read how far the budget of SSD writes is used up: a new period begins");
                return None;
            }
        };
        let since = unix_seconds - kept.began_unix_seconds;
        let same = (kept.period_seconds - period_seconds).abs() < 1e-3;
        let is_under_way = same && (0.0..period_seconds).contains(&since);
        is_under_way.then_some((kept.written_bytes.max(0.0), since, kept.first))
    }

    /// Write it, if it is time to, or `at_last`. Times are seconds since the start, and since 1970.
    pub fn keep(&mut self, budget: Option<BudgetView>, (now, unix_seconds): (f64, f64), at_last: bool) {
        let (Some(path), Some(view)) = (&self.path, budget) else { return };
        if now < self.next_save && !at_last {
            return;
        }
        self.next_save = now + SAVE_SECONDS;
        let period_seconds = view.budget.period_seconds;
        let began_unix_seconds = unix_seconds - (period_seconds - view.rest_seconds);
        let BudgetView { written_bytes, first, .. } = view;
        let kept = Kept { period_seconds, began_unix_seconds, written_bytes, first };
        if let Err(error) = durable_file::save(path, &kept) {
            tracing::warn!(path = %path.display(), %error, "cannot write down how far the budget of SSD writes is used up");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_alloc::control::WriteBudget;

    #[test]
    fn a_period_goes_on_until_it_is_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.budget.json");
        let mut file = BudgetFile::at(path.clone());
        assert_eq!(file.under_way(100.0, 1e9), None);
        let budget = WriteBudget { bytes: 1e6, period_seconds: 100.0 };
        let view = |written_bytes, first| {
            Some(BudgetView { budget, written_bytes, rest_seconds: 70.0, room_bytes: 1.0, first })
        };
        file.keep(view(500.0, true), (0.0, 1e9), false);
        // Not yet again; and at last all the same.
        file.keep(view(600.0, false), (1.0, 1e9), false);
        assert_eq!(file.under_way(100.0, 1e9 + 5.0), Some((500.0, 35.0, true)));
        file.keep(view(600.0, false), (1.0, 1e9), true);
        assert_eq!(BudgetFile::at(path.clone()).under_way(100.0, 1e9 + 5.0), Some((600.0, 35.0, false)));
        for (period, unix) in [(100.0, 1e9 + 70.0), (90.0, 1e9), (100.0, 1e9 - 31.0)] {
            assert_eq!(file.under_way(period, unix), None, "{period} {unix}");
        }
        // What an earlier version wrote.
        std::fs::write(&path, r#"{"period_seconds":100.0,"began_unix_seconds":1e9,"written_bytes":7.0}"#)
            .expect("written");
        assert_eq!(file.under_way(100.0, 1e9 + 5.0), Some((7.0, 5.0, false)));
        std::fs::write(&path, "no json").expect("written");
        assert_eq!(file.under_way(100.0, 1e9), None);
    }
}
