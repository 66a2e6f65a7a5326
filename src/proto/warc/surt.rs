use super::sessions::{without_path_session, without_query_sessions};
use std::net::Ipv4Addr;

/// The key that an index is sorted by: the host's labels from the last to the first, then the path, in lower case, with
/// what rarely matters taken out. `http://www.example.org/A?b&a` is `org,example)/a?a&b`.
///
/// The web archives' tools agree on this form byte by byte, quirks included, and an index is of use only to those who
/// agree. A URL that has no such form is its own key.
pub fn surt(url: &str) -> String {
    if url.is_empty() {
        return "-".to_string();
    }
    if url.starts_with("filedesc") {
        return url.to_string();
    }
    key(url.as_bytes()).and_then(|key| String::from_utf8(key).ok()).unwrap_or_else(|| url.to_string())
}

/// A URL in its parts, as loosely as it was written.
struct Parts<'a> {
    scheme: &'a [u8],
    authority: &'a [u8],
    path: &'a [u8],
    query: &'a [u8],
}

fn key(url: &[u8]) -> Option<Vec<u8>> {
    let mut text: Vec<u8> = trim(url).iter().copied().filter(|byte| !b"\n\r\t".contains(byte)).collect();
    if scheme_bytes(&text).is_none() {
        text.splice(..0, *b"http://");
    }
    // Of `http://https://` the last counts.
    let mut text = &text[..];
    while let Some(rest) = without_scheme(text)
        && without_scheme(rest).is_some()
    {
        text = rest;
    }
    let parts = split(text);
    let (host, port) = host_and_port(parts.authority)?;
    let mut host = host.unwrap_or_default();
    let mut path = parts.path.to_vec();
    if host.is_empty() && !path.is_empty() && parts.scheme.starts_with(b"http") {
        // `http:////host/path`
        let start = path.iter().take_while(|&&byte| byte == b'/').count();
        let end = path[start..].iter().position(|&byte| byte == b'/').map_or(path.len(), |at| start + at);
        host = path[start..end].to_vec();
        path = [b"/", path.get(end + 1..).unwrap_or_default()].concat();
    }
    let host = plain_host(host, parts.scheme);
    let mut out = Vec::with_capacity(url.len() + 8);
    let path = if host.is_empty() { unescape(path) } else { without_dots(&unescape(path)) };
    let path = plain_path(escape(&path));
    if host.is_empty() {
        out.extend_from_slice(parts.scheme);
        out.push(b':');
    } else {
        let labels: Vec<&[u8]> = host.rsplit(|&byte| byte == b'.').collect();
        out.extend(labels.join(&b','));
        let default = match &parts.scheme.to_ascii_lowercase()[..] {
            b"http" => 80,
            b"https" => 443,
            _ => 0,
        };
        if port != 0 && port != default {
            out.extend_from_slice(format!(":{port}").as_bytes());
        }
        out.push(b')');
    }
    let query = plain_query(parts.query.to_vec());
    if path.is_empty() && !query.is_empty() {
        out.push(b'/');
    }
    out.extend(path);
    if !query.is_empty() {
        out.push(b'?');
        out.extend(query);
    }
    Some(out)
}

fn trim(mut bytes: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    while bytes.first().is_some_and(is_space) {
        bytes = &bytes[1..];
    }
    while bytes.last().is_some_and(is_space) {
        bytes = &bytes[..bytes.len() - 1];
    }
    bytes
}

/// Bytes of a scheme before its colon.
fn scheme_bytes(text: &[u8]) -> Option<usize> {
    let bytes = text.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte)).count();
    (text.first()?.is_ascii_alphabetic() && text.get(bytes) == Some(&b':')).then_some(bytes)
}

fn without_scheme(text: &[u8]) -> Option<&[u8]> {
    text.strip_prefix(b"http://").or_else(|| text.strip_prefix(b"https://"))
}

fn split(text: &[u8]) -> Parts<'_> {
    let up_to =
        |bytes: &[u8], ends: &[u8]| bytes.iter().position(|byte| ends.contains(byte)).unwrap_or(bytes.len());
    let (scheme, rest) = match scheme_bytes(text) {
        Some(bytes) => (&text[..bytes], &text[bytes + 1..]),
        None => (&text[..0], text),
    };
    let (authority, rest) = match rest.strip_prefix(b"//") {
        Some(rest) => rest.split_at(up_to(rest, b"/?#")),
        None => (&rest[..0], rest),
    };
    let (path, rest) = rest.split_at(up_to(rest, b"?#"));
    let query = match rest.strip_prefix(b"?") {
        Some(rest) => &rest[..up_to(rest, b"#")],
        None => &rest[..0],
    };
    Parts { scheme, authority, path, query }
}

/// Host in lower case, and port, 0 without one; `None` for a port that is no number of 16 bits.
fn host_and_port(authority: &[u8]) -> Option<(Option<Vec<u8>>, u16)> {
    let mut authority = authority;
    while let Some(rest) = authority.strip_suffix(b":") {
        authority = rest;
    }
    let after_user = authority.rsplit(|&byte| byte == b'@').next().unwrap_or(authority);
    let find = |bytes: &[u8], wanted: u8| bytes.iter().position(|&byte| byte == wanted);
    let (host, port) = match find(after_user, b'[') {
        Some(open) => {
            let inner = &after_user[open + 1..];
            let (host, rest) = inner.split_at(find(inner, b']').unwrap_or(inner.len()));
            (host, find(rest, b':').map_or(&rest[..0], |colon| &rest[colon + 1..]))
        }
        None => match find(after_user, b':') {
            Some(colon) => (&after_user[..colon], &after_user[colon + 1..]),
            None => (after_user, &after_user[..0]),
        },
    };
    let port = match port {
        b"" => 0,
        digits if digits.iter().all(u8::is_ascii_digit) => {
            let digits = std::str::from_utf8(digits).ok()?.trim_start_matches('0');
            if digits.is_empty() { 0 } else { digits.parse().ok()? }
        }
        _ => return None,
    };
    // What follows a percent sign names a zone, and keeps its case.
    let zone = find(host, b'%').unwrap_or(host.len());
    let lower = [&host[..zone].to_ascii_lowercase(), &host[zone..]].concat();
    Some(((!lower.is_empty()).then_some(lower), port))
}

fn plain_host(host: Vec<u8>, scheme: &[u8]) -> Vec<u8> {
    let mut host = unescape(host);
    if !host.is_ascii() {
        let labels: Vec<String> = String::from_utf8_lossy(&host).split('.').map(ascii_label).collect();
        host = labels.join(".").into_bytes();
    }
    let mut single: Vec<u8> = Vec::with_capacity(host.len());
    let mut at = 0;
    while at < host.len() {
        single.push(host[at]);
        at += if host[at..].starts_with(b"..") { 2 } else { 1 };
    }
    let start = single.iter().take_while(|&&byte| byte == b'.').count();
    let end = single.iter().rev().take_while(|&&byte| byte == b'.').count();
    let bare = single.get(start..single.len() - end.min(single.len())).unwrap_or_default();
    let host = match address(bare) {
        Some(address) => address.to_string().into_bytes(),
        None => escape(&bare.to_ascii_lowercase()).to_ascii_lowercase(),
    };
    match without_www(&host) {
        Some(bare) if scheme != b"dns" => bare.to_vec(),
        _ => host,
    }
}

/// A label of an international name in the letters of DNS; what has none stays.
fn ascii_label(label: &str) -> String {
    match url::Host::parse(label) {
        Ok(url::Host::Domain(ascii)) if !label.is_ascii() => ascii,
        _ => label.to_string(),
    }
}

/// `www.`, `www2.`, …
fn without_www(host: &[u8]) -> Option<&[u8]> {
    let mut rest = host.strip_prefix(b"www")?;
    while let [b'0'..=b'9', after @ ..] = rest {
        rest = after;
    }
    rest.strip_prefix(b".")
}

/// An IPv4 address in any of the ways that C reads one: one to four numbers, the last of which fills what is left.
fn address(host: &[u8]) -> Option<Ipv4Addr> {
    let host = std::str::from_utf8(host).ok().filter(|host| !host.is_empty())?;
    if host.bytes().all(|byte| byte.is_ascii_digit()) {
        // One number counts modulo 2^32, however long it is.
        let value = host
            .bytes()
            .fold(0_u32, |value, digit| value.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')));
        return Some(Ipv4Addr::from(value));
    }
    let octal = host.starts_with('0');
    let mut numbers = Vec::new();
    for part in host.split('.') {
        let digits = if octal { "01234567" } else { "0123456789" };
        if part.is_empty() || numbers.len() == 4 || !part.bytes().all(|b| digits.as_bytes().contains(&b)) {
            return None;
        }
        let radix = if part.starts_with('0') { 8 } else { 10 };
        numbers.push(u32::from_str_radix(part, radix).ok()?);
    }
    let (last, bytes) = numbers.split_last()?;
    let left = 4 - bytes.len() as u32;
    if bytes.iter().any(|&byte| byte > 255) || u64::from(*last) >= 1 << (8 * left) {
        return None;
    }
    let high = bytes.iter().enumerate().fold(0, |high, (at, &byte)| high | byte << (24 - 8 * at as u32));
    Some(Ipv4Addr::from(high | last))
}

/// Undoes percent-encoding until there is none left. What is undone may complete what stands before it, so the end of
/// what is plain is looked at again; in whatever order it is done, the same is left.
fn unescape(bytes: Vec<u8>) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut plain = Vec::with_capacity(bytes.len());
    for byte in bytes {
        plain.push(byte);
        while let [.., b'%', high, low] = plain[..]
            && let (Some(high), Some(low)) = (digit(high), digit(low))
        {
            plain.truncate(plain.len() - 3);
            plain.push((high << 4 | low) as u8);
        }
    }
    plain
}

/// Percent-encodes what is not to be seen in a key: all but the visible characters of ASCII, and of those `#` and `%`.
fn escape(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        if matches!(byte, b'!'..=b'~') && byte != b'#' && byte != b'%' {
            out.push(byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    out
}

/// A path without `.`, `..` and empty parts; a `..` with nothing before it stays.
fn without_dots(path: &[u8]) -> Vec<u8> {
    let mut kept: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/').skip(1) {
        match part {
            b"." => {}
            b".." if !kept.is_empty() => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    let mut out = vec![b'/'];
    if let Some((last, folders)) = kept.split_last() {
        for folder in folders.iter().filter(|folder| !folder.is_empty()) {
            out.extend_from_slice(folder);
            out.push(b'/');
        }
        out.extend_from_slice(last);
    }
    out
}

fn plain_path(path: Vec<u8>) -> Vec<u8> {
    let mut path = without_path_session(path.to_ascii_lowercase());
    if path.len() > 1 && path.ends_with(b"/") {
        path.pop();
    }
    path
}

/// In lower case, without sessions, and its parts in order.
fn plain_query(query: Vec<u8>) -> Vec<u8> {
    let query = without_query_sessions(escape(&unescape(query))).to_ascii_lowercase();
    let mut parts: Vec<(&[u8], Option<&[u8]>)> = query
        .split(|&byte| byte == b'&')
        .map(|part| match part.iter().position(|&byte| byte == b'=') {
            Some(at) => (&part[..at], Some(&part[at + 1..])),
            None => (part, None),
        })
        .collect();
    parts.sort();
    let parts: Vec<Vec<u8>> = parts
        .into_iter()
        .map(|(name, value)| match value {
            Some(value) => [name, b"=", value].concat(),
            None => name.to_vec(),
        })
        .collect();
    parts.join(&b'&')
}

#[cfg(test)]
mod tests {
    use super::surt;

    #[test]
    fn keys_are_those_of_the_archives_tools() {
        for (url, key) in [
            ("", "-"),
            ("filedesc:foo.arc.gz", "filedesc:foo.arc.gz"),
            ("http://www.example.org/A?b&a", "org,example)/a?a&b"),
            ("http://example.org", "org,example)/"),
            ("https://example.org:443/", "org,example)/"),
            ("https://example.org:80/", "org,example:80)/"),
            ("http://www2.example.org/a//b/./c/../d/", "org,example)/a/b/d"),
            ("http://example.org/../a", "org,example)/../a"),
            ("http://user:word@example.org/x", "org,example)/x"),
            ("http://example.org/%7Efoo%2520bar", "org,example)/~foo%20bar"),
            ("http://example.org/%2%35%2541%%34%31", "org,example)/%aa"),
            ("http://example.org/a?#frag", "org,example)/a"),
            ("http://example.org/?q=2&q=1&q", "org,example)/?q&q=1&q=2"),
            ("http://example.org/ü", "org,example)/%c3%bc"),
            ("http://127.0.0.1:8080/x", "1,0,0,127:8080)/x"),
            ("http://0x7f.1/", "1,0x7f)/"),
            ("http://3279880203/blah", "11,0,127,195)/blah"),
            ("http://1.2/", "2,0,0,1)/"),
            ("http://[::1]:8080/x", "::1:8080)/x"),
            ("http:////www.vikings.com/p", "com,vikings)/p"),
            ("http://https://example.org/x", "org,example)/x"),
            ("example.org/x", "org,example)/x"),
            ("dns:www.example.org", "dns:www.example.org"),
            ("urn:uuid:ABC", "urn:uuid:abc"),
            ("http://example.org:99999/x", "http://example.org:99999/x"),
            ("http://b\u{fc}cher.example/", "example,xn--bcher-kva)/"),
            ("http://example.org/?sid=0123456789abcdef0123456789abcdef", "org,example)/"),
        ] {
            assert_eq!(surt(url), key, "{url}");
        }
    }
}
