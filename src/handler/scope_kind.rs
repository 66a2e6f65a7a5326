use crate::base::named_enum;

named_enum! {
    /// How far from its seeds a crawl may go.
    #[derive(Default)]
    pub enum ScopeKind {
        /// The hosts of the seeds; port and scheme may differ.
        #[default]
        Host = "host",
        /// The registrable domains of the seeds.
        Domain = "domain",
        /// Everything below the seeds' directories.
        Prefix = "prefix",
        Any = "any",
    }
}
