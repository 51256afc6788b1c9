//! What can be asked, and its description. Both are made of the same list, so that none can be without the other.

mod explore;
mod extract;
mod operate;
mod read;
mod record;
mod settings;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::Method;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{OpenApi as Document, SecurityRequirement, Server};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::problem::Problem;
use super::services::Services;

/// The longest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 16 << 10;

/// What is shared by all requests.
type Shared = axum::extract::State<Arc<Services>>;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Larder",
        description = "What a Larder daemon tells, and what it can be asked to do. Sizes are bytes, times seconds, ratios between 0 and 1; counters run from the \
            start of the daemon. A refusal is application/problem+json. On the unix socket no token is needed.",
        license(name = "Apache-2.0", identifier = "Apache-2.0"),
        contact(name = "Larder", url = "https://github.com/larder-cache/larder")
    ),
    components(schemas(Problem)),
    modifiers(&Token),
    tags(
        (name = "read", description = "What the daemon tells"),
        (name = "operate", description = "What it can be asked to do"),
    )
)]
struct Api;

/// Over TCP, a token.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_with(Default::default);
        components.add_security_scheme("token", SecurityScheme::Http(scheme));
        let none: [&str; 0] = [];
        document.security = Some(vec![SecurityRequirement::new("token", none)]);
        document.servers = Some(vec![Server::new("/")]);
    }
}

fn described() -> (Router<Arc<Services>>, Document) {
    let router = OpenApiRouter::with_openapi(Api::openapi())
        .routes(routes!(read::health))
        .routes(routes!(read::status))
        .routes(routes!(read::tenants))
        .routes(routes!(read::tenant))
        .routes(routes!(read::volumes))
        .routes(routes!(read::volume))
        .routes(routes!(read::lost))
        .routes(routes!(read::decisions))
        .routes(routes!(read::tenant_decisions))
        .routes(routes!(explore::curves))
        .routes(routes!(explore::what_if))
        .routes(routes!(record::recordings, record::record))
        .routes(routes!(record::end))
        .routes(routes!(settings::differences, settings::set))
        .routes(routes!(settings::set_of_tenant))
        .routes(routes!(read::metrics))
        .routes(routes!(read::openapi))
        .routes(routes!(operate::flush_tenant))
        .routes(routes!(operate::drain_tenant))
        .routes(routes!(operate::undrain_tenant))
        .routes(routes!(operate::flush_volume))
        .routes(routes!(operate::drain_volume))
        .routes(routes!(operate::undrain_volume))
        .routes(routes!(operate::resize))
        .routes(routes!(operate::quiesce))
        .routes(routes!(operate::thaw))
        .routes(routes!(operate::migrate))
        .routes(routes!(operate::attach))
        .routes(routes!(operate::reload));
    router.split_for_parts()
}

/// The description of the API: OpenAPI 3.1, as it is checked in at `docs/openapi.json`.
pub fn document() -> Document {
    described().1
}

/// What answers requests.
pub(super) fn router(services: Arc<Services>) -> Router {
    let (router, _) = described();
    router
        .fallback(|request: Request| async move { Problem::no_such_path(request.uri().path()) })
        .method_not_allowed_fallback(|method: Method| async move { Problem::wrong_method(method.as_str()) })
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .with_state(services)
}

/// Have something done on a thread that may wait for reactors.
async fn waiting<T: Send + 'static>(
    services: Shared,
    act: impl FnOnce(&Services) -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let services = services.0;
    tokio::task::spawn_blocking(move || act(&services)).await.unwrap_or_else(|_| Err(Problem::internal()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Written with `cargo run -p larder-daemon --example openapi > docs/openapi.json`.
    #[test]
    fn the_document_is_what_is_checked_in() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/openapi.json");
        let checked_in = std::fs::read_to_string(path).expect("docs/openapi.json");
        let now = document().to_pretty_json().expect("serializable") + "\n";
        assert!(checked_in == now, "cargo run -p larder-daemon --example openapi > docs/openapi.json");
    }
}
