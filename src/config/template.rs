use super::reference::{SECTIONS, wrapped};
use super::section::Setting;
use std::fmt::Write;

/// A settings file that says nothing: every setting is there as a comment, with what it does and its default. One that has
/// no default has no value.
pub(crate) fn template() -> String {
    let mut text = HEAD.to_string();
    for section in &SECTIONS {
        // An entry of a list is one by its header alone.
        let is_list = section.header.starts_with("[[");
        let mark = if is_list { "#" } else { "" };
        let _ = write!(text, "\n{}{mark}{}\n", comment(section.about), section.header);
        let defaults = (section.defaults)();
        for Setting { name, about, .. } in section.settings {
            let default = defaults.iter().find(|(known, _)| known == name).map(|(_, text)| text.as_str());
            let line = format!("#{name} = {}", default.unwrap_or_default());
            let _ = write!(text, "\n{}{}\n", comment(about), line.trim_end());
        }
    }
    text
}

const HEAD: &str = "\
# Settings of Nephila. What stands behind a # and a blank explains; what stands right behind a # is a setting with its
# default. Take the # away to set it. nephila-settings(7) tells more, and `nephila config check FILE` every mistake.
";

fn comment(text: &str) -> String {
    wrapped(text).lines().map(|line| format!("# {line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    /// The file as it is, and with every default switched on, is a crawl that was told nothing.
    #[test]
    fn the_template_names_every_setting_and_changes_none() {
        let text = template();
        let (mut on, mut names) = (String::new(), Vec::new());
        for line in text.lines() {
            let setting = line.strip_prefix('#').filter(|rest| !rest.starts_with([' ', '[']));
            let (name, value) = setting.and_then(|line| line.split_once(" =")).unwrap_or_default();
            names.extend(Some(name).filter(|name| !name.is_empty()));
            // Entries of lists come last, and are none without their settings.
            match setting.filter(|_| !value.is_empty() && !on.contains("[[")) {
                Some(setting) => on += setting,
                None => on += line,
            }
            on.push('\n');
            assert!(line.chars().count() <= 120, "{line}");
        }
        let expected: Vec<&str> =
            SECTIONS.iter().flat_map(|section| section.settings).map(|setting| setting.name).collect();
        assert_eq!(names, expected);
        let shown = |config: &Config| format!("{config:?}");
        for text in [text, on] {
            let read = Config::parse(&text, Path::new("c.toml")).unwrap();
            assert_eq!(shown(&read), shown(&Config::default()), "{text}");
        }
    }
}
