//! What is set while the daemon runs, on top of the configuration file.

use std::collections::BTreeMap;

use axum::Json;
use serde::Deserialize;
use utoipa::ToSchema;

use super::extract::{Body, Name};
use super::{Shared, waiting};
use crate::api::problem::{Problem, Refused};
use crate::server::Set;

type Answer = Result<Json<Set>, Problem>;

/// Keys of `larder.toml` with their values as they are written there, without quotes: `{"weight": "2", "latency": "none"}`. `none` takes an optional one away,
/// `default` gives back what the file says.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(transparent)]
pub(crate) struct Wanted(BTreeMap<String, String>);

/// What was set, as it differs from the configuration file.
#[utoipa::path(get, path = "/v1/settings", tag = "read", responses(
    (status = 200, description = "All that differs", body = Set),
    Refused,
))]
pub(super) async fn differences(services: Shared) -> Answer {
    waiting(services, |services| Ok(services.reloader.differences())).await.map(Json)
}

/// Set keys of `[control]`: all of them, or none. They stay over restarts.
#[utoipa::path(patch, path = "/v1/settings", tag = "operate", request_body = Wanted, responses(
    (status = 200, description = "All that differs from the configuration file now", body = Set),
    Refused,
))]
pub(super) async fn set(services: Shared, Body(Wanted(pairs)): Body<Wanted>) -> Answer {
    waiting(services, move |services| Ok(services.reloader.set(None, &pairs)?)).await.map(Json)
}

/// Set keys of a tenant: all of them, or none. They stay over restarts.
#[utoipa::path(patch, path = "/v1/tenants/{tenant}/settings", tag = "operate", request_body = Wanted,
    params(("tenant" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "All that differs from the configuration file now", body = Set),
        Refused,
    )
)]
pub(super) async fn set_of_tenant(
    services: Shared,
    Name(name): Name,
    Body(Wanted(pairs)): Body<Wanted>,
) -> Answer {
    waiting(services, move |services| Ok(services.reloader.set(Some(&name), &pairs)?)).await.map(Json)
}
