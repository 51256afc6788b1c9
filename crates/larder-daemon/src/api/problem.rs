//! How a request is refused: a JSON document as RFC 9457 has it (`application/problem+json`), with a type that programs can tell apart, what happened on what,
//! and what to do.

use std::borrow::Cow;

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::{IntoResponses, ToSchema};

use crate::analyzer::ChangeError;
use crate::collector::Silent;
use crate::control::Refusal;
use crate::epoch::explore::ExploreError;
use crate::keeper::KeepError;
use crate::server::ReloadError;
use crate::settings::SettingError;
use crate::volumes::VolumeRefusal;

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Problem {
    /// What kind of problem it is: `urn:larder:problem:` and a word that stays.
    #[serde(rename = "type")]
    #[schema(example = "urn:larder:problem:unknown-volume")]
    kind: String,
    /// The HTTP status in words.
    title: String,
    /// The HTTP status.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    /// What happened, on what.
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    help: Option<String>,
}

/// The answers that any request may get, for the description.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "described, never made")]
pub(super) enum Refused {
    /// The request cannot be carried out as it is.
    #[response(status = "4XX", content_type = "application/problem+json")]
    Client(Problem),
    /// The daemon cannot carry it out now.
    #[response(status = "5XX", content_type = "application/problem+json")]
    Daemon(Problem),
}

impl Problem {
    fn new(status: StatusCode, kind: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:larder:problem:{kind}"),
            title: status.canonical_reason().unwrap_or_default().into(),
            status: status.as_u16(),
            detail: detail.into(),
            help: None,
        }
    }

    fn with(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "the request does not bring the token")
            .with("send the header Authorization: Bearer TOKEN, with what is in api.token_file")
    }

    pub fn no_such_path(path: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown-path", format!("there is nothing at {path}"))
            .with("GET /v1/openapi.json tells what there is")
    }

    pub fn wrong_method(method: &str) -> Self {
        let detail = format!("{method} is not for this path");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "wrong-method", detail)
            .with("GET /v1/openapi.json tells what there is")
    }

    pub fn unknown_tenant(name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown-tenant", format!("there is no tenant \"{name}\""))
            .with("GET /v1/tenants lists them")
    }

    pub fn unknown_volume(name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown-volume", format!("there is no volume \"{name}\""))
            .with("GET /v1/volumes lists them")
    }

    pub fn unknown_recording(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "unknown-recording", format!("there is no recording {id}"))
            .with("GET /v1/recordings lists them")
    }

    /// A value of the request is not what it has to be.
    pub fn invalid(detail: impl Into<String>, help: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail).with(help)
    }

    /// The body did not come in time.
    pub fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "the request's body did not come in time")
    }

    /// It failed within the daemon.
    pub fn internal() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "bug", "the daemon failed to answer")
            .with("look at the daemon's log, and report it as a bug")
    }

    fn conflict(kind: &str, error: &dyn std::error::Error, help: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, kind, error.to_string()).with(help)
    }

    fn busy(error: &dyn std::error::Error) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", error.to_string())
            .with("try again; if it stays so, look at the daemon's log")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, axum::Json(self)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}

impl From<Silent> for Problem {
    fn from(error: Silent) -> Self {
        Self::busy(&error)
    }
}

impl From<Refusal> for Problem {
    fn from(error: Refusal) -> Self {
        match &error {
            Refusal::Unknown(name) | Refusal::UnknownVolume(name) => Self::unknown_volume(name),
            Refusal::UnknownTenant(name) => Self::unknown_tenant(name),
            Refusal::Migrating(_) => Self::conflict("migrating", &error, "end the migration first"),
            Refusal::Recordings | Refusal::Reactor(_) => Self::busy(&error),
        }
    }
}

impl From<VolumeRefusal> for Problem {
    fn from(error: VolumeRefusal) -> Self {
        let kind = match &error {
            VolumeRefusal::Unknown(name) => return Self::unknown_volume(name),
            VolumeRefusal::Reactor(_) | VolumeRefusal::Silent(_) => return Self::busy(&error),
            VolumeRefusal::File(_) => {
                let problem = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "file", error.to_string());
                return problem.with(error.help());
            }
            VolumeRefusal::Volume { .. } => "volume-state",
            VolumeRefusal::NotMigrating(_) => "not-migrating",
            VolumeRefusal::NotDrained(_) => "not-drained",
            VolumeRefusal::InUse { .. } => "in-use",
        };
        Self::conflict(kind, &error, error.help())
    }
}

impl From<ExploreError> for Problem {
    fn from(error: ExploreError) -> Self {
        match &error {
            ExploreError::UnknownTenant(name) => Self::unknown_tenant(name),
            ExploreError::TooLarge { .. } => Self::invalid(error.to_string(), error.help()),
            ExploreError::Untold { .. } => Self::conflict("not-known", &error, error.help()),
        }
    }
}

/// There is no analyzer any more.
impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        Self::busy(&error)
    }
}

impl From<KeepError> for Problem {
    fn from(error: KeepError) -> Self {
        let kind = match &error {
            KeepError::InUse => "cache-in-use",
            KeepError::Silent(_) | KeepError::Stopping => return Self::busy(&error),
            KeepError::NotClosed | KeepError::Cache(_) | KeepError::Blocks(..) | KeepError::Attach(_) => {
                "cache-device"
            }
        };
        Self::conflict(kind, &error, error.help())
    }
}

impl From<ReloadError> for Problem {
    fn from(error: ReloadError) -> Self {
        let kind = match &error {
            ReloadError::Setting(SettingError::UnknownTenant(name)) => return Self::unknown_tenant(name),
            ReloadError::Setting(_) => return Self::invalid(error.to_string(), error.help()),
            ReloadError::Config(_) => "configuration",
            ReloadError::Restart(_) => "needs-restart",
            ReloadError::Serve(_) | ReloadError::Change(_) => "cannot-serve",
            ReloadError::InUse { .. } => "in-use",
            ReloadError::Volume { .. } | ReloadError::Tenant { .. } => "volume-state",
            ReloadError::Busy => "change-under-way",
            ReloadError::Reactor(_) | ReloadError::Silent(_) => return Self::busy(&error),
            ReloadError::File(_) | ReloadError::SettingsFile(_) => {
                let problem = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "file", error.to_string());
                return problem.with(error.help());
            }
        };
        Self::conflict(kind, &error, error.help())
    }
}

/// A body that is not what is expected.
impl From<JsonRejection> for Problem {
    fn from(error: JsonRejection) -> Self {
        Self::new(error.status(), "invalid", error.body_text())
            .with("GET /v1/openapi.json describes the body; its type is application/json")
    }
}

/// A query that is not what is expected.
impl From<QueryRejection> for Problem {
    fn from(error: QueryRejection) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", error.body_text())
            .with("GET /v1/openapi.json describes the query")
    }
}

/// A path that is no text.
impl From<PathRejection> for Problem {
    fn from(error: PathRejection) -> Self {
        let detail: Cow<'_, str> = error.body_text().into();
        Self::new(StatusCode::BAD_REQUEST, "invalid", detail)
    }
}
