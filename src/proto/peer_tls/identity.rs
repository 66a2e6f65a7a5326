use super::authority::{JUDGED_AT_UNIX_S, Leaf, NODE_NAME};
use super::fault::IdentityError;
use crate::proto::cluster_key::ClusterKey;
use rustls::client::Resumption;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a node shows its peers and judges them by. Copies share one certificate.
#[derive(Clone)]
pub struct NodeIdentity {
    pub(super) client: Arc<ClientConfig>,
    pub(super) server: Arc<ServerConfig>,
    /// The name that every node has for every other.
    pub(super) name: ServerName<'static>,
}

impl NodeIdentity {
    /// Makes a certificate in memory and signs it by the authority of the cluster. A key file that does not hold together is
    /// found here, and not by the first peer.
    pub fn new(key: &ClusterKey) -> Result<NodeIdentity, IdentityError> {
        let leaf = Leaf::new(key)?;
        let judge = Judge::new(key)?;
        judge
            .of_clients
            .verify_client_cert(&leaf.certificate, &[], judged_at())
            .map_err(|_| IdentityError::Pair)?;
        NodeIdentity::of(leaf, judge)
    }

    pub(super) fn of(leaf: Leaf, judge: Judge) -> Result<NodeIdentity, IdentityError> {
        let Leaf { certificate, private_key } = leaf;
        let provider = Arc::new(default_provider());
        let mut client = ClientConfig::builder_with_details(provider.clone(), Arc::new(FixedDay))
            .with_protocol_versions(&[&TLS13])
            .map_err(|_| IdentityError::Internal)?
            .with_root_certificates(judge.roots)
            .with_client_auth_cert(vec![certificate.clone()], private_key.clone_key())
            .map_err(|_| IdentityError::Internal)?;
        // Links live long: a session to resume would only be one more thing to keep.
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        let mut server = ServerConfig::builder_with_details(provider, Arc::new(FixedDay))
            .with_protocol_versions(&[&TLS13])
            .map_err(|_| IdentityError::Internal)?
            .with_client_cert_verifier(judge.of_clients)
            .with_single_cert(vec![certificate], private_key)
            .map_err(|_| IdentityError::Internal)?;
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        let name = ServerName::try_from(NODE_NAME).map_err(|_| IdentityError::Internal)?;
        Ok(NodeIdentity { client: Arc::new(client), server: Arc::new(server), name })
    }
}

impl fmt::Debug for NodeIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeIdentity").finish_non_exhaustive()
    }
}

/// Believes the authority of one cluster and no other.
pub(super) struct Judge {
    roots: Arc<RootCertStore>,
    of_clients: Arc<dyn ClientCertVerifier>,
}

impl Judge {
    pub(super) fn new(key: &ClusterKey) -> Result<Judge, IdentityError> {
        let authority = CertificateDer::from_pem_slice(key.certificate_pem().as_bytes())
            .map_err(|_| IdentityError::Certificate)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority).map_err(|_| IdentityError::Certificate)?;
        let roots = Arc::new(roots);
        let of_clients =
            WebPkiClientVerifier::builder_with_provider(roots.clone(), Arc::new(default_provider()))
                .build()
                .map_err(|_| IdentityError::Certificate)?;
        Ok(Judge { roots, of_clients })
    }
}

/// The time as certificates of nodes are judged by.
#[derive(Debug)]
struct FixedDay;

impl TimeProvider for FixedDay {
    fn current_time(&self) -> Option<UnixTime> {
        Some(judged_at())
    }
}

fn judged_at() -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(JUDGED_AT_UNIX_S))
}
