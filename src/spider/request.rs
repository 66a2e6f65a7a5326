use crate::proto::coding::ACCEPT_ENCODING;
use crate::proto::http1::{Method, Validators};
use crate::proto::url::CrawlUrl;

/// One request, before it is written.
pub(super) struct Request<'a> {
    pub method: Method,
    pub url: &'a CrawlUrl,
    /// Only the head is wanted, though the method is GET.
    pub first_byte_only: bool,
    pub validators: Option<&'a Validators>,
    pub cookie: Vec<u8>,
    pub authorization: Vec<u8>,
}

impl<'a> Request<'a> {
    pub fn new(method: Method, url: &'a CrawlUrl) -> Request<'a> {
        Request {
            method,
            url,
            first_byte_only: false,
            validators: None,
            cookie: Vec::new(),
            authorization: Vec::new(),
        }
    }

    /// Writes the request into a buffer that is used again and again. The connection is meant to be kept, which
    /// HTTP/1.1 takes for granted.
    pub fn write(&self, out: &mut Vec<u8>, user_agent: &str) {
        out.clear();
        for part in [
            self.method.name(),
            " ",
            self.url.path_and_query(),
            " HTTP/1.1\r\nHost: ",
            self.url.authority(),
            "\r\nUser-Agent: ",
            user_agent,
            "\r\nAccept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Encoding: ",
            // A part of a coded document would be of no use, and so would its length.
            if self.first_byte_only { "identity" } else { ACCEPT_ENCODING },
            if self.first_byte_only { "\r\nRange: bytes=0-0" } else { "" },
        ] {
            out.extend_from_slice(part.as_bytes());
        }
        let (etag, last_modified) = self
            .validators
            .map_or((&[][..], &[][..]), |validators| (&validators.etag[..], &validators.last_modified[..]));
        for (name, value) in [
            ("If-None-Match", etag),
            ("If-Modified-Since", last_modified),
            ("Cookie", &self.cookie),
            ("Authorization", &self.authorization),
        ] {
            if !value.is_empty() {
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(b": ");
                out.extend_from_slice(value);
            }
        }
        out.extend_from_slice(b"\r\n\r\n");
    }
}

/// The request for a URL without what changes over time: validators, cookies and credentials. An archive holds no more.
pub fn plain_request(method: Method, url: &CrawlUrl, first_byte_only: bool, user_agent: &str) -> Vec<u8> {
    let mut out = Vec::new();
    Request { first_byte_only, ..Request::new(method, url) }.write(&mut out, user_agent);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(request: &Request<'_>) -> String {
        let mut out = b"rubbish".to_vec();
        request.write(&mut out, "nephila/1");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_request_names_host_and_agent() {
        let url = CrawlUrl::parse("http://h.test:8080/a?b#c").unwrap();
        let text = written(&Request::new(Method::Get, &url));
        assert!(text.starts_with("GET /a?b HTTP/1.1\r\nHost: h.test:8080\r\nUser-Agent: nephila/1\r\n"));
        assert!(text.ends_with("\r\nAccept-Encoding: gzip, deflate, br, zstd\r\n\r\n"), "{text}");
    }

    #[test]
    fn what_is_known_is_said_and_what_is_not_is_left_out() {
        let url = CrawlUrl::parse("http://h.test/").unwrap();
        let validators = Validators { etag: b"\"e\""[..].into(), last_modified: Box::default() };
        let mut request = Request::new(Method::Head, &url);
        request.validators = Some(&validators);
        request.cookie = b"a=b".to_vec();
        let text = written(&request);
        assert!(text.starts_with("HEAD / HTTP/1.1\r\n"));
        assert!(text.ends_with("zstd\r\nIf-None-Match: \"e\"\r\nCookie: a=b\r\n\r\n"), "{text}");
        let text = written(&Request { first_byte_only: true, ..Request::new(Method::Get, &url) });
        assert!(text.contains("Accept-Encoding: identity\r\nRange: bytes=0-0\r\n\r\n"), "{text}");
    }
}
