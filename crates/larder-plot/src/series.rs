//! One curve: its points, its name, and how it is drawn between its points.

use crate::chart::{Key, Point, label};

/// One curve. It is known by its name and its variant: the same pair has the same style in all panels of a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) variant: String,
    pub(crate) points: Vec<Point>,
    pub(crate) stepped: bool,
    pub(crate) filled: bool,
    pub(crate) until: Option<f64>,
}

impl Series {
    /// A curve through `points`, which are put in the order of their x. One point alone is drawn as a marker. A point that has no
    /// place (not finite, or not above zero on a log axis) is left out, and the picture says how many were.
    pub fn new(name: impl Into<String>, points: impl IntoIterator<Item = Point>) -> Self {
        let mut points: Vec<Point> = points.into_iter().collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        Series {
            name: name.into(),
            variant: String::new(),
            points,
            stepped: false,
            filled: false,
            until: None,
        }
    }

    /// Makes this one of several variants of what the name says: "LRU" with write policy "wb", say. Variants of one name share
    /// colour and marker, and the same variant has the same dashes under all names.
    pub fn variant(mut self, variant: impl Into<String>) -> Self {
        self.variant = variant.into();
        self
    }

    /// Draws steps: the curve keeps the y of a point until the x of the next one.
    pub fn steps(mut self) -> Self {
        self.stepped = true;
        self
    }

    /// Draws steps, the last of which ends at `x`: the upper end of the last bin or window.
    pub fn steps_until(mut self, x: f64) -> Self {
        self.until = Some(x);
        self.steps()
    }

    /// Fills the area below the curve. With [`Series::steps_until`], this is a histogram. Put the greater of two such series
    /// first: later ones lie over it.
    pub fn filled(mut self) -> Self {
        self.filled = true;
        self
    }

    pub(crate) fn key(&self) -> Key<'_> {
        (&self.name, &self.variant)
    }

    pub(crate) fn label(&self) -> String {
        label(self.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_ordered_by_x() {
        let series = Series::new("a", [(3.0, 0.3), (1.0, 0.1), (2.0, 0.2)]);
        assert_eq!(series.points, [(1.0, 0.1), (2.0, 0.2), (3.0, 0.3)]);
    }
}
