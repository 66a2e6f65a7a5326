use super::Failure;
use super::event_log::tell;
use super::machine::raise_nofile;
use crate::config::{Config, DriverChoice};
use crate::driver::{Driver, EpollDriver, UringDriver};
use crate::engine::Event;
use crate::limits::NAME_SOCKETS_MAX;
use std::io;
use std::time::Instant;

/// A driver that a node of the product can run on.
pub(crate) trait ProductDriver: Driver + Sized + 'static {
    const NAME: &'static str;

    fn open(conns_max: usize, started: Instant) -> io::Result<Self>;
}

impl ProductDriver for UringDriver {
    const NAME: &'static str = "uring";

    fn open(conns_max: usize, started: Instant) -> io::Result<UringDriver> {
        UringDriver::new(conns_max, started)
    }
}

impl ProductDriver for EpollDriver {
    const NAME: &'static str = "epoll";

    fn open(conns_max: usize, started: Instant) -> io::Result<EpollDriver> {
        EpollDriver::new(conns_max, started)
    }
}

/// The driver that will be used, and why.
pub(crate) struct ChosenDriver {
    pub is_uring: bool,
    name: &'static str,
    why: String,
    /// Why io_uring cannot be had, where it was wanted.
    pub refused: Option<String>,
}

/// Descriptors kept for segments, rings, logs and the like.
const FILES_KEPT_BACK: u64 = 64;

impl ChosenDriver {
    /// Chooses as the configuration asks and the kernel offers, and bounds the fetches of each of `shards` by it.
    pub fn of(config: &mut Config, shards: usize) -> Result<ChosenDriver, Failure> {
        let mut refused = None;
        // A ring for each shard, and one for the thread that speaks with peers.
        let (is_uring, why) = match (config.crawl.driver, UringDriver::probe(shards + 1)) {
            (DriverChoice::Epoll, _) => (false, "asked for".to_string()),
            (DriverChoice::Uring, Ok(())) => (true, "asked for".to_string()),
            (DriverChoice::Uring, Err(cause)) => {
                return Err(Failure::CannotRun(format!("{cause}; --driver auto falls back to epoll")));
            }
            (DriverChoice::Auto, Ok(())) => {
                (true, "this kernel offers io_uring with buffer rings".to_string())
            }
            (DriverChoice::Auto, Err(cause)) => {
                refused = Some(cause.clone());
                (false, cause)
            }
        };
        let name = if is_uring { UringDriver::NAME } else { EpollDriver::NAME };
        let driver = ChosenDriver { is_uring, name, why, refused };
        config.spider.fetches_max = driver.fetches_possible(config.spider.fetches_max, shards)?;
        Ok(driver)
    }

    /// Says which it is, and which cores it runs on where that was chosen.
    pub fn announce(&self, cores: &[usize]) {
        let ChosenDriver { name, why, .. } = self;
        let mut fields = vec![("driver", (*name).into()), ("why", why.into())];
        let mut text = format!("driver: {name} ({why})");
        if !cores.is_empty() {
            text += &format!("; cores {cores:?}");
            fields.push(("cores", format!("{cores:?}").into()));
        }
        tell(Event::DriverChosen, fields, text);
    }

    /// Sockets the resolver can have open at once. Where they share the process's descriptors with the fetches, they
    /// get a part of them.
    pub fn name_sockets_max(&self) -> usize {
        let files = raise_nofile() as usize;
        let possible = if self.is_uring { files } else { files / 16 };
        possible.clamp(2, NAME_SOCKETS_MAX)
    }

    /// Fetches one shard can have open. io_uring counts direct descriptors per ring; epoll shares the process's.
    fn fetches_possible(&self, wanted: usize, shards: usize) -> Result<usize, Failure> {
        let files = raise_nofile();
        let kept_back = FILES_KEPT_BACK + self.name_sockets_max() as u64;
        let possible = match self.is_uring {
            true => files as usize,
            false => (files.saturating_sub(kept_back) as usize) / shards,
        };
        match possible {
            0..16 => Err(Failure::CannotRun(format!(
                "too few descriptors: the limit of {files} open files leaves {possible} fetches a shard (raise it with ulimit -n)"
            ))),
            _ => Ok(wanted.min(possible)),
        }
    }
}
