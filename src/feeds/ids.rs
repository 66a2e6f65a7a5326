use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! ids {
    ($($(#[$doc:meta])* $Id:ident,)+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
            pub struct $Id(pub u32);

            impl fmt::Display for $Id {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    self.0.fmt(f)
                }
            }
        )+
    };
}

ids! {
    /// A feed, counted from 1. Numbers are never used again.
    FeedId,
    /// Whom feeds belong to, counted from 1.
    SourceId,
    /// A story, in the order they were found. Duplicates take numbers, too: those of stories have holes.
    StoryId,
}
