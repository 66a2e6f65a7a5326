use crate::config::Config;
use crate::engine::crawl::stored::Stored;
use crate::proto::auth::Sites;
use crate::proto::tls::{TlsClient, TlsSettings, TlsSetupError};
use crate::spider::BodyBudget;
use crate::store_server::ReadError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;

/// What the spiders of one process have in common, read and checked once.
#[derive(Clone)]
pub struct SpiderSetup {
    pub tls: Arc<TlsSettings>,
    pub sites: Arc<Sites>,
    pub budget: Arc<BodyBudget>,
    /// What the store holds from before.
    pub stored: Arc<Stored>,
}

/// What a node is told, and what was read because of it.
pub struct NodeSetup {
    pub config: Config,
    pub kit: SpiderSetup,
}

impl NodeSetup {
    /// Settings that name no files.
    pub fn new(config: Config) -> NodeSetup {
        let kit = SpiderSetup::new(&config);
        NodeSetup { config, kit }
    }
}

#[derive(Debug, Error)]
pub enum SetupError {
    #[error("cannot read {path}: {cause} (name a file of certificates in PEM with --ca-file)")]
    NoCaFile { path: PathBuf, cause: io::Error },
    #[error("{path}: {cause} (name a file of certificates in PEM with --ca-file)")]
    BadCaFile { path: PathBuf, cause: TlsSetupError },
    #[error("{0}")]
    Store(#[from] ReadError),
}

impl SpiderSetup {
    /// Without files: the certificates of the web, and nothing stored.
    pub fn new(config: &Config) -> SpiderSetup {
        SpiderSetup {
            tls: Arc::new(TlsSettings {
                roots_pem: None,
                insecure: config.spider.insecure_tls,
                ..TlsSettings::default()
            }),
            sites: Arc::new(config.auth.clone()),
            budget: BodyBudget::new(config.spider.body_memory.0),
            stored: Arc::default(),
        }
    }

    /// With the certificates that the configuration names.
    pub fn with_files(config: &Config) -> Result<SpiderSetup, SetupError> {
        let mut kit = SpiderSetup::new(config);
        if let Some(path) = &config.spider.ca_file {
            let path = path.clone();
            let pem =
                std::fs::read(&path).map_err(|cause| SetupError::NoCaFile { path: path.clone(), cause })?;
            let settings = TlsSettings { roots_pem: Some(pem), ..(*kit.tls).clone() };
            TlsClient::new(&settings).map_err(|cause| SetupError::BadCaFile { path, cause })?;
            kit.tls = Arc::new(settings);
        }
        Ok(kit)
    }

    /// Reads what a store holds, so that it need not be fetched again if it has not changed.
    pub fn read_stored(&mut self, data: &Path) -> Result<(), SetupError> {
        self.stored = Arc::new(Stored::open(data)?);
        Ok(())
    }
}
