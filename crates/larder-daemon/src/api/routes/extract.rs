//! What handlers take from requests, refused as problems.

use std::time::Duration;

use axum::Json;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::api::problem::Problem;

/// How long a client may take to send a body.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// The name in the path.
pub(super) struct Name(pub String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state).await?;
        Ok(Self(name))
    }
}

/// What follows the path after `?`.
pub(super) struct Asked<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Query(asked) = Query::<T>::from_request_parts(parts, state).await?;
        Ok(Self(asked))
    }
}

/// A JSON body.
pub(super) struct Body<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let body = timeout(BODY_WITHIN, Json::<T>::from_request(request, state)).await;
        let Json(body) = body.map_err(|_| Problem::too_slow())??;
        Ok(Self(body))
    }
}
