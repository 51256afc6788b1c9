//! Recordings: what guests ask for, as it comes.
//!
//! The answer to `POST` is the stream that `larder record` gets over the control socket: a session writes it into one end of a pair of sockets, and what comes out of the
//! other is the body. So a session ends by its time, by `DELETE`, or when the client hangs up.

use std::io;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Json;
use axum::body::{Body as Stream, Bytes};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use http_body::Frame;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::UnixStream;
use utoipa::ToSchema;

use super::extract::{Body, Name};
use super::{Shared, waiting};
use crate::api::problem::{Problem, Refused};
use crate::record::Underway;
use crate::record::session::Session;

/// The longest recording.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Bytes of the body at a time.
const CHUNK: usize = 16 << 10;

/// Lines of JSON.
const LINES: &str = "application/x-ndjson";

/// What is to be recorded.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// It ends after so many seconds; at most a day.
    #[schema(exclusive_minimum = 0.0, maximum = 86400.0, example = 60.0)]
    seconds: f64,
    /// Tenants and volumes (`TENANT/VOLUME` where both have the name); all where there are none.
    #[serde(default)]
    names: Vec<String>,
}

/// All recordings under way.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Recordings {
    /// The oldest first.
    recordings: Vec<Underway>,
}

/// The recordings under way, those of `larder record` among them.
#[utoipa::path(get, path = "/v1/recordings", tag = "read", responses(
    (status = 200, description = "The recordings", body = Recordings),
    Refused,
))]
pub(super) async fn recordings(services: Shared) -> Json<Recordings> {
    Json(Recordings { recordings: services.recorders.underway() })
}

/// Record the requests of guests from now on. The body goes on until the time is over: a line of JSON each, first what the daemon is, then volumes (number, tenant, name), and rounds of
/// requests (nanoseconds since the begin, number of the volume, kind, first byte, bytes) several times a second. Guests never wait for a recording.
#[utoipa::path(post, path = "/v1/recordings", tag = "operate", request_body = Wanted, responses(
    (status = 200, description = "The requests as they come", body = String, content_type = "application/x-ndjson"),
    Refused,
))]
pub(super) async fn record(
    services: Shared,
    Body(Wanted { seconds, names }): Body<Wanted>,
) -> Result<impl IntoResponse, Problem> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero() && *time <= LONGEST);
    let time = time.ok_or_else(|| {
        let help = format!("write a number above 0, and at most {}", LONGEST.as_secs());
        Problem::invalid(format!("seconds: nothing is recorded for {seconds} s"), help)
    })?;
    let failed = |error: io::Error| {
        tracing::warn!(%error, "API: cannot record");
        Problem::internal()
    };
    let (ours, theirs) = StdUnixStream::pair().map_err(failed)?;
    let session = waiting(services, move |services| {
        Ok(Session::begin(&services.recorders, Arc::clone(&services.collector), names)?.for_at_most(time))
    });
    let session = session.await?;
    ours.set_nonblocking(true).map_err(failed)?;
    let lines = Lines(UnixStream::from_std(ours).map_err(failed)?);
    drop(tokio::task::spawn_blocking(move || {
        if let Err(error) = session.run(theirs) {
            tracing::debug!(%error, "API: a client that recorded left");
        }
    }));
    Ok(([(CONTENT_TYPE, LINES)], Stream::new(lines)))
}

/// Have a recording end: its last round follows.
#[utoipa::path(delete, path = "/v1/recordings/{recording}", tag = "operate",
    params(("recording" = String, Path, description = "Its number")),
    responses((status = 200, description = "Those that go on", body = Recordings), Refused)
)]
pub(super) async fn end(services: Shared, Name(id): Name) -> Result<Json<Recordings>, Problem> {
    let ended = id.parse().ok().filter(|&number| services.recorders.end(number));
    let number = ended.ok_or_else(|| Problem::unknown_recording(&id))?;
    let recordings = services.recorders.underway().into_iter().filter(|it| it.id != number).collect();
    Ok(Json(Recordings { recordings }))
}

/// What the session writes.
struct Lines(UnixStream);

impl http_body::Body for Lines {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let mut chunk = [0; CHUNK];
        let mut room = ReadBuf::new(&mut chunk);
        match Pin::new(&mut self.0).poll_read(context, &mut room) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) if room.filled().is_empty() => Poll::Ready(None),
            Poll::Ready(Ok(())) => Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(room.filled()))))),
            Poll::Ready(Err(error)) => Poll::Ready(Some(Err(error))),
        }
    }
}
