use super::conditions::{Phrase, Published};
use super::fields::{Fields, analyzer, codes};
use super::languages::{OTHER, place};
use super::query::{QueryError, SearchQuery};
use super::words::{Words, is_unspaced};
use tantivy::query::{BooleanQuery, ConstScoreQuery, Occur, Query, RegexQuery, TermQuery};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, TantivyError, Term};

/// Words of one question in one language, the pairs of characters included.
const WORDS_MAX: usize = 64;

/// A question in one language: a story is in the field of one of them, so that each alone finds the same stories, and leaves
/// more out unread than if all were asked as one.
pub(super) struct Asked {
    pub field: Field,
    /// The words that all must be there, and what else leaves out quickly.
    pub query: Box<dyn Query>,
    /// The words, each once: where one of them is in no story, nothing is found.
    pub words: Vec<Term>,
    /// What is looked at only where a story's words are good enough.
    pub phrases: Vec<Phrase>,
    pub published: Option<Published>,
    /// What is asked is one word: few of the stories that have it are looked at.
    pub is_one_word: bool,
}

impl Asked {
    /// At most so many stories have all the words.
    pub fn stories_at_most(&self, searcher: &Searcher) -> Result<u64, TantivyError> {
        let mut at_most = searcher.num_docs();
        for word in &self.words {
            at_most = at_most.min(searcher.doc_freq(word)?);
            if at_most == 0 {
                break;
            }
        }
        Ok(at_most)
    }
}

/// A question as it is put to the index, language by language.
pub(super) fn asked(query: &SearchQuery, fields: &Fields) -> Result<Vec<Asked>, QueryError> {
    let is_asked = |code: &&str| {
        query.languages.is_empty() || query.languages.iter().any(|named| place(named) == place(code))
    };
    codes().filter(is_asked).filter_map(|code| in_language(query, fields, code).transpose()).collect()
}

/// None if nothing in this language can be found.
fn in_language(query: &SearchQuery, fields: &Fields, code: &str) -> Result<Option<Asked>, QueryError> {
    let field = fields.of_language(code);
    let (mut words, mut phrases, mut others, mut count) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let mut is_hopeless = false;
    for clause in &query.clauses {
        let tokens = tokens(code, clause);
        count += tokens.len();
        if count > WORDS_MAX {
            return Err(QueryError::TooManyWords);
        }
        let is_gapless = tokens.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0);
        match &tokens[..] {
            // A word that is too long to be one is in no story.
            _ if tokens.is_empty() || !is_gapless => is_hopeless = true,
            [(_, word)] if is_one_unspaced(word) => match beginning_with(word, field) {
                Some(begins) => others.push(begins),
                None => is_hopeless = true,
            },
            _ => {
                let terms = tokens.iter().map(|(at, word)| (*at, Term::from_field_text(field, word)));
                let phrase: Vec<(usize, Term)> = terms.collect();
                words.extend(phrase.iter().map(|(_, term)| term.clone()));
                phrases.extend((phrase.len() > 1).then_some(Phrase(phrase)));
            }
        }
    }
    if is_hopeless {
        return Ok(None);
    }
    words.sort_unstable();
    words.dedup();
    others.extend(any(fields.source, &query.sources));
    if code == OTHER {
        others.extend(any(fields.language, &query.languages));
    }
    let of_word = |word: &Term| -> Box<dyn Query> {
        Box::new(TermQuery::new(word.clone(), IndexRecordOption::WithFreqs))
    };
    let mut must: Vec<Box<dyn Query>> = words.iter().map(of_word).chain(others).collect();
    let is_one_condition = must.len() == 1 && phrases.is_empty();
    let query_of_all = match must.len() {
        1 => must.remove(0),
        _ => Box::new(BooleanQuery::new(must.into_iter().map(|each| (Occur::Must, each)).collect())),
    };
    let published = Published::between(query.since_s, query.until_s);
    let is_one_word = is_one_condition && words.len() == 1 && published.is_none();
    Ok(Some(Asked { field, query: query_of_all, words, phrases, published, is_one_word }))
}

/// One of these names, which says nothing of how good a story is.
fn any(field: Field, names: &[String]) -> Option<Box<dyn Query>> {
    let one_of = names.iter().map(|name| {
        let term = TermQuery::new(Term::from_field_text(field, name), IndexRecordOption::Basic);
        (Occur::Should, Box::new(term) as Box<dyn Query>)
    });
    let one_of = Box::new(BooleanQuery::new(one_of.collect()));
    (!names.is_empty()).then(|| Box::new(ConstScoreQuery::new(one_of, 0.0)) as Box<dyn Query>)
}

/// The words of a clause with their places.
fn tokens(code: &str, clause: &str) -> Vec<(usize, String)> {
    let mut analyzer = analyzer(code, Words::of_query());
    let mut stream = analyzer.token_stream(clause);
    let mut tokens = Vec::new();
    stream.process(&mut |token| tokens.push((token.position, token.text.clone())));
    tokens
}

/// Such a character begins a pair wherever it stands.
fn beginning_with(character: &str, field: Field) -> Option<Box<dyn Query>> {
    let begins = RegexQuery::from_pattern(&format!("{character}.*"), field).ok()?;
    Some(Box::new(begins))
}

fn is_one_unspaced(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(is_unspaced) && chars.next().is_none()
}
