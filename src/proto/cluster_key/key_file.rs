use super::hmac::hmac_sha256;
use crate::limits::CLUSTER_KEY_BYTES_MAX;
use std::fmt;
use std::iter::Peekable;
use std::vec::IntoIter;
use thiserror::Error;

/// The key of a cluster. It is shown by its cluster's id only.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterKey {
    cluster: [u8; 16],
    secret: [u8; 32],
    /// Lines with LF behind each.
    certificate_pem: String,
    private_key_pem: String,
}

/// Why a text is no key of a cluster, and what helps. Nothing of the text is in it.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum KeyError {
    #[error("the key file is empty: copy it from the first node")]
    Empty,
    #[error("the key file is longer than {CLUSTER_KEY_BYTES_MAX} bytes: this is another file")]
    TooLong,
    #[error("the first line is not \"{HEAD} {VERSION}\": this is no key of a cluster")]
    OtherFile,
    #[error("the key file is of another version than {VERSION}: run the same nephila on all nodes")]
    OtherVersion,
    #[error(
        "the key file does not end with a line \"crc32c\" and 8 hex digits: copy all of it from the first node"
    )]
    NoEnd,
    #[error("the key file's checksum does not match: it was changed, copy it again from the first node")]
    Checksum,
    #[error("line 2 of the key file must be \"cluster\" and 32 digits of lower-case hex")]
    Cluster,
    #[error("line 3 of the key file must be \"secret\" and 64 digits of lower-case hex")]
    Secret,
    #[error("the key file has no whole certificate in PEM behind its secret")]
    Certificate,
    #[error("the key file has no whole private key in PEM behind its certificate")]
    PrivateKey,
    #[error("the key file has lines between its private key and its checksum that do not belong there")]
    Trailing,
}

const HEAD: &str = "nephila cluster key";
const VERSION: &str = "1";
const CLUSTER: &str = "cluster ";
const SECRET: &str = "secret ";
const END: &str = "crc32c ";
const CERTIFICATE: &str = "CERTIFICATE";
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// What sub-keys are derived under, so that no two uses share one.
const PARTITION_LABEL: &[u8] = b"nephila cluster 1: partitions";
const DATAGRAM_LABEL: &[u8] = b"nephila cluster 1: datagrams";

impl ClusterKey {
    /// A key of a new cluster. Certificate and private key are those of its authority; only their form is looked at.
    pub fn new(
        cluster: [u8; 16],
        secret: [u8; 32],
        certificate_pem: &str,
        private_key_pem: &str,
    ) -> Result<ClusterKey, KeyError> {
        let only = |text: &str, label, error| {
            let lines: Vec<&str> = text.trim().lines().collect();
            let mut lines = lines.into_iter().peekable();
            let block = pem_block(&mut lines, label).ok_or(error)?;
            if lines.next().is_none() { Ok(block) } else { Err(error) }
        };
        let key = ClusterKey {
            cluster,
            secret,
            certificate_pem: only(certificate_pem, CERTIFICATE, KeyError::Certificate)?,
            private_key_pem: only(private_key_pem, PRIVATE_KEY, KeyError::PrivateKey)?,
        };
        if key.text().len() > CLUSTER_KEY_BYTES_MAX { Err(KeyError::TooLong) } else { Ok(key) }
    }

    /// Reads the text of a key file.
    pub fn parse(text: &str) -> Result<ClusterKey, KeyError> {
        if text.len() > CLUSTER_KEY_BYTES_MAX {
            return Err(KeyError::TooLong);
        }
        let mut lines: Vec<&str> = text.trim_end().lines().collect();
        match lines.first().map(|first| first.strip_prefix(HEAD)) {
            None => return Err(KeyError::Empty),
            Some(Some(version)) if version.strip_prefix(' ') == Some(VERSION) => {}
            Some(Some(version)) if version.starts_with(' ') => return Err(KeyError::OtherVersion),
            Some(_) => return Err(KeyError::OtherFile),
        }
        let said = lines.pop().and_then(|last| last.strip_prefix(END)).and_then(read_hex::<4>);
        let said = u32::from_be_bytes(said.ok_or(KeyError::NoEnd)?);
        let sum = lines
            .iter()
            .fold(0, |sum, line| crc32c::crc32c_append(crc32c::crc32c_append(sum, line.as_bytes()), b"\n"));
        if sum != said {
            return Err(KeyError::Checksum);
        }
        let mut lines = lines.into_iter().peekable();
        lines.next();
        let cluster = lines.next().and_then(|line| line.strip_prefix(CLUSTER)).and_then(read_hex);
        let cluster = cluster.ok_or(KeyError::Cluster)?;
        let secret = lines.next().and_then(|line| line.strip_prefix(SECRET)).and_then(read_hex);
        let secret = secret.ok_or(KeyError::Secret)?;
        let certificate_pem = pem_block(&mut lines, CERTIFICATE).ok_or(KeyError::Certificate)?;
        let private_key_pem = pem_block(&mut lines, PRIVATE_KEY).ok_or(KeyError::PrivateKey)?;
        match lines.next() {
            None => Ok(ClusterKey { cluster, secret, certificate_pem, private_key_pem }),
            Some(_) => Err(KeyError::Trailing),
        }
    }

    /// The text of its key file. It holds the secrets: nobody but the owner may read the file.
    pub fn text(&self) -> String {
        let ClusterKey { cluster, secret, certificate_pem, private_key_pem } = self;
        let (cluster, secret) = (hex(cluster), hex(secret));
        let said = format!(
            "{HEAD} {VERSION}\n{CLUSTER}{cluster}\n{SECRET}{secret}\n{certificate_pem}{private_key_pem}"
        );
        format!("{said}{END}{:08x}\n", crc32c::crc32c(said.as_bytes()))
    }

    pub fn cluster(&self) -> [u8; 16] {
        self.cluster
    }

    /// The cluster's id as its key file has it.
    pub fn cluster_hex(&self) -> String {
        hex(&self.cluster)
    }

    /// The certificate of the cluster's authority.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The private key of the cluster's authority, which signs the certificates of its nodes.
    pub fn private_key_pem(&self) -> &str {
        &self.private_key_pem
    }

    /// The seed of the hash that places URLs.
    pub fn partition_seed(&self) -> u64 {
        let derived = hmac_sha256(&self.secret, PARTITION_LABEL);
        crate::base::u64_at(&derived, 0)
    }

    /// The key that seals datagrams between nodes.
    pub fn datagram_key(&self) -> [u8; 32] {
        hmac_sha256(&self.secret, DATAGRAM_LABEL)
    }
}

impl fmt::Debug for ClusterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterKey").field("cluster", &self.cluster_hex()).finish_non_exhaustive()
    }
}

/// Takes a block of PEM off the front; `None` unless it is whole and of this label.
fn pem_block(lines: &mut Peekable<IntoIter<&str>>, label: &str) -> Option<String> {
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let mut block = lines.next_if(|line| *line == begin)?.to_string() + "\n";
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    while let Some(line) = lines.next_if(|line| !line.is_empty() && line.bytes().all(is_base64)) {
        block.push_str(line);
        block.push('\n');
    }
    let is_empty = block.len() == begin.len() + 1;
    let last = lines.next_if(|line| *line == end)?;
    block.push_str(last);
    block.push('\n');
    (!is_empty).then_some(block)
}

fn hex(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from(b"0123456789abcdef"[usize::from(four)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Digits of lower-case hex, exactly as many as there are.
fn read_hex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let four = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = four(*high)? << 4 | four(*low)?;
    }
    Some(bytes)
}
