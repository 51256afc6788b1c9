//! What is said about single tenants: `NAME=TRACE`, and `NAME.KEY=VALUE`.
//!
//! A trace may hold any character (`gen:zipf:theta=1.0,blocks=1000`), so nothing else stands beside it: whatever follows the first `=` is the trace.

use std::ffi::OsString;
use std::str::FromStr;

use larder_alloc::{ConfiguredPolicy, Goals, Reservation};
use larder_daemon::units::parse_size;
use larder_sim::tenants::{Pace, TenantPlan};

use super::options::outstanding;
use crate::amount::{factor, positive, seconds, some_seconds};
use crate::input::TraceName;

/// The keys, for messages.
const KEYS: &str = "rate, start, stop, outstanding, loop, quota, max, weight, share, latency, iops, write";

/// A tenant's name and its trace.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTrace {
    /// The name.
    pub name: String,
    /// The trace.
    pub trace: TraceName,
}

impl FromStr for NamedTrace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, trace) = text
            .split_once('=')
            .filter(|(_, trace)| !trace.is_empty())
            .ok_or_else(|| format!("{text} is no tenant; write NAME=TRACE"))?;
        Ok(Self { name: checked(name)?, trace: OsString::from(trace).into() })
    }
}

/// A name that can be told from keys and traces.
pub fn checked(name: &str) -> Result<String, String> {
    let fits = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    if name.is_empty() || !name.chars().all(fits) {
        return Err(format!("{name:?} is no name of a tenant: letters, digits, `-`, `_` and `.` are"));
    }
    Ok(name.to_owned())
}

/// One thing said about one tenant.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub key: String,
    /// What is said.
    pub value: String,
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text} says nothing about a tenant; write NAME.KEY=VALUE, as in web.rate=2");
        let (place, value) = text.split_once('=').ok_or_else(wrong)?;
        let (name, key) = place.trim().rsplit_once('.').ok_or_else(wrong)?;
        let setting = Self { name: checked(name)?, key: key.to_owned(), value: value.trim().to_owned() };
        Settings::default().set(&setting.key, &setting.value)?;
        Ok(setting)
    }
}

/// All that is said about a tenant.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    rate: Option<f64>,
    outstanding: Option<u32>,
    start: Option<f64>,
    /// Seconds after which it goes.
    pub stop: Option<f64>,
    repeat: Option<bool>,
    quota: Option<u64>,
    max: Option<u64>,
    weight: Option<f64>,
    share: Option<f64>,
    latency: Option<f64>,
    iops: Option<f64>,
    write: Option<ConfiguredPolicy>,
}

impl Settings {
    /// Say one thing more.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "rate" => once(&mut self.rate, factor(value)?),
            "outstanding" => once(&mut self.outstanding, outstanding(value)?.get()),
            "start" => once(&mut self.start, seconds(value)?),
            "stop" => once(&mut self.stop, some_seconds(value)?),
            "loop" => once(&mut self.repeat, yes_or_no(value)?),
            "quota" => once(&mut self.quota, size(value)?),
            "max" => once(&mut self.max, size(value)?),
            "weight" => once(&mut self.weight, positive(value)?),
            "share" => once(&mut self.share, positive(value)?),
            "latency" => once(&mut self.latency, some_seconds(value)?),
            "iops" => once(&mut self.iops, positive(value)?),
            "write" => once(&mut self.write, write(value)?),
            _ => return Err(format!("{key} is nothing that can be said about a tenant; there are {KEYS}")),
        }
        .map_err(|()| format!("{key} is said twice"))
    }

    /// Why all of it cannot hold together, if it cannot.
    pub fn contradiction(&self) -> Option<&'static str> {
        match self {
            Self { rate: Some(_), outstanding: Some(_), .. } => {
                Some("rate is for the times of a trace, outstanding for none: one of them cannot be")
            }
            Self { latency: Some(_), iops: Some(_), .. } => {
                Some("latency and iops are two reservations, and a tenant has one")
            }
            Self { start: Some(start), stop: Some(stop), .. } if stop <= start => {
                Some("it stops before it starts")
            }
            Self { quota: Some(quota), max: Some(max), .. } if quota > max => {
                Some("its quota is above its max")
            }
            _ => None,
        }
    }

    /// True for a tenant that goes on until something else ends it.
    pub fn is_endless(&self) -> bool {
        self.repeat == Some(true) && self.stop.is_none()
    }

    /// True if the times of the trace tell when it ends.
    pub fn repeats(&self) -> bool {
        self.repeat == Some(true)
    }

    /// Seconds after which it comes.
    pub fn start_seconds(&self) -> f64 {
        self.start.unwrap_or(0.0)
    }

    /// When it issues its requests, `otherwise` where nothing is said.
    pub fn pace(&self, otherwise: Pace) -> Pace {
        let outstanding = self.outstanding.map(|outstanding| Pace::Closed { outstanding });
        let rate = self.rate.map(|rate| Pace::Open { rate });
        outstanding.or(rate).unwrap_or(otherwise)
    }

    /// The tenant of that name, in blocks of so many bytes.
    pub fn plan(&self, name: &str, otherwise: Pace, block_bytes: u32) -> TenantPlan {
        let latency = self.latency.map(Reservation::Latency);
        let max_blocks =
            self.max.map(|bytes| u32::try_from(bytes / u64::from(block_bytes)).unwrap_or(u32::MAX));
        TenantPlan {
            pace: self.pace(otherwise),
            start_seconds: self.start_seconds(),
            stop_seconds: self.stop,
            repeat: self.repeats(),
            quota_bytes: self.quota,
            write_policy: self.write.unwrap_or_default(),
            caching: None,
            goals: Goals {
                weight: self.weight.unwrap_or(1.0),
                share: self.share,
                reservation: latency.or(self.iops.map(Reservation::Iops)),
                max_blocks,
            },
            ..TenantPlan::new(name)
        }
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), ()> {
    place.replace(value).map_or(Ok(()), |_| Err(()))
}

fn size(value: &str) -> Result<u64, String> {
    parse_size(value).map_err(|error| error.to_string())
}

fn yes_or_no(value: &str) -> Result<bool, String> {
    match value {
        "yes" | "true" => Ok(true),
        "no" | "false" => Ok(false),
        _ => Err(format!("{value} is neither yes nor no")),
    }
}

fn write(value: &str) -> Result<ConfiguredPolicy, String> {
    match value {
        "auto" => Ok(ConfiguredPolicy::Auto),
        _ => value
            .parse()
            .map(ConfiguredPolicy::Fixed)
            .map_err(|_| format!("{value} is no write policy; there are wb, wt, ro, auto")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use larder_alloc::WritePolicy;

    #[test]
    fn whatever_follows_the_first_equals_sign_is_the_trace() {
        let tenant: NamedTrace = "db.1=gen:zipf:theta=1.0,blocks=10,requests=5".parse().expect("a tenant");
        assert_eq!(
            (tenant.name.as_str(), tenant.trace.to_string().as_str()),
            ("db.1", "gen:zipf:theta=1.0,blocks=10,requests=5")
        );
        for text in ["", "web", "web=", "=t.csv", "we b=t.csv", "a,b=t.csv"] {
            assert!(text.parse::<NamedTrace>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_last_point_parts_the_name_from_the_key() {
        let setting: Setting = "db.1.latency=1.5ms".parse().expect("a setting");
        assert_eq!(
            (setting.name.as_str(), setting.key.as_str(), setting.value.as_str()),
            ("db.1", "latency", "1.5ms")
        );
        for text in [
            "",
            "web",
            "web=2",
            "web.rate",
            "web.rate=0",
            "web.speed=2",
            ".rate=2",
            "web.loop=maybe",
            "web.write=write-back",
            "web.max=x",
            "web.outstanding=0",
        ] {
            assert!(text.parse::<Setting>().is_err(), "{text}");
        }
    }

    fn said(pairs: &[(&str, &str)]) -> Settings {
        let mut settings = Settings::default();
        pairs.iter().for_each(|(key, value)| settings.set(key, value).expect(key));
        settings
    }

    #[test]
    fn a_plan_holds_what_was_said() {
        let all = said(&[
            ("outstanding", "4"),
            ("start", "90s"),
            ("stop", "2min"),
            ("loop", "yes"),
            ("quota", "1MiB"),
            ("max", "2MiB"),
            ("weight", "3"),
            ("share", "2"),
            ("latency", "2ms"),
            ("write", "ro"),
        ]);
        let plan = all.plan("db", Pace::Open { rate: 2.0 }, 8192);
        assert_eq!(
            plan,
            TenantPlan {
                name: "db".into(),
                pace: Pace::Closed { outstanding: 4 },
                start_seconds: 90.0,
                stop_seconds: Some(120.0),
                repeat: true,
                quota_bytes: Some(1 << 20),
                write_policy: ConfiguredPolicy::Fixed(WritePolicy::ReadOnly),
                caching: None,
                goals: Goals {
                    weight: 3.0,
                    share: Some(2.0),
                    reservation: Some(Reservation::Latency(0.002)),
                    max_blocks: Some(256)
                },
            }
        );
        let nothing = Settings::default().plan("db", Pace::Open { rate: 2.0 }, 4096);
        assert_eq!(nothing, TenantPlan { pace: Pace::Open { rate: 2.0 }, ..TenantPlan::new("db") });
        assert_eq!(
            said(&[("iops", "500")]).plan("db", Pace::Open { rate: 1.0 }, 4096).goals.reservation,
            Some(Reservation::Iops(500.0))
        );
    }

    #[test]
    fn what_cannot_hold_together_is_told() {
        for pairs in [
            [("rate", "2"), ("outstanding", "2")],
            [("latency", "1ms"), ("iops", "5")],
            [("start", "2s"), ("stop", "2s")],
            [("quota", "2MiB"), ("max", "1MiB")],
        ] {
            assert!(said(&pairs).contradiction().is_some(), "{pairs:?}");
        }
        assert_eq!(said(&[("start", "1s"), ("stop", "2s"), ("rate", "2")]).contradiction(), None);
        assert!(said(&[("rate", "2")]).set("rate", "3").expect_err("twice").contains("twice"));
        assert!(
            said(&[("loop", "yes")]).is_endless() && !said(&[("loop", "yes"), ("stop", "1s")]).is_endless()
        );
    }
}
