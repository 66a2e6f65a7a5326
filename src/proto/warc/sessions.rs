//! Session ids of the servers of long ago: pages that differ in nothing else have one key.

/// A path of ASP.NET without its cookieless session, `/(S(24 letters or digits))/page.aspx` or `/(24 of them)/page.aspx`.
pub(super) fn without_path_session(path: Vec<u8>) -> Vec<u8> {
    let path = without_token(path, named_tokens);
    without_token(path, |rest| bracketed(rest, TOKEN_BYTES))
}

/// Letters and digits of such a session.
const TOKEN_BYTES: usize = 24;

/// Takes out what `token` measures between a slash and a slash before an .aspx page, the last there is.
fn without_token(mut path: Vec<u8>, token: impl Fn(&[u8]) -> Option<usize>) -> Vec<u8> {
    let slashes = (0..path.len()).rev().filter(|&at| path[at] == b'/');
    let found = slashes.map(|at| at + 1).find_map(|start| {
        let end = start + token(&path[start..])?;
        let page = path[end..].strip_prefix(b"/")?;
        is_page(page).then_some((start, end + 1))
    });
    if let Some((start, end)) = found {
        path.drain(start..end);
    }
    path
}

/// Some bytes, then `.aspx`, before any question mark.
fn is_page(rest: &[u8]) -> bool {
    let name = rest.split(|&byte| byte == b'?').next().unwrap_or_default();
    // The ending may begin no sooner than behind the first byte, and its own bytes are no question mark.
    name.len() > 5 && name[1..].windows(5).any(|five| five.eq_ignore_ascii_case(b".aspx"))
}

/// `(` and so many letters or digits and `)`.
fn bracketed(rest: &[u8], count: usize) -> Option<usize> {
    let inner = rest.strip_prefix(b"(")?;
    let whole =
        inner.len() > count && inner[..count].iter().all(u8::is_ascii_alphanumeric) && inner[count] == b')';
    whole.then_some(count + 2)
}

/// `(`, one or more of a letter and a bracketed token, `)`.
fn named_tokens(rest: &[u8]) -> Option<usize> {
    let mut at = 1;
    rest.strip_prefix(b"(")?;
    while rest.get(at).is_some_and(u8::is_ascii_alphabetic) {
        at += 1 + bracketed(&rest[at + 1..], TOKEN_BYTES)?;
    }
    (at > 1 && rest.get(at) == Some(&b')')).then_some(at + 1)
}

/// How many bytes a session takes that begins here.
type Measure = fn(&[u8]) -> Option<usize>;

/// A query without the sessions of Java, PHP, ASP and ColdFusion.
pub(super) fn without_query_sessions(mut query: Vec<u8>) -> Vec<u8> {
    let sessions: [Measure; 5] = [
        |rest| named(rest, b"jsessionid=", 32, u8::is_ascii_alphanumeric),
        |rest| named(rest, b"phpsessid=", 32, u8::is_ascii_alphanumeric),
        |rest| named(rest, b"sid=", 32, u8::is_ascii_alphanumeric),
        asp,
        cold_fusion,
    ];
    for session in sessions {
        // The last one that is followed by `&` or the end.
        let found = (0..query.len()).rev().find_map(|start| {
            let end = start + session(&query[start..])?;
            matches!(query.get(end), None | Some(b'&')).then_some((start, end))
        });
        if let Some((start, end)) = found {
            query.drain(start..(end + 1).min(query.len()));
        }
    }
    query
}

fn named(rest: &[u8], name: &[u8], count: usize, is_token: fn(&u8) -> bool) -> Option<usize> {
    let end = name.len() + count;
    let whole = rest.len() >= end
        && rest[..name.len()].eq_ignore_ascii_case(name)
        && rest[name.len()..end].iter().all(is_token);
    whole.then_some(end)
}

/// `ASPSESSIONID`, eight letters, `=`, twenty-four letters.
fn asp(rest: &[u8]) -> Option<usize> {
    let name = named(rest, b"aspsessionid", 8, u8::is_ascii_alphabetic)?;
    Some(name + named(&rest[name..], b"=", 24, u8::is_ascii_alphabetic)?)
}

/// `cfid=…&cftoken=…`, neither of them empty.
fn cold_fusion(rest: &[u8]) -> Option<usize> {
    let value = |from: usize| {
        let length = rest[from..].iter().take_while(|&&byte| byte != b'&').count();
        (length > 0).then_some(from + length)
    };
    let id = value(named(rest, b"cfid=", 0, u8::is_ascii)?)?;
    let token = id + named(&rest[id..], b"&cftoken=", 0, u8::is_ascii)?;
    value(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_taken_out_and_what_looks_like_one_is_not() {
        let token = "0123456789abcdef01234567";
        for (path, expected) in [
            (format!("/a/(S({token}))/page.aspx"), "/a/page.aspx"),
            (format!("/a/({token})/page.aspx"), "/a/page.aspx"),
            (format!("/(a({token})b({token}))/x.aspx"), "/x.aspx"),
            (format!("/(S({token}))/page.html"), ""),
            (format!("/(S({token}))/.aspx"), ""),
            (format!("/({token})"), ""),
            ("/(S(short))/page.aspx".to_string(), ""),
        ] {
            let expected = if expected.is_empty() { path.clone() } else { expected.to_string() };
            assert_eq!(without_path_session(path.clone().into()), expected.as_bytes(), "{path}");
        }
        let id = "0123456789abcdef0123456789abcdef";
        for (query, expected) in [
            (format!("a=1&jsessionid={id}&b=2"), "a=1&b=2"),
            (format!("PHPSESSID={id}"), ""),
            (format!("x=1&sid={id}"), "x=1&"),
            (format!("mysid={id}&y"), "myy"),
            ("ASPSESSIONIDABCDEFGH=abcdefghijklmnopqrstuvwx&z".to_string(), "z"),
            ("q&CFID=1&CFTOKEN=2&r".to_string(), "q&r"),
            (format!("sid={id}0"), &format!("sid={id}0")),
            ("cfid=&cftoken=1".to_string(), "cfid=&cftoken=1"),
        ] {
            assert_eq!(without_query_sessions(query.clone().into()), expected.as_bytes(), "{query}");
        }
    }
}
