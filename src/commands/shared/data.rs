use super::event_log::tell;
use super::{Failure, OwnedView, counted, plural};
use crate::config::{Config, FormerSettings, Kept};
use crate::doc_index::IndexView;
use crate::engine::{Event, NodeFiles, OpenIndex, index_folder};
use crate::proto::partition::Share;
use crate::proto::url::CrawlUrl;
use crate::store_server::{DataDir, Holder, OpenError, Reader};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The data directory that a command looks into.
#[derive(Args)]
pub(crate) struct DataArg {
    /// The data directory of a crawl
    #[arg(long = "data", id = "data", value_name = "DIR", default_value = "./nephila-data")]
    pub path: PathBuf,
}

impl DataArg {
    /// Its store, to be read.
    pub fn reader(&self) -> Result<Reader, Failure> {
        Ok(Reader::open(&self.path)?)
    }

    /// Its doc index, to be looked at.
    pub fn view(&self) -> Result<IndexView, Failure> {
        IndexView::open(&index_folder(&self.path))?.ok_or_else(|| {
            Failure::CannotRun(format!(
                "{} has no doc index (name the data directory of a crawl with --data)",
                self.path.display()
            ))
        })
    }

    /// The same, for those who tell what is to be fetched.
    pub fn view_of_pending(&self) -> Result<OwnedView, Failure> {
        Ok(OwnedView::new(self.view()?, &self.path))
    }
}

/// The directory of a node has URLs that are other nodes' to fetch: nothing else works on them.
pub(crate) fn is_no_node(data: &Path) -> Result<(), Failure> {
    match NodeFiles::are_in(data) {
        true => Err(Failure::Usage(format!(
            "{data} is a node of a cluster, and some of its URLs are other nodes' to fetch: go on with nephila node --data {data}, or choose another directory with --data",
            data = data.display()
        ))),
        false => Ok(()),
    }
}

const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(20);

/// An error if another process has a data directory, before anything is said or made.
pub(crate) fn free_data(path: &Path) -> Result<(), Failure> {
    let mut tries = 1;
    // What cannot be looked at is told by whoever opens it.
    while let Ok(Some(by)) = Holder::of(path) {
        if tries == TRIES {
            return Err(OpenError::InUse { path: path.to_path_buf(), by }.into());
        }
        std::thread::sleep(PAUSE);
        tries += 1;
    }
    Ok(())
}

/// Opens a data directory to write to, and says what `killed`, a crawl or a process, left in it.
pub(crate) fn open_data(path: &Path, killed: &str) -> Result<DataDir, Failure> {
    let mut tries = 1;
    let directory = loop {
        match DataDir::open(path) {
            // Somebody may only be looking who has it.
            Err(OpenError::InUse { .. }) if tries < TRIES => std::thread::sleep(PAUSE),
            opened => break opened?,
        }
        tries += 1;
    };
    if directory.recovered() > 0 {
        let segments = directory.recovered();
        let (were, their) = if segments == 1 { ("was", "its") } else { ("were", "their") };
        let text = format!(
            "store: {} of a {killed} that was killed {were} sealed at {their} last whole record",
            counted(segments, "segment")
        );
        tell(Event::SegmentsRecovered, vec![("segments", segments.into())], text);
    }
    Ok(directory)
}

/// Why there is nothing to continue with in a data directory, if there is not.
pub(crate) fn lacks(config: &Config) -> Result<Option<String>, Failure> {
    let data = config.store.data.display();
    Ok(match IndexView::open(&index_folder(&config.store.data))? {
        None => Some(format!("{data} holds no crawl")),
        Some(view) if view.is_empty()? => Some(format!("{data} holds no URLs")),
        Some(_) => None,
    })
}

/// Opens the doc index of a data directory, and says what is in it. `seed` is told every URL that it began with.
pub(crate) fn open_index(
    config: &Config,
    directory: &DataDir,
    share: Option<Arc<Share>>,
    seed: impl FnMut(&CrawlUrl),
) -> Result<OpenIndex, Failure> {
    let index = OpenIndex::open(config, directory, share, seed)?;
    let (stats, opened) = (index.index.stats(), &index.opened);
    if stats.known > 0 {
        let (known, pending, waiting) = (stats.known, stats.pending, stats.waiting);
        let text = format!(
            "doc index: {known} {} known, {pending} pending, {waiting} {} due",
            plural(known, "URL"),
            if waiting == 1 { "waits until it is" } else { "wait until they are" }
        );
        let fields = vec![("known", known.into()), ("pending", pending.into()), ("waiting", waiting.into())];
        tell(Event::IndexOpened, fields, text);
    }
    for (field, count, said) in [
        (
            "torn_bytes",
            opened.torn_bytes,
            "bytes at its end were torn by a crash; their URLs are found again",
        ),
        ("runs_rebuilt", opened.runs_removed as u64, "damaged parts of the seen-set were rebuilt"),
        (
            "damaged_bytes",
            opened.damaged_bytes,
            "bytes are damaged; the URLs in them are lost until their pages are read again (--again)",
        ),
    ] {
        if count > 0 {
            tell(Event::IndexDamaged, vec![(field, count.into())], format!("doc index: {count} {said}"));
        }
    }
    Ok(index)
}

/// Keeps the settings of a process for the next one on its data directory. What was kept there before is handed back.
pub(crate) fn keep_settings(kept: &Kept, config: &Config) -> Result<Option<FormerSettings>, Failure> {
    let directory = &config.store.data;
    kept.write(directory).map_err(|cause| {
        Failure::CannotRun(format!(
            "cannot keep the settings in {}: {cause} (make room, or choose another directory with --data)",
            directory.display()
        ))
    })
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}
