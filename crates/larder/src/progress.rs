//! A progress bar on stderr, where that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use larder_sim::Progress;

use crate::metered::Meter;
use crate::number::compact;

/// How often the bar is drawn, at most, a second.
const DRAWS: u8 = 8;

/// How far a pass over the trace has come, and how that is measured.
pub struct Bar {
    bar: ProgressBar,
    meter: Option<Meter>,
}

impl Bar {
    /// A bar for a pass that does `what`, over `requests` reads and writes where that many are known to come, else by what was read of the file.
    pub fn new(what: &str, requests: Option<u64>, meter: Option<Meter>, quiet: bool) -> Self {
        let meter = if requests.is_some() { None } else { meter };
        let total = requests.or(meter.as_ref().map(|meter| meter.total));
        let target =
            if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(DRAWS) };
        let bar = ProgressBar::with_draw_target(total, target).with_prefix(what.to_owned());
        let template = match total {
            Some(_) => "{prefix} {bar:32} {percent:>3} %, {msg}, {eta} left",
            None => "{prefix} {spinner} {msg}, {elapsed}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, meter }
    }

    /// So far have we come.
    pub fn tell(&self, progress: Progress) {
        if self.bar.is_hidden() {
            return;
        }
        let seconds = self.bar.elapsed().max(Duration::from_millis(1)).as_secs_f64();
        let rate = (progress.requests as f64 / seconds) as u64;
        self.bar.set_message(format!("{} requests, {}/s", compact(progress.requests), compact(rate)));
        self.bar.set_position(self.meter.as_ref().map_or(progress.requests, Meter::done));
    }

    /// The pass is over.
    pub fn finish(self) {
        drop(self);
    }
}

impl Drop for Bar {
    /// The line is free again, also for an error.
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
