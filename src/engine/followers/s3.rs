use super::batch::Batch;
use super::http::{self, Answer};
use super::target::{SendError, Sent, Target};
use crate::archive::warc_of;
use crate::base::shown;
use crate::config::{S3Access, S3Url};
use crate::proto::auth::write_base64;
use crate::proto::tls::TlsClient;
use md5::{Digest, Md5};
use rusty_s3::actions::{PutObject, S3Action};
use rusty_s3::{Bucket, Credentials, UrlStyle};
use std::time::Duration;

/// A bucket in S3 that gets a WARC file for every batch, `PREFIX/SEGMENT-OFFSET-PRINT.warc.gz`. The name follows from what
/// is in it: a batch that is sent again takes its own place.
pub(super) struct S3Target {
    url: S3Url,
    bucket: Bucket,
    credentials: Credentials,
    tls: TlsClient,
}

/// How long a signature holds; a request that takes longer is signed anew.
const SIGNED_FOR: Duration = Duration::from_secs(900);

impl S3Target {
    pub fn new(url: S3Url, access: S3Access, tls: TlsClient) -> Result<S3Target, String> {
        let S3Access { key, secret, token, region } = access;
        // Each names the bucket in the path, as servers on an address of their own must have it.
        let bucket = Bucket::new(url.endpoint.clone(), UrlStyle::Path, url.bucket.clone(), region)
            .map_err(|error| format!("s3 = \"{url}\": {error}"))?;
        let credentials = match token {
            Some(token) => Credentials::new_with_token(key, secret, token),
            None => Credentials::new(key, secret),
        };
        Ok(S3Target { url, bucket, credentials, tls })
    }

    fn told(&self, answer: &Answer) -> SendError {
        let code = code_of(&answer.text);
        let (bucket, place) = (&self.url.bucket, &self.url);
        let cause = match (answer.status, code) {
            (404, _) => format!("the bucket {bucket} is not there (make it, or set s3 to another)"),
            (403, _) => format!(
                "the credentials are refused{} (see s3_credentials_file, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY)",
                code.map(|code| format!(": {code}")).unwrap_or_default()
            ),
            (300..400, _)
            | (400, Some("AuthorizationQueryParametersError" | "AuthorizationHeaderMalformed")) => {
                format!(
                    "the bucket {bucket} is in another region or at another endpoint (see s3_region and s3)"
                )
            }
            (status, code) => {
                format!("it answers {status}{}", code.map(|code| format!(" {code}")).unwrap_or_default())
            }
        };
        SendError::new(format!("{cause} ({place})"))
    }
}

/// What an answer calls its fault.
fn code_of(text: &str) -> Option<&str> {
    let code = text.split_once("<Code>")?.1.split_once("</Code>")?.0;
    (code.len() <= 100 && code.bytes().all(|byte| byte.is_ascii_alphanumeric())).then_some(code)
}

impl Target for S3Target {
    fn name(&self) -> &'static str {
        "s3"
    }

    fn place(&self) -> String {
        self.url.to_string()
    }

    fn send(&mut self, batch: &Batch) -> Result<Sent, SendError> {
        let name = format!("{:010}-{:010}-{:016x}.warc.gz", batch.segment, batch.from, batch.print());
        let records = batch.documents.iter().map(|outgoing| (&outgoing.located, &outgoing.document));
        let body = warc_of(&name, batch.agent.as_deref(), records).map_err(SendError::new)?;
        let key = match self.url.prefix.is_empty() {
            true => name,
            false => format!("{}/{name}", self.url.prefix),
        };
        let url = PutObject::new(&self.bucket, Some(&self.credentials), &key).sign(SIGNED_FOR);
        let mut headers = b"Content-Type: application/warc\r\nContent-MD5: ".to_vec();
        write_base64(&Md5::digest(&body), &mut headers);
        headers.extend_from_slice(b"\r\n");
        let answer = http::put(&url, &headers, &body, &self.tls)
            .map_err(|error| SendError::new(format!("{} ({})", shown(&error.to_string(), 200), self.url)))?;
        match answer.status {
            200..300 => Ok(Sent::default()),
            _ => Err(self.told(&answer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::tls::TlsSettings;

    #[test]
    fn answers_are_told_in_words_that_help() {
        let url: S3Url = serde_json::from_str("\"http://127.0.0.1:1/pages/a\"").unwrap();
        let access = S3Access {
            key: "K".to_string(),
            secret: "hunter2".to_string(),
            token: None,
            region: "r".to_string(),
        };
        let target = S3Target::new(url, access, TlsClient::new(&TlsSettings::default()).unwrap()).unwrap();
        for (status, text, expected) in [
            (404, "<Error><Code>NoSuchBucket</Code></Error>", "the bucket pages is not there"),
            (403, "<Code>SignatureDoesNotMatch</Code>", "credentials are refused: SignatureDoesNotMatch ("),
            (403, "<Code>\u{1b}[31m</Code>", "credentials are refused ("),
            (301, "", "in another region"),
            (503, "<Code>SlowDown</Code>", "it answers 503 SlowDown ("),
            (500, "", "it answers 500 ("),
        ] {
            let told = target.told(&Answer { status, text: text.to_string() }).0;
            assert!(told.contains(expected), "{told}");
            assert!(told.ends_with("(http://127.0.0.1:1/pages/a)") && !told.contains("hunter2"), "{told}");
        }
    }
}
