use crate::commands::shared::{Failure, RunningCrawl};
use crate::engine::{ClusterOrder, ClusterView, NodeFiles, OwnerView, VerifyView};
use crate::proto::url::CrawlUrl;
use crate::store_server::Holder;
use serde::de::DeserializeOwned;
use std::path::Path;
use std::time::{Duration, Instant};

/// A node that runs on this machine, asked by the socket of its data directory.
pub(in crate::commands) struct AskedNode<'a> {
    data: &'a Path,
}

impl AskedNode<'_> {
    /// An error if the directory is not that of a node.
    pub fn at(data: &Path) -> Result<AskedNode<'_>, Failure> {
        match NodeFiles::are_in(data) {
            true => Ok(AskedNode { data }),
            false => Err(Failure::CannotRun(format!(
                "{} is no node of a cluster (name the data directory of one with --data; nephila node starts one)",
                data.display()
            ))),
        }
    }

    /// What it says; an error if it does not run.
    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.try_get(path)?.ok_or_else(|| self.is_silent())
    }

    /// The same, and `None` if it does not run.
    fn try_get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, Failure> {
        match RunningCrawl::at(self.data)? {
            Some(mut running) => Ok(running.get(path)?),
            None => Ok(None),
        }
    }

    /// How its cluster stands, as it sees it.
    pub fn cluster(&self) -> Result<ClusterView, Failure> {
        self.get(CLUSTER)
    }

    /// The same, and `None` if it does not run, or does not answer at this moment.
    pub fn try_cluster(&self) -> Option<ClusterView> {
        self.try_get(CLUSTER).ok().flatten()
    }

    /// Orders something; an error says why it cannot be done.
    pub fn order(&self, order: ClusterOrder) -> Result<(), Failure> {
        let text = serde_json::to_string(&order).map_err(|error| Failure::CannotRun(error.to_string()))?;
        let Some(mut running) = RunningCrawl::at(self.data)? else { return Err(self.is_silent()) };
        let taken: Option<serde_json::Value> =
            running.hand(ORDER, &text).map_err(|error| Failure::No(error.to_string()))?;
        taken.map(drop).ok_or_else(|| self.is_silent())
    }

    /// Has all nodes compare what they have with its copies; says the number of that.
    pub fn verify(&self) -> Result<u64, Failure> {
        let Some(mut running) = RunningCrawl::at(self.data)? else { return Err(self.is_silent()) };
        let asked: Option<Asked> = running.tell(VERIFY)?;
        asked.map(|asked| asked.id).ok_or_else(|| self.is_silent())
    }

    /// Waits until what it has now is on two disks, this long at the most. Says where it is not, and nothing if nobody is to have a
    /// copy.
    pub fn wait_until_safe(&self, limit: Duration) -> Option<String> {
        let began = Instant::now();
        let asked = || -> Option<Asked> { RunningCrawl::at(self.data).ok()??.tell(SAFE).ok()? };
        let Some(Asked { id }) = asked() else { return Some("it does not answer".to_string()) };
        loop {
            let why = match self.try_cluster() {
                Some(view) if view.safe >= id => return None,
                Some(view) if view.epoch == 0 => return Some("no cluster has taken it in yet".to_string()),
                Some(ClusterView { copy: Some(copy), .. }) => {
                    format!("node {} does not have them yet", copy.node)
                }
                Some(_) => "nobody has a copy yet".to_string(),
                None => "it does not answer".to_string(),
            };
            if began.elapsed() >= limit {
                return Some(why);
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// What they found, or have found by now; `None` if it does not run, or does not answer at this moment.
    pub fn try_verified(&self) -> Option<VerifyView> {
        self.try_get(VERIFIED).ok().flatten()
    }

    /// Whose a URL is; `None` if it does not run, or knows no table.
    pub fn try_owner(&self, url: &CrawlUrl) -> Option<OwnerView> {
        self.try_get(&owner_path(url)).ok().flatten()
    }

    /// The same; an error if it does not say.
    pub fn owner(&self, url: &CrawlUrl) -> Result<OwnerView, Failure> {
        self.get(&owner_path(url))
    }

    /// Why it says nothing.
    pub fn is_silent(&self) -> Failure {
        let data = self.data.display();
        Failure::CannotRun(match Holder::of(self.data) {
            Ok(Some(holder)) => {
                format!("{data} is in use by {holder}, which does not answer: it starts or ends")
            }
            _ => format!("no node runs in {data} (start it with nephila node --data {data})"),
        })
    }
}

/// From one look to the next.
const PAUSE: Duration = Duration::from_millis(50);
const CLUSTER: &str = "/api/v1/cluster";
const ORDER: &str = "/api/v1/cluster/order";
const VERIFY: &str = "/api/v1/cluster/verify";
const SAFE: &str = "/api/v1/cluster/safe";
const VERIFIED: &str = "/api/v1/cluster/verified";

#[derive(serde::Deserialize)]
struct Asked {
    id: u64,
}

fn owner_path(url: &CrawlUrl) -> String {
    let escaped: String = url::form_urlencoded::byte_serialize(url.as_str().as_bytes()).collect();
    format!("{CLUSTER}/owner?url={escaped}")
}
