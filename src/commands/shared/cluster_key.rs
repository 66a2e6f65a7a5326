use crate::config::Config;
use crate::proto::cluster_key::ClusterKey;
use std::io;
use std::path::{Path, PathBuf};

/// In the data directory of the first node.
pub(crate) const KEY_FILE: &str = "cluster.key";

/// Where the key file of a node is, by its settings.
pub(crate) fn key_path(config: &Config, data: &Path) -> PathBuf {
    config.cluster.key.clone().unwrap_or_else(|| data.join(KEY_FILE))
}

/// The key of a cluster, or what is wrong with its file; nothing if there is no such file.
pub(crate) fn read_key(path: &Path) -> Result<Option<ClusterKey>, String> {
    match std::fs::read_to_string(path) {
        Ok(text) => match ClusterKey::parse(&text) {
            Ok(key) => Ok(Some(key)),
            Err(error) => Err(format!("{}: {error}", path.display())),
        },
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(cause) => Err(format!("{}: {cause}", path.display())),
    }
}
