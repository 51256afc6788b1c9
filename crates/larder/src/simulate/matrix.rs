//! The runs that are asked for: every policy behind every admission policy, under every write policy, at every size.

use std::str::FromStr;

use larder_policy::spec::{AdmissionSpec, CachingSpec, PolicySpec, SpecError};
use larder_sim::{RunSpec, WritePolicy};

/// A replacement policy as it is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PolicyChoice {
    /// `all`: each that a running cache can follow.
    All,
    /// One, to be put behind each admission policy.
    Any(PolicySpec),
    /// `arc+larc`: one behind an admission policy of its own.
    With(CachingSpec),
}

impl FromStr for PolicyChoice {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        match text.trim() {
            "all" => Ok(Self::All),
            pair if pair.contains('+') => pair.parse().map(Self::With),
            policy => policy.parse().map(Self::Any),
        }
    }
}

impl PolicyChoice {
    fn behind(self, admissions: &[AdmissionSpec]) -> Vec<CachingSpec> {
        let all = |policies: &[PolicySpec]| {
            let pairs = policies.iter().flat_map(|&policy| admissions.iter().map(move |&own| (policy, own)));
            // LARC comes with its own admission policy, in either of its kinds, whatever else is asked for beside it.
            let own = |(policy, admission)| {
                CachingSpec::new(policy, admission).or_else(|_| CachingSpec::new(policy, AdmissionSpec::Larc))
            };
            pairs.filter_map(|pair| own(pair).ok()).collect()
        };
        match self {
            Self::All => all(PolicySpec::online()),
            Self::Any(policy) => all(&[policy]),
            Self::With(caching) => vec![caching],
        }
    }
}

/// What is behind what, each once.
pub fn caching(policies: &[PolicyChoice], admissions: &[AdmissionSpec]) -> Vec<CachingSpec> {
    let mut list = Vec::new();
    for caching in policies.iter().flat_map(|policy| policy.behind(admissions)) {
        if !list.contains(&caching) {
            list.push(caching);
        }
    }
    list
}

/// The runs, by write policy, then by size, then by policy.
pub fn runs(caching: &[CachingSpec], writes: &[WritePolicy], sizes: &[u64]) -> Vec<RunSpec> {
    let of_size = |write, blocks| caching.iter().map(move |&caching| RunSpec { caching, write, blocks });
    let of_write = |write| sizes.iter().flat_map(move |&blocks| of_size(write, blocks));
    let mut distinct: Vec<WritePolicy> = Vec::new();
    for &write in writes {
        if !distinct.contains(&write) {
            distinct.push(write);
        }
    }
    distinct.into_iter().flat_map(of_write).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(policies: &str, admissions: &str) -> String {
        let policies: Vec<_> = policies.split(',').map(|name| name.parse().expect(name)).collect();
        let admissions: Vec<_> = admissions.split(',').map(|name| name.parse().expect(name)).collect();
        let names: Vec<_> = caching(&policies, &admissions).iter().map(CachingSpec::to_string).collect();
        names.join(" ")
    }

    #[test]
    fn policies_stand_behind_each_admission() {
        assert_eq!(names("lru,sieve", "always,nth"), "lru lru+nth:2 sieve sieve+nth:2");
        assert_eq!(names("lru,lru+bloom,lru", "always"), "lru lru+bloom");
        assert_eq!(names("larc,arc+larc", "always,bloom"), "larc arc+larc");
        assert_eq!(names("larc,lru", "larc:when-full"), "larc+larc:when-full lru+larc:when-full");
        let all = names("all", "always");
        assert!(all.contains("s3-fifo") && !all.contains("belady"), "{all}");
    }

    #[test]
    fn names_are_checked() {
        for name in ["", "lruu", "lru+", "larc+nth", "all+larc"] {
            assert!(name.parse::<PolicyChoice>().is_err(), "{name}");
        }
    }

    #[test]
    fn every_combination_is_a_run() {
        let caching = caching(
            &[PolicyChoice::Any(PolicySpec::Lru), PolicyChoice::Any(PolicySpec::Fifo)],
            &[AdmissionSpec::Always],
        );
        let runs =
            runs(&caching, &[WritePolicy::ReadOnly, WritePolicy::WriteBack, WritePolicy::ReadOnly], &[5, 7]);
        let told: Vec<_> =
            runs.iter().map(|run| format!("{} {} {}", run.write, run.blocks, run.caching)).collect();
        let expected = [
            "ro 5 lru",
            "ro 5 fifo",
            "ro 7 lru",
            "ro 7 fifo",
            "wb 5 lru",
            "wb 5 fifo",
            "wb 7 lru",
            "wb 7 fifo",
        ];
        assert_eq!(told, expected);
    }
}
