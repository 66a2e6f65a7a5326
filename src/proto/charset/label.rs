//! Labels: the name of an encoding in a header or a `<meta>`.

use encoding_rs::Encoding;

/// The encoding of a Content-Type header, if it names one that there is.
pub(super) fn of_content_type(value: &[u8]) -> Option<&'static Encoding> {
    let mut parameters = value.split(|&octet| octet == b';').skip(1);
    let charset = parameters.find_map(|parameter| {
        let equals = memchr::memchr(b'=', parameter)?;
        let name = parameter[..equals].trim_ascii();
        name.eq_ignore_ascii_case(b"charset").then(|| parameter[equals + 1..].trim_ascii())
    })?;
    // Single quotes are no quotes in HTTP, but servers do not know.
    let quotes = |octet: &u8| matches!(octet, b'"' | b'\'');
    let start = charset.iter().position(|octet| !quotes(octet))?;
    let end = charset.iter().rposition(|octet| !quotes(octet))?;
    of_label(&charset[start..=end])
}

/// The encoding that goes by this name. Those that the standard reads as nothing at all are none to us.
pub(super) fn of_label(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label_no_replacement(label)
}

/// The encoding in the `content` of a `<meta http-equiv=content-type>`, found by the HTML standard's steps.
pub(super) fn of_meta_content(content: &[u8]) -> Option<&'static Encoding> {
    let mut rest = content;
    loop {
        let at = rest.windows(7).position(|word| word.eq_ignore_ascii_case(b"charset"))?;
        rest = rest[at + 7..].trim_ascii_start();
        if let [b'=', value @ ..] = rest {
            rest = value.trim_ascii_start();
            break;
        }
    }
    let label = match rest {
        [quote @ (b'"' | b'\''), value @ ..] => &value[..memchr::memchr(*quote, value)?],
        _ => {
            let end = rest.iter().position(|octet| octet.is_ascii_whitespace() || *octet == b';');
            &rest[..end.unwrap_or(rest.len())]
        }
    };
    of_label(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(encoding: Option<&'static Encoding>) -> &'static str {
        encoding.map_or("", Encoding::name)
    }

    #[test]
    fn content_types() {
        for (value, expected) in [
            ("text/html; charset=utf-8", "UTF-8"),
            ("text/html;CHARSET = \"ISO-8859-1\" ", "windows-1252"),
            ("text/html; version=1; charset='koi8-r'; x=y", "KOI8-R"),
            ("text/html; charset=gb2312", "GBK"),
            ("text/html; charset=utf8; charset=big5", "UTF-8"),
            ("text/html; charset=utf-7", ""),
            ("text/html; charset=hz-gb-2312", ""),
            ("text/html; charset=\"", ""),
            ("text/html; charset=", ""),
            ("text/html; charset", ""),
            ("charset=utf-8", ""),
            ("", ""),
        ] {
            assert_eq!(name(of_content_type(value.as_bytes())), expected, "{value}");
        }
    }

    #[test]
    fn meta_contents() {
        for (value, expected) in [
            ("text/html; charset=windows-1251", "windows-1251"),
            ("text/html; charset charset = 'sjis' x", "Shift_JIS"),
            ("text/html; charset=euc-kr; x", "EUC-KR"),
            ("charset=\"utf-8", ""),
            ("text/html; charset", ""),
            ("text/html; charset=", ""),
            ("", ""),
        ] {
            assert_eq!(name(of_meta_content(value.as_bytes())), expected, "{value}");
        }
    }
}
