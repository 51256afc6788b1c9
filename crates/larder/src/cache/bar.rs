//! A progress bar on stderr over bytes, where that is a terminal; and a cache that shows with it how much of it was read.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use larder_engine::format::{Medium, MediumError};

/// How often the bar is drawn, at most, a second.
const DRAWS: u8 = 8;

/// A bar. It goes when it is dropped.
pub struct Bar(ProgressBar);

impl Bar {
    /// For what takes `bytes`.
    pub fn new(what: &str, bytes: u64) -> Self {
        let target = ProgressDrawTarget::stderr_with_hz(DRAWS);
        let bar = ProgressBar::with_draw_target(Some(bytes), target).with_prefix(what.to_owned());
        let template = "{prefix} {bar:32} {percent:>3} %, {binary_bytes_per_sec}, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// So many bytes more are done.
    pub fn add(&self, bytes: u64) {
        self.0.inc(bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A cache that is read with a bar.
pub struct Watched<'m, M> {
    pub medium: &'m mut M,
    pub bar: Bar,
}

impl<M: Medium> Medium for Watched<'_, M> {
    fn bytes(&self) -> u64 {
        self.medium.bytes()
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), MediumError> {
        self.bar.add(into.len() as u64);
        self.medium.read(offset, into)
    }
}
