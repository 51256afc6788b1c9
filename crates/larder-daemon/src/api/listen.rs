//! Where the API is reached: the unix socket with its mode and group, and TCP with what guards it. All of it is found out before the daemon starts anything.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use larder_export::{BindError, ListenAddress, Listener, bind_with_mode};
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

use super::guard::{TOKEN_BYTES_MIN, Token};
use super::tls;
use crate::config::{ApiConfig, ApiTcp};

/// What others than owner and group may do with a file: for one with a secret, nothing.
const OTHERS: u32 = 0o007;

/// Why the API cannot be had.
#[derive(Debug, Error)]
pub enum ApiSetupError {
    /// An address cannot be listened on.
    #[error("the API: {0}")]
    Listen(#[from] BindError),
    /// A file cannot be read.
    #[error("api.{key}: cannot read {}: {source}", path.display())]
    File {
        /// The key of `[api]` that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Others could read a secret.
    #[error("api.{key}: every user of this host may read {}", path.display())]
    Open {
        /// The key of `[api]` that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
    },
    /// A token that is none, or that can be guessed.
    #[error("api.token_file: {} holds no token of at least {TOKEN_BYTES_MIN} letters, digits and signs", .0.display())]
    Token(PathBuf),
    /// A certificate or key cannot be used.
    #[error("api.{key}: {}: {why}", path.display())]
    Tls {
        /// The key of `[api]` that names it.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

impl ApiSetupError {
    /// What the operator can do about it.
    pub fn help(&self) -> String {
        match self {
            Self::Listen(error) => error.remedy(),
            Self::File { path, source, .. } if source.kind() == io::ErrorKind::NotFound => {
                format!("create {}, or remove the key", path.display())
            }
            Self::File { path, .. } => format!("make {} readable for the daemon's user", path.display()),
            Self::Open { path, .. } => format!("chmod o= {}", path.display()),
            Self::Token(path) => format!("(umask 077; openssl rand -hex 32 > {})", path.display()),
            Self::Tls { .. } => {
                "give the certificate and its key as PEM, first the certificate and then those that vouch for it"
                    .into()
            }
        }
    }
}

/// The sockets, listening, and what guards that on TCP. Dropped, they leave nothing behind.
pub struct ApiListeners {
    pub(super) unix: Listener,
    pub(super) tcp: Option<TcpSide>,
}

/// TCP.
pub(super) struct TcpSide {
    pub listener: Listener,
    pub token: Token,
    pub tls: Option<TlsAcceptor>,
}

impl ApiListeners {
    /// Listen as a configuration says; the unix socket is given to the group of this number.
    ///
    /// # Errors
    /// Where an address is taken, or a file is not what it has to be. Nothing is left behind.
    pub fn bind(config: &ApiConfig, group: Option<u32>) -> Result<Self, ApiSetupError> {
        let tcp = config.tcp.as_ref().map(TcpSide::bind).transpose()?;
        let unix = bind_with_mode(&ListenAddress::Unix(config.socket.clone()), group, config.socket_mode)?;
        Ok(Self { unix, tcp })
    }
}

impl TcpSide {
    fn bind(config: &ApiTcp) -> Result<Self, ApiSetupError> {
        let token = token(&config.token_file)?;
        let tls = config.tls.as_ref().map(tls::acceptor).transpose()?;
        Ok(Self { listener: larder_export::bind(&ListenAddress::Tcp(config.listen))?, token, tls })
    }
}

/// The token of a file.
fn token(path: &Path) -> Result<Token, ApiSetupError> {
    let text = secret("token_file", path)?;
    let text = std::str::from_utf8(&text).ok().map(str::trim);
    text.and_then(Token::new).ok_or_else(|| ApiSetupError::Token(path.to_owned()))
}

/// What is in a file that nobody but owner and group may read.
pub(super) fn secret(key: &'static str, path: &Path) -> Result<Vec<u8>, ApiSetupError> {
    let failed = |source| ApiSetupError::File { key, path: path.to_owned(), source };
    let mode = fs::metadata(path).map_err(failed)?.permissions().mode();
    if mode & OTHERS != 0 {
        return Err(ApiSetupError::Open { key, path: path.to_owned() });
    }
    fs::read(path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("tempdir");
        let path = folder.path().join("token");
        fs::write(&path, text).expect("write");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("chmod");
        (folder, path)
    }

    #[test]
    fn a_token_is_long_and_a_secret() {
        let (_folder, path) = written("0123456789abcdef\n", 0o640);
        assert!(token(&path).expect("valid").is(b"0123456789abcdef"));
        let (_folder, path) = written("0123456789abcdef\n", 0o644);
        let error = token(&path).expect_err("anybody may read it");
        assert!(
            matches!(&error, ApiSetupError::Open { .. }) && error.help().starts_with("chmod o= /"),
            "{error}"
        );
        for none in ["", "short", "0123456789 abcdef", "0123456789abcdef\n0123"] {
            let (_folder, path) = written(none, 0o600);
            let error = token(&path).expect_err("no token");
            assert!(matches!(&error, ApiSetupError::Token(_)) && error.help().contains("openssl"), "{error}");
        }
        let error = token(Path::new("/nonexistent/token")).expect_err("missing");
        assert_eq!(error.help(), "create /nonexistent/token, or remove the key");
    }
}
