use crate::proto::url::CrawlUrl;
use serde::{Deserialize, Serialize};

/// What a running crawl is told to do with its feeds. As it travels: `{"do":"pause","ids":[7]}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum FeedWord {
    Add { feeds: Vec<NamedFeed> },
    Rm { ids: Vec<u32> },
    Pause { ids: Vec<u32> },
    Resume { ids: Vec<u32> },
    Poll { ids: Vec<u32> },
}

/// A feed that is to be polled, as a user or a page named it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedFeed {
    #[serde(with = "url_text")]
    pub url: CrawlUrl,
    /// Empty: by its host.
    #[serde(default)]
    pub source: String,
    /// Empty: what it calls itself.
    #[serde(default)]
    pub title: String,
}

/// What became of it. As it travels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FeedsTold {
    /// Feeds that it was done with, by number; of those that were added, the new ones.
    pub done: Vec<u32>,
    /// Feeds that were to be added and were known.
    pub known: Vec<u32>,
    /// Numbers that no feed has, or not one that this can be done with.
    pub unknown: Vec<u32>,
    /// Feeds that could not be taken in.
    pub refused: u64,
}

/// Feeds that one word may name.
pub const FEEDS_PER_WORD_MAX: usize = 4_096;

impl FeedWord {
    pub fn feeds(&self) -> usize {
        match self {
            FeedWord::Add { feeds } => feeds.len(),
            FeedWord::Rm { ids }
            | FeedWord::Pause { ids }
            | FeedWord::Resume { ids }
            | FeedWord::Poll { ids } => ids.len(),
        }
    }
}

mod url_text {
    use crate::proto::url::CrawlUrl;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(url: &CrawlUrl, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(url.as_str())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(text: D) -> Result<CrawlUrl, D::Error> {
        CrawlUrl::parse(&String::deserialize(text)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written_and_others_refused() {
        let text = r#"{"do":"add","feeds":[{"url":"HTTP://A.test/f"}]}"#;
        let word: FeedWord = serde_json::from_str(text).unwrap();
        assert!(matches!(&word, FeedWord::Add { feeds } if feeds[0].url.as_str() == "http://a.test/f"));
        let again: FeedWord = serde_json::from_str(&serde_json::to_string(&word).unwrap()).unwrap();
        assert_eq!((again, word.feeds()), (word, 1));
        for bad in [
            r#"{"do":"add","feeds":[{"url":"file:///etc/passwd"}]}"#,
            r#"{"do":"sing","ids":[1]}"#,
            r#"{"do":"rm","ids":[-1]}"#,
            r#"{"ids":[1]}"#,
        ] {
            assert!(serde_json::from_str::<FeedWord>(bad).is_err(), "{bad}");
        }
    }
}
