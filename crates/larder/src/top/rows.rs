//! What tenants do: two answers of the daemon, and the rates between them, sorted.

use std::cmp::Ordering;

use clap::ValueEnum;
use larder_daemon::status::{Status, TenantStatus};
use serde_json::Value;

use crate::problem::Problem;

/// What rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SortKey {
    /// The tenant's name.
    Name,
    /// What it may hold.
    Quota,
    /// What it holds.
    Occupied,
    /// Block reads that hit.
    Hit,
    /// Requests a second.
    Iops,
    /// The mean time of a request.
    Latency,
    /// Bytes written to the SSD.
    Writes,
    /// What is newer on the SSD than on the backing.
    Dirty,
}

impl SortKey {
    /// The one that a key of the keyboard stands for.
    pub fn of(letter: char) -> Option<Self> {
        Some(match letter {
            'n' => Self::Name,
            's' => Self::Quota,
            'o' => Self::Occupied,
            'h' => Self::Hit,
            'i' => Self::Iops,
            'l' => Self::Latency,
            'w' => Self::Writes,
            'd' => Self::Dirty,
            _ => return None,
        })
    }

    /// Names go up, numbers down: what is most is on top.
    fn order(self, left: &Row, right: &Row) -> Ordering {
        let numbers = |of: &dyn Fn(&Row) -> Option<f64>| {
            // What is not known comes last.
            let of = |row| of(row).unwrap_or(f64::NEG_INFINITY);
            of(right).total_cmp(&of(left))
        };
        match self {
            Self::Name => Ordering::Equal,
            Self::Quota => numbers(&|row| Some(row.quota_bytes as f64)),
            Self::Occupied => numbers(&|row| Some(row.occupied_bytes as f64)),
            Self::Hit => numbers(&|row| row.read_hit_ratio),
            Self::Iops => numbers(&|row| row.iops),
            Self::Latency => numbers(&|row| row.latency_seconds),
            Self::Writes => numbers(&|row| row.ssd_bytes_per_second),
            Self::Dirty => numbers(&|row| Some(row.dirty_bytes as f64)),
        }
        .then_with(|| left.name.cmp(&right.name))
    }
}

/// An answer of the daemon.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The status.
    pub status: Status,
    /// Requests that each tenant's guests have made, and the seconds that they took; by a newer daemon than the status knows, where it tells.
    asked: Vec<Asked>,
}

/// Counted since the daemon's start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Asked {
    requests: Option<u64>,
    /// Of those that were timed: how many, and their sum.
    timed: Option<(u64, f64)>,
}

impl Sample {
    /// Of the answer as it came.
    pub fn new(Told { status, asked }: Told) -> Self {
        Self { status, asked }
    }
}

/// An answer that is read twice: for what the status knows, and for what is told beside it.
pub struct Told {
    status: Status,
    asked: Vec<Asked>,
}

impl<'de> serde::Deserialize<'de> for Told {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let asked = value["tenants"].as_array().map(|tenants| tenants.iter().map(Asked::of).collect());
        let status = serde_json::from_value(value).map_err(serde::de::Error::custom)?;
        Ok(Self { status, asked: asked.unwrap_or_default() })
    }
}

impl Asked {
    /// Of a tenant's object: `volumes[].requests.KIND.requests`, and `latency.KIND` with `requests` and `mean_seconds`.
    fn of(tenant: &Value) -> Self {
        let volumes = tenant["volumes"].as_array().into_iter().flatten();
        let kinds = |value: &Value| -> Vec<Value> {
            value.as_object().map(|kinds| kinds.values().cloned().collect()).unwrap_or_default()
        };
        let requests: Vec<u64> = volumes
            .flat_map(|volume| kinds(&volume["requests"]))
            .filter_map(|kind| kind["requests"].as_u64())
            .collect();
        let timed: Vec<(u64, f64)> = kinds(&tenant["latency"])
            .iter()
            .filter_map(|kind| {
                let requests = kind["requests"].as_u64()?;
                Some((requests, kind["mean_seconds"].as_f64().unwrap_or(0.0) * requests as f64))
            })
            .collect();
        let sum =
            |timed: &[(u64, f64)]| timed.iter().fold((0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        Self {
            requests: (!requests.is_empty()).then(|| requests.iter().sum()),
            timed: (!timed.is_empty()).then(|| sum(&timed)),
        }
    }
}

/// A tenant, over one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What it may hold.
    pub quota_bytes: u64,
    /// What it holds.
    pub occupied_bytes: u64,
    /// Block reads served from the cache over all block reads; `None` where nothing was read.
    pub read_hit_ratio: Option<f64>,
    /// Requests a second.
    pub iops: Option<f64>,
    /// Their mean time.
    pub latency_seconds: Option<f64>,
    /// Bytes written to the SSD a second.
    pub ssd_bytes_per_second: Option<f64>,
    /// What is newer on the SSD than on the backing.
    pub dirty_bytes: u64,
    /// The write policy in force.
    pub policy: String,
    /// The last decision: its epoch, and why.
    pub decision: String,
}

impl Row {
    /// From one answer to the next; `None` in rates where the daemon or the tenant began in between.
    fn between(
        before: Option<(&TenantStatus, Asked)>,
        now: (&TenantStatus, Asked),
        seconds: f64,
        block: u64,
    ) -> Self {
        let (tenant, asked) = now;
        let rate = |before: u64, now: u64| Some(now.checked_sub(before)? as f64 / seconds);
        let hits = |before: &TenantStatus| {
            let hits = tenant.read_hits.checked_sub(before.read_hits)?;
            let all = hits + tenant.read_misses.checked_sub(before.read_misses)?;
            (all > 0).then(|| hits as f64 / all as f64)
        };
        let latency = |before: Asked| {
            let ((then, then_seconds), (now, now_seconds)) = (before.timed?, asked.timed?);
            let requests = now.checked_sub(then).filter(|requests| *requests > 0)?;
            Some((now_seconds - then_seconds).max(0.0) / requests as f64)
        };
        let decision = &tenant.decision;
        let when = if decision.epoch == 0 { "at start".into() } else { format!("epoch {}", decision.epoch) };
        Self {
            name: tenant.name.clone(),
            quota_bytes: u64::from(tenant.quota_blocks) * block,
            occupied_bytes: u64::from(tenant.occupied_blocks) * block,
            read_hit_ratio: before.and_then(|before| hits(before.0)),
            iops: before.and_then(|before| rate(before.1.requests?, asked.requests?)),
            latency_seconds: before.and_then(|before| latency(before.1)),
            ssd_bytes_per_second: before
                .and_then(|before| rate(before.0.ssd_write_bytes.total, tenant.ssd_write_bytes.total)),
            dirty_bytes: tenant.dirty_bytes,
            policy: tenant.write_policy.clone(),
            decision: format!("{when}: {}", decision.reason),
        }
    }
}

/// What is on the screen.
#[derive(Debug)]
pub struct View {
    /// The last answer.
    pub now: Sample,
    /// The tenants, sorted.
    pub rows: Vec<Row>,
    /// What they are sorted by.
    pub sort: SortKey,
    /// The other way round.
    pub reversed: bool,
    /// Nothing changes.
    pub paused: bool,
    /// The first row that is shown.
    pub first: usize,
    /// Why there is nothing newer.
    pub trouble: Option<String>,
}

impl View {
    /// The first answer: without rates.
    pub fn new(now: Sample, sort: SortKey) -> Self {
        let rows = rows(None, &now);
        let mut new = Self { now, rows, sort, reversed: false, paused: false, first: 0, trouble: None };
        new.arrange();
        new
    }

    /// The next one.
    pub fn take(&mut self, sample: Sample) {
        self.trouble = None;
        if !self.paused {
            self.rows = rows(Some(&self.now), &sample);
            self.now = sample;
            self.arrange();
        }
    }

    /// None came.
    pub fn fail(&mut self, problem: &Problem) {
        let text = problem.to_string();
        self.trouble = text.lines().next().map(str::to_owned);
    }

    /// Stand still, or go on.
    pub fn pause(&mut self) {
        self.paused = !self.paused;
    }

    /// Sort by this, or the other way round where it is so already.
    pub fn sort_by(&mut self, key: SortKey) {
        self.reversed = key == self.sort && !self.reversed;
        self.sort = key;
        self.arrange();
    }

    /// So many rows down.
    pub fn scroll(&mut self, rows: isize) {
        self.first = self.first.saturating_add_signed(rows).min(self.rows.len().saturating_sub(1));
    }

    fn arrange(&mut self) {
        self.rows.sort_by(|left, right| self.sort.order(left, right));
        if self.reversed {
            self.rows.reverse();
        }
        self.scroll(0);
    }
}

fn rows(before: Option<&Sample>, now: &Sample) -> Vec<Row> {
    let seconds = before.map_or(0.0, |before| now.status.uptime_seconds - before.status.uptime_seconds);
    // A daemon that is younger than before is another one.
    let before = before.filter(|_| seconds > 0.0);
    let block = u64::from(now.status.cache.block_bytes);
    let of = |sample: &Sample, at: usize| sample.asked.get(at).copied().unwrap_or_default();
    let row = |(at, tenant): (usize, &TenantStatus)| {
        let known = before.and_then(|before| {
            let at = before.status.tenants.iter().position(|known| known.name == tenant.name)?;
            Some((&before.status.tenants[at], of(before, at)))
        });
        Row::between(known, (tenant, of(now, at)), seconds, block)
    };
    now.status.tenants.iter().enumerate().map(row).collect()
}

#[cfg(test)]
pub mod tests;
