//! One page of metrics, put together family by family, and written by the library that knows the format.

use larder_io::Histogram;
use prometheus::TextEncoder;
use prometheus::proto::{Bucket, Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType, Summary};

/// The families told so far.
#[derive(Default)]
pub(super) struct Page {
    families: Vec<MetricFamily>,
}

/// Metrics of one name.
pub(super) struct Family {
    kind: MetricType,
    metrics: Vec<Metric>,
}

impl Page {
    /// Something that only grows.
    pub fn counter(&mut self, name: &str, help: &str, tell: impl FnOnce(&mut Family)) {
        self.family(MetricType::COUNTER, name, help, tell);
    }

    /// Something that comes and goes.
    pub fn gauge(&mut self, name: &str, help: &str, tell: impl FnOnce(&mut Family)) {
        self.family(MetricType::GAUGE, name, help, tell);
    }

    /// How often, and how long in total.
    pub fn summary(&mut self, name: &str, help: &str, tell: impl FnOnce(&mut Family)) {
        self.family(MetricType::SUMMARY, name, help, tell);
    }

    /// How many took how long.
    pub fn histogram(&mut self, name: &str, help: &str, tell: impl FnOnce(&mut Family)) {
        self.family(MetricType::HISTOGRAM, name, help, tell);
    }

    fn family(&mut self, kind: MetricType, name: &str, help: &str, tell: impl FnOnce(&mut Family)) {
        let mut family = Family { kind, metrics: Vec::new() };
        tell(&mut family);
        // The format has no family without metrics.
        if !family.metrics.is_empty() {
            let mut told = MetricFamily::default();
            told.set_name(name.into());
            told.set_help(help.into());
            told.set_field_type(kind);
            told.set_metric(family.metrics);
            self.families.push(told);
        }
    }

    /// All of it, as text.
    pub fn text(&self) -> String {
        let encoded = TextEncoder::new().encode_to_string(&self.families);
        encoded
            .expect("no family is without a name or without metrics, and a string takes all that is written")
    }
}

impl Family {
    /// A counter or a gauge, by the kind of the family.
    pub fn add(&mut self, labels: &[(&str, &str)], value: f64) {
        let kind = self.kind;
        let metric = self.metric(labels);
        match kind {
            MetricType::COUNTER => {
                let mut counter = Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            }
            _ => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
        }
    }

    /// One that may not be there.
    pub fn add_some(&mut self, labels: &[(&str, &str)], value: Option<f64>) {
        if let Some(value) = value {
            self.add(labels, value);
        }
    }

    /// So many operations took so many nanoseconds together.
    pub fn add_times(&mut self, labels: &[(&str, &str)], count: u64, sum_ns: u64) {
        let mut summary = Summary::default();
        summary.set_sample_count(count);
        summary.set_sample_sum(seconds(sum_ns));
        self.metric(labels).set_summary(summary);
    }

    /// A histogram, with a bound for each doubling.
    pub fn add_histogram(&mut self, labels: &[(&str, &str)], histogram: &Histogram) {
        let bucket = |(bound_ns, count)| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(seconds(bound_ns));
            bucket.set_cumulative_count(count);
            bucket
        };
        let mut told = prometheus::proto::Histogram::default();
        told.set_sample_count(histogram.count());
        told.set_sample_sum(seconds(histogram.sum_ns()));
        told.set_bucket(histogram.doublings().map(bucket).collect());
        self.metric(labels).set_histogram(told);
    }

    fn metric(&mut self, labels: &[(&str, &str)]) -> &mut Metric {
        let label = |(name, value): &(&str, &str)| {
            let mut pair = LabelPair::default();
            pair.set_name((*name).into());
            pair.set_value((*value).into());
            pair
        };
        self.metrics.push(Metric::from_label(labels.iter().map(label).collect()));
        self.metrics.last_mut().expect("one was pushed just now")
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// 1 for what is so.
pub(super) fn flag(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}
