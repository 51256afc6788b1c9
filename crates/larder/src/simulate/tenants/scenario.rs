//! Files of scenarios: tenants and their traces, the sizes of the cache, the unit of caching, the epoch.
//!
//! ```toml
//! cache_shares = [0.05, 0.10]      # of the joint footprint
//! block = "4KiB"
//!
//! [[scenario]]
//! name = "oltp-beside-backup"
//! epoch = "20s"
//! tenants = { db = "db.csv.zst", backup = { trace = "backup.csv.zst", start = "90s" } }
//! ```
//!
//! Paths are relative to the file. What a scenario says for itself goes before what the file says for all.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use toml::Value;

use super::settings::{Settings, checked};
use super::workload::{Tenant, Workload};
use crate::amount::between_seconds;
use crate::block;
use crate::input::TraceName;
use crate::problem::Problem;
use crate::simulate::size::{Size, SizeChoice};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    cache_shares: Option<Vec<f64>>,
    block: Option<String>,
    epoch: Option<String>,
    scenario: Vec<Scenario>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scenario {
    name: String,
    cache_shares: Option<Vec<f64>>,
    block: Option<String>,
    epoch: Option<String>,
    tenants: BTreeMap<String, Source>,
}

/// A tenant: its trace alone, or with settings beside it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Source {
    Trace(String),
    Settings {
        trace: String,
        #[serde(flatten)]
        settings: BTreeMap<String, Value>,
    },
}

/// The scenarios that `FILE` or `FILE#NAME` names.
pub fn load(text: &str) -> Result<Vec<Workload>, Problem> {
    let (path, name) = match text.rsplit_once('#') {
        Some((path, name)) if !Path::new(text).exists() => (Path::new(path), Some(name)),
        _ => (Path::new(text), None),
    };
    let wrong = |why: String| {
        Problem::new(
            format_args!("{}: {why}", path.display()),
            "name a file of scenarios (TOML), or one of them as FILE#NAME",
        )
    };
    let content = fs::read_to_string(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let all = read(&content, path.parent().unwrap_or(Path::new(""))).map_err(wrong)?;
    let Some(name) = name else { return Ok(all) };
    let names: Vec<_> = all.iter().filter_map(|workload| workload.scenario.clone()).collect();
    let found: Vec<_> =
        all.into_iter().filter(|workload| workload.scenario.as_deref() == Some(name)).collect();
    if found.is_empty() {
        return Err(wrong(format!("no scenario is called {name:?}; there are {}", names.join(", "))));
    }
    Ok(found)
}

/// The scenarios of a file's content; the folder is what paths in it are relative to.
pub fn read(content: &str, folder: &Path) -> Result<Vec<Workload>, String> {
    let file: File = toml::from_str(content).map_err(|error| error.to_string().trim_end().to_owned())?;
    workloads(&file, folder)
}

fn workloads(file: &File, folder: &Path) -> Result<Vec<Workload>, String> {
    let mut all: Vec<Workload> = Vec::new();
    for scenario in &file.scenario {
        if all.iter().any(|other| other.scenario.as_ref() == Some(&scenario.name)) {
            return Err(format!("two scenarios are called {:?}", scenario.name));
        }
        let workload =
            workload(file, scenario, folder).map_err(|why| format!("scenario {:?}: {why}", scenario.name))?;
        all.push(workload);
    }
    if all.is_empty() { Err("it holds no scenario".into()) } else { Ok(all) }
}

fn workload(file: &File, scenario: &Scenario, folder: &Path) -> Result<Workload, String> {
    let text = |own: &Option<String>, all: &Option<String>| own.clone().or_else(|| all.clone());
    let tenants = scenario.tenants.iter().map(|(name, source)| tenant(name, source, folder));
    let shares = scenario.cache_shares.as_ref().or(file.cache_shares.as_ref());
    Ok(Workload {
        scenario: Some(
            checked(&scenario.name)
                .map_err(|_| "its name can hold only letters, digits, `-`, `_` and `.`")?,
        ),
        tenants: tenants.collect::<Result<_, _>>()?,
        block: text(&scenario.block, &file.block).map(|block| block::size(&block)).transpose()?,
        epoch: text(&scenario.epoch, &file.epoch).map(|epoch| between_seconds(&epoch)).transpose()?,
        sizes: shares.into_iter().flatten().map(|&share| size(share)).collect::<Result<_, _>>()?,
    })
}

fn size(share: f64) -> Result<SizeChoice, String> {
    let is_share = share > 0.0 && share <= 1.0;
    is_share
        .then_some(SizeChoice::One(Size::Share(share)))
        .ok_or_else(|| format!("{share} is no share of the footprint: above 0, up to 1"))
}

fn tenant(name: &str, source: &Source, folder: &Path) -> Result<Tenant, String> {
    let about = |why: String| format!("tenant {name:?}: {why}");
    let mut settings = Settings::default();
    let trace = match source {
        Source::Trace(trace) => trace,
        Source::Settings { trace, settings: given } => {
            for (key, value) in given {
                settings.set(key, &as_text(value)).map_err(about)?;
            }
            trace
        }
    };
    Ok(Tenant { name: checked(name)?, trace: located(trace, folder), settings })
}

/// What stands in a table as it would stand on the command line.
fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn located(trace: &str, folder: &Path) -> TraceName {
    if trace.starts_with("gen:") {
        OsString::from(trace).into()
    } else {
        folder.join(trace).into_os_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<Workload>, String> {
        read(text, Path::new("far/away"))
    }

    const TWO: &str = r#"
        cache_shares = [0.05, 0.4]
        block = "4KiB"
        epoch = "60s"
        [[scenario]]
        name = "a"
        epoch = "20s"
        tenants = { web = "web.csv", db = { trace = "gen:sequential:blocks=5,requests=5", start = "90s", weight = 2, loop = true, stop = "95s" } }
        [[scenario]]
        name = "b"
        cache_shares = [0.1]
        tenants = { web = "web.csv" }
    "#;

    #[test]
    fn a_file_holds_scenarios() {
        let all = parsed(TWO).expect("scenarios");
        let names: Vec<_> =
            all[0].tenants.iter().map(|tenant| (tenant.name.as_str(), tenant.trace.to_string())).collect();
        assert_eq!(
            names,
            [("db", "gen:sequential:blocks=5,requests=5".to_owned()), ("web", "far/away/web.csv".to_owned())]
        );
        assert_eq!((all[0].epoch, all[1].epoch), (Some(20.0), Some(60.0)));
        assert_eq!(
            (all[0].sizes.len(), all[1].sizes.as_slice()),
            (2, &[SizeChoice::One(Size::Share(0.1))][..])
        );
        let db = &all[0].tenants[0].settings;
        assert!(db.repeats() && db.start_seconds() == 90.0 && db.stop == Some(95.0));
        assert_eq!(all[0].block.map(larder_sim::BlockSize::bytes), Some(4096));
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (change, told) in [
            (("\"b\"", "\"a\""), "two scenarios are called \"a\""),
            (("\"b\"", "\"b c\""), "scenario \"b c\": its name"),
            (("weight", "wait"), "scenario \"a\": tenant \"db\": wait is nothing"),
            (("0.05", "5"), "scenario \"a\": 5 is no share"),
            (("60s", "60"), "scenario \"b\": 60 is no time"),
            (("cache_shares = [0.1]", "cache = 5"), "unknown field `cache`"),
        ] {
            let error = parsed(&TWO.replace(change.0, change.1)).expect_err(told);
            assert!(error.contains(told), "{told}: {error}");
        }
        assert!(parsed("scenario = []").expect_err("none").contains("no scenario"));
    }
}
