use domain::base::Name;
use std::str::FromStr;
use thiserror::Error;

/// A host name that can be asked for: labels of 1 to 63 bytes, 255 bytes in all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(Name<Vec<u8>>);

/// Why a name cannot be asked for. No server would know it either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadName {
    #[error("the name is empty")]
    Empty,
    #[error("the name has a character that a host name cannot have")]
    Character,
    #[error("the name, or a label of it, is too long or empty")]
    Labels,
}

impl HostName {
    /// Takes the host of a URL: lower case, ASCII, with or without a dot at its end.
    pub fn parse(host: &str) -> Result<HostName, BadName> {
        if host.is_empty() || host == "." {
            return Err(BadName::Empty);
        }
        // A backslash begins an escape in the text form that the codec reads; no host has one.
        if !host.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err(BadName::Character);
        }
        Name::from_str(host).map(HostName).map_err(|_| BadName::Labels)
    }

    /// The name on the wire, each letter in upper case where its bit says so.
    pub(super) fn spelled(&self, case: u64) -> Name<Vec<u8>> {
        let mut octets = self.0.as_octets().clone();
        // The lengths of labels are below 64, so no length looks like a letter.
        let letters = octets.iter_mut().filter(|octet| octet.is_ascii_alphabetic());
        for (index, letter) in letters.enumerate() {
            if case >> (index % 64) & 1 == 1 {
                letter.make_ascii_uppercase();
            }
        }
        Name::from_octets(octets).expect("case does not change the shape of a name")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_server_could_know_is_an_error() {
        let label = "a".repeat(63);
        let longest = format!("{label}.{label}.{label}.{}", "a".repeat(61));
        for good in ["a", "example.org", "example.org.", "_x.y", "xn--nxasmq6b.test", &label, &longest] {
            assert!(HostName::parse(good).is_ok(), "{good}");
        }
        let long_label = "a".repeat(64);
        let too_long = format!("{longest}a");
        for (bad, why) in [
            ("", BadName::Empty),
            (".", BadName::Empty),
            ("a b", BadName::Character),
            ("a\\.b", BadName::Character),
            ("b\u{fc}cher.test", BadName::Character),
            ("a..b", BadName::Labels),
            (".a", BadName::Labels),
            ("a..", BadName::Labels),
            (&long_label, BadName::Labels),
            (&too_long, BadName::Labels),
        ] {
            assert_eq!(HostName::parse(bad), Err(why), "{bad}");
        }
    }

    #[test]
    fn spelling_changes_letters_only() {
        let name = HostName::parse("a-1.example.org").unwrap();
        assert_eq!(name.spelled(0).to_string(), "a-1.example.org");
        assert_eq!(name.spelled(u64::MAX).to_string(), "A-1.EXAMPLE.ORG");
        assert_eq!(name.spelled(0b101).to_string(), "A-1.eXample.org");
    }
}
