use crate::base::shown;
use crate::limits::PEER_VERSION_BYTES_MAX;
use crate::proto::partition::Spread;
use crate::proto::peer_wire::Hello;

/// Who a node is: a [`Hello`] that owns its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Introduction {
    pub cluster: [u8; 16],
    /// Of its disk.
    pub id: u64,
    /// 0 until it has one.
    pub node: u16,
    pub generation: u32,
    pub epoch: u64,
    pub version: String,
    pub rules: u64,
    pub listen: String,
    pub weight: u16,
    pub joining: bool,
    /// Its council is outside of the nodes.
    pub outside: bool,
    /// What keeps URLs together: of its table, or what it was told; `None` if it takes whatever the cluster has.
    pub spread: Option<Spread>,
}

impl Introduction {
    pub(super) fn of(hello: &Hello<'_>) -> Introduction {
        let Hello {
            cluster,
            id,
            node,
            generation,
            epoch,
            version,
            rules,
            listen,
            weight,
            joining,
            outside,
            spread,
        } = *hello;
        let (version, listen) = (version.to_string(), listen.to_string());
        Introduction {
            cluster,
            id,
            node,
            generation,
            epoch,
            version,
            rules,
            listen,
            weight,
            joining,
            outside,
            spread,
        }
    }

    pub fn hello(&self) -> Hello<'_> {
        let Introduction {
            cluster,
            id,
            node,
            generation,
            epoch,
            rules,
            weight,
            joining,
            outside,
            spread,
            ..
        } = *self;
        let (version, listen) = (self.version.as_str(), self.listen.as_str());
        Hello {
            cluster,
            id,
            node,
            generation,
            epoch,
            version,
            rules,
            listen,
            weight,
            joining,
            outside,
            spread,
        }
    }

    /// Whether the other is this very node, which has dialed its own address.
    pub(super) fn is(&self, other: &Introduction) -> bool {
        (self.id, self.generation) == (other.id, other.generation)
    }

    /// What keeps the two apart, in one line.
    pub(super) fn difference(&self, other: &Introduction) -> Option<String> {
        let hex = |id: [u8; 16]| format!("{:032x}", u128::from_be_bytes(id));
        if self.cluster != other.cluster {
            let (here, there) = (hex(self.cluster), hex(other.cluster));
            return Some(format!(
                "cluster {here} here and {there} there: give every node the key file of one cluster"
            ));
        }
        if self.version != other.version {
            let [here, there] =
                [&self.version, &other.version].map(|version| shown(version, PEER_VERSION_BYTES_MAX));
            return Some(format!("version {here} here and {there} there: run the same nephila on all nodes"));
        }
        if self.outside != other.outside {
            let council = |is_outside| if is_outside { "etcd" } else { "peers" };
            let (here, there) = (council(self.outside), council(other.outside));
            return Some(format!(
                "council {here} here and {there} there: give every node the same --council"
            ));
        }
        if let (Some(here), Some(there)) = (self.spread, other.spread)
            && here != there
        {
            return Some(format!(
                "spread {here} here and {there} there: the first node of a cluster has decided on it, so give one that joins the same --spread"
            ));
        }
        if self.rules != other.rules {
            let (here, there) = (self.rules, other.rules);
            return Some(format!(
                "rules {here:016x} here and {there:016x} there: give every node the same settings"
            ));
        }
        let number = self.node;
        (number != 0 && number == other.node)
            .then(|| format!("node {number} here and there: each node has a number of its own"))
    }

    /// Whether this one of the two says which link is kept. Exactly one of them does. `dialed` says that this one dialed.
    pub(super) fn decides(&self, other: &Introduction, dialed: bool) -> bool {
        match (self.node, other.node) {
            (0, 0) => !dialed,
            (0, _) => false,
            (_, 0) => true,
            (here, there) => here < there,
        }
    }
}
