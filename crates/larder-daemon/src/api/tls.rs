//! TLS for the API on TCP: the certificate and the key that the configuration names.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::listen::{ApiSetupError, secret};
use crate::config::ApiTls;

/// What takes TLS connections.
pub(super) fn acceptor(config: &ApiTls) -> Result<TlsAcceptor, ApiSetupError> {
    let refused = |key: &'static str, path: &Path, why: &dyn std::fmt::Display| ApiSetupError::Tls {
        key,
        path: path.to_owned(),
        why: why.to_string(),
    };
    let text = fs::read(&config.cert).map_err(|source| ApiSetupError::File {
        key: "tls_cert",
        path: config.cert.clone(),
        source,
    })?;
    let of_cert = |why: &dyn std::fmt::Display| refused("tls_cert", &config.cert, why);
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(|error| of_cert(&error))?;
    if certificates.is_empty() {
        return Err(of_cert(&"there is no certificate in it"));
    }
    let of_key = |why: &dyn std::fmt::Display| refused("tls_key", &config.key, why);
    let key =
        PrivateKeyDer::from_pem_slice(&secret("tls_key", &config.key)?).map_err(|error| of_key(&error))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|error| of_cert(&error))?;
    // Also where the key is that of another certificate.
    let server = builder.with_no_client_auth().with_single_cert(certificates, key);
    Ok(TlsAcceptor::from(Arc::new(server.map_err(|error| of_key(&error))?)))
}
