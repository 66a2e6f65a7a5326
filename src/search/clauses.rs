use super::fields::{Fields, analyzer, codes};
use super::languages::place;
use super::query::{QueryError, SearchQuery};
use super::words::{Words, is_unspaced};
use std::ops::Bound;
use tantivy::Term;
use tantivy::query::{
    BooleanQuery, BoostQuery, ConstScoreQuery, Occur, PhraseQuery, Query, RangeQuery, RegexQuery, TermQuery,
};
use tantivy::schema::{Field, IndexRecordOption};

/// Words of one question in one language, the pairs of characters included.
const WORDS_MAX: usize = 64;
/// A word in a title counts as so many in a text.
const TITLE_BOOST: f32 = 2.0;

/// A question as it is put to the index.
pub(super) fn compiled(query: &SearchQuery, fields: &Fields) -> Result<Box<dyn Query>, QueryError> {
    let mut must: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    let asked: Vec<&str> = match query.languages.is_empty() {
        true => codes().collect(),
        false => {
            codes().filter(|code| query.languages.iter().any(|named| place(named) == place(code))).collect()
        }
    };
    let mut words = vec![0; asked.len()];
    for clause in &query.clauses {
        let mut should: Vec<(Occur, Box<dyn Query>)> = Vec::new();
        for (code, words) in asked.iter().zip(&mut words) {
            let tokens = tokens(code, clause);
            *words += tokens.len();
            if *words > WORDS_MAX {
                return Err(QueryError::TooManyWords);
            }
            let (body, title) = fields.of_language(code);
            if let Some(query) = in_field(body, &tokens) {
                should.push((Occur::Should, query));
            }
            if let Some(query) = in_field(title, &tokens) {
                should.push((Occur::Should, Box::new(BoostQuery::new(query, TITLE_BOOST))));
            }
        }
        // A word that is too long to be one is in no story.
        must.push((Occur::Must, Box::new(BooleanQuery::new(should))));
    }
    must.extend(any(fields.source, &query.sources));
    must.extend(any(fields.language, &query.languages));
    if query.since_s.is_some() || query.until_s.is_some() {
        let end = |at: Option<i64>| match at {
            Some(at_s) => Bound::Included(Term::from_field_i64(fields.published, at_s)),
            None => Bound::Unbounded,
        };
        let (since, until) = (end(query.since_s), end(query.until_s));
        must.push((Occur::Must, unscored(Box::new(RangeQuery::new(since, until)))));
    }
    Ok(match <[_; 1]>::try_from(must) {
        Ok([(_, only)]) => only,
        Err(must) => Box::new(BooleanQuery::new(must)),
    })
}

/// One of these names.
fn any(field: Field, names: &[String]) -> Option<(Occur, Box<dyn Query>)> {
    let one_of = names.iter().map(|name| {
        let term = TermQuery::new(Term::from_field_text(field, name), IndexRecordOption::Basic);
        (Occur::Should, Box::new(term) as Box<dyn Query>)
    });
    (!names.is_empty()).then(|| (Occur::Must, unscored(Box::new(BooleanQuery::new(one_of.collect())))))
}

/// What only leaves out.
fn unscored(query: Box<dyn Query>) -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(query, 0.0))
}

/// The words of a clause with their places.
fn tokens(code: &str, clause: &str) -> Vec<(usize, String)> {
    let mut analyzer = analyzer(code, Words::of_query());
    let mut stream = analyzer.token_stream(clause);
    let mut tokens = Vec::new();
    stream.process(&mut |token| tokens.push((token.position, token.text.clone())));
    tokens
}

/// A word, or several that follow each other.
fn in_field(field: Field, tokens: &[(usize, String)]) -> Option<Box<dyn Query>> {
    let term = |text: &str| Term::from_field_text(field, text);
    match tokens {
        [] => None,
        [(_, word)] if is_one_unspaced(word) => {
            // Such a character begins a pair wherever it stands.
            let begins = RegexQuery::from_pattern(&format!("{word}.*"), field).ok()?;
            Some(Box::new(begins))
        }
        [(_, word)] => Some(Box::new(TermQuery::new(term(word), IndexRecordOption::WithFreqs))),
        _ => {
            let terms = tokens.iter().map(|(place, word)| (*place, term(word))).collect();
            Some(Box::new(PhraseQuery::new_with_offset(terms)))
        }
    }
}

fn is_one_unspaced(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(is_unspaced) && chars.next().is_none()
}
