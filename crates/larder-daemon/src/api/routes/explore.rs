//! What would be: tenants' curves, and dry runs. Nothing changes by asking.

use axum::Json;
use serde::Deserialize;

use super::extract::{Asked, Name};
use super::{Shared, waiting};
use crate::api::problem::{Problem, Refused};
use crate::epoch::explore::{ToldCurves, ToldWhatIf};

type Answer<T> = Result<Json<T>, Problem>;

/// The size that is tried out.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Size {
    /// Bytes that the tenant would have, at most those of the cache.
    bytes: u64,
}

/// What every size would bring to a tenant, by what was found at the last decision: hits, latency and SSD writes over size, for each way in which its cache can work.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/curves", tag = "read",
    params(("tenant" = String, Path, description = "Its name")),
    responses((status = 200, description = "The curves", body = ToldCurves), Refused)
)]
pub(super) async fn curves(services: Shared, Name(name): Name) -> Answer<ToldCurves> {
    waiting(services, move |services| Ok(services.analyzer.curves(&name)??)).await.map(Json)
}

/// A dry run: what would be expected if a tenant had this size, and the allocator divided the rest of the cache among the others.
#[utoipa::path(get, path = "/v1/tenants/{tenant}/what-if", tag = "read",
    params(
        ("tenant" = String, Path, description = "Its name"),
        ("bytes" = u64, Query, description = "What it would have, at most all of the cache", example = 1_073_741_824u64),
    ),
    responses((status = 200, description = "What becomes of each tenant", body = ToldWhatIf), Refused)
)]
pub(super) async fn what_if(
    services: Shared,
    Name(name): Name,
    Asked(Size { bytes }): Asked<Size>,
) -> Answer<ToldWhatIf> {
    waiting(services, move |services| Ok(services.analyzer.what_if(&name, bytes)??)).await.map(Json)
}
