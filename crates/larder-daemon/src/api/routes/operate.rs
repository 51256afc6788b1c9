//! What the daemon can be asked to do: what the control socket can be asked.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use larder_io::DrainCommand;
use serde::Deserialize;
use utoipa::ToSchema;

use super::extract::{Body, Name};
use super::{Shared, waiting};
use crate::api::problem::{Problem, Refused};
use crate::api::services::Services;
use crate::control::Draining;
use crate::keeper::Attached;
use crate::server::Reloaded;
use crate::volumes::{Done, HOLD_MAX, MigrationStep, Resized, Thawed};

type Answer<T> = Result<Json<T>, Problem>;
/// Something goes on after the answer.
type Begun<T> = Result<(StatusCode, Json<T>), Problem>;

/// For how long a volume is to be quiet.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hold {
    /// It goes on by itself after so many seconds; at most an hour.
    #[schema(exclusive_minimum = 0.0, maximum = 3600.0, example = 30.0)]
    hold_seconds: f64,
}

/// How far a migration is.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Migration {
    step: Step,
}

/// A step of a migration.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Step {
    /// Write all back, and let nothing become dirty: the guest is about to leave.
    Prepare,
    /// It has left.
    Complete,
    /// It stays.
    Abort,
}

/// Have everything dirty of a tenant written back, once. The status tells how far that is.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/flush", tag = "operate",
    params(("tenant" = String, Path, description = "Its name")),
    responses(
        (status = 202, description = "It goes on", body = Draining),
        Refused,
    )
)]
pub(super) async fn flush_tenant(services: Shared, Name(name): Name) -> Begun<Draining> {
    begun(waiting(services, move |services| of_tenant(services, &name, DrainCommand::Once)).await)
}

/// Have everything dirty of a tenant written back, and let nothing become dirty until it is undrained.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/drain", tag = "operate",
    params(("tenant" = String, Path, description = "Its name")),
    responses(
        (status = 202, description = "It goes on", body = Draining),
        Refused,
    )
)]
pub(super) async fn drain_tenant(services: Shared, Name(name): Name) -> Begun<Draining> {
    begun(waiting(services, move |services| of_tenant(services, &name, DrainCommand::On)).await)
}

/// Let blocks of a tenant become dirty again.
#[utoipa::path(post, path = "/v1/tenants/{tenant}/undrain", tag = "operate",
    params(("tenant" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "The volumes that it is about", body = Draining),
        Refused,
    )
)]
pub(super) async fn undrain_tenant(services: Shared, Name(name): Name) -> Answer<Draining> {
    waiting(services, move |services| of_tenant(services, &name, DrainCommand::Off)).await.map(Json)
}

/// Have everything dirty of a volume written back, once. The status tells how far that is.
#[utoipa::path(post, path = "/v1/volumes/{volume}/flush", tag = "operate",
    params(("volume" = String, Path, description = "Its name")),
    responses(
        (status = 202, description = "It goes on", body = Draining),
        Refused,
    )
)]
pub(super) async fn flush_volume(services: Shared, Name(name): Name) -> Begun<Draining> {
    begun(waiting(services, move |services| of_volume(services, &name, DrainCommand::Once)).await)
}

/// Have everything dirty of a volume written back, and let nothing become dirty until it is undrained.
#[utoipa::path(post, path = "/v1/volumes/{volume}/drain", tag = "operate",
    params(("volume" = String, Path, description = "Its name")),
    responses(
        (status = 202, description = "It goes on", body = Draining),
        Refused,
    )
)]
pub(super) async fn drain_volume(services: Shared, Name(name): Name) -> Begun<Draining> {
    begun(waiting(services, move |services| of_volume(services, &name, DrainCommand::On)).await)
}

/// Let blocks of a volume become dirty again.
#[utoipa::path(post, path = "/v1/volumes/{volume}/undrain", tag = "operate",
    params(("volume" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "The volumes that it is about", body = Draining),
        Refused,
    )
)]
pub(super) async fn undrain_volume(services: Shared, Name(name): Name) -> Answer<Draining> {
    waiting(services, move |services| of_volume(services, &name, DrainCommand::Off)).await.map(Json)
}

/// Let a volume have the size to which its backing has grown.
#[utoipa::path(post, path = "/v1/volumes/{volume}/resize", tag = "operate",
    params(("volume" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "It has grown", body = Resized),
        Refused,
    )
)]
pub(super) async fn resize(services: Shared, Name(name): Name) -> Answer<Resized> {
    waiting(services, move |services| Ok(services.volumes.resize(&name)?)).await.map(Json)
}

/// Have a volume's backing hold all of it, and let nothing change it, for a snapshot: writes wait.
#[utoipa::path(post, path = "/v1/volumes/{volume}/quiesce", tag = "operate", request_body = Hold,
    params(("volume" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "It is quiet", body = Done),
        Refused,
    )
)]
pub(super) async fn quiesce(services: Shared, Name(name): Name, Body(body): Body<Hold>) -> Answer<Done> {
    let hold = body.time()?;
    waiting(services, move |services| Ok(services.volumes.quiesce(&name, hold)?)).await.map(Json)
}

/// Let a quiet volume go on.
#[utoipa::path(post, path = "/v1/volumes/{volume}/thaw", tag = "operate",
    params(("volume" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "It goes on", body = Thawed),
        Refused,
    )
)]
pub(super) async fn thaw(services: Shared, Name(name): Name) -> Answer<Thawed> {
    waiting(services, move |services| Ok(services.volumes.thaw(&name)?)).await.map(Json)
}

/// Take a step of the migration of a volume's guest to another host. After `prepare`, the status tells when the volume is drained.
#[utoipa::path(post, path = "/v1/volumes/{volume}/migration", tag = "operate", request_body = Migration,
    params(("volume" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "It is done", body = Done),
        Refused,
    )
)]
pub(super) async fn migrate(
    services: Shared,
    Name(name): Name,
    Body(Migration { step }): Body<Migration>,
) -> Answer<Done> {
    let step = match step {
        Step::Prepare => MigrationStep::Prepare,
        Step::Complete => MigrationStep::Complete,
        Step::Abort => MigrationStep::Abort,
    };
    waiting(services, move |services| Ok(services.volumes.migrate(&name, step)?)).await.map(Json)
}

/// Use the cache device again that had failed.
#[utoipa::path(post, path = "/v1/cache/attach", tag = "operate", responses(
    (status = 200, description = "It is in use again", body = Attached),
    Refused,
))]
pub(super) async fn attach(services: Shared) -> Answer<Attached> {
    waiting(services, |services| Ok(services.keeper.attach()?)).await.map(Json)
}

/// Read the configuration file again: tenants and volumes come and go as it says.
#[utoipa::path(post, path = "/v1/reload", tag = "operate", responses(
    (status = 200, description = "What has come of it", body = Reloaded),
    Refused,
))]
pub(super) async fn reload(services: Shared) -> Answer<Reloaded> {
    waiting(services, |services| Ok(services.reloader.reload()?)).await.map(Json)
}

impl Hold {
    fn time(&self) -> Result<Duration, Problem> {
        let seconds = self.hold_seconds;
        match Duration::try_from_secs_f64(seconds) {
            Ok(time) if seconds > 0.0 && time <= HOLD_MAX => Ok(time),
            _ => Err(Problem::invalid(
                format!("hold_seconds: a volume cannot be quiet for {seconds} s"),
                format!("write a number above 0, and at most {}", HOLD_MAX.as_secs()),
            )),
        }
    }
}

fn begun<T>(answer: Result<T, Problem>) -> Begun<T> {
    answer.map(|answer| (StatusCode::ACCEPTED, Json(answer)))
}

/// Of a tenant: a volume may have the same name.
fn of_tenant(services: &Services, name: &str, how: DrainCommand) -> Result<Draining, Problem> {
    match services.collector.hosted.get().tenant(name) {
        Some(_) => Ok(services.volumes.drain(name, how)?),
        None => Err(Problem::unknown_tenant(name)),
    }
}

/// Of a volume: a tenant may have the same name.
fn of_volume(services: &Services, name: &str, how: DrainCommand) -> Result<Draining, Problem> {
    let hosted = services.collector.hosted.get();
    let (_, place) = hosted.volume(name).ok_or_else(|| Problem::unknown_volume(name))?;
    let tenant = &hosted.config.tenants[place.tenant].name;
    Ok(services.volumes.drain(&format!("{tenant}/{name}"), how)?)
}
