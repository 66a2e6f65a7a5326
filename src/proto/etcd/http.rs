use super::EtcdError;

/// A response that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpAnswer<'a> {
    pub status: u16,
    pub body: &'a [u8],
}

/// A response with its head is never longer: a register in base64, and room for what is around it.
pub const HTTP_BYTES_MAX: usize = 1 << 20;
const HEADERS_MAX: usize = 64;

/// The response in some bytes; `None` if there must be more of it, which there cannot be once the connection `is_over`.
pub fn http_answer(bytes: &[u8], is_over: bool) -> Result<Option<HttpAnswer<'_>>, EtcdError> {
    if bytes.len() > HTTP_BYTES_MAX {
        return Err(EtcdError::Long);
    }
    let more = || if is_over { Err(EtcdError::Cut) } else { Ok(None) };
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let end = match response.parse(bytes) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) => return more(),
        Err(error) => return Err(EtcdError::Http(error)),
    };
    let status = response.code.unwrap_or(0);
    let (mut length, body) = (None, &bytes[end..]);
    for header in response.headers.iter() {
        if header.name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(EtcdError::Framing);
        }
        if header.name.eq_ignore_ascii_case("content-length") {
            let digits = std::str::from_utf8(header.value).ok().map(str::trim);
            let number = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
            let number = number.and_then(|digits| digits.parse::<usize>().ok()).ok_or(EtcdError::Framing)?;
            if length.replace(number).is_some_and(|before| before != number) {
                return Err(EtcdError::Framing);
            }
        }
    }
    match length {
        Some(length) if length > HTTP_BYTES_MAX => Err(EtcdError::Long),
        Some(length) if length <= body.len() => Ok(Some(HttpAnswer { status, body: &body[..length] })),
        None if is_over => Ok(Some(HttpAnswer { status, body })),
        _ => more(),
    }
}
