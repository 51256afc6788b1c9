//! What the loop can be asked without anything changing: a tenant's curves, and what would be if it had another size.
//!
//! All is by what was found at the last decision, and by the curves alone (see [`larder_alloc::control::Prospect`]).

use larder_alloc::Mode;
use larder_alloc::control::{DryRunError, Outlook, Prospect};
use larder_alloc::menu::{Point, Way};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

use super::{EpochLoop, LoopTenant};
use crate::units::ExactSize;

/// Points of a curve that are told, at most.
pub const POINTS_TOLD: usize = 64;

/// What each size would bring to a tenant, by what was found at the last decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToldCurves {
    /// The tenant.
    pub tenant: String,
    /// For whom it was observed.
    pub allocator: String,
    /// Its requests per second.
    pub requests_per_second: f64,
    /// What it may hold now.
    pub quota_bytes: u64,
    /// A curve for each way in which its cache can work that the allocator looks at.
    pub curves: Vec<ToldCurve>,
}

/// One way in which a tenant's cache can work, over its size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToldCurve {
    /// Replacement and admission.
    pub caching: String,
    /// What its writes do.
    pub write_policy: String,
    /// In rising order of size, at most 64. A size between two does as the smaller one at least.
    pub points: Vec<ToldPoint>,
}

/// What one size brings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToldPoint {
    /// The size.
    pub bytes: u64,
    /// The share of requests (0 to 1) that the SSD serves alone.
    pub request_hit_ratio: f64,
    /// Mean seconds of a request.
    pub latency_seconds: f64,
    /// Bytes written to the SSD per second.
    pub ssd_write_bytes_per_second: f64,
}

/// What would be if a tenant had another size, and the allocator divided the rest among the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToldWhatIf {
    /// The tenant.
    pub tenant: String,
    /// The size that it would have.
    pub bytes: u64,
    /// Who would decide.
    pub allocator: String,
    /// Mean seconds of a request over all tenants, as it is by the curves; `null` without requests.
    pub latency_seconds_now: Option<f64>,
    /// The same, as it would be.
    pub latency_seconds_then: Option<f64>,
    /// What becomes of each tenant, first of the one that was asked about.
    pub tenants: Vec<ToldProspect>,
}

/// What becomes of a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToldProspect {
    /// The tenant.
    pub tenant: String,
    /// Its requests per second.
    pub requests_per_second: f64,
    /// As it is by its curves.
    pub now: ToldOutlook,
    /// As it would be.
    pub then: ToldOutlook,
}

/// A tenant's cache, and what is expected of it; `null` where it did nothing in the epoch before the last decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ToldOutlook {
    /// What it may hold.
    pub quota_bytes: u64,
    /// Replacement and admission.
    pub caching: String,
    /// What its writes do.
    pub write_policy: String,
    /// The share of requests (0 to 1) that the SSD serves alone.
    pub request_hit_ratio: Option<f64>,
    /// Mean seconds of a request.
    pub latency_seconds: Option<f64>,
    /// Bytes written to the SSD per second.
    pub ssd_write_bytes_per_second: Option<f64>,
}

/// Nothing can be told.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ExploreError {
    /// No tenant has this name.
    #[error("there is no tenant \"{0}\"")]
    UnknownTenant(String),
    /// The cache has less.
    #[error("tenant \"{tenant}\" cannot have {}: the cache has {}", ExactSize(*bytes), ExactSize(*cache_bytes))]
    TooLarge {
        /// The tenant.
        tenant: String,
        /// What was asked about.
        bytes: u64,
        /// What there is.
        cache_bytes: u64,
    },
    /// See there.
    #[error("tenant \"{tenant}\": {why}")]
    Untold {
        /// The tenant.
        tenant: String,
        /// Why.
        why: DryRunError,
    },
}

impl ExploreError {
    /// What to do about it.
    pub fn help(&self) -> String {
        match self {
            Self::UnknownTenant(_) => "`larder status` lists the tenants".into(),
            Self::TooLarge { .. } => "ask about no more than the cache has".into(),
            Self::Untold { why: DryRunError::NothingFound, .. } => {
                "ask again when it has done something for an epoch; `larder set epoch=1m` makes epochs shorter".into()
            }
            Self::Untold { why: DryRunError::NoCurves { .. }, .. } => {
                "have another decide for an epoch, such as `larder set allocator=larder`".into()
            }
            Self::Untold { .. } => "see to the quotas that are configured: `larder config diff`, larder.toml".into(),
        }
    }
}

impl EpochLoop {
    /// What every size would bring to a tenant.
    ///
    /// # Errors
    /// Where there is no such tenant, or nothing is known of it.
    pub fn curves(&self, tenant: &str) -> Result<ToldCurves, ExploreError> {
        let at = self.position_of(tenant)?;
        let menu = self.control.ways(self.seats[at].at).map_err(|why| self.untold(tenant, why))?;
        let block = u64::from(self.config.block_bytes);
        Ok(ToldCurves {
            tenant: tenant.into(),
            allocator: self.allocator().into(),
            requests_per_second: menu.requests_per_second,
            quota_bytes: u64::from(self.standings[at].decision.quota_blocks) * block,
            curves: menu.ways.iter().map(|way| told_curve(way, block)).collect(),
        })
    }

    /// What would be if a tenant had this size, and the rest were divided anew among the others.
    ///
    /// # Errors
    /// Where there is no such tenant, nothing is known of it, or the cache is smaller.
    pub fn what_if(&self, tenant: &str, bytes: u64) -> Result<ToldWhatIf, ExploreError> {
        let at = self.position_of(tenant)?;
        let block = u64::from(self.config.block_bytes);
        let prospects = self.control.what_if(self.seats[at].at, bytes / block);
        let prospects = prospects.map_err(|why| self.untold(tenant, why))?;
        let mean = |of: &dyn Fn(&Prospect) -> Option<Point>| {
            let (rate, waited) = prospects
                .iter()
                .filter_map(|it| Some((it.requests_per_second, of(it)?)))
                .fold((0.0, 0.0), |(rate, waited), (more, point)| {
                    (rate + more, waited + more * point.latency)
                });
            (rate > 0.0).then(|| waited / rate)
        };
        let told = |(given, seat): (&LoopTenant, &super::Seat)| {
            let prospect = prospects.iter().find(|prospect| prospect.tenant == seat.at)?;
            Some(ToldProspect {
                tenant: given.name.clone(),
                requests_per_second: prospect.requests_per_second,
                now: told_outlook(&prospect.now, given, block),
                then: told_outlook(&prospect.then, given, block),
            })
        };
        let mut tenants: Vec<_> = self.tenants.iter().zip(&self.seats).filter_map(told).collect();
        tenants.sort_by_key(|prospect| prospect.tenant != tenant);
        Ok(ToldWhatIf {
            tenant: tenant.into(),
            bytes: bytes / block * block,
            allocator: self.allocator().into(),
            latency_seconds_now: mean(&|prospect| prospect.now.expected),
            latency_seconds_then: mean(&|prospect| prospect.then.expected),
            tenants,
        })
    }

    fn position_of(&self, tenant: &str) -> Result<usize, ExploreError> {
        let at = self.tenants.iter().position(|known| known.name == tenant);
        at.ok_or_else(|| ExploreError::UnknownTenant(tenant.into()))
    }

    fn untold(&self, tenant: &str, why: DryRunError) -> ExploreError {
        let (tenant, block) = (tenant.to_owned(), u64::from(self.config.block_bytes));
        match why {
            DryRunError::TooLarge { blocks, cache_blocks } => ExploreError::TooLarge {
                tenant,
                bytes: blocks.saturating_mul(block),
                cache_bytes: u64::from(cache_blocks) * block,
            },
            why => ExploreError::Untold { tenant, why },
        }
    }
}

fn told_curve(way: &Way, block: u64) -> ToldCurve {
    let Mode { caching, write } = way.mode;
    let every = way.points.len().div_ceil(POINTS_TOLD - 1).max(1);
    let last = way.points.len().saturating_sub(1);
    let told = way.points.iter().enumerate().filter(|(at, _)| at % every == 0 || *at == last);
    let point = |(_, point): (usize, &Point)| ToldPoint {
        bytes: point.blocks.saturating_mul(block),
        request_hit_ratio: point.request_hit_ratio,
        latency_seconds: point.latency,
        ssd_write_bytes_per_second: point.ssd_writes * block as f64,
    };
    ToldCurve {
        caching: caching.to_string(),
        write_policy: write.as_str().into(),
        points: told.map(point).collect(),
    }
}

fn told_outlook(outlook: &Outlook, tenant: &LoopTenant, block: u64) -> ToldOutlook {
    let Outlook { quota_blocks, mode, expected } = outlook;
    ToldOutlook {
        quota_bytes: u64::from(*quota_blocks) * block,
        caching: tenant.caching.unwrap_or(mode.caching).to_string(),
        write_policy: mode.write.as_str().into(),
        request_hit_ratio: expected.map(|point| point.request_hit_ratio),
        latency_seconds: expected.map(|point| point.latency),
        ssd_write_bytes_per_second: expected.map(|point| point.ssd_writes * block as f64),
    }
}
