//! NBD URIs: `nbd://host:port/export`, `nbd+unix:///export?socket=/path`.
//!
//! As in `doc/uri.md` of the NBD project. TLS (`nbds`) and other transports are refused by name.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::str::FromStr;

/// The port of an NBD server where a URI names none.
pub const DEFAULT_PORT: u16 = 10809;
/// Longest path of a Unix socket, in bytes (`sun_path` without its end).
pub const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    Unix(PathBuf),
    /// TCP. The host is a name or an address; an IPv6 address has no brackets here.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
}

/// An export of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uri {
    /// The server.
    pub address: Address,
    /// The export; empty for the server's default.
    pub export: String,
}

/// Why a text is no NBD URI.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// No scheme of NBD.
    #[error("not an NBD URI: it begins neither with nbd:// nor with nbd+unix://")]
    NotNbd,
    /// TLS is not supported.
    #[error("{0}: NBD over TLS is not supported; use nbd:// or nbd+unix://")]
    Tls(String),
    /// Another transport.
    #[error("{0}: only nbd:// and nbd+unix:// are supported")]
    Scheme(String),
    /// `nbd+unix` without its socket.
    #[error("nbd+unix needs the socket's path: nbd+unix:///EXPORT?socket=PATH")]
    NoSocket,
    /// `nbd+unix://host/`.
    #[error("nbd+unix takes no host (there are three slashes: nbd+unix:///EXPORT?socket=PATH)")]
    HostWithSocket,
    /// `nbd:///export`.
    #[error("nbd needs a host: nbd://HOST/EXPORT")]
    NoHost,
    /// The host cannot be one.
    #[error("{0:?} is no host name or address")]
    BadHost(String),
    /// The port is no number from 1 to 65535.
    #[error("{0:?} is no port (1 to 65535)")]
    BadPort(String),
    /// User names go with TLS only.
    #[error("a user name (before @) goes with TLS, which is not supported")]
    UserName,
    /// A query or a fragment that means nothing here.
    #[error("{0:?} is not understood in an NBD URI")]
    Unknown(String),
    /// `%` without two hexadecimal digits, or bytes that are no text or hold a NUL.
    #[error("bad percent-encoding in {0:?}")]
    BadEncoding(String),
    /// Longer than the system takes.
    #[error("the socket's path is longer than {SOCKET_PATH_BYTES_MAX} bytes")]
    PathTooLong,
    /// Longer than the protocol takes.
    #[error("the export's name is longer than {} bytes", crate::consts::STRING_BYTES_MAX)]
    NameTooLong,
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let (scheme, rest) = text.split_once("://").ok_or(UriError::NotNbd)?;
        let unix = is_unix(scheme)?;
        if let Some((_, fragment)) = rest.split_once('#') {
            return Err(UriError::Unknown(format!("#{fragment}")));
        }
        let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = location.split_once('/').unwrap_or((location, ""));
        let export = String::from_utf8(decode(path)?).map_err(|_| UriError::BadEncoding(path.to_owned()))?;
        if export.len() > crate::consts::STRING_BYTES_MAX {
            return Err(UriError::NameTooLong);
        }
        let address = if unix { unix_address(authority, query)? } else { tcp_address(authority, query)? };
        Ok(Self { address, export })
    }
}

/// The URI again, in its canonical form.
impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let export = encode(self.export.as_bytes());
        match &self.address {
            Address::Unix(path) => {
                write!(f, "nbd+unix:///{export}?socket={}", encode(path.as_os_str().as_bytes()))
            }
            Address::Tcp { host, port } if host.contains(':') => write!(f, "nbd://[{host}]:{port}/{export}"),
            Address::Tcp { host, port } => write!(f, "nbd://{host}:{port}/{export}"),
        }
    }
}

fn is_unix(scheme: &str) -> Result<bool, UriError> {
    match scheme.to_ascii_lowercase().as_str() {
        "nbd" => Ok(false),
        "nbd+unix" => Ok(true),
        "nbds" | "nbds+unix" | "nbds+vsock" => Err(UriError::Tls(scheme.to_owned())),
        other if other.starts_with("nbd") => Err(UriError::Scheme(scheme.to_owned())),
        _ => Err(UriError::NotNbd),
    }
}

fn unix_address(authority: &str, query: &str) -> Result<Address, UriError> {
    if !authority.is_empty() {
        return Err(UriError::HostWithSocket);
    }
    let mut socket = None;
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        match parameter.split_once('=') {
            Some(("socket", path)) if socket.is_none() => socket = Some(decode(path)?),
            _ => return Err(UriError::Unknown(parameter.to_owned())),
        }
    }
    match socket {
        Some(path) if path.len() > SOCKET_PATH_BYTES_MAX => Err(UriError::PathTooLong),
        Some(path) if !path.is_empty() => Ok(Address::Unix(PathBuf::from(OsString::from_vec(path)))),
        _ => Err(UriError::NoSocket),
    }
}

fn tcp_address(authority: &str, query: &str) -> Result<Address, UriError> {
    if authority.contains('@') {
        return Err(UriError::UserName);
    }
    if !query.is_empty() {
        return Err(UriError::Unknown(query.to_owned()));
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => ipv6(authority, rest)?,
        None => name(authority)?,
    };
    Ok(Address::Tcp { host, port: port.map_or(Ok(DEFAULT_PORT), parse_port)? })
}

/// `::1]:10809`: what follows the opening bracket.
fn ipv6<'a>(authority: &str, rest: &'a str) -> Result<(String, Option<&'a str>), UriError> {
    let bad = || UriError::BadHost(authority.to_owned());
    let (address, port) = rest.split_once(']').ok_or_else(bad)?;
    address.parse::<std::net::Ipv6Addr>().map_err(|_| bad())?;
    match port.strip_prefix(':') {
        Some(port) => Ok((address.to_owned(), Some(port))),
        None if port.is_empty() => Ok((address.to_owned(), None)),
        None => Err(bad()),
    }
}

fn name(authority: &str) -> Result<(String, Option<&str>), UriError> {
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (authority, None),
    };
    let host = String::from_utf8(decode(host)?).map_err(|_| UriError::BadHost(host.to_owned()))?;
    if host.is_empty() {
        return Err(UriError::NoHost);
    }
    let plausible = host.chars().all(|c| c.is_alphanumeric() || matches!(c, '.' | '-' | '_'));
    if plausible { Ok((host, port)) } else { Err(UriError::BadHost(host)) }
}

fn parse_port(text: &str) -> Result<u16, UriError> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| digits && *port > 0);
    port.ok_or_else(|| UriError::BadPort(text.to_owned()))
}

/// Undo percent-encoding. NUL is refused: neither a path nor a name may hold it.
fn decode(text: &str) -> Result<Vec<u8>, UriError> {
    let bad = || UriError::BadEncoding(text.to_owned());
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let byte = if byte == b'%' { hex_byte(bytes.next(), bytes.next()).ok_or_else(bad)? } else { byte };
        if byte == 0 {
            return Err(bad());
        }
        decoded.push(byte);
    }
    Ok(decoded)
}

fn hex_byte(high: Option<u8>, low: Option<u8>) -> Option<u8> {
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for &byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte))
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tcp(host: &str, port: u16, export: &str) -> Uri {
        Uri { address: Address::Tcp { host: host.into(), port }, export: export.into() }
    }

    fn unix(path: &str, export: &str) -> Uri {
        Uri { address: Address::Unix(path.into()), export: export.into() }
    }

    #[test]
    fn good_ones() {
        for (text, uri) in [
            ("nbd://host", tcp("host", 10809, "")),
            ("nbd://host/", tcp("host", 10809, "")),
            ("NBD://host:10/a/b", tcp("host", 10, "a/b")),
            ("nbd://127.0.0.1/%20x", tcp("127.0.0.1", 10809, " x")),
            ("nbd://[::1]/e", tcp("::1", 10809, "e")),
            ("nbd://[fe80::1]:1234", tcp("fe80::1", 1234, "")),
            ("nbd+unix:///?socket=/run/s", unix("/run/s", "")),
            ("nbd+unix://?socket=/run/s", unix("/run/s", "")),
            ("nbd+unix:///db-root?socket=/run/a%20b", unix("/run/a b", "db-root")),
            ("nbd+unix:////x?socket=s", unix("s", "/x")),
        ] {
            assert_eq!(text.parse(), Ok(uri), "{text}");
        }
    }

    #[test]
    fn bad_ones() {
        use UriError::*;
        for (text, error) in [
            ("/srv/disk", NotNbd),
            ("http://host/", NotNbd),
            ("nbds://host/", Tls("nbds".into())),
            ("nbds+unix:///?socket=s", Tls("nbds+unix".into())),
            ("nbd+vsock://2/", Scheme("nbd+vsock".into())),
            ("nbd+unix:///x", NoSocket),
            ("nbd+unix:///x?socket=", NoSocket),
            ("nbd+unix://host/x?socket=s", HostWithSocket),
            ("nbd:///x", NoHost),
            ("nbd://:10", NoHost),
            ("nbd://[::1", BadHost("[::1".into())),
            ("nbd://[nonsense]", BadHost("[nonsense]".into())),
            ("nbd://[::1]10", BadHost("[::1]10".into())),
            ("nbd://a b", BadHost("a b".into())),
            ("nbd://host:0", BadPort("0".into())),
            ("nbd://host:+1", BadPort("+1".into())),
            ("nbd://host:65536", BadPort("65536".into())),
            ("nbd://host:", BadPort(String::new())),
            ("nbd://me@host", UserName),
            ("nbd://host/x?tls-hostname=y", Unknown("tls-hostname=y".into())),
            ("nbd+unix:///x?socket=a&socket=b", Unknown("socket=b".into())),
            ("nbd://host/x#y", Unknown("#y".into())),
            ("nbd://host/%4", BadEncoding("%4".into())),
            ("nbd://host/%+4", BadEncoding("%+4".into())),
            ("nbd://host/%00", BadEncoding("%00".into())),
            ("nbd://host/%ff", BadEncoding("%ff".into())),
        ] {
            assert_eq!(text.parse::<Uri>(), Err(error), "{text}");
        }
        let long = format!("nbd+unix:///?socket=/{}", "x".repeat(107));
        assert_eq!(long.parse::<Uri>(), Err(PathTooLong));
        assert_eq!(format!("nbd://h/{}", "x".repeat(4097)).parse::<Uri>(), Err(NameTooLong));
    }

    proptest! {
        #[test]
        fn the_canonical_form_means_the_same(path in "[^\0]{1,25}", export in "[^\0]{0,25}", port in 1u16..) {
            for uri in [unix(&path, &export), tcp("host", port, &export), tcp("::1", port, &export)] {
                prop_assert_eq!(uri.to_string().parse(), Ok(uri));
            }
        }

        #[test]
        fn arbitrary_text_does_not_panic(text in "(nbd(\\+unix)?://)?.{0,40}") {
            let _ = text.parse::<Uri>();
        }
    }
}
