use super::languages::{OTHER, STEMMED, place};
use super::stems::StemmedWords;
use super::words::Words;
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{TextAnalyzer, TokenizerManager};

/// Whatever changes what an index holds for the same stories changes this number.
pub(super) const VERSION: u32 = 2;

/// What a story is indexed by.
#[derive(Clone)]
pub(super) struct Fields {
    pub schema: Schema,
    pub story: Field,
    pub source: Field,
    pub language: Field,
    pub published: Field,
    pub url: Field,
    pub title: Field,
    /// For each language with stems, and last for all others: what titles and texts are in. Both are in one field, so that what
    /// cannot be among the best is left out unread whichever of the two has its words.
    texts: Vec<Field>,
}

impl Fields {
    pub fn new() -> Fields {
        let mut schema = Schema::builder();
        let (story, source) =
            (schema.add_u64_field("story", INDEXED | FAST | STORED), schema.add_text_field("source", STRING));
        let (language, published) = (
            schema.add_text_field("language", STRING | STORED),
            schema.add_i64_field("published", FAST | STORED),
        );
        let (url, title) = (schema.add_text_field("url", STORED), schema.add_text_field("shown", STORED));
        // The source by its name as it is shown; the field above has it in lower case.
        schema.add_text_field("source_shown", STORED);
        let texts = codes().map(|code| {
            let indexing = TextFieldIndexing::default()
                .set_tokenizer(code)
                .set_index_option(IndexRecordOption::WithFreqsAndPositions);
            schema.add_text_field(
                &format!("text_{code}"),
                TextOptions::default().set_indexing_options(indexing),
            )
        });
        let texts = texts.collect();
        Fields { schema: schema.build(), story, source, language, published, url, title, texts }
    }

    /// Where the title and the text of a story in a language are.
    pub fn of_language(&self, code: &str) -> Field {
        self.texts[place(code)]
    }

    pub fn source_shown(&self) -> Field {
        self.schema.get_field("source_shown").unwrap_or(self.source)
    }
}

/// Names of analyzers, in the order of fields.
pub(super) fn codes() -> impl Iterator<Item = &'static str> {
    STEMMED.iter().map(|(short, ..)| *short).chain([OTHER])
}

/// What makes words of a text in a language, or of a query.
pub(super) fn analyzer(code: &str, words: Words) -> TextAnalyzer {
    match STEMMED.get(place(code)) {
        Some((.., language)) => TextAnalyzer::from(StemmedWords::new(words, *language)),
        None => TextAnalyzer::from(words),
    }
}

pub(super) fn analyzers() -> TokenizerManager {
    let manager = TokenizerManager::default();
    for code in codes() {
        manager.register(code, analyzer(code, Words::of_text()));
    }
    manager
}
