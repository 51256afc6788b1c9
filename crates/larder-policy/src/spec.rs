//! The names of replacement and admission policies, as users write them: `arc`, `clock:1`, `nth:3`, `s3-fifo+larc`.
//!
//! Every name parses to a value that says all about the policy but its size, and prints as it parses. Letters of either case and `_` for `-` are accepted.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use crate::replacement::clock::COUNTER_BITS;

/// A replacement policy and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PolicySpec {
    /// First in, first out.
    Fifo,
    /// Least recently used.
    Lru,
    /// CLOCK with counters of so many bits, 1 to 16; 4 (as in S-CAVE) unless given.
    Clock {
        /// Bits of a block's counter.
        bits: u32,
    },
    /// Least frequently used.
    Lfu,
    /// LFU whose counts fade.
    AgingLfu,
    /// Adaptive replacement cache.
    Arc,
    /// Multi-queue.
    Mq,
    /// 2Q, the full version.
    TwoQ,
    /// Low inter-reference recency set.
    Lirs,
    /// LRU behind LARC's ghost. The replacement alone is LRU: what makes it LARC is [`AdmissionSpec::Larc`], which [`CachingSpec`] puts beside it.
    Larc,
    /// S3-FIFO.
    S3Fifo,
    /// SIEVE.
    Sieve,
    /// W-TinyLFU.
    WTinyLfu,
    /// Any block leaves.
    Random,
    /// Belady's optimum, which knows the future: for simulations only.
    Belady,
}

/// An admission policy and its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AdmissionSpec {
    /// Every block enters.
    Always,
    /// LARC's ghost: a block enters when it comes again while the ghost remembers it.
    Larc,
    /// LARC's ghost, asked only while the cache is full (section III-A's prose; Algorithm 1 is [`Self::Larc`]): free space is open to every block.
    LarcWhenFull,
    /// A block enters at its n-th access, 1 to [`NTH_MAX`]; 2 unless given.
    Nth(u32),
    /// A block enters at the second access that a Bloom filter sees.
    Bloom,
    /// A block enters with this probability, 0 to 1.
    Probability(f64),
}

const ADMISSION_NAMES: &str = "always, larc, larc:when-full, nth:N, bloom, prob:P";

/// The highest access at which [`AdmissionSpec::Nth`] lets a block enter.
pub const NTH_MAX: u32 = 255;

/// A replacement policy behind an admission policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CachingSpec {
    policy: PolicySpec,
    admission: AdmissionSpec,
}

/// A name that means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No replacement policy has this name.
    #[error("unknown replacement policy `{0}`; known are {known}", known = policy_names())]
    UnknownPolicy(String),
    /// No admission policy has this name.
    #[error("unknown admission policy `{0}`; known are {ADMISSION_NAMES}")]
    UnknownAdmission(String),
    /// A policy without parameters was given one.
    #[error("`{name}` takes no parameter, but has `{parameter}`")]
    NoParameter {
        /// The policy.
        name: &'static str,
        /// What followed the colon.
        parameter: String,
    },
    /// A parameter is missing, malformed or out of range.
    #[error("`{parameter}` is not what `{name}` takes: {expected}")]
    Parameter {
        /// The policy.
        name: &'static str,
        /// What followed the colon.
        parameter: String,
        /// What may follow it.
        expected: &'static str,
    },
    /// LARC is an admission policy before LRU, and leaves no room for another.
    #[error(
        "`larc` brings its own admission policy and cannot stand behind `{0}`; use `lru+{0}`, or `larc` alone"
    )]
    SecondAdmission(String),
}

const POLICIES: [PolicySpec; 15] = [
    PolicySpec::Fifo,
    PolicySpec::Lru,
    PolicySpec::Clock { bits: COUNTER_BITS },
    PolicySpec::Lfu,
    PolicySpec::AgingLfu,
    PolicySpec::Arc,
    PolicySpec::Mq,
    PolicySpec::TwoQ,
    PolicySpec::Lirs,
    PolicySpec::Larc,
    PolicySpec::S3Fifo,
    PolicySpec::Sieve,
    PolicySpec::WTinyLfu,
    PolicySpec::Random,
    PolicySpec::Belady,
];

const ADMISSIONS: [AdmissionSpec; 6] = [
    AdmissionSpec::Always,
    AdmissionSpec::Larc,
    AdmissionSpec::LarcWhenFull,
    AdmissionSpec::Nth(2),
    AdmissionSpec::Bloom,
    AdmissionSpec::Probability(0.5),
];

impl PolicySpec {
    /// All policies, with their default parameters.
    pub const fn all() -> &'static [Self] {
        &POLICIES
    }

    /// All policies but Belady's: those that a running cache can follow.
    pub const fn online() -> &'static [Self] {
        let [online @ .., _belady] = &POLICIES;
        online
    }

    /// False for Belady's, which has to know the future.
    pub const fn is_online(&self) -> bool {
        !matches!(self, Self::Belady)
    }

    /// Its name without parameters.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Lru => "lru",
            Self::Clock { .. } => "clock",
            Self::Lfu => "lfu",
            Self::AgingLfu => "aging-lfu",
            Self::Arc => "arc",
            Self::Mq => "mq",
            Self::TwoQ => "2q",
            Self::Lirs => "lirs",
            Self::Larc => "larc",
            Self::S3Fifo => "s3-fifo",
            Self::Sieve => "sieve",
            Self::WTinyLfu => "w-tinylfu",
            Self::Random => "random",
            Self::Belady => "belady",
        }
    }

    /// Other names by which it is known.
    const fn aliases(&self) -> &'static [&'static str] {
        match self {
            Self::AgingLfu => &["aginglfu"],
            Self::TwoQ => &["twoq", "two-q"],
            Self::S3Fifo => &["s3fifo"],
            Self::WTinyLfu => &["wtinylfu", "w-tiny-lfu"],
            Self::Belady => &["opt", "min"],
            _ => &[],
        }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name() == name || self.aliases().contains(&name)
    }
}

impl Display for PolicySpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Clock { bits } if *bits != COUNTER_BITS => write!(f, "clock:{bits}"),
            _ => f.write_str(self.name()),
        }
    }
}

impl FromStr for PolicySpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, parameter) = split(text);
        let policy = POLICIES.into_iter().find(|policy| policy.is_called(&name));
        match (policy, parameter) {
            (None, _) => Err(SpecError::UnknownPolicy(text.into())),
            (Some(policy), None) => Ok(policy),
            (Some(Self::Clock { .. }), Some(bits)) => {
                let bits = in_range("clock", bits, 1, 16, "the bits of its counters, 1 to 16")?;
                Ok(Self::Clock { bits })
            }
            (Some(policy), Some(parameter)) => no_parameter(policy.name(), parameter),
        }
    }
}

impl AdmissionSpec {
    /// One of each kind, with default parameters (a probability of one half).
    pub const fn defaults() -> &'static [Self] {
        &ADMISSIONS
    }

    /// Its name without parameters.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Larc | Self::LarcWhenFull => "larc",
            Self::Nth(_) => "nth",
            Self::Bloom => "bloom",
            Self::Probability(_) => "prob",
        }
    }
}

impl Display for AdmissionSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::LarcWhenFull => f.write_str("larc:when-full"),
            Self::Nth(n) => write!(f, "nth:{n}"),
            Self::Probability(p) => write!(f, "prob:{p}"),
            _ => f.write_str(self.name()),
        }
    }
}

impl FromStr for AdmissionSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, parameter) = split(text);
        match (name.as_str(), parameter) {
            ("always", None) => Ok(Self::Always),
            ("larc", None) => Ok(Self::Larc),
            ("larc", Some("when-full")) => Ok(Self::LarcWhenFull),
            ("bloom", None) => Ok(Self::Bloom),
            ("nth", parameter) => {
                let expected = "the access at which a block enters, 1 to 255";
                Ok(Self::Nth(in_range("nth", parameter.unwrap_or("2"), 1, NTH_MAX, expected)?))
            }
            ("prob", parameter) => probability(parameter.unwrap_or_default()),
            (known, Some(parameter))
                if let Some(spec) = ADMISSIONS.iter().find(|spec| spec.name() == known) =>
            {
                no_parameter(spec.name(), parameter)
            }
            _ => Err(SpecError::UnknownAdmission(text.into())),
        }
    }
}

impl CachingSpec {
    /// A policy behind an admission policy. LARC is LRU behind LARC's ghost: with [`AdmissionSpec::Always`] it gets it; it may have either kind of it.
    ///
    /// # Errors
    /// If LARC is to stand behind another admission policy than its own.
    pub fn new(policy: PolicySpec, admission: AdmissionSpec) -> Result<Self, SpecError> {
        use AdmissionSpec::{Always, Larc, LarcWhenFull};
        match (policy, admission) {
            (PolicySpec::Larc, Always | Larc) => Ok(Self { policy, admission: Larc }),
            (PolicySpec::Larc, LarcWhenFull) => Ok(Self { policy, admission }),
            (PolicySpec::Larc, other) => Err(SpecError::SecondAdmission(other.to_string())),
            _ => Ok(Self { policy, admission }),
        }
    }

    /// Which block leaves.
    pub const fn policy(&self) -> PolicySpec {
        self.policy
    }

    /// Which block may enter: for LARC, its ghost.
    pub const fn admission(&self) -> AdmissionSpec {
        self.admission
    }
}

/// Two names as they are written together: `lru` and `always` are `lru`, `larc` and `larc` are `larc`, `arc` and `nth:3` are `arc+nth:3`. For names as results and
/// status tell them; it does not ask whether there are such policies.
pub fn joined(policy: &str, admission: &str) -> String {
    match (policy, admission) {
        ("larc", "larc") | (_, "always") => policy.to_owned(),
        _ => format!("{policy}+{admission}"),
    }
}

impl Default for CachingSpec {
    /// LRU that lets every block in.
    fn default() -> Self {
        Self { policy: PolicySpec::Lru, admission: AdmissionSpec::Always }
    }
}

impl Display for CachingSpec {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&joined(&self.policy.to_string(), &self.admission.to_string()))
    }
}

impl FromStr for CachingSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (policy, admission) = text.split_once('+').unwrap_or((text, "always"));
        Self::new(policy.parse()?, admission.parse()?)
    }
}

/// The name as it is compared, and what follows the colon, if there is one.
fn split(text: &str) -> (String, Option<&str>) {
    let (name, parameter) = match text.split_once(':') {
        Some((name, parameter)) => (name, Some(parameter.trim())),
        None => (text, None),
    };
    (name.trim().to_ascii_lowercase().replace('_', "-"), parameter)
}

fn no_parameter<T>(name: &'static str, parameter: &str) -> Result<T, SpecError> {
    Err(SpecError::NoParameter { name, parameter: parameter.into() })
}

fn in_range(
    name: &'static str,
    parameter: &str,
    min: u32,
    max: u32,
    expected: &'static str,
) -> Result<u32, SpecError> {
    let number = parameter.parse().ok().filter(|number| (min..=max).contains(number));
    number.ok_or_else(|| SpecError::Parameter { name, parameter: parameter.into(), expected })
}

fn probability(parameter: &str) -> Result<AdmissionSpec, SpecError> {
    let expected = "the probability with which a block enters, 0 to 1, as in `prob:0.1`";
    let number = parameter.parse().ok().filter(|p| (0.0..=1.0).contains(p));
    number.map(AdmissionSpec::Probability).ok_or_else(|| SpecError::Parameter {
        name: "prob",
        parameter: parameter.into(),
        expected,
    })
}

fn policy_names() -> String {
    POLICIES.map(|policy| policy.name()).join(", ")
}

#[cfg(test)]
mod tests;
