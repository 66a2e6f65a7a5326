//! The promise: who has a password for a site is let in, by Basic or by Digest, with no more requests than it takes; and
//! cookies are kept only where they were asked for, and sent only where they belong.

use crate::stage::{Stage, assert_record, by_each_driver};
use crate::support::*;
use md5::Md5;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

// Basic -----------------------------------------------------------------------------------------------------

const USER: &str = "Mufasa";
const PASSWORD: &str = "Circle of Life";
/// The two, in base64.
const BASIC: &str = "Basic TXVmYXNhOkNpcmNsZSBvZiBMaWZl";

fn auth(url: &str, scheme: &str, password: &str, more: &str) -> String {
    let origin = url.trim_end_matches('/');
    format!(
        "[[auth]]\nsite = \"{origin}\"\nuser = \"{USER}\"\npassword = \"{password}\"\nscheme = \"{scheme}\"\n{more}\n"
    )
}

fn asks_for_basic(asked: &Asked) -> Reply {
    match asked.header("Authorization").as_deref() {
        Some(BASIC) => Reply::text("let in"),
        _ => Reply::new("401 Unauthorized", "WWW-Authenticate: Basic realm=\"x\"\r\n", "who?"),
    }
}

#[test]
fn basic_is_said_at_once_or_when_asked() {
    for driver in DRIVERS {
        for (scheme, requests) in [("basic", 2), ("any", 3)] {
            let mut stage = Stage::new(asks_for_basic);
            let urls = ["/", "/2"].map(|path| stage.url("a.test", path));
            stage.settings(&auth(&urls[0], scheme, PASSWORD, ""));
            stage.crawl([&*urls[0], &*urls[1], "--driver", driver]);
            let stored = stage.stored();
            for url in &urls {
                assert_record(&stored[url], "ok", Some(200), b"let in", &[]);
            }
            assert_eq!(
                stage.pages_of("a.test").len(),
                requests,
                "{scheme}: the first is asked for twice, or none"
            );
            stage.assert_proved();
        }
    }
}

/// A wrong password is tried once, and is the result.
#[test]
fn a_wrong_password_is_said_once() {
    for driver in DRIVERS {
        for (scheme, requests) in [("basic", 1), ("any", 2)] {
            let mut stage = Stage::new(asks_for_basic);
            let url = stage.url("a.test", "/");
            stage.settings(&auth(&url, scheme, "wrong", ""));
            stage.crawl([&*url, "--driver", driver]);
            assert_record(&stage.stored()[&url], "http_error", Some(401), b"who?", &[]);
            assert_eq!(stage.pages_of("a.test").len(), requests, "{scheme}");
        }
    }
}

/// Where only a digest is allowed, the password is not said, however nicely it is asked for.
#[test]
fn a_password_that_is_for_digest_is_not_said() {
    let mut stage = Stage::new(asks_for_basic);
    let url = stage.url("a.test", "/");
    stage.settings(&auth(&url, "digest", PASSWORD, ""));
    stage.crawl([&url]);
    assert_eq!(stage.stored()[&url].http_status, Some(401));
    assert!(stage.server.asked().iter().all(|asked| asked.header("Authorization").is_none()));
}

/// Below a path, and not beside it.
#[test]
fn a_password_is_for_a_path() {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/" => Reply::links([
            "/private/x",
            "/private",
            "/privateer",
            "/public",
            "/private/../public2",
            "/Private/x",
        ]),
        _ => Reply::text("x"),
    });
    let url = stage.url("a.test", "/");
    stage.settings(&auth(&url, "basic", PASSWORD, "path = \"/private\""));
    stage.crawl([&url]);
    let said: BTreeMap<String, bool> = stage
        .server
        .asked()
        .into_iter()
        .map(|asked| (asked.target.clone(), asked.header("Authorization").is_some()))
        .collect();
    let told: Vec<&str> = said.iter().filter(|(_, told)| **told).map(|(target, _)| target.as_str()).collect();
    assert_eq!(told, ["/private", "/private/x"], "{said:?}");
    assert_eq!(said.len(), 8);
}

// Digest ----------------------------------------------------------------------------------------------------

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash(algorithm: &str, text: &str) -> String {
    match algorithm.trim_end_matches("-sess") {
        "MD5" => hex(&Md5::digest(text)),
        _ => hex(&Sha256::digest(text)),
    }
}

/// `name=value` and `name="value"` of an Authorization header.
fn params(header: &str) -> BTreeMap<String, String> {
    let mut rest = header.strip_prefix("Digest ").expect("a digest");
    let mut params = BTreeMap::new();
    while let Some((name, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').expect("a closing quote"),
            None => after.split_at(after.find(',').unwrap_or(after.len())),
        };
        params.insert(name.trim().to_string(), value.to_string());
        rest = after.trim_start_matches([',', ' ']);
    }
    params
}

/// Whether a digest is what RFC 7616 makes of the password, computed here anew.
fn is_right(asked: &Asked, algorithm: &str, qop: bool, nonce: &str) -> bool {
    let Some(header) = asked.header("Authorization") else { return false };
    let said = params(&header);
    let get = |name: &str| said.get(name).map_or("", String::as_str);
    let mut a1 = hash(algorithm, &format!("{USER}:a realm:{PASSWORD}"));
    if algorithm.ends_with("-sess") {
        a1 = hash(algorithm, &format!("{a1}:{nonce}:{}", get("cnonce")));
    }
    let a2 = hash(algorithm, &format!("{}:{}", asked.method, asked.target));
    let response = match qop {
        true => hash(algorithm, &format!("{a1}:{nonce}:{}:{}:auth:{a2}", get("nc"), get("cnonce"))),
        false => hash(algorithm, &format!("{a1}:{nonce}:{a2}")),
    };
    get("response") == response
        && (get("username"), get("realm"), get("nonce"), get("uri"))
            == (USER, "a realm", nonce, &asked.target)
        && get("opaque") == "op"
        && (!qop || get("qop") == "auth" && get("nc").len() == 8 && !get("cnonce").is_empty())
}

fn challenge(algorithm: &str, qop: bool, nonce: &str, more: &str) -> Reply {
    let qop = if qop { "qop=\"auth-int, auth\", " } else { "" };
    let header = format!(
        "WWW-Authenticate: Digest realm=\"a realm\", {qop}algorithm={algorithm}, nonce=\"{nonce}\", opaque=\"op\"{more}\r\n"
    );
    Reply::new("401 Unauthorized", &header, "who?")
}

#[test]
fn digests_are_what_the_server_computes() {
    by_each_driver(|driver| {
        for (algorithm, qop) in
            [("MD5", true), ("SHA-256", true), ("MD5-sess", true), ("SHA-256-sess", true), ("MD5", false)]
        {
            let mut stage = Stage::new(move |asked| match is_right(asked, algorithm, qop, "n0nce/=") {
                true => Reply::text(&asked.target),
                false => challenge(algorithm, qop, "n0nce/=", ""),
            });
            let paths = ["/", "/a?b=c&d=%20e", "/c"];
            let urls = paths.map(|path| stage.url("a.test", path));
            stage.settings(&auth(&urls[0], "digest", PASSWORD, ""));
            stage.crawl(urls.iter().map(String::as_str).chain(["--driver", driver]));
            let stored = stage.stored();
            for (path, url) in paths.iter().zip(&urls) {
                assert_record(&stored[url], "ok", Some(200), path.as_bytes(), &[]);
            }
            let pages = stage.pages_of("a.test");
            assert_eq!(pages.len(), 4, "{algorithm}: only the first is asked for twice");
            let counts: Vec<String> = pages[1..]
                .iter()
                .map(|asked| params(&asked.header("Authorization").unwrap()).remove("nc").unwrap_or_default())
                .collect();
            assert!(!qop || counts == ["00000001", "00000002", "00000003"], "{counts:?}");
            assert!(pages.iter().all(|asked| !asked.head.contains(PASSWORD)));
            stage.assert_proved();
        }
    });
}

/// A digest is of the method that is used.
#[test]
fn heads_are_let_in_too() {
    for driver in DRIVERS {
        let mut stage = Stage::new(|asked| match is_right(asked, "SHA-256", true, "n") {
            true if asked.method == "HEAD" => Reply::raw("HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n"),
            true => Reply::new("206 Part", "", "x"),
            false => {
                let bytes = challenge("SHA-256", true, "n", "").bytes;
                Reply::raw(bytes.strip_suffix(b"who?").unwrap())
            }
        });
        let url = stage.url("a.test", "/");
        stage.settings(&auth(&url, "digest", PASSWORD, ""));
        stage.crawl([&*url, "--head", "--driver", driver, "--req-host-per-sec", "10"]);
        assert_record(&stage.stored()[&url], "ok", Some(206), b"", &["head_by_get"]);
        let methods: Vec<String> = stage.pages_of("a.test").into_iter().map(|asked| asked.method).collect();
        assert_eq!(methods, ["HEAD", "HEAD", "GET"], "asked who we are, refused the method, let in");
        stage.assert_proved();
    }
}

/// The strongest of several challenges is answered, in one header or in two.
#[test]
fn the_strongest_challenge_is_answered() {
    for one_header in [true, false] {
        let mut stage = Stage::new(move |asked| {
            if is_right(asked, "SHA-256", true, "n2") {
                return Reply::text("let in");
            }
            let digest = |algorithm: &str, nonce: &str| {
                format!(
                    "Digest realm=\"a realm\", qop=\"auth\", algorithm={algorithm}, nonce=\"{nonce}\", opaque=\"op\""
                )
            };
            let all = ["Basic realm=\"x\"".to_string(), digest("MD5", "n1"), digest("SHA-256", "n2")];
            let headers: String = match one_header {
                true => format!("WWW-Authenticate: {}\r\n", all.join(", ")),
                false => all.iter().map(|one| format!("WWW-Authenticate: {one}\r\n")).collect(),
            };
            Reply::new("401 Unauthorized", &headers, "who?")
        });
        let url = stage.url("a.test", "/");
        stage.settings(&auth(&url, "any", PASSWORD, ""));
        stage.crawl([&url]);
        assert_record(&stage.stored()[&url], "ok", Some(200), b"let in", &[]);
    }
}

/// A nonce that has grown old is replaced, at the cost of one request; a wrong password is not tried again; and who finds
/// every nonce old is not asked for ever.
#[test]
fn old_nonces_and_wrong_passwords() {
    by_each_driver(|driver| {
        let mut stage = Stage::new(|asked| match (asked.name(), asked.target.as_str()) {
            ("old.test", "/2") if !is_right(asked, "SHA-256", true, "new") => {
                challenge("SHA-256", true, "new", ", stale=true")
            }
            ("old.test", _) if is_right(asked, "SHA-256", true, "new") => Reply::text("let in"),
            ("old.test", "/") if is_right(asked, "SHA-256", true, "first") => Reply::text("let in"),
            ("old.test", _) => challenge("SHA-256", true, "first", ""),
            ("stale.test", _) => challenge("MD5", true, &format!("{}", asked.at_ns), ", stale=TRUE"),
            _ => challenge("MD5", true, "n", ""),
        });
        let old = ["/", "/2"].map(|path| stage.url("old.test", path));
        let (stale, wrong) = (stage.url("stale.test", "/"), stage.url("wrong.test", "/"));
        let settings = [
            auth(&old[0], "digest", PASSWORD, ""),
            auth(&stale, "digest", PASSWORD, ""),
            auth(&wrong, "digest", "no", ""),
        ];
        stage.settings(&settings.concat());
        let flags = [&*stale, &*wrong, "--driver", driver, "--req-host-per-sec", "10"];
        stage.crawl(old.iter().map(String::as_str).chain(flags));
        let stored = stage.stored();
        for url in &old {
            assert_record(&stored[url], "ok", Some(200), b"let in", &[]);
        }
        assert_eq!(stage.pages_of("old.test").len(), 4, "one more for the first and for the second");
        for url in [&stale, &wrong] {
            assert_record(&stored[url], "http_error", Some(401), b"who?", &[]);
        }
        assert_eq!(stage.pages_of("wrong.test").len(), 2);
        let stale = stage.pages_of("stale.test").len();
        assert!((2..=6).contains(&stale), "{stale}");
        stage.assert_proved();
    });
}

/// A challenge that would write a line of its own into the request is not answered.
#[test]
fn a_challenge_cannot_write_headers() {
    let mut stage = Stage::new(|_| {
        let header = "WWW-Authenticate: Digest realm=\"a\", nonce=\"x\u{1b}[1m\\\"\", opaque=\"a\tb\", qop=\"auth\"\r\n";
        Reply::new("401 Unauthorized", header, "")
    });
    let url = stage.url("a.test", "/");
    stage.settings(&auth(&url, "any", PASSWORD, ""));
    stage.crawl([&url]);
    assert_eq!(stage.stored()[&url].http_status, Some(401));
    for asked in stage.server.asked() {
        assert!(asked.head.chars().all(|c| !c.is_control() || "\r\n".contains(c)), "{:?}", asked.head);
    }
}

// What is for one origin only -------------------------------------------------------------------------------

/// Two names and two ports. What belongs to `http://a.test:PORT` is sent there, and nowhere else: not over a redirect, not
/// by a link, not to another port of the same name.
#[test]
fn passwords_and_cookies_stay_with_their_origin() {
    for driver in DRIVERS {
        let other = LogServer::start_on([0, 0, 0, 0], |asked| match asked.target.as_str() {
            "/robots.txt" => Reply::status("404 Not Found"),
            _ => {
                Reply::status("401 No").with("WWW-Authenticate: Basic realm=\"a\"\r\nSet-Cookie: other=1\r\n")
            }
        });
        let other_port = other.port();
        let mut stage = Stage::new(move |asked| {
            let port = asked.host.rsplit(':').next().unwrap();
            let cookie = "Set-Cookie: key=a; Path=/; Domain=test\r\nSet-Cookie: plain=a; Path=/\r\n";
            match (asked.name(), asked.target.as_str()) {
                ("a.test", "/") => {
                    Reply::links(["/name", "/port", "/back", &format!("http://b.test:{port}/link")])
                        .with(cookie)
                }
                ("a.test", "/name") => Reply::redirect(&format!("http://b.test:{port}/name")),
                ("a.test", "/port") => Reply::redirect(&format!("http://a.test:{other_port}/port")),
                ("a.test", "/back") => Reply::redirect(&format!("http://b.test:{port}/back")),
                ("b.test", "/back") => Reply::redirect(&format!("http://a.test:{port}/home")),
                _ => Reply::status("401 No").with("WWW-Authenticate: Basic realm=\"a\"\r\n"),
            }
        });
        let url = stage.url("a.test", "/");
        stage.url("b.test", "/");
        let site = url.trim_end_matches('/');
        stage.settings(&format!(
            "[spider]\ncookies = true\n[[auth]]\nsite = \"{site}\"\nuser = \"u\"\npassword = \"secret\"\nscheme = \"basic\"\n"
        ));
        stage.crawl([&url, "--driver", driver, "--scope", "any"]);
        let ours = stage.pages_of("a.test");
        assert!(
            ours.iter().all(|asked| asked.header("Authorization").as_deref() == Some("Basic dTpzZWNyZXQ=")),
            "{ours:?}"
        );
        let home = ours.iter().find(|asked| asked.target == "/home").expect("it was led back");
        assert!(home.header("Cookie").unwrap().contains("plain=a"), "{home:?}");
        let elsewhere = [stage.pages_of("b.test"), other.asked()].concat();
        assert!(elsewhere.iter().any(|asked| asked.target == "/port"), "{elsewhere:?}");
        assert!(
            ["/name", "/link", "/back"]
                .iter()
                .all(|path| elsewhere.iter().any(|asked| asked.target == **path))
        );
        for asked in elsewhere {
            let said = (asked.header("Authorization"), asked.header("Cookie"));
            assert_eq!(said, (None, None), "{}", asked.head);
        }
    }
}

/// A user and a password in a URL are nobody's business: they are not sent, and not stored.
#[test]
fn passwords_in_urls_are_not_sent() {
    let mut stage = Stage::new(|asked| {
        let port = asked.host.rsplit(':').next().unwrap();
        match asked.target.as_str() {
            "/" => Reply::links([
                &format!("http://user:hidden@b.test:{port}/link"),
                &format!("//user:hidden@a.test:{port}/link"),
                &format!("http://hidden@a.test:{port}/user"),
                "/to",
                "/refresh",
            ]),
            "/to" => Reply::redirect(&format!("http://user:hidden@b.test:{port}/to")),
            "/refresh" => Reply::html(&format!(
                "<meta http-equiv=refresh content='0;url=http://user:hidden@b.test:{port}/refresh'>"
            )),
            _ => Reply::new("401 No", "WWW-Authenticate: Basic realm=\"a\"\r\n", ""),
        }
    });
    let url = stage.url("a.test", "/");
    stage.url("b.test", "/");
    stage.crawl([&url, "--scope", "any"]);
    for asked in stage.server.asked() {
        assert!(!asked.head.contains("hidden") && asked.header("Authorization").is_none(), "{}", asked.head);
    }
    for listed in records(&stage.data) {
        assert!(
            !listed.url.contains("hidden")
                && !listed.new_url.as_ref().is_some_and(|to| to.contains("hidden"))
        );
    }
    assert!(!stage.log().contains("hidden"));
}

// Cookies ---------------------------------------------------------------------------------------------------

const COOKIES: [&str; 12] = [
    "plain=1",
    "root=2; Path=/",
    "sub=3; Path=/sub",
    "secure=4; Secure; Path=/",
    "gone=5; Max-Age=0; Path=/",
    "old=6; Expires=Sun, 06 Nov 1994 08:49:37 GMT; Path=/",
    "foreign=7; Domain=b.test; Path=/",
    "suffix=8; Domain=com; Path=/",
    "__Host-x=9; Path=/",
    "__Secure-x=10; Path=/",
    "twice=11; Path=/",
    "twice=12; Path=/; HttpOnly; SameSite=Strict; Max-Age=100",
];

/// What was sent with each target, after `/` had set them all.
fn sent(settings: &str, driver: &str) -> BTreeMap<String, Vec<String>> {
    let mut stage = Stage::new(|asked| match asked.target.as_str() {
        "/" => {
            let lines: String = COOKIES.iter().map(|cookie| format!("Set-Cookie: {cookie}\r\n")).collect();
            Reply::links(["/sub", "/sub/x", "/subway", "/other"]).with(&lines)
        }
        _ => Reply::text("x"),
    });
    stage.settings(settings);
    let url = stage.url("a.test", "/");
    stage.crawl([&*url, "--driver", driver]);
    let asked = stage.pages_of("a.test").into_iter();
    asked
        .map(|asked| {
            let mut pairs: Vec<String> =
                asked.header("Cookie").iter().flat_map(|line| line.split("; ")).map(str::to_string).collect();
            pairs.sort();
            (asked.target, pairs)
        })
        .collect()
}

#[test]
fn cookies_are_off_unless_switched_on() {
    for driver in DRIVERS {
        assert!(sent("", driver).values().all(Vec::is_empty));
        assert!(sent("[spider]\ncookies = false\n", driver).values().all(Vec::is_empty));
    }
}

#[test]
fn cookies_go_back_where_they_belong() {
    for driver in DRIVERS {
        let sent = sent("[spider]\ncookies = true\n", driver);
        let everywhere = ["plain=1", "root=2", "twice=12"];
        assert_eq!(sent["/"], [""; 0], "nothing was known yet");
        assert_eq!(sent["/other"], everywhere);
        assert_eq!(sent["/subway"], everywhere);
        assert_eq!(sent["/sub"], ["plain=1", "root=2", "sub=3", "twice=12"]);
        assert_eq!(sent["/sub/x"], ["plain=1", "root=2", "sub=3", "twice=12"]);
    }
}

/// Neither many nor large cookies make a large request, and none of them writes a line of its own.
#[test]
fn cookies_are_bounded() {
    let mut stage = Stage::new(|asked| {
        let n: usize = asked.target[1..].parse().unwrap_or(0);
        let large: String =
            (0..12).map(|k| format!("Set-Cookie: l{n}x{k}={}; Path=/\r\n", "v".repeat(4_000))).collect();
        let many: String = (0..200).map(|k| format!("Set-Cookie: m{n}x{k}=v; Path=/\r\n")).collect();
        let odd =
            "Set-Cookie: esc=\u{1b}[31m; Path=/\r\nSet-Cookie: tab=a\tb; Path=/\r\nSet-Cookie: =; Path=/\r\n";
        Reply::text("x").with(&[&large[..], &many, odd][n % 3])
    });
    stage.settings("[spider]\ncookies = true\n");
    let urls: Vec<String> = (0..12).map(|n| stage.url("a.test", &format!("/{n}"))).collect();
    stage.crawl(&urls);
    let pages = stage.pages_of("a.test");
    assert!(pages.iter().any(|asked| asked.header("Cookie").is_some()));
    for asked in pages {
        assert!(asked.head.len() < 20_000, "{} bytes", asked.head.len());
        assert!(asked.head.chars().all(|c| !c.is_control() || "\r\n".contains(c)), "{:?}", asked.head);
    }
    assert!(stage.stored().values().all(|listed| listed.success));
}

/// What was set in one crawl is not known in the next.
#[test]
fn cookies_last_for_one_crawl() {
    let mut stage = Stage::new(|_| Reply::text("x").with("Set-Cookie: a=b; Max-Age=100000; Path=/\r\n"));
    stage.settings("[spider]\ncookies = true\n");
    let url = stage.url("a.test", "/");
    stage.crawl([&url]);
    stage.crawl([&url]);
    assert!(stage.server.asked().iter().all(|asked| asked.header("Cookie").is_none()));
}
