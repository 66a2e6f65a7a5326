use super::section::settings;
use super::units::{Bytes, Seconds};
use crate::limits::PATH_SEGMENTS_COMPARED;
use crate::proto::sitemap::Sitemaps;
use crate::proto::url::{Canon, QueryDrop, RuleList};

/// An index with less cannot hold its own buffers.
pub const MEMORY_BYTES_MIN: u64 = 16 << 20;
/// Nothing is planned further ahead than ten years.
pub(super) const TIME_S_MAX: u64 = 10 * 365 * 86_400;

settings! {
    /// Which URLs are taken in, in what form, and when they are asked for again. Times take a unit, like 1h; a bare number is seconds.
    "[doc_index]" DocIndexSettings {
        /// Bytes of memory for the doc index; unset, a quarter of what the machine or its control group has.
        memory: Option<Bytes> = None, in MEMORY_BYTES_MIN to u64::MAX, flag "BYTES";
        /// Time until a URL that failed for a reason that may pass is tried again; then twice as long, and so on.
        retry_first: Seconds = Seconds(3_600), in 1 to TIME_S_MAX, live now;
        /// Tries after the first; 0 = none.
        retries_max: u8 = 5, live now;
        /// Visit documents again, sooner if they change and later if they do not.
        recrawl: bool = false, flag "";
        /// The shortest time between two visits.
        recrawl_min: Seconds = Seconds(3_600), in 1 to TIME_S_MAX, live now;
        /// The time between the first two visits.
        recrawl_start: Seconds = Seconds(86_400), in 1 to TIME_S_MAX, live now;
        /// The longest time between two visits.
        recrawl_max: Seconds = Seconds(30 * 86_400), in 1 to TIME_S_MAX, live now;
        /// Sitemaps to read: "off" none, "robots" those that robots.txt names, "all" also /sitemap.xml of hosts that name none.
        sitemaps: Sitemaps = Sitemaps::default(), flag "WHICH";
        /// Pages taken in of one host; 0 = no limit.
        pages_per_host: u32 = 0;
        /// Pages taken in of one registrable domain; 0 = no limit.
        pages_per_domain: u32 = 0;
        /// Segments that a path may have; 0 = no limit. People nest folders fifteen deep at the worst; longer paths are
        /// made by programs that append to them.
        path_depth_max: u16 = 40;
        /// How often one segment may stand in a path; 0 = no limit. Dates and versions come to three; at four a relative
        /// link is chasing its own tail.
        segment_repeats_max: u16 = 3, in 0 to PATH_SEGMENTS_COMPARED - 1;
        /// URLs of one path that differ only in the values of their parameters; 0 = no limit. Archives page through
        /// thousands; calendars and filters that combine go on for ever.
        query_variants_max: u32 = 10_000;
        /// Rules for what is in scope besides what the seeds span: `surt:PREFIX`, or a regular expression that is looked for
        /// in the whole URL.
        allow: RuleList = RuleList::default();
        /// Rules for what is out of scope whatever else is said.
        deny: RuleList = RuleList::default();
        /// Names of parameters that are dropped from every URL; with a `*` at its end a name stands for all that begin so.
        query_drop: QueryDrop = QueryDrop::default();
        /// Sort parameters by name; those of one name keep their order.
        query_sort: bool = false;
    }
}

impl DocIndexSettings {
    /// The form that URLs are brought into.
    pub fn canon(&self) -> Canon {
        Canon::new(&self.query_drop, self.query_sort)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use std::path::Path;

    fn read(text: &str) -> Result<Config, String> {
        let config = Config::parse(text, Path::new("c.toml")).map_err(|error| error.to_string())?;
        config.check().map_err(|error| error.to_string())?;
        Ok(config)
    }

    #[test]
    fn every_setting_is_read() {
        let config = read(
            "[doc_index]\nmemory = 100000000\nretry_first = 60\nretries_max = 2\nrecrawl = true\nrecrawl_min = 10\n\
             recrawl_start = 20\nrecrawl_max = 30\nsitemaps = \"all\"\npages_per_host = 5\npages_per_domain = 6\n\
             path_depth_max = 7\nsegment_repeats_max = 8\nquery_variants_max = 9\nallow = [\"surt:org,\"]\n\
             deny = [\"a\", \"b\"]\nquery_drop = [\"utm_*\"]\nquery_sort = true\n\
             [[recrawl]]\nmatch = \"/news/\"\nevery = 600\n[[recrawl]]\nmatch = \".\"\nevery = 7\n",
        )
        .unwrap();
        let settings = config.doc_index;
        assert_eq!((settings.memory, settings.retry_first), (Some(Bytes(100_000_000)), Seconds(60)));
        assert_eq!((settings.retries_max, settings.recrawl), (2, true));
        let times = [settings.recrawl_min, settings.recrawl_start, settings.recrawl_max];
        assert_eq!(times, [10, 20, 30].map(Seconds));
        assert_eq!(settings.sitemaps, Sitemaps::All);
        assert_eq!((settings.pages_per_host, settings.pages_per_domain), (5, 6));
        assert_eq!((settings.path_depth_max, settings.segment_repeats_max), (7, 8));
        assert_eq!(settings.query_variants_max, 9);
        assert_eq!(
            (Vec::from(settings.allow), settings.deny.texts().len()),
            (vec!["surt:org,".to_string()], 2)
        );
        assert_eq!((Vec::from(settings.query_drop), settings.query_sort), (vec!["utm_*".to_string()], true));
        let times = Vec::from(config.recrawl);
        assert_eq!(times, [("/news/".to_string(), 600), (".".to_string(), 7)]);
        let plain = read("").unwrap().doc_index;
        assert_eq!((plain.sitemaps, plain.recrawl, plain.path_depth_max), (Sitemaps::Robots, false, 40));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, said) in [
            ("[doc_index]\nrecraw = true", "doc_index.recraw: unknown setting (did you mean recrawl?)"),
            (
                "[doc_index]\nsitemaps = \"some\"",
                "doc_index.sitemaps: must be \"off\", \"robots\" or \"all\"",
            ),
            ("[doc_index]\ndeny = \"x\"", "doc_index.deny: must be a list of texts"),
            ("[doc_index]\ndeny = [1]", "doc_index.deny: must be a list of texts"),
            ("[doc_index]\nmemory = []", "doc_index.memory: must be a size like "),
            ("[doc_index]\ndeny = [\"\"]", ":2:doc_index.deny: rule 1, \"\": it is empty"),
            (
                "[doc_index]\nretries_max = 256",
                "doc_index.retries_max: must be a whole number of at most 255",
            ),
            ("[doc_index]\nretry_first = 0", "retry_first: must be at least 1s"),
            ("[doc_index]\nrecrawl_max = 99999999999", ":2:doc_index.recrawl_max: can be at most 3650d"),
            ("[doc_index]\nrecrawl_min = 90000", "recrawl_start (1d) must lie between recrawl_min (25h)"),
            ("[doc_index]\nsegment_repeats_max = 64", "segment_repeats_max: can be at most 63"),
            ("[doc_index]\nmemory = 1", "memory: must be at least 16MiB"),
            ("[doc_index]\nquery_drop = [\"a*b\"]", "query_drop: \"a*b\" is no name"),
            ("[doc_index]\nquery_drop = [\"a=\"]", "query_drop: \"a=\" is no name"),
            ("recrawl = true", "recrawl: must be a list: each entry begins with [[recrawl]]"),
            ("recrawl_min = 5", "recrawl_min: unknown setting (it belongs below [doc_index])"),
            (
                "[[recrawl]]\nmatch = \".\"\nevery = 5\n\n[[recrawl]]\nmatch = \"(\"\nevery = 5",
                ":5:recrawl[2].match: \"(\": unclosed group",
            ),
            ("[[recrawl]]\nevery = 5", "recrawl[1]: match is missing"),
            ("[[recrawl]]\nmatch = \"x\"\nevery = -5", "recrawl[1].every: must be a time like "),
            (
                "[[recrawl]]\nmatch = \"x\"\nevery = 5\nmach = 1",
                "recrawl[1].mach: unknown setting (did you mean match?)",
            ),
            ("[[recrawl]]\nmatch = \"x\"\nevery = 0", ":3:recrawl[1].every: must be at least 1s"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.contains(said) && !found.contains('\n'), "{text}: {found}");
        }
    }
}
