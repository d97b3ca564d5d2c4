//! TLS: certificates, and who clients are by theirs.

use crate::{
    config::{Config, Tls},
    error::ServerError,
    manager::Manager,
};
use flask::Sid;
use std::{collections::HashMap, fmt::Write as _, path::Path, sync::Arc};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        RootCertStore, ServerConfig, ServerConnection,
        crypto::ring,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
        server::WebPkiClientVerifier,
    },
};

/// What listeners speak TLS with, by their place in the configuration.
#[derive(Default)]
pub(crate) struct Acceptors(HashMap<u16, Acceptor>);

/// What one listener speaks TLS with.
#[derive(Clone)]
pub(crate) struct Acceptor {
    pub(crate) tls: TlsAcceptor,
    /// Labels of clients, by the digests of their certificates.
    labels: Arc<HashMap<String, Sid>>,
    /// By whom certificates of clients are signed, as a digest of all.
    authorities: [u8; 32],
}

/// What a certificate counts by that a client has shown.
pub(crate) struct Shown {
    listener: u16,
    authorities: [u8; 32],
}

impl Acceptors {
    pub(crate) fn new(config: &Config, manager: &Manager) -> Result<Self, ServerError> {
        let mut made = HashMap::new();
        for (index, listen) in config.listen.iter().enumerate() {
            if let Some(tls) = &listen.tls {
                made.insert(index as u16, Acceptor::new(config, tls, manager)?);
            }
        }
        Ok(Self(made))
    }

    pub(crate) fn get(&self, index: u16) -> Option<Acceptor> {
        self.0.get(&index).cloned()
    }

    /// Whether what a client has shown would be believed today by the same authorities.
    pub(crate) fn believe(&self, shown: &Shown) -> bool {
        let now = self.0.get(&shown.listener);
        now.is_some_and(|now| now.authorities == shown.authorities)
    }
}

impl Acceptor {
    fn new(config: &Config, tls: &Tls, manager: &Manager) -> Result<Self, ServerError> {
        let (certificate, key) = (config.path(&tls.certificate), config.path(&tls.key));
        let chain = certificates(&certificate)?;
        let key_error = |why: String| ServerError::Tls { what: key.display().to_string(), why };
        let secret =
            PrivateKeyDer::from_pem_file(&key).map_err(|error| key_error(error.to_string()))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| key_error(error.to_string()))?;
        let mut authorities = ::ring::digest::Context::new(&::ring::digest::SHA256);
        let builder = match &tls.clients {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let path = config.path(path);
                let wrong =
                    |why: String| ServerError::Tls { what: path.display().to_string(), why };
                let mut roots = RootCertStore::empty();
                for root in certificates(&path)? {
                    authorities.update(&root);
                    roots.add(root).map_err(|error| wrong(error.to_string()))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                // Who shows no certificate has the listener's label.
                let verifier = verifier.allow_unauthenticated().build();
                builder
                    .with_client_cert_verifier(verifier.map_err(|error| wrong(error.to_string()))?)
            }
        };
        let mut server = builder
            .with_single_cert(chain, secret)
            .map_err(|error| key_error(error.to_string()))?;
        server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut labels = HashMap::new();
        for (digest, context) in &tls.labels {
            labels.insert(digest.to_ascii_lowercase().replace(':', ""), manager.sid(context)?);
        }
        let authorities = authorities.finish().as_ref().try_into().unwrap_or_default();
        Ok(Self { tls: TlsAcceptor::from(Arc::new(server)), labels: Arc::new(labels), authorities })
    }

    /// What the certificate counts by that a client of this `listener` has shown.
    pub(crate) fn shown(&self, listener: u16, connection: &ServerConnection) -> Option<Shown> {
        connection.peer_certificates()?.first()?;
        Some(Shown { listener, authorities: self.authorities })
    }

    /// The label of a client, by its certificate.
    pub(crate) fn label(&self, connection: &ServerConnection) -> Option<Sid> {
        let own = connection.peer_certificates()?.first()?;
        let digest = ::ring::digest::digest(&::ring::digest::SHA256, own);
        let mut text = String::with_capacity(64);
        for byte in digest.as_ref() {
            // Writing to a `String` does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        self.labels.get(&text).copied()
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ServerError> {
    let wrong = |why: String| ServerError::Tls { what: path.display().to_string(), why };
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let read = read.map_err(|error| wrong(error.to_string()))?;
    if read.is_empty() { Err(wrong("there is no certificate in it".to_owned())) } else { Ok(read) }
}
