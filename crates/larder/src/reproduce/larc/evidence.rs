//! What the studies say about a claim: a number from each cache that it is about.

use larder_policy::spec::PolicySpec;

use super::percent::{percent, short};
use super::study::{Counted, Point, Study};

/// A cache is of use if it hits this share of the accesses. Below, a ratio of two hit ratios is noise, and not to cache saves any share of the writes.
pub const HIT_RATIO_MIN: f64 = 0.01;

/// One number.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// Over which workload.
    pub study: &'a Study,
    /// In which cache.
    pub point: &'a Point,
    /// The number.
    pub value: f64,
}

impl Evidence<'_> {
    /// The number, and the workload and the cache that it is from: `94.5 % (web, 5 %)`.
    pub fn told(&self) -> String {
        let share = self.point.cache_blocks as f64 / self.study.summary.footprint_blocks.max(1) as f64;
        format!("{} ({}, {})", percent(self.value), self.study.workload.name, short(share))
    }
}

/// What a claim is about.
#[derive(Clone, Copy)]
pub struct Scope<'a> {
    /// All studies,
    pub studies: &'a [Study],
    /// of which these,
    pub about: fn(&Study) -> bool,
    /// in this part of their traces.
    pub counted: Counted,
}

impl<'a> Scope<'a> {
    /// The caches that are of use under some policy.
    pub fn useful(self) -> impl Iterator<Item = (&'a Study, &'a Point)> {
        self.all().filter(|(_, point)| point.best_hit_ratio() >= HIT_RATIO_MIN)
    }

    /// What LARC's hit ratio gains over another policy's, in each cache that is of use under one of the two.
    pub fn gains(self, other: PolicySpec) -> Vec<Evidence<'a>> {
        let useful = self
            .all()
            .filter(|(_, point)| [PolicySpec::Larc, other].iter().any(|&policy| is_useful(point, policy)));
        gather(useful, |point| point.gain_over(other))
    }

    /// What LARC saves of LRU's SSD writes, in each cache that is of use under LARC.
    pub fn savings(self) -> Vec<Evidence<'a>> {
        gather(self.all().filter(|(_, point)| is_useful(point, PolicySpec::Larc)), Point::saving)
    }

    fn all(self) -> impl Iterator<Item = (&'a Study, &'a Point)> {
        let studies = self.studies.iter().filter(move |study| (self.about)(study));
        studies.flat_map(move |study| study.points(self.counted).iter().map(move |point| (study, point)))
    }
}

/// True if the cache hits often enough under this policy.
pub fn is_useful(point: &Point, policy: PolicySpec) -> bool {
    point.of(policy).hit_ratio() >= HIT_RATIO_MIN
}

fn gather<'a>(
    points: impl Iterator<Item = (&'a Study, &'a Point)>,
    value: impl Fn(&Point) -> Option<f64>,
) -> Vec<Evidence<'a>> {
    points.filter_map(|(study, point)| Some(Evidence { study, point, value: value(point)? })).collect()
}

/// The largest and the smallest.
pub fn extremes<'a>(evidence: &[Evidence<'a>]) -> Option<(Evidence<'a>, Evidence<'a>)> {
    let by_value = |a: &&Evidence<'_>, b: &&Evidence<'_>| a.value.total_cmp(&b.value);
    Some((*evidence.iter().max_by(by_value)?, *evidence.iter().min_by(by_value)?))
}
