//! Whether a text is a URL in normal form, found out without making one.

use super::link_base::host_is_plain;
use crate::limits::URL_BYTES_MAX;
use memchr::{memchr, memchr_iter, memchr2};

/// What a byte means for the part behind the host.
const PLAIN: u8 = 0;
/// Written in another way, or it ends the query.
const ODD: u8 = 1;
/// The beginning of an escape.
const ESCAPE: u8 = 2;
/// Perhaps a dot segment.
const DOT: u8 = 4;

const KINDS: [u8; 256] = {
    let mut kinds = [ODD; 256];
    let mut b = 0x21;
    while b < 0x7f {
        kinds[b as usize] = match b {
            b'"' | b'#' | b'\'' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' => ODD,
            b'%' => ESCAPE,
            b'.' => DOT,
            _ => PLAIN,
        };
        b += 1;
    }
    kinds
};

/// Whether [`super::CrawlUrl::parse`] would leave a text as it is. It never says so of one that would be changed or
/// refused; of a rare one that would stay it may say no.
pub fn is_normal(text: &[u8]) -> bool {
    let (host_at, default_port) = match text {
        [b'h', b't', b't', b'p', b':', b'/', b'/', ..] => (7, b":80".as_slice()),
        [b'h', b't', b't', b'p', b's', b':', b'/', b'/', ..] => (8, b":443".as_slice()),
        _ => return false,
    };
    let Some(end) = memchr2(b'/', b':', &text[host_at..]) else { return false };
    let (host, mut path) = text[host_at..].split_at(end);
    if path[0] == b':' {
        let Some(slash) = memchr(b'/', path) else { return false };
        let (port, behind) = path.split_at(slash);
        if port == default_port || !port_is_normal(&port[1..]) {
            return false;
        }
        path = behind;
    }
    text.len() <= URL_BYTES_MAX && host_is_plain(host) && path_is_normal(path)
}

fn port_is_normal(port: &[u8]) -> bool {
    matches!(port, [b'1'..=b'9', ..])
        && port.len() <= 5
        && port.iter().all(u8::is_ascii_digit)
        && port.iter().fold(0, |sum, digit| sum * 10 + u32::from(digit - b'0')) <= u32::from(u16::MAX)
}

fn path_is_normal(path: &[u8]) -> bool {
    let kinds = path.iter().fold(PLAIN, |kinds, &byte| kinds | KINDS[usize::from(byte)]);
    // The path begins with a slash, so that a dot has a byte before it.
    kinds & ODD == 0
        && (kinds & DOT == 0 || memchr_iter(b'.', path).all(|at| path[at - 1] != b'/'))
        && (kinds & ESCAPE == 0 || memchr_iter(b'%', path).all(|at| escape_is_normal(&path[at + 1..])))
}

/// Two hex digits in upper case that stand for something that needs an escape.
fn escape_is_normal(digits: &[u8]) -> bool {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        _ => None,
    };
    let &[high, low, ..] = digits else { return false };
    let (Some(high), Some(low)) = (digit(high), digit(low)) else { return false };
    let octet = high << 4 | low;
    !octet.is_ascii_alphanumeric() && !matches!(octet, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::url::CrawlUrl;
    use proptest::prelude::*;

    fn stays(text: &str) -> bool {
        CrawlUrl::parse(text).is_ok_and(|url| url.as_str() == text)
    }

    #[test]
    fn usual_urls_are_known_to_be_normal_and_others_are_not() {
        for text in [
            "http://a.ru/",
            "https://www.example.com:8080/a/b.html?c=d&e=%D0%BF%20x+y",
            "http://a.ru/a/b;c=1,2/(d)!$*@:[e]//f?g=h:i/j?k~l_m-n.",
        ] {
            assert!(is_normal(text.as_bytes()) && stays(text), "{text}");
        }
        for text in [
            "",
            "http://",
            "http://a.ru",
            "HTTP://a.ru/",
            "http://A.ru/",
            "http://a.ru:80/",
            "https://a.ru:443/",
            "http://a.ru:0/",
            "http://a.ru:080/",
            "http://a.ru:65536/",
            "http://a.ru:/",
            "http://u@a.ru/",
            "http://u:1@a.ru/",
            "http://127.1/",
            "http://xn--p/",
            "http://a.ru/./b",
            "http://a.ru/..",
            "http://a.ru/%7e",
            "http://a.ru/%7E",
            "http://a.ru/%2f",
            "http://a.ru/%",
            "http://a.ru/%4",
            "http://a.ru/a b",
            "http://a.ru/#b",
            "http://a.ru/\u{e9}",
            "http://a.ru/ ",
            "ftp://a.ru/",
            "http:///a",
        ] {
            assert!(!is_normal(text.as_bytes()), "{text}");
        }
        assert!(!is_normal(format!("http://a.ru/{}", "a".repeat(9_000)).as_bytes()));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(20_000) })]
        #[test]
        fn what_is_normal_stays_as_it_is(
            text in "https?://[a-z0-9.%:@-]{0,6}(:[0-9]{0,5})?/([a-z./?%~!-/:-@\\[-`{-}é]|%[2-7][0-9A-Fa-f]|\\.\\./){0,8}"
        ) {
            prop_assert!(!is_normal(text.as_bytes()) || stays(&text), "{}", text);
        }
    }
}
