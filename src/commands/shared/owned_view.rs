use super::cluster_key::{key_path, read_key};
use super::hint;
use crate::config::Kept;
use crate::doc_index::{DocState, IndexView, Row};
use crate::engine::NodeFiles;
use crate::proto::partition::Share;
use std::path::Path;

/// A doc index, for those who tell what is to be fetched: in the directory of a node, some of it is for other nodes to fetch.
pub(crate) struct OwnedView {
    pub view: IndexView,
    /// By the table that the node has kept.
    share: Option<Share>,
}

/// How a document stands in this directory.
pub(crate) enum Standing {
    /// By its row.
    Here(Option<Row>),
    /// It is another node's to fetch.
    Others,
}

impl OwnedView {
    /// Without the key of the cluster nobody can tell whose a URL is: that is said.
    pub fn new(view: IndexView, data: &Path) -> OwnedView {
        let share = match NodeFiles::are_in(data) {
            true => share_of(data),
            false => Ok(None),
        };
        let share = share.unwrap_or_else(|cause| {
            hint(format_args!(
                "{} is a node of a cluster, and {cause}: URLs that are other nodes' to fetch count as pending here, too",
                data.display()
            ));
            None
        });
        OwnedView { view, share }
    }

    /// What was fetched here counts here, whoever has the URL since; when it is due is for its owner to know.
    pub fn standing(&self, url: &str, row: Option<&Row>) -> Standing {
        if self.share.as_ref().is_none_or(|share| share.is_ours(url)) {
            return Standing::Here(row.copied());
        }
        match row {
            Some(row) if matches!(row.state, DocState::Success | DocState::Error) => {
                Standing::Here(Some(Row { due_s: 0, ..*row }))
            }
            _ => Standing::Others,
        }
    }
}

/// What is this node's, or why that is not known.
fn share_of(data: &Path) -> Result<Option<Share>, String> {
    let kept = Kept::read(data).map_err(|error| error.to_string())?.unwrap_or_default();
    let path = key_path(kept.config(), data);
    let Some(key) = read_key(&path)? else {
        return Err(format!("its key file {} is not there", path.display()));
    };
    let cluster = NodeFiles::cluster_in(data).map_err(|error| error.to_string())?;
    if cluster != Some(key.cluster()) {
        return Err(format!("its key file {} is another cluster's", path.display()));
    }
    let share = NodeFiles::share_in(data, key.partition_seed());
    match share.map_err(|error| error.to_string())? {
        Some(share) => Ok(Some(share)),
        None => Err("it has no table yet".to_string()),
    }
}
