use crate::base::SortedMap;
use crate::limits::PEER_NODES_MAX;

/// The cause that was told last, by address.
#[derive(Default)]
pub(super) struct Refusals {
    told: SortedMap<String, (String, bool)>,
}

impl Refusals {
    /// Whether this is to be told.
    pub fn is_news(&mut self, address: &str, why: &str, by_us: bool) -> bool {
        if self.told.get(address).is_some_and(|(told, by)| (told.as_str(), *by) == (why, by_us)) {
            return false;
        }
        // Strangers who come from ever more addresses take no more memory than this; some are told again.
        if self.told.len() >= PEER_NODES_MAX {
            self.told.clear();
        }
        self.told.insert(address.to_string(), (why.to_string(), by_us));
        true
    }

    /// A link with it stands.
    pub fn forget(&mut self, address: &str) {
        self.told.remove(address);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_told_once_until_it_changes_and_memory_is_bounded() {
        let mut refusals = Refusals::default();
        assert!(refusals.is_news("a:1", "version", true) && !refusals.is_news("a:1", "version", true));
        assert!(refusals.is_news("b:1", "version", true), "another peer");
        assert!(refusals.is_news("a:1", "version", false), "the other way round");
        assert!(refusals.is_news("a:1", "rules", false) && !refusals.is_news("a:1", "rules", false));
        refusals.forget("a:1");
        assert!(refusals.is_news("a:1", "rules", false));
        for n in 0..3 * PEER_NODES_MAX {
            assert!(refusals.is_news(
                &format!("10.0.{}.{}", n / 256, n % 256),
                "it does not speak TLS",
                true
            ));
            assert!(refusals.told.len() <= PEER_NODES_MAX);
        }
    }
}
