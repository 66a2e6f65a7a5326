//! The promise: `parse` says what the parser makes of a response, and of any part of one that a cut leaves: a cut head
//! is an error, a cut body is not complete, and nothing past the end of a response changes what it was.

use crate::cases::{Case, cases};
use crate::support::*;
use nephila::commands::parse::{Reading, Response};
use nephila::proto::http1::Method;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};

const CUT_HEAD: &str = "cut head: the input ends before the blank line";

fn parse_command(args: &[&str]) -> Command {
    let mut command = nephila();
    command.arg("parse").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// The real binary: its object, and its exit status held against it.
#[track_caller]
fn parse(args: &[&str], bytes: &[u8]) -> Value {
    let mut child = parse_command(args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // All of it is read, also when the first bytes decide.
    stdin.write_all(bytes).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let run = Run { status: output.status, stdout: output.stdout, stderr };
    let object = run.json();
    assert_eq!(run.code(), i32::from(object.get("error").is_some()), "{object}");
    assert_eq!(run.stderr, "");
    object
}

/// The same through the library, in pieces of so many bytes.
fn read(case: &Case, bytes: &[u8], piece: usize) -> Result<Response, String> {
    let mut reading = Reading::new(if case.head { Method::Head } else { Method::Get });
    bytes.chunks(piece).for_each(|bytes| reading.push(bytes));
    reading.end().map_err(|error| error.to_string())
}

fn method(case: &Case) -> &'static [&'static str] {
    if case.head { &["--method", "HEAD"] } else { &[] }
}

/// Where the final head ends, found without the parser: blank lines, and 1xx.
fn head_end(bytes: &[u8]) -> usize {
    let mut start = 0;
    loop {
        let rest = &bytes[start..];
        let end = (1..=rest.len())
            .find(|&end| rest[..end].ends_with(b"\n\r\n") || rest[..end].ends_with(b"\n\n"))
            .expect("a blank line");
        let interim = rest[9] == b'1';
        start += end;
        if !interim {
            return start;
        }
    }
}

/// What must be said of the whole row.
fn whole_error(case: &Case) -> Option<String> {
    let class = if case.status.is_some() { "malformed chunk" } else { "rejected head" };
    case.error.map(|error| format!("{class}: {error}"))
}

/// Holds an answer against what is true of the first `cut` bytes of a row. `seen` is what shorter cuts came to.
fn check(case: &Case, cut: usize, answer: &Result<Response, String>, seen: &mut Seen) -> Result<(), String> {
    let whole = cut == case.bytes.len();
    let refusal = whole_error(case);
    // What could not be read does not become readable.
    if seen.refused || (whole && refusal.is_some()) {
        return same("error", answer.as_ref().err(), refusal.as_ref());
    }
    if refusal.is_some() && answer.as_ref().err() == refusal.as_ref() {
        seen.refused = true;
        return Ok(());
    }
    if case.status.is_none() || cut < head_end(&case.bytes) {
        return same("error", answer.as_ref().err().map(String::as_str), Some(CUT_HEAD));
    }
    let response = answer.as_ref().map_err(|error| format!("refused: {error}"))?;
    let (head_bytes, own_bytes) = (head_end(&case.bytes), case.bytes.len() - case.left_over);
    same("status", Some(response.status), case.status)?;
    same("framing", response.framing, case.framing)?;
    let version = format!("1.{}", case.bytes[7] as char);
    if !case.bytes.starts_with(b"HTTP/1.1 1") {
        same("version", &response.version, &version)?;
    }
    let complete = match case.framing {
        "none" => true,
        // Only the limit on documents leaves it less than whole.
        "close" => !(whole && case.flags.contains(&"cut")),
        _ => refusal.is_none() && case.result != "truncated" && cut >= own_bytes,
    };
    same("complete", response.complete, complete)?;
    same("keep_alive", response.keep_alive, complete && case.keep_alive && cut <= own_bytes)?;
    let body_bytes = match case.framing {
        "none" => 0,
        // Chunks are not taken apart here again: a byte brings at most one byte of the body.
        "chunked" if !complete => {
            let body_bytes = response.body_bytes as usize;
            if body_bytes < seen.body_bytes || body_bytes > seen.body_bytes + (cut - seen.cut) {
                return Err(format!("{body_bytes} bytes of body after {}", seen.body_bytes));
            }
            body_bytes
        }
        "chunked" => case.body.len(),
        _ => case.body.len().min(cut - head_bytes),
    };
    (seen.cut, seen.body_bytes) = (cut, body_bytes);
    let body = case.body.get(..body_bytes).ok_or("more body than there is")?;
    same("body_bytes", response.body_bytes, body_bytes as u64)?;
    same("body_sha1", &response.body_sha1, &sha1_hex(body))?;
    if whole {
        same("flags", &response.flags[..], case.flags)?;
    }
    match response.flags.iter().find(|flag| !case.flags.contains(flag)) {
        Some(flag) => Err(format!("flag {flag}")),
        None => Ok(()),
    }
}

#[derive(Default)]
struct Seen {
    refused: bool,
    cut: usize,
    body_bytes: usize,
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, seen: T, expected: T) -> Result<(), String> {
    if seen == expected { Ok(()) } else { Err(format!("{what}: {seen:?}, not {expected:?}")) }
}

/// A printed object, in the library's shape.
fn response_of(object: &Value) -> Result<Response, String> {
    if let Some(error) = object.get("error") {
        assert_eq!(object.as_object().unwrap().len(), 1, "{object}");
        return Err(error.as_str().unwrap().to_string());
    }
    let mut keys: Vec<&str> = object.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    let shape = [
        "body_bytes",
        "body_sha1",
        "complete",
        "flags",
        "framing",
        "headers",
        "keep_alive",
        "status",
        "version",
    ];
    assert_eq!(keys, shape);
    let text = |value: &Value| value.as_str().unwrap().to_string();
    let known = |value: &Value| -> &'static str { Box::leak(text(value).into_boxed_str()) };
    let pair = |pair: &Value| (text(&pair[0]), text(&pair[1]));
    Ok(Response {
        status: object["status"].as_u64().unwrap().try_into().unwrap(),
        version: text(&object["version"]),
        headers: object["headers"].as_array().unwrap().iter().map(pair).collect(),
        framing: known(&object["framing"]),
        body_bytes: object["body_bytes"].as_u64().unwrap(),
        body_sha1: text(&object["body_sha1"]),
        complete: object["complete"].as_bool().unwrap(),
        keep_alive: object["keep_alive"].as_bool().unwrap(),
        flags: object["flags"].as_array().unwrap().iter().map(known).collect(),
    })
}

/// Asks about cuts of every row, and gathers what was wrong.
#[track_caller]
fn every_row(cuts: impl Fn(&Case) -> Vec<usize>, ask: impl Fn(&Case, &[u8]) -> Result<Response, String>) {
    let mut wrong = String::new();
    for case in cases() {
        let mut seen = Seen::default();
        for cut in cuts(&case) {
            let answer = ask(&case, &case.bytes[..cut]);
            if let Err(error) = check(&case, cut, &answer, &mut seen) {
                wrong.push_str(&format!("{}, {cut} bytes: {error}\n", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Every byte, but of the filler in the middle of long rows only some.
fn every_cut(case: &Case) -> Vec<usize> {
    let len = case.bytes.len();
    if len > 1 << 20 {
        return vec![len];
    }
    let matters = |cut: &usize| *cut < 200 || len - cut < 200 || cut.is_multiple_of(len / 100);
    (0..=len).filter(|cut| len < 4_000 || matters(cut)).collect()
}

#[test]
fn every_row_whole() {
    every_row(|case| vec![case.bytes.len()], |case, bytes| response_of(&parse(method(case), bytes)));
}

/// A process for every fifth cut of what is short, each row beginning at another byte; the next test has all of them.
#[test]
fn every_row_cut_by_a_process() {
    let cuts = |case: &Case| {
        let len = case.bytes.len();
        (case.name.len() % 5..=len).step_by(5).filter(|_| len <= 200).collect()
    };
    every_row(cuts, |case, bytes| response_of(&parse(method(case), bytes)));
}

#[test]
fn every_row_cut_at_every_byte() {
    every_row(every_cut, |case, bytes| read(case, bytes, usize::MAX));
}

#[test]
fn every_row_byte_by_byte() {
    for case in cases().iter().filter(|case| case.bytes.len() < 100_000) {
        for piece in [1, 7] {
            assert_eq!(read(case, &case.bytes, piece), read(case, &case.bytes, usize::MAX), "{}", case.name);
        }
    }
}

#[test]
fn the_object_in_full() {
    let bytes =
        b"HTTP/1.0 404 Not here\r\nServer : x\r\nX-Fold: a\r\n\t b\r\nx-caf\xc3\xa9: \xe9\x01\r\n\r\nhi";
    let expected = json!({
        "status": 404, "version": "1.0",
        "headers": [["Server", "x"], ["X-Fold", "a b"], ["x-caf\u{c3}\u{a9}", "\u{e9}\u{1}"]],
        "framing": "close", "body_bytes": 2, "body_sha1": "c22b5f9178342609428d6f51b2c5af4c0bde6a42",
        "complete": true, "keep_alive": false, "flags": ["space_before_colon"],
    });
    assert_eq!(parse(&[], bytes), expected);
}

/// Every byte can be had back from the code points.
#[test]
fn any_byte_of_a_value_is_kept() {
    let value: Vec<u8> = (1..=255).filter(|byte| !b"\r\n\t ".contains(byte)).collect();
    let bytes = [b"HTTP/1.1 204 x\r\nX: ", &value[..], b"\r\n\r\n"].concat();
    let object = parse(&["--method", "get"], &bytes);
    let shown = object["headers"][0][1].as_str().unwrap();
    let back: Vec<u8> = shown.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    assert_eq!(back, value);
}

#[test]
fn other_methods_are_a_usage_error() {
    let run = run(["parse", "--method", "POST"]);
    assert_eq!(run.code(), 2);
    assert!(run.stderr.contains("HEAD") && run.stderr.lines().count() == 1, "{}", run.stderr);
}
