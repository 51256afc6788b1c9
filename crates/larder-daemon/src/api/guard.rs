//! The token: over TCP every request brings it (`Authorization: Bearer …`), or is refused before anything else of it is looked at.

use std::fmt;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use super::problem::Problem;

/// The shortest token that is accepted, in bytes.
pub(super) const TOKEN_BYTES_MIN: usize = 16;

/// What a client has to know.
#[derive(Clone)]
pub(super) struct Token(Arc<[u8]>);

/// It is a secret, also in logs.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// A token that is long enough, and can stand in a header; else `None`.
    pub fn new(text: &str) -> Option<Self> {
        let sound = text.len() >= TOKEN_BYTES_MIN && text.bytes().all(|byte| byte.is_ascii_graphic());
        sound.then(|| Self(text.as_bytes().into()))
    }

    /// True for this one. Takes the same time wherever they differ.
    pub fn is(&self, other: &[u8]) -> bool {
        self.0.ct_eq(other).into()
    }
}

/// Let a request through that brings the token.
pub(super) async fn guard(State(token): State<Token>, request: Request, next: Next) -> Response {
    if brought(request.headers()).is_some_and(|brought| token.is(brought)) {
        return next.run(request).await;
    }
    let mut refused = Problem::unauthorized().into_response();
    refused.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    refused
}

/// The token of a request. The scheme's case does not matter.
fn brought(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_opens() {
        let token = Token::new("0123456789abcdef").expect("long enough");
        let opens = |value: &str| {
            let value = HeaderValue::from_str(value).expect("a header");
            let headers = HeaderMap::from_iter([(AUTHORIZATION, value)]);
            brought(&headers).is_some_and(|brought| token.is(brought))
        };
        assert!(opens("Bearer 0123456789abcdef") && opens("bearer 0123456789abcdef"));
        for not in ["", "Bearer", "Bearer ", "Basic 0123456789abcdef", "0123456789abcdef"] {
            assert!(!opens(not), "{not}");
        }
        assert!(!opens("Bearer 0123456789abcdeg") && !opens("Bearer 0123456789abcdef0"));
        assert!(brought(&HeaderMap::new()).is_none());
    }
}
