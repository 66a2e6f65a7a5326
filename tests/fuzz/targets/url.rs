use nephila::limits::URL_BYTES_MAX;
use nephila::proto::url::{CrawlUrl, LinkBase, LinkError};

pub fn run(bytes: &[u8]) {
    let (first, link) = match bytes.iter().position(|byte| *byte == b'\n') {
        Some(at) => (&bytes[..at], &bytes[at + 1..]),
        None => (bytes, &b"../x?y"[..]),
    };
    let parsed = std::str::from_utf8(first).ok().and_then(|text| CrawlUrl::parse(text).ok());
    if let Some(url) = &parsed {
        normal(url);
    }
    let base = parsed.unwrap_or_else(|| CrawlUrl::parse("http://h.test:8080/a/b.html?q").expect("a URL"));
    let mut out = String::from("left over");
    match LinkBase::new(&base).resolve(link, &mut out) {
        Ok(()) => {
            normal(&CrawlUrl::from_normal(&out).expect("a normal form"));
            let book = by_the_book(&base, link).expect("the standard resolves it");
            assert!(out.len() <= book.len());
            assert_eq!(undone(&out), undone(&book), "{out} {book}");
        }
        Err(LinkError::SamePage) => assert!(link.is_empty() || link.starts_with(b"#")),
        Err(LinkError::Url(_)) => {
            assert_eq!(by_the_book(&base, link).filter(|book| book.len() <= URL_BYTES_MAX), None);
        }
    }
}

/// Every escape undone once, from left to right. Two URLs of which that is the same differ in escapes alone; that there
/// are none too many is what makes one of them its own normal form.
fn undone(text: &str) -> Vec<u8> {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match hex.filter(|_| bytes[at] == b'%') {
            Some(hex) => {
                out.push(u8::from_str_radix(hex, 16).expect("two digits"));
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    out
}

/// A normal form is its own, and nothing in it can be taken for something else on a line or in a request.
fn normal(url: &CrawlUrl) {
    let text = url.as_str();
    assert!(text.len() <= URL_BYTES_MAX && text.bytes().all(|byte| byte.is_ascii_graphic()), "{text:?}");
    assert_eq!(CrawlUrl::parse(text).as_ref(), Ok(url));
    assert_eq!(CrawlUrl::from_normal(text).as_ref(), Ok(url));
    assert!(text.starts_with(url.origin()) && url.path_and_query().starts_with('/'));
    assert!(!text.contains('#') && !url.authority().contains('@') && !url.host().is_empty());
    assert_eq!(format!("{}{}", url.origin(), url.path_and_query()), text);
    let book = url::Url::parse(text).expect("the standard reads it");
    assert_eq!(book.host_str(), Some(url.host()));
    assert_eq!(book.port_or_known_default(), Some(url.port()));
}

fn by_the_book(base: &CrawlUrl, link: &[u8]) -> Option<String> {
    if link.len() > URL_BYTES_MAX {
        return None;
    }
    let mut url = url::Url::parse(base.as_str()).ok()?.join(&String::from_utf8_lossy(link)).ok()?;
    url.set_fragment(None);
    let web = matches!(url.scheme(), "http" | "https");
    let wanted = web && url.username().is_empty() && url.password().is_none();
    // One that is too long may be short enough with fewer escapes.
    (wanted && url.as_str().len() <= 3 * URL_BYTES_MAX).then(|| url.to_string())
}
