use crate::proto::url::CrawlUrl;

/// The request for one URL, written into a buffer that is used again and again.
///
/// No coding is accepted, so what comes is the document. The connection is meant to be kept, which HTTP/1.1
/// takes for granted.
pub(super) fn write_request(out: &mut Vec<u8>, url: &CrawlUrl, user_agent: &str) {
    out.clear();
    for part in [
        "GET ",
        url.path_and_query(),
        " HTTP/1.1\r\nHost: ",
        url.authority(),
        "\r\nUser-Agent: ",
        user_agent,
        "\r\nAccept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Encoding: identity\r\n\r\n",
    ] {
        out.extend_from_slice(part.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_host_and_agent() {
        let mut out = b"rubbish".to_vec();
        write_request(&mut out, &CrawlUrl::parse("http://h.test:8080/a?b#c").unwrap(), "nephila/1");
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("GET /a?b HTTP/1.1\r\nHost: h.test:8080\r\nUser-Agent: nephila/1\r\n"));
        assert!(text.ends_with("\r\n\r\n"));
    }
}
