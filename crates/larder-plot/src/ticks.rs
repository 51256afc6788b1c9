//! Rulers: the range of an axis and the ticks along it.
//!
//! [`Ruler::fit`] tries ticks from dense to sparse and keeps the first whose labels have room. Ticks are round numbers: 1, 2 and 5
//! times a power of ten, and powers of two for bytes.

use crate::axis::{Axis, Scale};
use crate::unit::{Unit, duration};

/// A labelled value of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub value: f64,
    pub label: String,
}

/// An axis made to measure: its range and its ticks.
#[derive(Debug, Clone)]
pub(crate) struct Ruler {
    lo: f64,
    hi: f64,
    scale: Scale,
    pub ticks: Vec<Tick>,
}

/// About how many ticks a linear axis may have, from dense to sparse.
const DENSITIES: [f64; 6] = [8.0, 6.0, 5.0, 4.0, 3.0, 2.0];
/// Every how many powers of two (ten) a log axis may have a tick, from dense to sparse.
const STRIDES: [i32; 11] = [1, 2, 3, 4, 5, 6, 8, 10, 20, 40, 100];
/// A log axis reaches beyond its data by this share of its length.
const LOG_MARGIN: f64 = 0.03;
/// Values nearer to one another than this share of themselves are drawn as equal: their labels would be.
const NARROWEST: f64 = 1e-4;

impl Ruler {
    /// The ruler for an axis that shows `extent`, with the densest ticks that `fits` accepts.
    pub fn fit(axis: &Axis, extent: Option<(f64, f64)>, fits: impl Fn(&Ruler) -> bool) -> Self {
        let candidates = match axis.scale {
            Scale::Linear => linear(axis, extent.unwrap_or((0.0, 1.0))),
            Scale::Log => log(axis, extent.unwrap_or((1.0, 1000.0)), LOG_MARGIN),
        };
        Self::densest(candidates, fits)
    }

    /// The same for an axis that ends where `extent` does, not at the next tick: there is nothing beyond.
    pub fn tight(axis: &Axis, extent: Option<(f64, f64)>, fits: impl Fn(&Ruler) -> bool) -> Self {
        let Some((lo, hi)) = extent else { return Self::fit(axis, extent, fits) };
        let candidates = match axis.scale {
            Scale::Linear => {
                let (lo, hi) = if hi - lo >= narrowest(lo, hi) { (lo, hi) } else { linear_range((lo, hi)) };
                linear(axis, (lo, hi)).into_iter().map(|ruler| ruler.cut(axis, (lo, hi))).collect()
            }
            Scale::Log => log(axis, (lo, hi), 0.0),
        };
        Self::densest(candidates, fits)
    }

    /// The first of the candidates that fits; if none does, the last one with as many of its ticks as fit.
    fn densest(mut candidates: Vec<Ruler>, fits: impl Fn(&Ruler) -> bool) -> Self {
        let last = candidates.len() - 1;
        let at = candidates.iter().position(&fits).unwrap_or(last);
        let mut ruler = candidates.swap_remove(at);
        while ruler.ticks.len() > 1 && !fits(&ruler) {
            ruler.ticks.pop();
        }
        ruler
    }

    /// Where a value lies on the axis: 0 at its beginning, 1 at its end.
    pub fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.lo) / (self.hi - self.lo),
            Scale::Log => (value / self.lo).ln() / (self.hi / self.lo).ln(),
        }
    }

    /// The same ticks, as far as they lie in a range.
    fn cut(self, axis: &Axis, (lo, hi): (f64, f64)) -> Self {
        let dust = 1e-9 * (hi - lo);
        let inside = |value: &f64| (lo - dust..=hi + dust).contains(value);
        let values = self.ticks.into_iter().map(|tick| tick.value).filter(inside);
        Ruler::new(axis, (lo, hi), values)
    }

    fn new(axis: &Axis, (lo, hi): (f64, f64), values: impl Iterator<Item = f64>) -> Self {
        let ticks = values.map(|value| Tick { value, label: axis.unit.label(value) }).collect();
        Ruler { lo, hi, scale: axis.scale, ticks }
    }
}

fn linear(axis: &Axis, extent: (f64, f64)) -> Vec<Ruler> {
    let (lo, hi) = linear_range(extent);
    DENSITIES
        .map(|ticks| {
            let step = round_step(axis, (hi - lo) / ticks);
            // The dust of floating point must not add a step.
            let (first, last) = ((lo / step + 1e-6).floor(), (hi / step - 1e-6).ceil());
            let values = (0..=(last - first) as u64).map(|at| (first + at as f64) * step);
            Ruler::new(axis, (first * step, last * step), values)
        })
        .into()
}

/// The range shown for data from `lo` to `hi`: zero is in it unless the data are far from zero and near to one another.
fn linear_range((mut lo, mut hi): (f64, f64)) -> (f64, f64) {
    if lo > 0.0 && (lo < 0.6 * hi || lo == hi) {
        lo = 0.0;
    }
    if hi < 0.0 && (hi > 0.6 * lo || lo == hi) {
        hi = 0.0;
    }
    let narrowest = narrowest(lo, hi);
    if hi - lo >= narrowest {
        return (lo, hi);
    }
    if lo == 0.0 && hi == 0.0 { (0.0, 1.0) } else { (lo, lo + narrowest) }
}

fn narrowest(lo: f64, hi: f64) -> f64 {
    f64::max(lo.abs().max(hi.abs()) * NARROWEST, 1e-90)
}

/// The round number at or above `step`.
fn round_step(axis: &Axis, step: f64) -> f64 {
    if axis.unit == Unit::Bytes && step > 0.5 {
        return step.log2().ceil().exp2();
    }
    if axis.unit == Unit::Seconds {
        return duration::round_step(step, round_decimal);
    }
    round_decimal(step)
}

/// 1, 2 or 5 times a power of ten, at or above `step`.
fn round_decimal(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let round = [1.0, 2.0, 5.0].iter().map(|round| round * power).find(|&round| round >= step * (1.0 - 1e-9));
    round.unwrap_or(10.0 * power)
}

fn log(axis: &Axis, (lo, hi): (f64, f64), margin: f64) -> Vec<Ruler> {
    // All-equal data stand in the middle of two octaves.
    let (lo, hi) = if hi / lo < 1.0 + NARROWEST { (lo / 2.0, hi * 2.0) } else { (lo, hi) };
    let margin = (hi / lo).powf(margin);
    let range @ (lo, hi) = (lo / margin, hi * margin);
    let mut rulers: Vec<Ruler> = log_values(axis, range)
        .into_iter()
        .map(|values| Ruler::new(axis, range, values.into_iter()))
        .collect();
    rulers.retain(|ruler| ruler.ticks.len() >= 3);
    // Where few powers fall into the range, the round numbers of a linear axis serve.
    rulers.extend(linear(axis, range).into_iter().map(|ruler| {
        let values = ruler.ticks.into_iter().map(|tick| tick.value).filter(|value| (lo..=hi).contains(value));
        Ruler::new(axis, range, values)
    }));
    rulers
}

/// The values that may have a tick on a log axis, from dense to sparse.
fn log_values(axis: &Axis, (lo, hi): (f64, f64)) -> Vec<Vec<f64>> {
    if axis.unit == Unit::Seconds {
        let rungs = duration::rungs(lo, hi);
        return STRIDES.map(|stride| rungs.iter().copied().step_by(stride as usize).collect()).into();
    }
    let base: f64 = if axis.unit == Unit::Bytes { 2.0 } else { 10.0 };
    let exponents = (lo.log(base).floor() as i32)..=(hi.log(base).ceil() as i32);
    let powers = |stride: i32, mantissas: &[f64]| {
        let on_stride = exponents.clone().filter(|exponent| exponent.rem_euclid(stride) == 0);
        let values = on_stride.flat_map(|exponent| mantissas.iter().map(move |m| m * base.powi(exponent)));
        values.filter(|value| (lo..=hi).contains(value)).collect()
    };
    let mut out = Vec::new();
    if base == 10.0 {
        out.push(powers(1, &[1.0, 2.0, 5.0]));
    }
    out.extend(STRIDES.map(|stride| powers(stride, &[1.0])));
    out
}

#[cfg(test)]
mod tests;
