use crate::proto::auth::write_base64;

/// A call, before it is known which endpoint gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdRequest {
    path: &'static str,
    body: String,
}

impl EtcdRequest {
    /// Asks for the value of a key.
    pub fn read(key: &str) -> EtcdRequest {
        EtcdRequest { path: "/v3/kv/range", body: format!("{{\"key\":\"{}\"}}", base64(key.as_bytes())) }
    }

    /// Gives a key another value if it has the expected one; `None` is a key that is not there.
    pub fn swap(key: &str, expect: Option<&[u8]>, new: Option<&[u8]>) -> EtcdRequest {
        let key = base64(key.as_bytes());
        let compare = match expect {
            Some(value) => format!("\"target\":\"VALUE\",\"value\":\"{}\"", base64(value)),
            None => "\"target\":\"CREATE\",\"createRevision\":\"0\"".to_string(),
        };
        let change = match new {
            Some(value) => {
                format!("{{\"requestPut\":{{\"key\":\"{key}\",\"value\":\"{}\"}}}}", base64(value))
            }
            None => format!("{{\"requestDeleteRange\":{{\"key\":\"{key}\"}}}}"),
        };
        let body = format!(
            "{{\"compare\":[{{\"key\":\"{key}\",\"result\":\"EQUAL\",{compare}}}],\"success\":[{change}],\"failure\":[{{\"requestRange\":{{\"key\":\"{key}\"}}}}]}}"
        );
        EtcdRequest { path: "/v3/kv/txn", body }
    }

    /// As it is sent to an endpoint.
    pub fn http(&self, host: &str) -> Vec<u8> {
        let EtcdRequest { path, body } = self;
        let length = body.len();
        format!(
            "POST {path} HTTP/1.0\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

fn base64(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    write_base64(bytes, &mut out);
    out.into_iter().map(char::from).collect()
}
