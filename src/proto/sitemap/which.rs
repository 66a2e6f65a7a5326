use crate::base::named_enum;

named_enum! {
    /// Which sitemaps are read.
    #[derive(Default)]
    pub enum Sitemaps {
        Off = "off",
        /// Those that a robots.txt names.
        #[default]
        Robots = "robots",
        /// Also the /sitemap.xml of a host whose robots.txt names none.
        All = "all",
    }
}
