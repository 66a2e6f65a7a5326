use super::doc_index::TIME_S_MAX;
use super::section::settings;
use super::units::Seconds;

settings! {
    /// How often some URLs are asked for; an entry for each rule, of which the first that matches counts.
    "[[recrawl]]" RecrawlEntry {
        /// A rule, as in allow and deny.
        r#match: Option<String> = None, live now;
        /// Time between two visits.
        every: Option<Seconds> = None, in 1 to TIME_S_MAX, live now;
    }
}

impl RecrawlEntry {
    pub fn rule(self) -> Result<(String, u64), String> {
        let rule = self.r#match.ok_or("match is missing (like match = \"/news/\")")?;
        let every = self.every.ok_or("every is missing (like every = \"1h\")")?;
        Ok((rule, every.0))
    }
}
