/// The crawl log of a data directory: its part that is being written. Finished parts are `crawl.log.1`, `crawl.log.2` and so
/// on, the oldest first; an operator may have compressed them.
pub const CRAWL_LOG: &str = "crawl.log";

/// The name of a finished part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartName {
    pub number: u32,
    /// `crawl.log.3.gz`
    pub is_compressed: bool,
}

impl PartName {
    pub fn of(number: u32) -> PartName {
        PartName { number, is_compressed: false }
    }

    /// Reads the name of a file. `None` if it is no finished part.
    pub fn parse(name: &str) -> Option<PartName> {
        let rest = name.strip_prefix(CRAWL_LOG)?.strip_prefix('.')?;
        let digits = rest.strip_suffix(".gz").unwrap_or(rest);
        let number =
            digits.parse().ok().filter(|&number: &u32| number > 0 && number.to_string() == digits)?;
        Some(PartName { number, is_compressed: digits.len() < rest.len() })
    }
}

impl std::fmt::Display for PartName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{CRAWL_LOG}.{}{}", self.number, if self.is_compressed { ".gz" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parts_are_read_as_they_are_written() {
        for (name, number, is_compressed) in
            [("crawl.log.1", 1, false), ("crawl.log.4294967295.gz", u32::MAX, true)]
        {
            let part = PartName { number, is_compressed };
            assert_eq!((PartName::parse(name), part.to_string()), (Some(part), name.to_string()));
        }
        for other in [
            "crawl.log",
            "crawl.log.",
            "crawl.log.0",
            "crawl.log.01",
            "crawl.log.+1",
            "crawl.log.1.xz",
            "crawl.log.x",
            "x.1",
        ] {
            assert_eq!(PartName::parse(other), None, "{other}");
        }
    }
}
