//! The promise: the examples of the RFCs come out as printed, the strongest challenge wins, and whatever a site
//! sends, the answer is one header line.

use proptest::prelude::*;

use super::{AuthKind, Challenge, Credentials, Site, Sites};
use crate::limits::{CHALLENGE_BYTES_MAX, CHALLENGE_PARAM_BYTES_MAX};
use crate::proto::url::CrawlUrl;

fn credentials(user: &str, password: &str) -> Credentials {
    Credentials { user: user.to_string(), password: password.to_string() }
}

fn choose(values: &[&str]) -> Option<Challenge> {
    Challenge::choose(values.iter().map(|value| value.as_bytes()), AuthKind::Any)
}

fn answer(challenge: &mut Challenge, target: &str, cnonce: u64) -> String {
    let mut out = Vec::new();
    challenge.answer(&credentials("u", "p"), "GET", target, cnonce, &mut out);
    String::from_utf8(out).unwrap()
}

/// The parameters of an answer, without `, `.
fn parts(answer: &str) -> Vec<&str> {
    answer.strip_prefix("Digest ").unwrap().split(", ").collect()
}

const RFC7616_REALM: &str = r#"realm="http-auth@example.org", qop="auth, auth-int", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#;
const RFC7616_CNONCE: &str = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ";

#[test]
fn example_of_rfc_7617() {
    for (user, password, text) in [
        ("Aladdin", "open sesame", "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ=="),
        ("test", "123\u{a3}", "Basic dGVzdDoxMjPCow=="),
    ] {
        let mut challenge = choose(&["Basic realm=\"foo\", charset=\"UTF-8\""]).unwrap();
        let mut out = Vec::new();
        challenge.answer(&credentials(user, password), "GET", "/", 1, &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}

#[test]
fn example_of_rfc_7616() {
    for (algorithm, response) in [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        // These two are not in the RFC; they were worked out by hand.
        ("MD5-sess", "e783283f46242139c486a698fec7211d"),
        ("SHA-256-sess", "2fd51b3a77ad75bad6afad6003e818d767133c46d9e2749e7f5232ae1ea3efd7"),
    ] {
        let mut challenge = choose(&[&format!("Digest {RFC7616_REALM}, algorithm={algorithm}")]).unwrap();
        let mufasa = credentials("Mufasa", "Circle of Life");
        let answer = challenge.answer_with(&mufasa, "GET", "/dir/index.html", RFC7616_CNONCE);
        assert_eq!(
            parts(&answer),
            [
                "username=\"Mufasa\"",
                "realm=\"http-auth@example.org\"",
                "uri=\"/dir/index.html\"",
                &format!("algorithm={algorithm}"),
                "nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\"",
                "qop=auth",
                "nc=00000001",
                &format!("cnonce=\"{RFC7616_CNONCE}\""),
                &format!("response=\"{response}\""),
                "opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\"",
            ]
        );
    }
}

/// As its erratum 4897 has it: what is printed used another hash of that name.
#[test]
fn example_of_rfc_7616_with_a_hashed_user() {
    let value = r#"Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8"#;
    let jason = credentials("J\u{e4}s\u{f8}n Doe", "Secret, or not?");
    for (userhash, user) in [
        ("true", "username=\"793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b\""),
        ("false", "username*=UTF-8''J%C3%A4s%C3%B8n%20Doe"),
    ] {
        let mut challenge = choose(&[&format!("{value}, userhash={userhash}")]).unwrap();
        let cnonce = "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v";
        let answer = challenge.answer_with(&jason, "GET", "/doe.json", cnonce);
        let parts = parts(&answer);
        assert_eq!(parts[0], user);
        assert!(
            parts.contains(&"response=\"3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5\"")
        );
        assert_eq!(parts.last() == Some(&"userhash=true"), userhash == "true");
    }
}

#[test]
fn examples_of_rfc_2617_and_2069() {
    let mufasa = credentials("Mufasa", "Circle Of Life");
    let nonce = "nonce=\"dcd98b7102dd2f0e8b11d0f600bfb0c093\"";
    let value = format!("Digest realm=\"testrealm@host.com\", {nonce}");
    let mut challenge = choose(&[&format!("{value}, qop=\"auth,auth-int\"")]).unwrap();
    let answer = challenge.answer_with(&mufasa, "GET", "/dir/index.html", "0a4f113b");
    assert!(answer.contains(
        "qop=auth, nc=00000001, cnonce=\"0a4f113b\", response=\"6629fae49393a05397450978507c4ef1\""
    ));
    assert!(!answer.contains("algorithm"), "the challenge named none");
    for qop in ["", ", qop=\"\""] {
        let mut challenge = choose(&[&format!("{value}{qop}")]).unwrap();
        let answer = challenge.answer_with(&mufasa, "GET", "/dir/index.html", "0a4f113b");
        assert_eq!(
            parts(&answer),
            [
                "username=\"Mufasa\"",
                "realm=\"testrealm@host.com\"",
                "uri=\"/dir/index.html\"",
                nonce,
                "response=\"670fd8c2df070c60b045671b8b24ff02\"",
            ]
        );
    }
}

#[test]
fn answers_to_one_nonce_are_counted() {
    let mut challenge = choose(&["Digest realm=r, nonce=n, qop=auth"]).unwrap();
    for (count, nc) in [(1, "nc=00000001"), (2, "nc=00000002"), (3, "nc=00000003")] {
        let answer = answer(&mut challenge, "/", count);
        assert!(parts(&answer).contains(&nc), "{answer}");
        assert!(answer.contains(&format!("cnonce=\"{count:016x}\"")), "{answer}");
    }
}

#[test]
fn a_session_keeps_its_first_client_nonce() {
    let mut challenge = choose(&["Digest realm=r, nonce=n, qop=auth, algorithm=sha-256-SESS"]).unwrap();
    let first = answer(&mut challenge, "/1", 0xab);
    assert!(first.contains("91acf1d41d1417cf294bb7664e47e81aa740ecb6589bb5fb8a35db314fecb4c2"), "{first}");
    let second = answer(&mut challenge, "/2", 0xcd);
    assert!(second.contains("cnonce=\"00000000000000ab\""), "{second}");
    assert!(second.contains("c76111ccb94a06dc7776f3a14ca9c9778f0ea49c1a8fb8a6c32dd61bb1fc7af7"), "{second}");
    // Without qop a site still needs the client's nonce, or it could not check.
    let mut challenge = choose(&["Digest realm=r, nonce=n, algorithm=MD5-sess"]).unwrap();
    let answer = answer(&mut challenge, "/", 0xab);
    assert!(
        answer.contains("cnonce=\"00000000000000ab\", response=\"a05558c2b29ad4898d0c0abff7428d22\""),
        "{answer}"
    );
}

#[test]
fn quotes_and_backslashes_are_hashed_bare_and_sent_escaped() {
    let mut challenge = choose(&[r#"Digest realm="r\"\\", nonce="n\\\"", qop="auth", opaque="\o""#]).unwrap();
    let mut out = Vec::new();
    challenge.answer(&credentials("u\"\\", "p"), "GET", "/?a\\", 0xab, &mut out);
    let answer = String::from_utf8(out).unwrap();
    let parts = parts(&answer);
    assert_eq!(parts[..4], [r#"username="u\"\\""#, r#"realm="r\"\\""#, r#"uri="/?a\\""#, r#"nonce="n\\\"""#]);
    assert!(parts.contains(&"response=\"814c8c79a05fd3f90deff7412d7ce156\""), "{answer}");
    assert_eq!(parts.last(), Some(&"opaque=\"o\""));
}

/// Which of several challenges is answered, by what the answer begins with or holds.
#[test]
fn the_strongest_that_we_can_answer_wins() {
    let md5 = "Digest realm=m, nonce=n, qop=auth";
    let old = "Digest realm=o, nonce=n";
    let sha256 = "Digest realm=s, nonce=n, qop=auth, algorithm=SHA-256";
    let sha512 = "Digest realm=t, nonce=n, qop=auth, algorithm=SHA-512-256";
    for (values, holds) in [
        (vec!["Basic realm=x", md5], "realm=\"m\""),
        (vec!["Negotiate", "NTLM TlRMTVNTUAACAAAA==", "Basic realm=x"], "Basic "),
        (vec![old, md5, sha256, sha512], "realm=\"t\""),
        (vec![sha512, sha256, md5, old], "realm=\"t\""),
        (vec![old, "Basic", md5], "realm=\"m\""),
        (vec!["Digest realm=a, nonce=n, qop=auth", "Digest realm=b, nonce=n, qop=auth"], "realm=\"a\""),
        (vec![md5, "Digest realm=z, nonce=n, algorithm=SHA-999, qop=auth"], "realm=\"m\""),
        (vec![old, "Digest realm=z, nonce=n, qop=auth-int, algorithm=SHA-256"], "realm=\"o\""),
        (vec!["Bearer realm=\"Basic, Digest\", error=\"invalid_token\"", "Basic realm=x"], "Basic "),
    ] {
        for joined in [vec![values.join(", ")], values.iter().map(|value| value.to_string()).collect()] {
            let joined: Vec<&str> = joined.iter().map(String::as_str).collect();
            let mut challenge = choose(&joined).unwrap();
            let answer = answer(&mut challenge, "/", 1);
            assert!(answer.contains(holds), "{joined:?}: {answer}");
        }
    }
}

#[test]
fn only_what_is_allowed_is_answered() {
    let both = ["Basic realm=x, Digest realm=d, nonce=n"];
    let of = |values: &[&str], allowed| {
        Challenge::choose(values.iter().map(|value| value.as_bytes()), allowed)
            .map(|mut challenge| answer(&mut challenge, "/", 1).split(' ').next().unwrap().to_string())
    };
    assert_eq!(of(&both, AuthKind::Basic).as_deref(), Some("Basic"));
    assert_eq!(of(&both, AuthKind::Digest).as_deref(), Some("Digest"));
    assert_eq!(of(&both, AuthKind::Any).as_deref(), Some("Digest"));
    assert_eq!(of(&["Basic"], AuthKind::Digest), None, "the password stays here");
    assert_eq!(of(&["Digest realm=d, nonce=n"], AuthKind::Basic), None);

    assert_eq!(Challenge::preemptive(AuthKind::Basic), choose(&["Basic"]));
    assert_eq!(Challenge::preemptive(AuthKind::Digest), None);
    assert_eq!(Challenge::preemptive(AuthKind::Any), None);
}

#[test]
fn a_stale_nonce_is_worth_another_try() {
    for (value, stale) in [
        ("Digest realm=r, nonce=n, stale=true", true),
        ("Digest realm=r, nonce=n, stale=\"TRUE\"", true),
        ("Digest realm=r, nonce=n, stale=false", false),
        ("Digest realm=r, nonce=n", false),
        ("Basic realm=r, stale=true", false),
    ] {
        assert_eq!(choose(&[value]).unwrap().is_stale(), stale, "{value}");
    }
}

#[test]
fn what_is_not_answered() {
    let long = "n".repeat(CHALLENGE_PARAM_BYTES_MAX + 1);
    let value_long = format!("Basic realm=\"{}\"", "r".repeat(CHALLENGE_BYTES_MAX));
    for value in [
        "",
        "Digest",
        "Digest realm=r",
        "Digest nonce=n",
        "Digest realm=r, nonce=\"\"",
        "Digest realm=r, nonce=n, qop=auth-int",
        "Digest realm=r, nonce=n, algorithm=MD4",
        // Two readings of one challenge.
        "Digest realm=r, nonce=n, nonce=m",
        // What would come back inside our request.
        "Digest realm=r, nonce=\"n\r\nX: y\"",
        "Digest realm=\"r\0\", nonce=n",
        "Digest realm=r, nonce=n, opaque=\"\x1b[2J\"",
        "Digest realm=r, nonce=n, opaque=\"\\\n\"",
        "Digest realm=r, nonce=n, unknown=\"\x7f\"",
        "Digest realm=r, nonce=\"n",
        &format!("Digest realm=r, nonce={long}"),
        &format!("Digest realm=r, nonce=n, opaque={long}"),
        &value_long,
        "Bearer",
        "Basic\0realm=r",
    ] {
        assert_eq!(choose(&[value]), None, "{value:?}");
    }
    assert!(choose(&[&format!("Digest realm=r, nonce={}", &long[1..])]).is_some());
    assert!(choose(&[&value_long, "Basic"]).is_some(), "one bad value leaves the others");
}

#[test]
fn non_ascii_users_go_out_plain_where_the_site_does_not_know_utf8() {
    let mut challenge = choose(&["Digest realm=r, nonce=n"]).unwrap();
    let answer = challenge.answer_with(&credentials("j\u{e4}", "p"), "GET", "/", "c");
    assert!(answer.starts_with("Digest username=\"j\u{e4}\", "), "{answer}");
}

/// Sites know nothing of `CrawlUrl`; both must mean the same by an origin.
#[test]
fn a_site_is_found_by_the_origin_of_a_url() {
    for site in [
        "http://Example.ORG",
        "https://example.org:443",
        "http://example.org:8080/",
        "http://0x7f.1",
        "https://[2001:DB8:0::1]:444",
        "http://gr\u{fc}n.test",
    ] {
        let known = Site::new(site, "/", AuthKind::Any, credentials("u", "p")).unwrap();
        let sites = Sites::new(vec![known]).unwrap();
        let url = CrawlUrl::parse(&format!("{}/a?b", site.trim_end_matches('/'))).unwrap();
        assert!(sites.of(url.origin(), url.path_and_query()).is_some(), "{site}");
    }
}

/// Bytes that a challenge is made of, more often than chance has it.
fn almost_a_challenge() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "Digest ",
        "Basic ",
        "realm=",
        "nonce=",
        "opaque=",
        "qop=",
        "algorithm=",
        "stale=",
        "userhash=",
        "charset=",
        "\"",
        "\\",
        ",",
        ", ",
        "=",
        " ",
        "\t",
        "\r\n",
        "\0",
        "auth",
        "auth-int",
        "MD5",
        "MD5-sess",
        "SHA-256",
        "SHA-512-256-sess",
        "true",
        "UTF-8",
        "r\"n",
        "Digest realm=r, nonce=n, ",
        "\u{e4}",
    ])
    .prop_map(|word| word.as_bytes().to_vec());
    let piece = prop_oneof![8 => word, 1 => prop::collection::vec(any::<u8>(), 0..8)];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_048) })]

    #[test]
    fn whatever_comes_the_answer_is_one_line(
        values in prop::collection::vec(almost_a_challenge(), 0..4),
        user in any::<String>(), password in any::<String>(), target in any::<String>(), cnonce in any::<u64>(),
    ) {
        for kind in [AuthKind::Basic, AuthKind::Digest, AuthKind::Any] {
            let Some(mut challenge) = Challenge::choose(values.iter().map(Vec::as_slice), kind) else { continue };
            let mut out = Vec::new();
            challenge.answer(&credentials(&user, &password), "GET", &target, cnonce, &mut out);
            prop_assert!(!out.iter().any(u8::is_ascii_control), "{:?}", String::from_utf8_lossy(&out));
            prop_assert!(out.starts_with(b"Basic ") != out.starts_with(b"Digest "));
        }
    }

    /// What was put into quotes comes back out of them, through our own reader.
    #[test]
    fn texts_survive_their_quotes(realm in "[ -~]{0,20}", nonce in "[ -~]{1,20}") {
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let value = format!("Digest realm={},nonce={}", quoted(&realm), quoted(&nonce));
        let answer = answer(&mut choose(&[&value]).unwrap(), "/", 1);
        prop_assert!(answer.contains(&format!("realm={}", quoted(&realm))), "{answer}");
        prop_assert!(answer.contains(&format!("nonce={}", quoted(&nonce))), "{answer}");
    }
}
