//! Connections: taken on the API's own thread, each for a bounded time until it asks, and so many at a time.

use std::io;
use std::net::TcpListener as StdTcpListener;
use std::os::unix::net::UnixListener as StdUnixListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use larder_export::Listener;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use super::guard::{Token, guard};
use super::listen::{ApiListeners, TcpSide};
use super::routes::router;
use super::services::Services;

/// Connections at a time, on the unix socket and on TCP each. One more waits to be accepted.
const CONNECTIONS_MAX: usize = 32;
/// Threads that wait for reactors: as many as there can be requests.
const WAITERS_MAX: usize = 2 * CONNECTIONS_MAX;
/// How long a client may take for a TLS handshake, and again to send a request's head, also the next one.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// How long threads that wait for reactors may take at the end.
const END_WITHIN: Duration = Duration::from_secs(1);
/// Pause before accepting again where the system has no descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// The thread that serves. Dropping it ends the thread and removes the socket.
pub struct ApiServer {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// The files of the sockets.
    _listeners: Vec<Listener>,
}

impl ApiListeners {
    /// Answer clients until the server is dropped.
    ///
    /// # Errors
    /// When the runtime or its thread cannot be started.
    pub(crate) fn serve(self, services: Services) -> io::Result<ApiServer> {
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(WAITERS_MAX).build()?;
        let app = router(Arc::new(services));
        let (end, ended) = oneshot::channel();
        let unix = StdUnixListener::from(self.unix.try_clone_socket()?);
        let mut listeners = vec![self.unix];
        let mut tcp = None;
        if let Some(TcpSide { listener, token, tls }) = self.tcp {
            let socket = StdTcpListener::from(listener.try_clone_socket()?);
            tcp = Some((socket, token, tls));
            listeners.push(listener);
        }
        let serve = move || run(runtime, app, unix, tcp, ended);
        let thread = thread::Builder::new().name("api".into()).spawn(serve)?;
        Ok(ApiServer { end: Some(end), thread: Some(thread), _listeners: listeners })
    }
}

impl Drop for ApiServer {
    fn drop(&mut self) {
        // It waits for this, or has ended.
        drop(self.end.take());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the API's thread panicked");
        }
    }
}

type Tcp = (StdTcpListener, Token, Option<TlsAcceptor>);

fn run(runtime: Runtime, app: Router, unix: StdUnixListener, tcp: Option<Tcp>, ended: oneshot::Receiver<()>) {
    let serve = async {
        let guarded = app.clone();
        let tcp = async {
            match tcp {
                Some(tcp) => accept_tcp(tcp, guarded).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            result = accept_unix(unix, app) => result,
            result = tcp => result,
            // Sent never, but hung up.
            _ = ended => Ok(()),
        }
    };
    if let Err(error) = runtime.block_on(serve) {
        tracing::error!(%error, "the API has ended: its socket cannot be used");
    }
    // Connections go with the runtime.
    runtime.shutdown_timeout(END_WITHIN);
}

async fn accept_unix(listener: StdUnixListener, app: Router) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let seat = seat(&seats).await;
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(serve(stream, app.clone(), seat))),
            Err(error) => refused(&error).await,
        }
    }
}

async fn accept_tcp((listener, token, tls): Tcp, app: Router) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let app = app.layer(axum::middleware::from_fn_with_state(token, guard));
    let seats = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let seat = seat(&seats).await;
        match listener.accept().await {
            Ok((stream, _)) => {
                let (app, tls) = (app.clone(), tls.clone());
                drop(tokio::spawn(async move {
                    match tls {
                        None => serve(stream, app, seat).await,
                        Some(tls) => match timeout(HEAD_WITHIN, tls.accept(stream)).await {
                            Ok(Ok(stream)) => serve(stream, app, seat).await,
                            Ok(Err(error)) => tracing::debug!(%error, "API: no TLS with a client"),
                            Err(_) => tracing::debug!("API: a client's TLS handshake took too long"),
                        },
                    }
                }));
            }
            Err(error) => refused(&error).await,
        }
    }
}

async fn seat(seats: &Arc<Semaphore>) -> OwnedSemaphorePermit {
    let seat = Arc::clone(seats).acquire_owned().await;
    seat.expect("nobody closes the semaphore")
}

/// A connection could not be accepted: it is gone already, or there are no descriptors, and nothing is gained by asking again at once.
async fn refused(error: &io::Error) {
    tracing::warn!(%error, "API: cannot accept");
    sleep(ACCEPT_AGAIN).await;
}

/// One connection.
async fn serve<S>(stream: S, app: Router, _seat: OwnedSemaphorePermit)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    if let Err(error) = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(app)).await {
        tracing::debug!(%error, "API: a client left");
    }
}
