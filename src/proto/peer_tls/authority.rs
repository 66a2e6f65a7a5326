//! The authority of a cluster: how it is made, and how it signs for a node.

use super::fault::IdentityError;
use crate::proto::cluster_key::ClusterKey;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// The name in every certificate of a node, and the one that its peers ask for.
pub(super) const NODE_NAME: &str = "node.nephila.internal";

/// The century in which all certificates hold, and a second in the midst of it: the start of 2070.
const FIRST_YEAR: i32 = 2020;
const LAST_YEAR: i32 = 2120;
pub(super) const JUDGED_AT_UNIX_S: u64 = 3_155_760_000;

/// Makes the key of a new cluster: an id, a secret and an authority that nobody else has. Random bytes are the system's, as
/// the TLS library gets them.
pub fn new_cluster_key() -> Result<ClusterKey, IdentityError> {
    let (mut cluster, mut secret) = ([0; 16], [0; 32]);
    let random = default_provider().secure_random;
    random.fill(&mut cluster).and_then(|()| random.fill(&mut secret)).map_err(|_| IdentityError::Internal)?;
    let key = KeyPair::generate().map_err(|_| IdentityError::Internal)?;
    let certificate = params(cluster).self_signed(&key).map_err(|_| IdentityError::Internal)?;
    ClusterKey::new(cluster, secret, &certificate.pem(), &key.serialize_pem())
        .map_err(|_| IdentityError::Internal)
}

/// A certificate of a node and its private key.
pub(super) struct Leaf {
    pub(super) certificate: CertificateDer<'static>,
    pub(super) private_key: PrivateKeyDer<'static>,
}

impl Leaf {
    pub(super) fn new(key: &ClusterKey) -> Result<Leaf, IdentityError> {
        let signer = KeyPair::from_pem(key.private_key_pem()).map_err(|_| IdentityError::PrivateKey)?;
        let signer = Issuer::new(params(key.cluster()), signer);
        let mut params = century();
        params.subject_alt_names =
            vec![SanType::DnsName(NODE_NAME.try_into().map_err(|_| IdentityError::Internal)?)];
        params.distinguished_name = common_name("nephila node");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let own = KeyPair::generate().map_err(|_| IdentityError::Internal)?;
        let certificate = params.signed_by(&own, &signer).map_err(|_| IdentityError::Internal)?;
        Ok(Leaf {
            certificate: certificate.der().clone(),
            private_key: PrivatePkcs8KeyDer::from(own.serialize_der()).into(),
        })
    }
}

/// What the authority's certificate says. The same for a cluster each time, so that the certificate need not be read again to
/// sign in its name.
fn params(cluster: [u8; 16]) -> CertificateParams {
    let mut params = century();
    params.distinguished_name =
        common_name(&format!("nephila cluster {:032x}", u128::from_be_bytes(cluster)));
    // It signs nodes, and no further authorities.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

fn century() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.not_before = date_time_ymd(FIRST_YEAR, 1, 1);
    params.not_after = date_time_ymd(LAST_YEAR, 1, 1);
    params
}

fn common_name(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}
