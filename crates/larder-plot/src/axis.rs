//! Axes: what one says, and which numbers it can show.

use crate::unit::Unit;

/// How values are spread over the length of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Equal differences take equal lengths.
    Linear,
    /// Equal ratios take equal lengths. Values of zero and below have no place on it.
    Log,
}

/// One axis of a panel: a label, a unit, a scale, and values it must cover whatever the data.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) unit: Unit,
    pub(crate) scale: Scale,
    pub(crate) tight: bool,
    cover: [f64; 2],
}

/// Beyond this, a value is no measurement, and arithmetic on it would overflow.
pub(crate) const MAX: f64 = 1e100;
pub(crate) const MIN_LOG: f64 = 1e-100;

impl Axis {
    /// A linear axis that fits itself to the data.
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        Axis { label: label.into(), unit, scale: Scale::Linear, tight: false, cover: [f64::NAN; 2] }
    }

    /// The same axis, logarithmic. Ticks fall on powers of two for bytes and on powers of ten for the rest.
    pub fn log(mut self) -> Self {
        self.scale = Scale::Log;
        self
    }

    /// The same axis, linear.
    pub(crate) fn linear(mut self) -> Self {
        self.scale = Scale::Linear;
        self
    }

    /// Makes the axis reach at least from `lo` to `hi`, and farther where the data do: no point is ever cut off.
    /// A value that the axis cannot show (not finite, or not above zero on a log axis) is ignored.
    pub fn covering(mut self, lo: f64, hi: f64) -> Self {
        self.cover = [lo, hi];
        self
    }

    /// Makes the axis end where the data and [`Axis::covering`] do, not at the next tick: panels with the same ends line up.
    pub fn tight(mut self) -> Self {
        self.tight = true;
        self
    }

    /// Whether a value has a place on this axis.
    pub(crate) fn takes(&self, value: f64) -> bool {
        value.abs() <= MAX && (self.scale == Scale::Linear || value >= MIN_LOG)
    }

    /// The value at a share of the way along this axis from `lo` to `hi`.
    pub(crate) fn between(&self, (lo, hi): (f64, f64), share: f64) -> f64 {
        match self.scale {
            Scale::Linear => lo + (hi - lo) * share,
            Scale::Log => lo * (hi / lo).powf(share),
        }
    }

    /// The label, with the unit where the ticks do not tell it.
    pub(crate) fn title(&self) -> String {
        match &self.unit {
            Unit::Count(things) if !things.is_empty() => format!("{} ({things})", self.label),
            _ => self.label.clone(),
        }
    }

    /// The smallest and the largest value to be shown, of the data and of [`Axis::covering`].
    pub(crate) fn extent(&self, data: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
        let shown = data.chain(self.cover).filter(|&value| self.takes(value));
        shown.fold(None, |extent, value| match extent {
            None => Some((value, value)),
            Some((lo, hi)) => Some((value.min(lo), value.max(hi))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_without_a_place_are_told() {
        let linear = Axis::new("x", Unit::Ratio);
        let log = linear.clone().log();
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e200] {
            assert!(!linear.takes(value) && !log.takes(value), "{value}");
        }
        assert!(linear.takes(0.0) && linear.takes(-1.0));
        assert!(!log.takes(0.0) && !log.takes(-1.0) && log.takes(1e-9));
    }

    #[test]
    fn the_extent_joins_data_and_cover() {
        let axis = Axis::new("x", Unit::Ratio);
        assert_eq!(axis.extent([].into_iter()), None);
        assert_eq!(axis.extent([0.3, f64::NAN, 0.2].into_iter()), Some((0.2, 0.3)));
        let wide = axis.covering(0.0, 0.25);
        assert_eq!(wide.extent([0.3].into_iter()), Some((0.0, 0.3)));
        assert_eq!(
            wide.log().extent([0.3].into_iter()),
            Some((0.25, 0.3)),
            "zero has no place on a log axis"
        );
    }

    #[test]
    fn between_keeps_equal_lengths() {
        let linear = Axis::new("x", Unit::Ratio);
        assert_eq!(linear.between((2.0, 32.0), 0.5), 17.0);
        assert!((linear.log().between((2.0, 32.0), 0.5) - 8.0).abs() < 1e-9);
    }

    #[test]
    fn only_counts_need_their_unit_in_the_title() {
        assert_eq!(Axis::new("SSD writes", Unit::count("blocks")).title(), "SSD writes (blocks)");
        assert_eq!(Axis::new("Requests", Unit::count("")).title(), "Requests");
        assert_eq!(Axis::new("Cache size", Unit::Bytes).title(), "Cache size");
    }
}
