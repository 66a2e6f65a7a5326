use nephila::limits::REGISTER_BYTES_MAX;
use nephila::proto::etcd::{EtcdRequest, HTTP_BYTES_MAX, Swapped, http_answer, key_value, swapped};

/// The corpus answers for this key.
const KEY: &str = "/nephila/07/table";

pub fn run(bytes: &[u8]) {
    let whole = http_answer(bytes, true);
    assert!(!matches!(whole, Ok(None)), "nothing more can come");
    // While more may come, a beginning is either not enough, or the answer, or none.
    for at in (0..bytes.len()).step_by(bytes.len() / 32 + 1) {
        match http_answer(&bytes[..at], false) {
            Ok(None) => {}
            early => assert_eq!(early, whole, "cut at {at}"),
        }
    }
    let answer = match whole {
        Ok(Some(answer)) => answer,
        Ok(None) => return,
        Err(error) => return is_a_line(&error.to_string()),
    };
    assert!(answer.body.len() <= HTTP_BYTES_MAX);
    match key_value(KEY, answer) {
        Ok(read) => read.told.iter().for_each(|value| is_a_value(value, bytes)),
        Err(error) => is_a_line(&error.to_string()),
    }
    match swapped(KEY, answer) {
        Ok(read) => {
            assert_eq!(answer.status, 200);
            if let Swapped::Differs(Some(value)) = read.told {
                is_a_value(&value, bytes);
            }
        }
        Err(error) => is_a_line(&error.to_string()),
    }
}

fn is_a_line(text: &str) {
    assert!(!text.contains(char::is_control) && text.len() < 4_096, "{text:?}");
}

/// What is told as a value stands in the answer as it would be sent, unless something of it is escaped.
fn is_a_value(value: &[u8], bytes: &[u8]) {
    assert!(value.len() <= REGISTER_BYTES_MAX);
    let sent = String::from_utf8(EtcdRequest::swap(KEY, None, Some(value)).http("h:1")).expect("text");
    let base64 = sent.split("\"value\":\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a value");
    let stands = base64.is_empty() || bytes.windows(base64.len()).any(|part| part == base64.as_bytes());
    assert!(stands || bytes.contains(&b'\\'), "{base64}");
}
