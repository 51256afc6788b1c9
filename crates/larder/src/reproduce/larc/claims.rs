//! What the paper claims, held against what was found. Every verdict is computed from the numbers.

use larder_policy::spec::PolicySpec;

use super::change::Response;
use super::evidence::{Evidence, Scope, extremes};
use super::percent::percent;
use super::study::{Counted, Study};
use crate::number::grouped;

/// A claim and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// A name for programs.
    pub id: &'static str,
    /// What is claimed.
    pub text: &'static str,
    /// What the paper gives.
    pub paper: &'static str,
    /// Over the whole traces.
    pub whole: Finding,
    /// Over their second halves; none where that is no question.
    pub half: Option<Finding>,
}

/// What was found, and what follows for the claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The figures.
    pub here: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// In how far.
    pub because: String,
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does.
    Holds,
    /// Its direction does, in most caches; not all of it.
    InPart,
    /// It does not.
    Fails,
    /// Nothing here is about it.
    Untested,
}

impl Verdict {
    /// As a sentence begins.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::InPart => "holds in part",
            Self::Fails => "does not hold",
            Self::Untested => "not tested",
        }
    }

    /// Of a claim that is met in full, or only in its direction in so many of all cases.
    pub fn of(met: bool, right: usize, all: usize) -> Self {
        match right {
            _ if met => Self::Holds,
            right if 2 * right > all => Self::InPart,
            _ => Self::Fails,
        }
    }
}

/// A claim as the paper states it: its name, its text, what the paper gives, which workloads it is about, and how it is held against them.
type Statement = (&'static str, &'static str, &'static str, fn(&Study) -> bool, fn(Scope<'_>) -> Finding);

/// The claims of section IV-C on hit ratios and SSD writes.
const STATEMENTS: [Statement; 7] = [
    ("saving_reads", "fewer SSD writes than LRU, reads dominate", "up to 94.5 %", READS, |scope| {
        savings(scope, up_to, 0.945)
    }),
    ("saving_writes", "fewer SSD writes than LRU, writes dominate", "11.2 to 40.8 %", WRITES, |scope| {
        savings(scope, at_least, 0.112)
    }),
    ("gain_lru_reads", "higher hit ratio than LRU, reads dominate", "up to 279.3 %", READS, |scope| {
        up_to(&scope.gains(PolicySpec::Lru), 2.793)
    }),
    ("gain_arc_reads", "higher hit ratio than ARC, reads dominate", "up to 30.8 %", READS, |scope| {
        up_to(&scope.gains(PolicySpec::Arc), 0.308)
    }),
    (
        "gain_lru_writes",
        "higher hit ratio than LRU, writes dominate",
        "marginally, and 14 to 22 %",
        WRITES,
        |scope| at_least(&scope.gains(PolicySpec::Lru), 0.0),
    ),
    ("best_reads", "highest hit ratio of all, reads dominate", "everywhere", READS, best_of_all),
    ("best_change", "highest hit ratio of all, popularity changes", "everywhere", CHANGING, best_of_all),
];

const READS: fn(&Study) -> bool = Study::is_read_dominated;
const WRITES: fn(&Study) -> bool = |study| !study.is_read_dominated();
const CHANGING: fn(&Study) -> bool = |study| study.change.is_some();

/// Hold all claims against the studies.
pub fn judge(studies: &[Study]) -> Vec<Claim> {
    let claims = STATEMENTS.iter().map(|&(id, text, paper, about, judge)| {
        let finding = |counted| judge(Scope { studies, about, counted });
        Claim { id, text, paper, whole: finding(Counted::Whole), half: Some(finding(Counted::Half)) }
    });
    let rise = Claim {
        id: "replacements_rise",
        text: "more replacements once popularity has changed",
        paper: "soon after",
        whole: replacements_rise(studies),
        half: None,
    };
    claims.chain([rise]).collect()
}

fn untested() -> Finding {
    Finding {
        here: "-".into(),
        verdict: Verdict::Untested,
        because: "no such workload, or no cache of use".into(),
    }
}

fn range(evidence: &[Evidence<'_>]) -> Option<String> {
    let (best, worst) = extremes(evidence)?;
    Some(if evidence.len() == 1 { best.told() } else { format!("{} to {}", worst.told(), best.told()) })
}

fn count(evidence: &[Evidence<'_>], good: impl Fn(f64) -> bool) -> usize {
    evidence.iter().filter(|found| good(found.value)).count()
}

/// "By up to": some cache reaches what the paper reaches, and every cache gains something.
fn up_to(evidence: &[Evidence<'_>], target: f64) -> Finding {
    let Some(here) = range(evidence) else { return untested() };
    let (all, better, reached) =
        (evidence.len(), count(evidence, |value| value > 0.0), count(evidence, |value| value >= target));
    let verdict = Verdict::of(reached > 0 && better == all, better, all);
    Finding {
        here,
        verdict,
        because: format!("{} or more in {reached} of {all} caches, better in {better}", percent(target)),
    }
}

/// "By so much to so much": each cache gains at least the lower figure.
fn at_least(evidence: &[Evidence<'_>], least: f64) -> Finding {
    let Some(here) = range(evidence) else { return untested() };
    let (all, enough, better) =
        (evidence.len(), count(evidence, |value| value >= least), count(evidence, |value| value > 0.0));
    let verdict = Verdict::of(enough == all, better, all);
    Finding {
        here,
        verdict,
        because: format!("{} or more in {enough} of {all} caches, better in {better}", percent(least)),
    }
}

/// Savings are held against the paper's figure; whether they are paid for with hits is told beside it.
fn savings(scope: Scope<'_>, judge: fn(&[Evidence<'_>], f64) -> Finding, figure: f64) -> Finding {
    let evidence = scope.savings();
    let mut finding = judge(&evidence, figure);
    if !evidence.is_empty() {
        let free = evidence.iter().filter(|found| found.point.loses_no_hits()).count();
        finding.because += &format!("; with no fewer hits than LRU in {free}");
    }
    finding
}

/// LARC hits as often as the best of the others, or more often, in each cache.
fn best_of_all(scope: Scope<'_>) -> Finding {
    let points: Vec<_> = scope.useful().map(|(_, point)| point).collect();
    let wins =
        |policy| points.iter().filter(|point| point.of(policy).hit_ratio() >= point.best_hit_ratio()).count();
    let (all, won) = (points.len(), wins(PolicySpec::Larc));
    if all == 0 {
        return untested();
    }
    let others = [PolicySpec::Lru, PolicySpec::Lfu, PolicySpec::Mq, PolicySpec::Arc];
    let told = others.into_iter().map(|policy| (policy, wins(policy))).filter(|(_, wins)| *wins > 0);
    let told: Vec<_> =
        told.map(|(policy, wins)| format!("{} in {wins}", policy.name().to_uppercase())).collect();
    let because = if told.is_empty() {
        "no other is as good anywhere".into()
    } else {
        format!("the best is {}", told.join(", "))
    };
    Finding { here: format!("in {won} of {all} caches"), verdict: Verdict::of(won == all, won, all), because }
}

/// After the change, LARC's hit ratio falls, and its replacement rate rises.
fn replacements_rise(studies: &[Study]) -> Finding {
    let Some(change) = studies.iter().find_map(|study| study.change.as_ref()) else { return untested() };
    let Response { before, after, replacement_peak, back_after, .. } = change.response(PolicySpec::Larc);
    let (fell, rose) = (after.hit_ratio() < before.hit_ratio(), replacement_peak > before.replacement_rate());
    let here = format!(
        "hit ratio {} to {}, replacements {} to {} of the accesses",
        percent(before.hit_ratio()),
        percent(after.hit_ratio()),
        percent(before.replacement_rate()),
        percent(replacement_peak)
    );
    let because = match back_after {
        _ if !fell => "its hit ratio did not fall".into(),
        Some(accesses) => {
            format!("back at nine tenths of its hit ratio within {} accesses", grouped(accesses))
        }
        None => "never back at nine tenths of its hit ratio".into(),
    };
    let verdict = if fell { Verdict::of(rose, 0, 1) } else { Verdict::Untested };
    Finding { here, verdict, because }
}

#[cfg(test)]
mod tests;
