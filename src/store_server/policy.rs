use crate::base::named_enum;

named_enum! {
    /// Which documents are not stored a second time.
    #[derive(Default)]
    pub enum Dedup {
        /// Every document is stored.
        Off = "off",
        /// Those that are stored for the same URL.
        #[default]
        Url = "url",
        /// Those that are stored for any URL.
        Any = "any",
    }
}

named_enum! {
    /// How documents are compressed.
    #[derive(Default)]
    pub enum Compress {
        /// Each by itself.
        Plain = "plain",
        /// Against an earlier page of the same host, where that pays.
        #[default]
        Template = "template",
    }
}

named_enum! {
    /// Which records stay.
    #[derive(Default)]
    pub enum History {
        /// All of them.
        #[default]
        All = "all",
        /// The newest of each URL: segments with much else in them are packed anew.
        Newest = "newest",
    }
}
