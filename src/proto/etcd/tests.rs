use super::*;
use proptest::prelude::*;

const KEY: &str = "/nephila/07/table";
const HEADER: &str = "\"header\":{\"cluster_id\":\"324952591200643719\",\"member_id\":\"3319814642761637952\",\"revision\":\"2\",\"raft_term\":\"2\"}";
/// "two" under the key.
const KV: &str = "{\"key\":\"L25lcGhpbGEvMDcvdGFibGU=\",\"create_revision\":\"2\",\"mod_revision\":\"3\",\"version\":\"2\",\"value\":\"dHdv\"}";
const CLUSTER: u64 = 324_952_591_200_643_719;

fn told(body: &str) -> HttpAnswer<'_> {
    HttpAnswer { status: 200, body: body.as_bytes() }
}

#[test]
fn requests_are_what_etcd_documents() {
    let text = |request: EtcdRequest| String::from_utf8(request.http("10.0.0.5:2379")).unwrap();
    let key = "L25lcGhpbGEvMDcvdGFibGU=";
    assert_eq!(
        text(EtcdRequest::read(KEY)),
        format!(
            "POST /v3/kv/range HTTP/1.0\r\nHost: 10.0.0.5:2379\r\nContent-Type: application/json\r\nContent-Length: 34\r\n\r\n{{\"key\":\"{key}\"}}"
        )
    );
    for (expect, new, compare, success) in [
        (
            None,
            Some(&b"one"[..]),
            "\"target\":\"CREATE\",\"createRevision\":\"0\"".to_string(),
            format!("{{\"requestPut\":{{\"key\":\"{key}\",\"value\":\"b25l\"}}}}"),
        ),
        (
            Some(&b"one"[..]),
            Some(&b"two"[..]),
            "\"target\":\"VALUE\",\"value\":\"b25l\"".to_string(),
            format!("{{\"requestPut\":{{\"key\":\"{key}\",\"value\":\"dHdv\"}}}}"),
        ),
        (
            Some(&b"two"[..]),
            None,
            "\"target\":\"VALUE\",\"value\":\"dHdv\"".to_string(),
            format!("{{\"requestDeleteRange\":{{\"key\":\"{key}\"}}}}"),
        ),
    ] {
        let sent = text(EtcdRequest::swap(KEY, expect, new));
        let (head, body) = sent.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /v3/kv/txn HTTP/1.0\r\n"), "{head}");
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
        assert_eq!(
            body,
            format!(
                "{{\"compare\":[{{\"key\":\"{key}\",\"result\":\"EQUAL\",{compare}}}],\"success\":[{success}],\"failure\":[{{\"requestRange\":{{\"key\":\"{key}\"}}}}]}}"
            )
        );
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok());
    }
}

#[test]
fn answers_are_read_as_etcd_gives_them() {
    let value = |body: &str| key_value(KEY, told(body)).unwrap();
    assert_eq!(value(&format!("{{{HEADER}}}")), Answer { cluster: CLUSTER, told: None });
    let one = format!("{{{HEADER},\"kvs\":[{KV}],\"count\":\"1\"}}");
    assert_eq!(value(&one).told.as_deref(), Some(&b"two"[..]));
    // A value without bytes is left out.
    let empty = one.replace(",\"value\":\"dHdv\"", "");
    assert_eq!(value(&empty).told.as_deref(), Some(&b""[..]));
    let put = format!(
        "{{{HEADER},\"succeeded\":true,\"responses\":[{{\"response_put\":{{\"header\":{{\"revision\":\"3\"}}}}}}]}}"
    );
    assert_eq!(swapped(KEY, told(&put)), Ok(Answer { cluster: CLUSTER, told: Swapped::Done }));
    for name in ["response_range", "responseRange"] {
        let differs =
            format!("{{{HEADER},\"responses\":[{{\"{name}\":{{\"kvs\":[{KV}],\"count\":\"1\"}}}}]}}");
        let read = swapped(KEY, told(&differs)).unwrap().told;
        assert_eq!(read, Swapped::Differs(Some(b"two".to_vec())));
    }
    let absent = format!("{{{HEADER},\"responses\":[{{\"response_range\":{{}}}}]}}");
    assert_eq!(swapped(KEY, told(&absent)).unwrap().told, Swapped::Differs(None));
}

/// Nothing that is short of a sound answer is taken for one: an empty object is no key that is not there.
#[test]
fn what_is_no_answer_is_refused_in_one_line() {
    let one = format!("{{{HEADER},\"kvs\":[{KV}],\"count\":\"1\"}}");
    for bad in [
        "",
        "{}",
        "[]",
        "null",
        "true",
        "{\"header\":{}}",
        "{\"header\":{\"cluster_id\":7}}",
        "{\"header\":{\"cluster_id\":\"-7\"}}",
        "{\"header\":{\"cluster_id\":\"seven\\u0007\"}}",
        &format!("{{{HEADER},\"kvs\":[{KV},{KV}]}}"),
        &format!("{{{HEADER},\"kvs\":{KV}}}"),
        &format!("{{{HEADER},\"kvs\":[7]}}"),
        &one.replace("L25lcGhpbGEvMDcvdGFibGU=", "L25lcGhpbGEvMDcvdGFibGV4"),
        &one.replace("L25lcGhpbGEvMDcvdGFibGU=", "\\u001b[2J"),
        &one.replace("dHdv", "dHd"),
        &one.replace("dHdv", "dHd="),
        &one.replace("\"dHdv\"", "3"),
        &one.replace("\"dHdv\"", "null"),
        &format!("{one}{one}"),
        &"[".repeat(100_000),
    ] {
        let said = key_value(KEY, told(bad)).unwrap_err().to_string();
        assert!(!said.contains(char::is_control) && said.len() < 400, "{said}");
        assert!(swapped(KEY, told(bad)).is_err(), "{bad}");
    }
    for at in 0..one.len() {
        assert!(key_value(KEY, told(&one[..at])).is_err(), "cut at {at}");
    }
    let long = "A".repeat(4 * (crate::limits::REGISTER_BYTES_MAX / 3 + 1));
    assert_eq!(key_value(KEY, told(&one.replace("dHdv", &long))), Err(EtcdError::Long));
    for bad in [
        format!("{{{HEADER}}}"),
        format!("{{{HEADER},\"succeeded\":false}}"),
        format!("{{{HEADER},\"succeeded\":\"true\"}}"),
        format!("{{{HEADER},\"responses\":[{{\"response_put\":{{}}}}]}}"),
        format!("{{{HEADER},\"responses\":[{{\"response_range\":{{}}}},{{}}]}}"),
    ] {
        assert!(swapped(KEY, told(&bad)).is_err(), "{bad}");
    }
}

#[test]
fn an_etcd_that_cannot_says_why() {
    let body = "{\"error\":\"etcdserver: request timed out\\u001b[2J\",\"message\":\"x\",\"code\":14}";
    let answer = HttpAnswer { status: 503, body: body.as_bytes() };
    let said = key_value(KEY, answer).unwrap_err().to_string();
    assert_eq!(said, "status 503: etcdserver: request timed out\\u{1b}[2J");
    let answer = HttpAnswer { status: 404, body: b"404 page not found\n" };
    assert_eq!(swapped(KEY, answer).unwrap_err().to_string(), "status 404: 404 page not found");
    let long = "\u{7}x".repeat(10_000);
    let answer = HttpAnswer { status: 500, body: long.as_bytes() };
    let said = key_value(KEY, answer).unwrap_err().to_string();
    assert!(said.len() < 2_000 && !said.contains('\u{7}'), "{said}");
}

#[test]
fn an_answer_ends_where_its_head_says_or_with_the_connection() {
    let with_length = b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}";
    let without = b"HTTP/1.0 200 OK\r\nDate: x\r\n\r\n{\"a\":1}";
    for at in 0..with_length.len() {
        assert_eq!(http_answer(&with_length[..at], false), Ok(None), "{at}");
        assert_eq!(http_answer(&with_length[..at], true), Err(EtcdError::Cut), "{at}");
    }
    assert_eq!(http_answer(with_length, false), Ok(Some(told("{}"))));
    let more = [&with_length[..], b"more"].concat();
    assert_eq!(http_answer(&more, false), Ok(Some(told("{}"))));
    assert_eq!(http_answer(without, false), Ok(None));
    assert_eq!(http_answer(without, true), Ok(Some(told("{\"a\":1}"))));
    for (bad, error) in [
        (&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"[..], EtcdError::Framing),
        (b"HTTP/1.0 200 OK\r\nContent-Length: -1\r\n\r\n", EtcdError::Framing),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{}", EtcdError::Framing),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 99999999\r\n\r\n{}", EtcdError::Long),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n{}", EtcdError::Framing),
    ] {
        assert_eq!(http_answer(bad, true), Err(error));
    }
    assert!(matches!(http_answer(b"SSH-2.0-x\r\n\r\n", true), Err(EtcdError::Http(_))));
    assert_eq!(http_answer(&vec![b'H'; HTTP_BYTES_MAX + 1], false), Err(EtcdError::Long));
}

proptest! {
    /// What a swap sends as the new value is what a read of the same bytes gives back.
    #[test]
    fn values_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let sent = String::from_utf8(EtcdRequest::swap(KEY, None, Some(&bytes)).http("h:1")).unwrap();
        let value = sent.split("\"value\":\"").nth(1).unwrap().split('"').next().unwrap();
        let body = format!("{{{HEADER},\"kvs\":[{}]}}", KV.replace("dHdv", value));
        prop_assert_eq!(key_value(KEY, told(&body)).unwrap().told, Some(bytes));
    }
}
