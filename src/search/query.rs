use super::languages::code;
use crate::base::shown;
use thiserror::Error;

/// Longer questions are no questions.
const QUERY_BYTES_MAX: usize = 1_000;
/// Words and phrases of one question, and names of sources or languages.
const CLAUSES_MAX: usize = 32;
const NAMES_MAX: usize = 32;

/// What is asked for: stories that have every word and every phrase, of one of the sources, in one of the languages,
/// published within a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SearchQuery {
    pub(super) clauses: Vec<String>,
    pub(super) sources: Vec<String>,
    pub(super) languages: Vec<String>,
    /// Seconds; both ends are of it.
    pub(super) since_s: Option<i64>,
    pub(super) until_s: Option<i64>,
}

/// What is wrong with a question.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum QueryError {
    #[error("a question has at most {QUERY_BYTES_MAX} bytes (ask for fewer words)")]
    TooLong,
    #[error("a question has at most {CLAUSES_MAX} words and phrases (ask for fewer)")]
    TooManyWords,
    #[error("a question names at most {NAMES_MAX} sources and {NAMES_MAX} languages (name fewer)")]
    TooManyNames,
    #[error("there is no word to look for (like nephila search climate, or '\"climate change\"')")]
    NoWord,
    #[error("a quotation mark is not closed (a phrase is like '\"climate change\"')")]
    OpenQuote,
    #[error("{0}: is no language (give its code, like en, de or ja)")]
    NoLanguage(String),
    #[error("{0}: has nothing behind it (like source:example.org or lang:en)")]
    NoName(&'static str),
    #[error("--until is before --since, so that no story is between them")]
    NoTime,
}

impl SearchQuery {
    /// Words, `"phrases"`, `source:NAME` and `lang:CODE`, as they were typed.
    pub fn parse(text: &str) -> Result<SearchQuery, QueryError> {
        if text.len() > QUERY_BYTES_MAX {
            return Err(QueryError::TooLong);
        }
        let mut query = SearchQuery::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let begins = |name: &str| {
                rest.as_bytes()
                    .get(..name.len())
                    .is_some_and(|begins| begins.eq_ignore_ascii_case(name.as_bytes()))
            };
            if begins("source:") {
                let (name, after) = value(&rest[7..])?;
                query = query.of_source(name)?;
                rest = after;
            } else if begins("lang:") {
                let (name, after) = value(&rest[5..])?;
                query = query.in_languages(name)?;
                rest = after;
            } else {
                let (clause, after) = value(rest)?;
                if clause.chars().any(char::is_alphanumeric) {
                    query.clauses.push(clause.to_string());
                }
                rest = after;
            }
            rest = rest.trim_start();
        }
        if query.clauses.len() > CLAUSES_MAX {
            return Err(QueryError::TooManyWords);
        }
        match query.clauses.is_empty() {
            true => Err(QueryError::NoWord),
            false => Ok(query),
        }
    }

    /// Only of this source, beside others that are named.
    pub fn of_source(mut self, name: &str) -> Result<SearchQuery, QueryError> {
        match name.trim().to_lowercase() {
            name if name.is_empty() => return Err(QueryError::NoName("source:")),
            name => self.sources.push(name),
        }
        if self.sources.len() > NAMES_MAX { Err(QueryError::TooManyNames) } else { Ok(self) }
    }

    /// Only in these languages, beside others that are named; commas are between them.
    pub fn in_languages(mut self, names: &str) -> Result<SearchQuery, QueryError> {
        if names.trim().is_empty() {
            return Err(QueryError::NoName("lang:"));
        }
        for name in names.split(',') {
            let code = code(name).ok_or_else(|| QueryError::NoLanguage(shown(name, 60)))?;
            self.languages.push(code);
            if self.languages.len() > NAMES_MAX {
                return Err(QueryError::TooManyNames);
            }
        }
        Ok(self)
    }

    /// Only what was published then; both ends are of it.
    pub fn published(
        mut self,
        since_s: Option<i64>,
        until_s: Option<i64>,
    ) -> Result<SearchQuery, QueryError> {
        if let (Some(since_s), Some(until_s)) = (since_s, until_s)
            && until_s < since_s
        {
            return Err(QueryError::NoTime);
        }
        (self.since_s, self.until_s) = (since_s, until_s);
        Ok(self)
    }
}

/// What stands first, in quotation marks or up to a space, and the rest.
fn value(text: &str) -> Result<(&str, &str), QueryError> {
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '“' | '„' | '”')) else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        return Ok(text.split_at(end));
    };
    let inner = &text[quote.len_utf8()..];
    let (end, close) =
        inner.char_indices().find(|(_, c)| matches!(c, '"' | '“' | '”')).ok_or(QueryError::OpenQuote)?;
    Ok((&inner[..end], &inner[end + close.len_utf8()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Vec<String>, Vec<String>, Vec<String>) {
        let query = SearchQuery::parse(text).unwrap();
        (query.clauses, query.sources, query.languages)
    }

    #[test]
    fn words_phrases_sources_and_languages() {
        let some = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        assert_eq!(
            parts("climate \"sea level\" source:Example.ORG lang:en,de-AT"),
            (some(&["climate", "sea level"]), some(&["example.org"]), some(&["en", "de"]))
        );
        assert_eq!(
            parts("„Tor des Monats“ source:\"Die Zeit\" LANG:JA --"),
            (some(&["Tor des Monats"]), some(&["die zeit"]), some(&["ja"]))
        );
        assert_eq!(parts("日本 ünï:x").0, some(&["日本", "ünï:x"]));
    }

    #[test]
    fn bad_questions_are_one_line_with_the_mend() {
        let long = "x".repeat(1_001);
        let many = "a ".repeat(33);
        let names = format!("a {}", "source:b ".repeat(33));
        for (text, expected) in [
            ("", QueryError::NoWord),
            ("  -- \"\" …", QueryError::NoWord),
            ("source:a", QueryError::NoWord),
            (long.as_str(), QueryError::TooLong),
            (many.as_str(), QueryError::TooManyWords),
            (names.as_str(), QueryError::TooManyNames),
            ("a \"b c", QueryError::OpenQuote),
            ("a source:", QueryError::NoName("source:")),
            ("a lang:", QueryError::NoName("lang:")),
            ("a lang:en,", QueryError::NoLanguage(String::new())),
            ("a lang:x", QueryError::NoLanguage("x".to_string())),
            ("a lang:日本", QueryError::NoLanguage("日本".to_string())),
            ("a lang:\u{1b}[2J", QueryError::NoLanguage("\\u{1b}[2J".to_string())),
        ] {
            assert_eq!(SearchQuery::parse(text), Err(expected), "{text}");
        }
        let query = SearchQuery::parse("a").unwrap();
        assert_eq!(query.clone().published(Some(2), Some(1)), Err(QueryError::NoTime));
        assert!(query.published(Some(2), Some(2)).is_ok());
    }
}
