use super::fields::{Field, LANGUAGES, codes};
use super::languages::{OTHER, STEMMED, place};
use super::query::{QueryError, SearchQuery};
use super::words::{Words, is_unspaced};
use frostem::Stemmer;

/// Words of one question, pairs of characters included.
const WORDS_MAX: usize = 64;

/// A question as it is put to the index.
pub(super) struct Question {
    /// As it is asked in each language; nothing where it is not asked.
    pub languages: Vec<Asked>,
    /// Keys of names, one of which a story must have.
    pub sources: Vec<String>,
    pub published: Option<Published>,
}

/// A question in one language: a story is in one of them, so that each alone finds the same stories, and leaves more out
/// unread than if all were asked as one.
pub(super) struct Asked {
    /// The place of the language.
    pub language: usize,
    /// Keys of the words that a story must have, each once.
    pub words: Vec<String>,
    /// Which of them each word as it was typed is; none for what only begins words.
    pub typed: Vec<Option<usize>>,
    pub phrases: Vec<Phrase>,
    /// Beginnings of words, of each of which a story must have one: they say nothing of how good it is.
    pub beginnings: Vec<String>,
    /// Keys of languages, one of which a story must have.
    pub codes: Vec<String>,
}

/// Words that follow each other: which of the words each is, and how far it is before the last place.
pub(super) struct Phrase(pub Vec<(usize, u32)>);

/// When a story was published, both ends included.
#[derive(Clone, Copy)]
pub(super) struct Published {
    pub since_s: i64,
    pub until_s: i64,
}

impl Question {
    /// None if nothing can be found, in whatever language.
    pub fn new(query: &SearchQuery) -> Result<Option<Question>, QueryError> {
        let (mut clauses, mut words) = (Vec::with_capacity(query.clauses.len()), 0);
        let mut is_hopeless = false;
        for clause in &query.clauses {
            let (tokens, left_out) = tokens(clause);
            // A word that is too long to be one is in no story.
            is_hopeless |= left_out || tokens.is_empty();
            words += tokens.len();
            if words > WORDS_MAX {
                return Err(QueryError::TooManyWords);
            }
            clauses.push(tokens);
        }
        if is_hopeless {
            return Ok(None);
        }
        let is_asked = |code: &str| {
            query.languages.is_empty() || query.languages.iter().any(|named| place(named) == place(code))
        };
        let asked = codes().filter(|code| is_asked(code)).map(|code| in_language(query, &clauses, code));
        Ok(Some(Question {
            languages: asked.collect(),
            sources: query.sources.iter().map(|name| Field::Source.key(name)).collect(),
            published: Published::between(query.since_s, query.until_s),
        }))
    }
}

impl Question {
    /// True if what is asked is one word and nothing else.
    pub fn is_one_word(&self) -> bool {
        self.sources.is_empty()
            && self.published.is_none()
            && self.languages.iter().all(|asked| asked.words.len() == 1 && asked.codes.is_empty())
            && self.languages.iter().all(|asked| asked.typed.len() == 1)
    }
}

fn in_language(query: &SearchQuery, clauses: &[Vec<(u32, String)>], code: &str) -> Asked {
    let language = place(code);
    debug_assert!(language < LANGUAGES);
    let field = Field::Text(language);
    let stemmer = STEMMED.get(language).map(|(.., algorithm)| Stemmer::new(*algorithm));
    let mut asked =
        Asked { language, words: vec![], typed: vec![], phrases: vec![], beginnings: vec![], codes: vec![] };
    for tokens in clauses {
        if let [(_, word)] = &tokens[..]
            && is_one_unspaced(word)
        {
            asked.beginnings.push(field.key(word));
            asked.typed.push(None);
            continue;
        }
        let last = tokens.last().map_or(0, |token| token.0);
        let mut phrase = Vec::with_capacity(tokens.len());
        for (at, word) in tokens {
            let stem = stemmer.as_ref().map(|stemmer| stemmer.stem(word));
            let key = field.key(stem.as_deref().unwrap_or(word));
            let known = asked.words.iter().position(|known| *known == key);
            let word = known.unwrap_or(asked.words.len());
            if known.is_none() {
                asked.words.push(key);
            }
            asked.typed.push(Some(word));
            phrase.push((word, last - at));
        }
        asked.phrases.extend((phrase.len() > 1).then_some(Phrase(phrase)));
    }
    if code == OTHER {
        asked.codes = query.languages.iter().map(|name| Field::Language.key(name)).collect();
    }
    asked
}

/// The words of a clause with their places, and whether one was left out.
fn tokens(clause: &str) -> (Vec<(u32, String)>, bool) {
    let (mut words, mut tokens, mut word) = (Words::of_query(clause), Vec::new(), String::new());
    while let Some(at) = words.read(&mut word) {
        tokens.push((at, std::mem::take(&mut word)));
    }
    (tokens, words.left_out())
}

/// Such a character begins a pair wherever it stands.
fn is_one_unspaced(word: &str) -> bool {
    let mut chars = word.chars();
    chars.next().is_some_and(is_unspaced) && chars.next().is_none()
}

impl Published {
    /// None if any time will do, none included.
    fn between(since_s: Option<i64>, until_s: Option<i64>) -> Option<Published> {
        let bounds = Published { since_s: since_s.unwrap_or(i64::MIN), until_s: until_s.unwrap_or(i64::MAX) };
        (since_s.is_some() || until_s.is_some()).then_some(bounds)
    }
}
