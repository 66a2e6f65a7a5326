//! Who may ask what: every route by every way that a request can be wrong, and the description of the routes.

use super::guard::{Guard, Via};
use super::problem::Kind;
use super::routes::{ROUTES, Route};
use super::token::Token;
use axum::http::Request;
use axum::http::request::Parts;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Instant;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn head(route: &Route, path: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(route.method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

fn guard() -> Guard {
    let hosts = vec!["Crawl.example.org".to_string()];
    Guard { hosts, token: Some(Token::sample(TOKEN)), ..Guard::default() }
}

/// The status that a request is refused with; 200 if it is not.
fn verdict(guard: &Guard, route: &Route, via: Via, path: &str, headers: &[(&str, &str)]) -> u16 {
    let head = head(route, path, headers);
    let admitted = guard.admit(&head, via, route.is_open, Instant::now());
    admitted.map_or_else(|problem| problem.kind.status(), |()| 200)
}

#[test]
fn every_route_by_every_wrong_request() {
    let loopback = Via::Tcp("127.0.0.1:7180".parse().unwrap());
    let outside = Via::Tcp("192.0.2.1:7180".parse().unwrap());
    let bearer = format!("Bearer {TOKEN}");
    let right = [("host", "127.0.0.1:7180"), ("authorization", bearer.as_str())];
    for route in &ROUTES {
        let path = route.path;
        // A right token before each keeps wrong ones from being too many.
        let of = |via, path: &str, headers: &[(&str, &str)]| {
            let guard = guard();
            assert_eq!(verdict(&guard, route, loopback, route.path, &right), 200, "{}", route.path);
            verdict(&guard, route, via, path, headers)
        };
        let with = |more: &[(&'static str, &'static str)]| [&right[..], more].concat();
        let without_token = if route.is_open { 200 } else { 401 };
        for (what, headers, expected) in [
            ("as it should be", with(&[]), 200),
            (
                "of our own page",
                with(&[("origin", "http://127.0.0.1:7180"), ("sec-fetch-site", "same-origin")]),
                200,
            ),
            ("typed by a user", with(&[("sec-fetch-site", "none")]), 200),
            ("two hosts", with(&[("host", "127.0.0.1:7180")]), 400),
            ("foreign origin", with(&[("origin", "https://evil.example")]), 403),
            ("origin of another port", with(&[("origin", "http://127.0.0.1:8080")]), 403),
            ("no origin to speak of", with(&[("origin", "null")]), 403),
            ("two origins", with(&[("origin", "http://127.0.0.1:7180"), ("origin", "http://a")]), 403),
            ("cross-site", with(&[("sec-fetch-site", "cross-site")]), 403),
            ("same-site", with(&[("sec-fetch-site", "same-site")]), 403),
            ("no host", right[1..].to_vec(), 400),
            ("no token", right[..1].to_vec(), without_token),
            (
                "wrong token",
                vec![right[0], ("authorization", "Bearer 0123456789abcdef0123456789abcdee")],
                without_token,
            ),
            ("short token", vec![right[0], ("authorization", "Bearer 0123")], without_token),
            ("token as a password", vec![right[0], ("authorization", TOKEN)], without_token),
            ("token in a cookie", vec![right[0], ("cookie", TOKEN)], without_token),
        ] {
            assert_eq!(of(loopback, path, &headers), expected, "{path}: {what}");
        }
        assert_eq!(
            of(loopback, &format!("{path}?token={TOKEN}&access_token={TOKEN}"), &right[..1]),
            without_token
        );
        for host in [
            "evil.example",
            "evil.example:7180",
            "127.0.0.1",
            "127.0.0.1:80",
            "127.0.0.1:71800",
            "localhost.evil.example:7180",
            "",
        ] {
            assert_eq!(of(loopback, path, &[("host", host), right[1]]), 421, "{path}: {host}");
        }
        for host in
            ["localhost:7180", "LOCALHOST:7180", "[::1]:7180", "crawl.example.org", "crawl.example.org:7180"]
        {
            assert_eq!(of(loopback, path, &[("host", host), right[1]]), 200, "{path}: {host}");
        }
        // A whole URL in the request line must mean the same.
        assert_eq!(of(loopback, &format!("http://evil.example{path}"), &right), 421);
        assert_eq!(of(loopback, &format!("http://127.0.0.1:7180{path}"), &right), 200);
        // Off loopback everything needs the token.
        assert_eq!(of(outside, path, &[("host", "crawl.example.org:7180")]), 401, "{path}");
        assert_eq!(of(outside, path, &[("host", "crawl.example.org:7180"), right[1]]), 200, "{path}");
        // On the socket nothing does, but a page that comes through a tunnel is one all the same.
        assert_eq!(of(Via::Socket, path, &[("host", "localhost")]), 200, "{path}");
        assert_eq!(of(Via::Socket, path, &[("host", "127.0.0.1:9999")]), 200, "{path}");
        assert_eq!(of(Via::Socket, path, &[("host", "evil.example")]), 421, "{path}");
        assert_eq!(of(Via::Socket, path, &[("host", "localhost"), ("origin", "http://evil.example")]), 403);
        assert_eq!(of(Via::Socket, path, &[("host", "localhost"), ("sec-fetch-site", "cross-site")]), 403);
        // TLS before it has another scheme, for a name that is listed.
        let tls = |host| [("host", host), right[1], ("origin", "https://crawl.example.org")];
        assert_eq!(of(loopback, path, &tls("crawl.example.org")), 200);
        assert_eq!(of(loopback, path, &tls("127.0.0.1:7180")), 403);
    }
}

#[test]
fn without_a_token_of_its_own_a_process_shows_only_what_is_open() {
    let via = Via::Tcp("127.0.0.1:7180".parse().unwrap());
    for route in &ROUTES {
        // A new one each time: wrong tokens are soon too many.
        let guard = Guard::default();
        let headers = [("host", "localhost:7180"), ("authorization", "Bearer ")];
        let expected = if route.is_open { 200 } else { 401 };
        assert_eq!(verdict(&guard, route, via, route.path, &headers), expected, "{}", route.path);
    }
}

#[test]
fn wrong_tokens_are_soon_too_many() {
    let (guard, via) = (guard(), Via::Tcp("127.0.0.1:7180".parse().unwrap()));
    let of = |token: &str| {
        let bearer = format!("Bearer {token}");
        verdict(&guard, &ROUTES[0], via, "/", &[("host", "localhost:7180"), ("authorization", &bearer)])
    };
    let tries: Vec<u16> = (0..12).map(|_| of("wrong")).collect();
    assert_eq!(tries, [&[401; 10][..], &[429; 2]].concat());
    assert_eq!(of(TOKEN), 429, "the right one waits, too");
    let open = [("host", "localhost:7180")];
    assert_eq!(verdict(&guard, Route::of("GET", "/metrics").unwrap(), via, "/metrics", &open), 200);
}

#[test]
fn the_description_has_every_route_and_no_other() {
    let text = include_str!("openapi.json");
    let api: Value = serde_json::from_str(text).unwrap();
    let described: BTreeSet<(String, String)> = api["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            methods.as_object().unwrap().keys().map(move |method| (method.to_uppercase(), path.clone()))
        })
        .collect();
    let routes: BTreeSet<(String, String)> =
        ROUTES.iter().map(|route| (route.method.to_string(), route.path.to_string())).collect();
    assert_eq!(described, routes);
    for route in &ROUTES {
        let operation = &api["paths"][route.path][route.method.to_lowercase()];
        assert!(operation["summary"].as_str().is_some_and(|text| text.len() > 10), "{}", route.path);
        assert!(operation["responses"]["200"].is_object(), "{}", route.path);
        assert_eq!(operation["security"].is_array(), route.is_open, "{}", route.path);
        assert_eq!(Route::of(route.method, &route.path.replace("{kind}", "busy")).unwrap().path, route.path);
    }
    // Every reference leads somewhere.
    for reference in text.split("\"$ref\": \"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(api.pointer(reference).is_some(), "{reference}");
    }
    let kinds: Vec<String> = Kind::ALL.iter().map(|kind| format!("/problems/{}", kind.slug())).collect();
    assert_eq!(
        api["components"]["schemas"]["Problem"]["properties"]["type"]["enum"],
        serde_json::json!(kinds)
    );
    assert!(Route::of("GET", "/problems/").is_none() && Route::of("PUT", "/metrics").is_none());
    assert_eq!(Route::of("HEAD", "/metrics").unwrap().name, "metrics");
}
