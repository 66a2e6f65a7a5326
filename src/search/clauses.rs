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

/// What a story must have, or may.
type Condition = (Occur, Box<dyn Query>);

/// A word in a title counts as so many in a text.
const TITLE_BOOST: f32 = 2.0;

/// A question as it is put to the index, language by language: a story is in the fields of one of them, so that each
/// alone finds the same stories, and leaves more out unread than if all were asked as one.
pub(super) fn compiled(query: &SearchQuery, fields: &Fields) -> Result<Vec<Box<dyn Query>>, QueryError> {
    let is_asked = |code: &&str| {
        query.languages.is_empty() || query.languages.iter().any(|named| place(named) == place(code))
    };
    let in_language = |code: &str| Ok(clauses(query, fields, code)?.map(|must| all_of(must, query, fields)));
    codes().filter(is_asked).filter_map(|code| in_language(code).transpose()).collect()
}

/// The words and phrases of a question in a language; `None` if nothing can have them.
fn clauses(query: &SearchQuery, fields: &Fields, code: &str) -> Result<Option<Vec<Condition>>, QueryError> {
    let (body, title) = fields.of_language(code);
    let (mut must, mut words, mut is_hopeless) = (Vec::new(), 0, false);
    for clause in &query.clauses {
        let tokens = tokens(code, clause);
        words += tokens.len();
        if words > WORDS_MAX {
            return Err(QueryError::TooManyWords);
        }
        let (Some(text), Some(title)) = (in_field(body, &tokens), in_field(title, &tokens)) else {
            // A word that is too long to be one is in no story.
            is_hopeless = true;
            continue;
        };
        let title: Box<dyn Query> = Box::new(BoostQuery::new(title, TITLE_BOOST));
        let either = BooleanQuery::new(vec![(Occur::Should, text), (Occur::Should, title)]);
        must.push((Occur::Must, Box::new(either) as Box<dyn Query>));
    }
    Ok((!is_hopeless).then_some(must))
}

/// What has all of this, of the sources and languages and out of the time that are asked for.
fn all_of(mut must: Vec<Condition>, query: &SearchQuery, fields: &Fields) -> Box<dyn Query> {
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
    match <[_; 1]>::try_from(must) {
        Ok([(_, only)]) => only,
        Err(must) => Box::new(BooleanQuery::new(must)),
    }
}

/// One of these names.
fn any(field: Field, names: &[String]) -> Option<Condition> {
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
