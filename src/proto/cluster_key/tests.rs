use super::hmac::hmac_sha256;
use super::{ClusterKey, KeyError};
use crate::limits::CLUSTER_KEY_BYTES_MAX;
use proptest::prelude::*;

const CERTIFICATE: &str =
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgI+/w==\nQUJD\n-----END CERTIFICATE-----\n";
const PRIVATE_KEY: &str = "-----BEGIN PRIVATE KEY-----\nTUlHSEFnRUFNQk1H\n-----END PRIVATE KEY-----\n";

fn key() -> ClusterKey {
    let secret = std::array::from_fn(|at| at as u8);
    ClusterKey::new(*b"0123456789abcdef", secret, CERTIFICATE, PRIVATE_KEY).unwrap()
}

/// With a checksum that is right, whatever was changed.
fn checked(said: &str) -> String {
    format!("{said}crc32c {:08x}\n", crc32c::crc32c(said.as_bytes()))
}

fn unchecked(text: &str) -> &str {
    &text[..text.rfind("crc32c ").unwrap()]
}

#[test]
fn a_key_is_this_text() {
    let text = key().text();
    let expected = format!(
        "nephila cluster key 1\ncluster 30313233343536373839616263646566\n\
         secret 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n{CERTIFICATE}{PRIVATE_KEY}"
    );
    assert_eq!(text, checked(&expected));
    assert_eq!(ClusterKey::parse(&text), Ok(key()));
    assert_eq!((key().certificate_pem(), key().private_key_pem()), (CERTIFICATE, PRIVATE_KEY));
    assert_eq!(
        (key().cluster(), key().cluster_hex().as_str()),
        (*b"0123456789abcdef", "30313233343536373839616263646566")
    );
}

#[test]
fn ends_of_lines_may_be_of_another_system() {
    let text = key().text();
    for text in [text.replace('\n', "\r\n"), text.trim_end().to_string(), format!("{text}\n \n")] {
        assert_eq!(ClusterKey::parse(&text), Ok(key()));
    }
    let certificate = CERTIFICATE.replace('\n', "\r\n");
    let made = ClusterKey::new(key().cluster(), [7; 32], &certificate, PRIVATE_KEY.trim()).unwrap();
    assert_eq!((made.certificate_pem(), made.private_key_pem()), (CERTIFICATE, PRIVATE_KEY));
}

#[test]
fn every_mistake_has_its_line() {
    let text = key().text();
    let said = unchecked(&text);
    for (wrong, error) in [
        (String::new(), KeyError::Empty),
        (" \n".to_string(), KeyError::Empty),
        ("x".repeat(CLUSTER_KEY_BYTES_MAX + 1), KeyError::TooLong),
        (CERTIFICATE.to_string(), KeyError::OtherFile),
        (checked(&said.replace("key 1", "keys 1")), KeyError::OtherFile),
        (checked(&said.replace("key 1", "key 2")), KeyError::OtherVersion),
        (said.to_string(), KeyError::NoEnd),
        (text.trim_end()[..text.len() - 2].to_string(), KeyError::NoEnd),
        (text.replace("000102", "000103"), KeyError::Checksum),
        (checked(&said.replace("cluster 3", "cluster x")), KeyError::Cluster),
        (checked(&said.replace("cluster 30", "cluster ")), KeyError::Cluster),
        (checked(&said.replace("secret", "Secret")), KeyError::Secret),
        (checked(&said.replace("0a0b", "0A0B")), KeyError::Secret),
        (checked("nephila cluster key 1\n"), KeyError::Cluster),
        (checked(&said.replace("END CERT", "END SERT")), KeyError::Certificate),
        (checked(&said.replace(CERTIFICATE, "")), KeyError::Certificate),
        (checked(&said.replace("QUJD", "QU JD")), KeyError::Certificate),
        (checked(&said.replace(PRIVATE_KEY, "")), KeyError::PrivateKey),
        (checked(&said.replace("TUlHSEFnRUFNQk1H\n", "")), KeyError::PrivateKey),
        (checked(&format!("{said}{PRIVATE_KEY}")), KeyError::Trailing),
    ] {
        assert_eq!(ClusterKey::parse(&wrong), Err(error), "{wrong}");
        let line = error.to_string();
        assert!(!line.contains('\n') && line.len() < 120, "{line}");
    }
    let made =
        |certificate: &str, private_key: &str| ClusterKey::new([1; 16], [2; 32], certificate, private_key);
    assert_eq!(made(PRIVATE_KEY, PRIVATE_KEY), Err(KeyError::Certificate));
    assert_eq!(made(CERTIFICATE, CERTIFICATE), Err(KeyError::PrivateKey));
    assert_eq!(made(&CERTIFICATE.repeat(2), PRIVATE_KEY), Err(KeyError::Certificate));
    let long = CERTIFICATE.replace("QUJD", &"A".repeat(CLUSTER_KEY_BYTES_MAX));
    assert_eq!(made(&long, PRIVATE_KEY), Err(KeyError::TooLong));
}

#[test]
fn secrets_are_not_shown() {
    let shown = format!("{:?} {:#?}", key(), key());
    assert!(shown.contains("30313233343536373839616263646566"));
    for secret in ["000102", "0, 1, 2", "TUlH", "PRIVATE", &key().partition_seed().to_string()] {
        assert!(!shown.contains(secret), "{shown}");
    }
}

/// By another implementation of HMAC; the first is of RFC 4231, whose key is padded with zeros as HMAC would.
#[test]
fn sub_keys_are_these() {
    let mut rfc_key = [0; 32];
    rfc_key[..20].fill(0x0b);
    assert_eq!(hmac_sha256(&rfc_key, b"Hi There")[..4], [0xb0, 0x34, 0x4c, 0x61]);
    assert_eq!(key().partition_seed(), 0x0de8f45b635382c0);
    assert_eq!(
        key().datagram_key(),
        [
            0x27, 0x35, 0x2d, 0x4c, 0x43, 0xe8, 0x30, 0x92, 0x12, 0xe6, 0x52, 0xbc, 0x09, 0x57, 0xa5, 0x22,
            0xc6, 0xca, 0xae, 0x58, 0x3b, 0xf1, 0xf7, 0x0c, 0x28, 0x8d, 0xe9, 0xd1, 0x7a, 0x43, 0x6c, 0x5c
        ]
    );
    let other = ClusterKey::new(key().cluster(), [9; 32], CERTIFICATE, PRIVATE_KEY).unwrap();
    assert_ne!(other.partition_seed(), key().partition_seed());
    assert_ne!(other.datagram_key(), key().datagram_key());
}

#[test]
fn every_changed_byte_is_refused() {
    let text = key().text();
    for at in 0..text.len() - 1 {
        let mut bytes = text.clone().into_bytes();
        bytes[at] ^= 1;
        assert!(ClusterKey::parse(str::from_utf8(&bytes).unwrap()).is_err(), "byte {at}");
        assert!(ClusterKey::parse(&text[..at]).is_err(), "cut at {at}");
    }
}

proptest! {
    #[test]
    fn keys_come_back(cluster: [u8; 16], secret: [u8; 32], base64 in "[A-Za-z0-9+/]{1,64}(\n[A-Za-z0-9+/]{1,64}=?){0,5}") {
        let certificate = format!("-----BEGIN CERTIFICATE-----\n{base64}\n-----END CERTIFICATE-----\n");
        let key = ClusterKey::new(cluster, secret, &certificate, PRIVATE_KEY).unwrap();
        prop_assert_eq!(ClusterKey::parse(&key.text()), Ok(key));
    }

    #[test]
    fn any_text_is_a_key_or_an_error(lines in prop::collection::vec(prop_oneof![
        Just("nephila cluster key 1".to_string()), Just("cluster 30313233343536373839616263646566".to_string()),
        Just(CERTIFICATE.trim_end().to_string()), Just("crc32c 00000000".to_string()), "\\PC{0,20}",
    ], 0..8)) {
        let text = lines.join("\n");
        prop_assert!(ClusterKey::parse(&text).is_err());
        let whole = checked(&(text + "\n"));
        prop_assert!(ClusterKey::parse(&whole).is_err());
    }
}
