//! How far the budget of SSD writes is used up, kept over restarts: else each would begin a new period, and with it a new budget. And, in a file of its own, when in its periods
//! what is worth writing came, which is known after a whole one: else each restart would cost a day of it.
//!
//! The first is written every half minute, the second once in a part of a period that is told apart, and both at the end: a daemon that is killed forgets what came since. Where they cannot be kept, that is in the
//! log, and nothing else changes.

use std::path::PathBuf;

use larder_alloc::control::{BudgetRhythm, BudgetView, CameBlocks};
use serde::{Deserialize, Serialize};

use crate::durable_file;

/// Seconds between two writes of the file.
const SAVE_SECONDS: f64 = 30.0;

/// Of a period: between two writes of the rhythm, which is a quarter of a megabyte at most. It tells half hours of a day apart.
const RHYTHM_PART: f64 = 1.0 / 48.0;

/// After so many periods without a daemon nothing goes on.
const PERIODS_MAX: f64 = 100.0;

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

/// What the file of the rhythm says. Its parts are those of periods that begin when this one did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct KeptRhythm {
    period_seconds: f64,
    began_unix_seconds: f64,
    /// Of the period that began then only a part was seen.
    partial: bool,
    /// The share of it that was over.
    seen: f64,
    /// Part of the period, step of worth, blocks.
    now: CameBlocks,
    before: CameBlocks,
}

/// The period in which the last daemon ended. It may be over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnderWay {
    /// Bytes that were written in it.
    pub written_bytes: f64,
    /// Seconds since it began.
    pub since_seconds: f64,
    /// The budget had no period before.
    pub first: bool,
}

/// The files, if there are to be any.
#[derive(Debug, Default)]
pub struct BudgetFile {
    paths: Option<(PathBuf, PathBuf)>,
    next_save: f64,
    next_rhythm: f64,
}

impl BudgetFile {
    /// At this place, and what is known of the rhythm at that one.
    pub fn at(path: PathBuf, rhythm: PathBuf) -> Self {
        Self { paths: Some((path, rhythm)), ..Self::default() }
    }

    /// The period of this length in which the last daemon ended, at most a hundred of them ago. `None` where there was none.
    pub fn under_way(&self, period_seconds: f64, unix_seconds: f64) -> Option<UnderWay> {
        let (path, _) = self.paths.as_ref()?;
        let kept: Kept = match durable_file::load(path) {
            Ok(kept) => kept?,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read how far the budget of SSD writes is used up: a new period begins");
                return None;
            }
        };
        let since_seconds = unix_seconds - kept.began_unix_seconds;
        let is_known = is_same(kept.period_seconds, period_seconds)
            && (0.0..period_seconds * PERIODS_MAX).contains(&since_seconds);
        let Kept { written_bytes, first, .. } = kept;
        is_known.then_some(UnderWay { written_bytes: written_bytes.max(0.0), since_seconds, first })
    }

    /// When what was worth writing came in the period that began then, or in the one before it, and before. `None` where that is not known, or only of periods that began at other times.
    pub fn rhythm(&self, period_seconds: f64, began_unix_seconds: f64) -> Option<BudgetRhythm> {
        let (_, path) = self.paths.as_ref()?;
        let kept: KeptRhythm = match durable_file::load(path) {
            Ok(kept) => kept?,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "cannot read when in a period of the budget what is worth writing comes: it is learned anew");
                return None;
            }
        };
        let KeptRhythm { now, before, partial, seen, .. } = kept;
        // A daemon that was killed may not have written it since a period began.
        let behind = began_unix_seconds - kept.began_unix_seconds;
        let periods = (behind / period_seconds).round();
        let is_known = is_same(kept.period_seconds, period_seconds)
            && (0.0..=1.0).contains(&periods)
            && (behind - periods * period_seconds).abs() < period_seconds * RHYTHM_PART;
        is_known.then(|| BudgetRhythm { now, before, partial, seen: seen.clamp(0.0, 1.0) - periods })
    }

    /// Write down how far the budget is used up, if it is time to, or `at_last`. Times are seconds since the start, and since 1970.
    pub fn keep(&mut self, view: BudgetView, (now, unix_seconds): (f64, f64), at_last: bool) {
        let Some((path, _)) = self.paths.as_ref().filter(|_| now >= self.next_save || at_last) else {
            return;
        };
        self.next_save = now + SAVE_SECONDS;
        let kept = Kept {
            period_seconds: view.budget.period_seconds,
            began_unix_seconds: began(&view, unix_seconds),
            written_bytes: view.written_bytes,
            first: view.first,
        };
        if let Err(error) = durable_file::save(path, &kept) {
            tracing::warn!(path = %path.display(), %error, "cannot write down how far the budget of SSD writes is used up");
        }
    }

    /// The same for what is known of its rhythm, which is asked for where it is time.
    pub fn keep_rhythm(
        &mut self,
        view: BudgetView,
        rhythm: impl FnOnce() -> Option<BudgetRhythm>,
        (now, unix_seconds): (f64, f64),
        at_last: bool,
    ) {
        let due = self.paths.as_ref().filter(|_| now >= self.next_rhythm || at_last);
        let Some((_, path)) = due else { return };
        let period_seconds = view.budget.period_seconds;
        self.next_rhythm = now + (period_seconds * RHYTHM_PART).max(SAVE_SECONDS);
        let Some(BudgetRhythm { now, before, partial, seen }) = rhythm() else { return };
        let began_unix_seconds = began(&view, unix_seconds);
        let kept = KeptRhythm { period_seconds, began_unix_seconds, partial, seen, now, before };
        if let Err(error) = durable_file::save_dense(path, &kept) {
            tracing::warn!(path = %path.display(), %error, "cannot write down when in a period of the budget what is worth writing comes");
        }
    }
}

/// When the period began, in seconds since 1970.
fn began(view: &BudgetView, unix_seconds: f64) -> f64 {
    unix_seconds - (view.budget.period_seconds - view.rest_seconds)
}

fn is_same(period: f64, other: f64) -> bool {
    (period - other).abs() < 1e-3
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_alloc::control::WriteBudget;

    fn file() -> (tempfile::TempDir, BudgetFile) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let file = BudgetFile::at(path("c.budget.json"), path("c.rhythm.json"));
        (folder, file)
    }

    fn view(written_bytes: f64, first: bool) -> BudgetView {
        let budget = WriteBudget { bytes: 1e6, period_seconds: 100.0 };
        BudgetView { budget, written_bytes, rest_seconds: 70.0, room_bytes: 1.0, first }
    }

    fn under_way(written_bytes: f64, since_seconds: f64, first: bool) -> Option<UnderWay> {
        Some(UnderWay { written_bytes, since_seconds, first })
    }

    #[test]
    fn a_period_goes_on_and_those_after_it_begin_when_it_ends() {
        let (folder, mut file) = file();
        assert_eq!(file.under_way(100.0, 1e9), None);
        file.keep(view(500.0, true), (0.0, 1e9), false);
        // Not yet again; and at last all the same.
        file.keep(view(600.0, false), (1.0, 1e9), false);
        assert_eq!(file.under_way(100.0, 1e9 + 5.0), under_way(500.0, 35.0, true));
        file.keep(view(600.0, false), (1.0, 1e9), true);
        assert_eq!(file.under_way(100.0, 1e9 + 5.0), under_way(600.0, 35.0, false));
        assert_eq!(file.under_way(100.0, 1e9 + 270.0), under_way(600.0, 300.0, false));
        for (period, unix) in [(100.0, 1e9 + 10_000.0), (90.0, 1e9), (100.0, 1e9 - 31.0)] {
            assert_eq!(file.under_way(period, unix), None, "{period} {unix}");
        }
        // What an earlier version wrote.
        let path = folder.path().join("c.budget.json");
        std::fs::write(&path, r#"{"period_seconds":100.0,"began_unix_seconds":1e9,"written_bytes":7.0}"#)
            .expect("written");
        assert_eq!(file.under_way(100.0, 1e9 + 5.0), under_way(7.0, 5.0, false));
        std::fs::write(&path, "no json").expect("written");
        assert_eq!(file.under_way(100.0, 1e9), None);
    }

    #[test]
    fn the_rhythm_is_that_of_the_same_periods() {
        let (folder, mut file) = file();
        let began = 1e9 - 30.0;
        assert_eq!(file.rhythm(100.0, began), None);
        let rhythm =
            BudgetRhythm { now: vec![(1, 7, 2.5)], before: vec![(40, 127, 1e6)], partial: false, seen: 0.3 };
        let kept = || Some(rhythm.clone());
        file.keep_rhythm(view(0.0, true), kept, (0.0, 1e9), false);
        file.keep_rhythm(view(0.0, true), || panic!("it is not time"), (29.0, 1e9), false);
        assert_eq!(file.rhythm(100.0, began), Some(rhythm.clone()));
        assert_eq!(file.rhythm(100.0, began + 1.0), Some(rhythm.clone()));
        // The daemon was killed in the period after that.
        let later = BudgetRhythm { seen: 0.3 - 1.0, ..rhythm.clone() };
        assert_eq!(file.rhythm(100.0, began + 99.0), Some(later));
        for (period, began) in
            [(90.0, began), (100.0, began + 50.0), (100.0, began + 200.0), (100.0, began - 100.0)]
        {
            assert_eq!(file.rhythm(period, began), None, "{period} {began}");
        }
        std::fs::write(folder.path().join("c.rhythm.json"), "{}").expect("written");
        assert_eq!(file.rhythm(100.0, began), None);
        file.keep_rhythm(view(0.0, true), kept, (30.0, 1e9), true);
        assert_eq!(file.rhythm(100.0, began), Some(rhythm.clone()));
    }
}
