use super::admin::AdminSettings;
use super::auth::AuthEntry;
use super::cluster::ClusterSettings;
use super::content::ContentSettings;
use super::crawl::CrawlSettings;
use super::doc_index::DocIndexSettings;
use super::feeds::FeedsSettings;
use super::master::{MasterSettings, ServerEntry};
use super::recrawl::RecrawlEntry;
use super::section::{Live, Section, Setting};
use super::spider::SpiderSettings;
use super::store::StoreSettings;
use super::url_server::UrlServerSettings;
use std::fmt::Write;

/// A section as it is shown to people.
pub(super) struct Outline {
    pub header: &'static str,
    pub name: &'static str,
    pub about: &'static str,
    pub settings: &'static [Setting],
    /// The defaults, by name, as a file would have them; a setting without one is not among them.
    pub defaults: fn() -> Vec<(&'static str, String)>,
}

/// Every section, in the order of the reference.
pub(super) const SECTIONS: [Outline; 13] = [
    outline::<CrawlSettings>(),
    outline::<UrlServerSettings>(),
    outline::<SpiderSettings>(),
    outline::<StoreSettings>(),
    outline::<DocIndexSettings>(),
    outline::<FeedsSettings>(),
    outline::<ContentSettings>(),
    outline::<MasterSettings>(),
    outline::<ClusterSettings>(),
    outline::<AdminSettings>(),
    outline::<RecrawlEntry>(),
    outline::<AuthEntry>(),
    outline::<ServerEntry>(),
];

const fn outline<S: Section>() -> Outline {
    Outline {
        header: S::HEADER,
        name: S::NAME,
        about: S::ABOUT,
        settings: S::SETTINGS,
        defaults: || S::default().written(),
    }
}

/// The default of a setting, as a file would have it.
fn default_of(section: &Outline, setting: &str) -> Option<String> {
    (section.defaults)().into_iter().find_map(|(name, text)| (name == setting).then_some(text))
}

/// The section that has a setting of this name.
pub(super) fn section_with(setting: &str) -> Option<&'static str> {
    let has = |section: &Outline| section.settings.iter().any(|known| known.name == setting);
    SECTIONS.into_iter().find(has).map(|section| section.header)
}

/// The section of a setting that has a flag, and that `[crawl]` may set for it.
pub(super) fn flagged_section(setting: &str) -> Option<&'static str> {
    let has = |section: &Outline| {
        section.settings.iter().any(|known| known.name == setting && known.flag.is_some())
    };
    SECTIONS.into_iter().find(has).map(|section| section.name)
}

/// Whether a data directory keeps a setting, `section.name`.
pub(super) fn is_kept(setting: &str) -> bool {
    match setting.split_once('.') {
        Some((section, name)) => find(section, name).is_some_and(|(_, setting)| !setting.once),
        None => setting == RecrawlEntry::NAME,
    }
}

/// When a change of a setting, `section.name`, holds in a process that runs.
pub(super) fn live_of(setting: &str) -> Live {
    match setting.split_once('.') {
        Some((section, name)) => find(section, name).map_or(Live::Restart, |(_, setting)| setting.live),
        // The list of rules is one setting.
        None if setting == RecrawlEntry::NAME => RecrawlEntry::SETTINGS[0].live,
        None if setting == ServerEntry::NAME => ServerEntry::SETTINGS[0].live,
        None => Live::Restart,
    }
}

/// Every setting of the file as Markdown: a table for each section, in columns that also read well in a terminal.
pub fn reference() -> String {
    SECTIONS.iter().map(table).collect::<Vec<_>>().join("\n")
}

fn table(section: &Outline) -> String {
    let mut rows = vec![["setting", "default", "flag", "changes", "what it does"].map(str::to_string)];
    for Setting { name, about, flag, live, .. } in section.settings {
        let code = |text: String| format!("`{}`", text.trim_end());
        let default = default_of(section, name).filter(|text| text != "[]").map(code);
        let flag = flag.map(|value| code(format!("--{} {value}", name.replace('_', "-"))));
        let live = Some(live.word().to_string());
        let row = [Some(code(name.to_string())), default, flag, live, Some(about.trim().to_string())];
        rows.push(row.map(|cell| cell.unwrap_or_default().replace('|', "\\|")));
    }
    let widths = [0, 1, 2, 3].map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0));
    rows.insert(1, ["-"; 5].map(|dash| dash.repeat(3)));
    let mut text = format!("## `{}`\n\n{}\n\n", section.header, wrapped(section.about));
    for [name, default, flag, live, about] in &rows {
        let [a, b, c, d] = widths;
        let _ = writeln!(text, "| {name:a$} | {default:b$} | {flag:c$} | {live:d$} | {about} |");
    }
    text
}

/// A paragraph in lines that fit a terminal.
pub(super) fn wrapped(text: &str) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for word in text.split_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > 100 {
            lines += &line;
            lines.push('\n');
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines + &line
}

/// What the flag of a setting takes, as `--help` shows it.
pub fn flag_value(section: &str, setting: &str) -> &'static str {
    find(section, setting).and_then(|(_, setting)| setting.flag).unwrap_or_default()
}

/// What `--help` says about the flag of a setting.
pub fn flag_help(section: &str, setting: &str) -> String {
    let Some((section, setting)) = find(section, setting) else { return String::new() };
    let about = setting.about.trim().trim_end_matches('.');
    match (default_of(&section, setting.name).as_deref(), about.split_once("; unset, ")) {
        (_, Some((about, unset))) => format!("{about} [default: {unset}]"),
        (None | Some("true" | "false" | "[]"), _) => about.to_string(),
        (Some(text), _) => format!("{about} [default: {}]", text.trim_matches('"')),
    }
}

pub(super) fn find(section: &str, setting: &str) -> Option<(Outline, &'static Setting)> {
    let section = SECTIONS.into_iter().find(|known| known.name == section)?;
    let setting = section.settings.iter().find(|known| known.name == setting)?;
    Some((section, setting))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    /// A line for each setting, with its default as the file would have it, and a sentence.
    #[test]
    fn every_setting_is_told_with_its_real_default() {
        let text = reference();
        for section in SECTIONS {
            let lines: Vec<&str> = text
                .split_once(&format!("## `{}`\n", section.header))
                .unwrap()
                .1
                .lines()
                .take_while(|line| !line.starts_with("##"))
                .filter(|line| line.starts_with("| `"))
                .collect();
            assert_eq!(lines.len(), section.settings.len(), "{}", section.header);
            let mut written = format!("{}\n", section.header);
            for (line, setting) in lines.iter().zip(section.settings) {
                let cells: Vec<&str> = line.split(" | ").map(str::trim).collect();
                assert_eq!((cells.len(), cells[0]), (5, &*format!("| `{}`", setting.name)), "{line}");
                assert!(cells[4].len() > 12 && cells[4].ends_with(". |"), "{line}");
                if !cells[1].is_empty() {
                    written += &format!("{} = {}\n", setting.name, cells[1].trim_matches('`'));
                }
            }
            if section.header.starts_with("[[") {
                continue;
            }
            // Written into a file, the defaults change nothing.
            let shown = |config: &Config| format!("{config:?}");
            let read = Config::parse(&written, Path::new("c.toml")).unwrap();
            assert_eq!(shown(&read), shown(&Config::default()), "{written}");
        }
    }

    #[test]
    fn the_help_of_a_flag_has_sentence_and_default() {
        assert_eq!(flag_help("spider", "timeout_req"), "Time that a fetch may take [default: 1min]");
        assert_eq!(flag_value("spider", "timeout_req"), "MS");
        assert_eq!(flag_help("doc_index", "recrawl").matches("default").count(), 0);
    }
}
