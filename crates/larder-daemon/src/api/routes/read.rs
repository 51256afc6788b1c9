//! What the daemon tells.

use axum::Json;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;

use super::extract::Name;
use super::{Shared, waiting};
use crate::api::problem::{Problem, Refused};
use crate::api::services::Services;
use crate::decisions::ToldDecisions;
use crate::loss::VolumeLoss;
use crate::metrics;
use crate::status::{CacheState, DecisionStatus, Status, TenantStatus, VolumeState, VolumeStatus};

type Answer<T> = Result<Json<T>, Problem>;

/// Whether all is well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Health {
    /// Nothing is wrong.
    healthy: bool,
    /// What is wrong, and with what.
    problems: Vec<Ailment>,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Ailment {
    /// `cache`, or the name of a volume.
    subject: String,
    /// What is wrong with it.
    problem: String,
}

/// All tenants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Tenants {
    /// In the order of the configuration.
    tenants: Vec<TenantStatus>,
}

/// All volumes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Volumes {
    /// In the order of the configuration.
    volumes: Vec<OwnedVolume>,
}

/// A volume, with its owner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct OwnedVolume {
    /// Its tenant.
    tenant: String,
    #[serde(flatten)]
    volume: VolumeStatus,
}

/// The last decision about each tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct Decisions {
    /// Who decides.
    allocator: String,
    /// Epochs that have ended.
    epoch: u64,
    /// By tenant.
    decisions: Vec<TenantDecision>,
}

/// The last decision about a tenant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub(crate) struct TenantDecision {
    /// Its name.
    tenant: String,
    #[serde(flatten)]
    decision: DecisionStatus,
}

/// Whether all is well with the daemon, its cache device and its volumes. Always 200 where the daemon answers: what is wrong is in the body.
#[utoipa::path(get, path = "/v1/health", tag = "read", responses(
    (status = 200, description = "How all is", body = Health),
    Refused,
))]
pub(super) async fn health(services: Shared) -> Answer<Health> {
    let problems = waiting(services, |services| Ok(ailments(&services.volumes.status()?))).await?;
    Ok(Json(Health { healthy: problems.is_empty(), problems }))
}

/// The whole status: what `larder status --json` tells.
#[utoipa::path(get, path = "/v1/status", tag = "read", responses(
    (status = 200, description = "The status", body = Status),
    Refused,
))]
pub(super) async fn status(services: Shared) -> Answer<Status> {
    Ok(Json(now(services).await?))
}

/// All tenants.
#[utoipa::path(get, path = "/v1/tenants", tag = "read", responses(
    (status = 200, description = "The tenants", body = Tenants),
    Refused,
))]
pub(super) async fn tenants(services: Shared) -> Answer<Tenants> {
    Ok(Json(Tenants { tenants: now(services).await?.tenants }))
}

/// One tenant.
#[utoipa::path(get, path = "/v1/tenants/{tenant}", tag = "read",
    params(("tenant" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "The tenant", body = TenantStatus),
        Refused,
    )
)]
pub(super) async fn tenant(services: Shared, Name(name): Name) -> Answer<TenantStatus> {
    let found = now(services).await?.tenants.into_iter().find(|tenant| tenant.name == name);
    found.map(Json).ok_or_else(|| Problem::unknown_tenant(&name))
}

/// All volumes.
#[utoipa::path(get, path = "/v1/volumes", tag = "read", responses(
    (status = 200, description = "The volumes", body = Volumes),
    Refused,
))]
pub(super) async fn volumes(services: Shared) -> Answer<Volumes> {
    Ok(Json(Volumes { volumes: owned(now(services).await?).collect() }))
}

/// One volume.
#[utoipa::path(get, path = "/v1/volumes/{volume}", tag = "read",
    params(("volume" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "The volume", body = OwnedVolume),
        Refused,
    )
)]
pub(super) async fn volume(services: Shared, Name(name): Name) -> Answer<OwnedVolume> {
    let found = owned(now(services).await?).find(|owned| owned.volume.name == name);
    found.map(Json).ok_or_else(|| Problem::unknown_volume(&name))
}

/// The ranges of a volume that the cache device alone has, and cannot give.
#[utoipa::path(get, path = "/v1/volumes/{volume}/lost", tag = "read",
    params(("volume" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "The ranges", body = VolumeLoss),
        Refused,
    )
)]
pub(super) async fn lost(services: Shared, Name(name): Name) -> Answer<VolumeLoss> {
    Ok(Json(waiting(services, move |services| Ok(services.collector.lost(&name)?)).await?))
}

/// The last decision about each tenant, with its reason.
#[utoipa::path(get, path = "/v1/decisions", tag = "read", responses(
    (status = 200, description = "The decisions", body = Decisions),
    Refused,
))]
pub(super) async fn decisions(services: Shared) -> Answer<Decisions> {
    let Status { allocator, epoch, tenants, .. } = now(services).await?;
    let of = |tenant: TenantStatus| TenantDecision { tenant: tenant.name, decision: tenant.decision };
    Ok(Json(Decisions { allocator, epoch, decisions: tenants.into_iter().map(of).collect() }))
}

/// The last decisions about a tenant, the oldest first: by what, what was expected, and what came.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/decisions", tag = "read",
    params(("tenant" = String, Path, description = "Its name")),
    responses((status = 200, description = "The decisions", body = ToldDecisions), Refused)
)]
pub(super) async fn tenant_decisions(services: Shared, Name(name): Name) -> Answer<ToldDecisions> {
    let told = move |services: &Services| match services.collector.hosted.get().tenant(&name) {
        None => Err(Problem::unknown_tenant(&name)),
        Some(_) => Ok(ToldDecisions::of(&name, &services.analyzer.decisions(&name)?)),
    };
    waiting(services, told).await.map(Json)
}

/// Everything for Prometheus, in its text format.
#[utoipa::path(get, path = "/metrics", tag = "read", responses(
    (status = 200, description = "The metrics", body = String, content_type = "text/plain"),
    Refused,
))]
pub(super) async fn metrics(services: Shared) -> Result<impl IntoResponse, Problem> {
    let page = waiting(services, |services| Ok(metrics::page(&services.volumes.observe()?))).await?;
    Ok(([(CONTENT_TYPE, metrics::CONTENT_TYPE)], page))
}

/// This description.
#[utoipa::path(get, path = "/v1/openapi.json", tag = "read", responses(
    (status = 200, description = "The description", body = Object, content_type = "application/json"),
    Refused,
))]
pub(super) async fn openapi() -> Json<OpenApi> {
    Json(super::document())
}

async fn now(services: Shared) -> Result<Status, Problem> {
    waiting(services, |services| Ok(services.volumes.status()?)).await
}

fn owned(status: Status) -> impl Iterator<Item = OwnedVolume> {
    status.tenants.into_iter().flat_map(|tenant| {
        let owned = move |volume| OwnedVolume { tenant: tenant.name.clone(), volume };
        tenant.volumes.into_iter().map(owned)
    })
}

/// What is wrong.
fn ailments(status: &Status) -> Vec<Ailment> {
    let ailment = |subject: &str, problem: String| Ailment { subject: subject.into(), problem };
    let cache = match status.cache.state {
        CacheState::Ok => None,
        CacheState::Degraded => Some(format!("operations on it have failed: {}", status.cache.errors)),
        CacheState::Failed => Some("it has failed, and is not used".into()),
    };
    let volumes = status.tenants.iter().flat_map(|tenant| &tenant.volumes);
    let of_volume = volumes.flat_map(|volume| {
        let failed = (volume.state == VolumeState::Failed).then(|| {
            format!("not served: the failed cache device alone has {} bytes of it", volume.lost_bytes)
        });
        let damaged = (volume.damaged_blocks > 0).then(|| {
            format!("damaged on the cache device, and nowhere else: {} bytes of it", volume.lost_bytes)
        });
        let failing = volume.backing_failing_seconds.map(|seconds| {
            format!("{} does not take what is written back, for {seconds:.0} s now", volume.backing)
        });
        let slow = volume.slow_cache.then(|| "the cache device is slower than the backing".to_owned());
        let ublk = volume.ublk_problem.as_ref().map(|why| format!("it is no block device: {why}"));
        [failed, damaged, failing, slow, ublk]
            .into_iter()
            .flatten()
            .map(|problem| (volume.name.as_str(), problem))
    });
    let cache = cache.map(|problem| ("cache", problem));
    cache.into_iter().chain(of_volume).map(|(subject, problem)| ailment(subject, problem)).collect()
}
