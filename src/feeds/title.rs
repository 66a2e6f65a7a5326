//! Titles in the form in which they are compared.

/// Lower case, letters and digits alone.
pub(super) fn normal(title: &str, source: &str) -> String {
    let plain = |text: &str| {
        let mut out = String::new();
        for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            if !out.is_empty() {
                out.push(' ');
            }
            out.extend(word.chars().flat_map(char::to_lowercase));
        }
        out
    };
    let normal = plain(title);
    if normal == plain(source) { String::new() } else { normal }
}
