//! The farm: listeners, threads, and its interface to tests and benchmarks.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use mio::Waker;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::Pid;
use thiserror::Error;

use super::conn::Responder;
use super::farm_stats::{Counters, FarmStats};
use super::listener::{bind_all, bind_deaf};
use super::misbehaviour::Misbehaviour;
use super::name_server::NameServer;
use super::names::FarmNames;
use super::reflog::{ReflogMade, ReflogSpec, write_lines};
use super::site::{Origin, Site, push_path};
use super::site_spec::{SiteSpec, SpecError, host_addr, host_name};
use super::tls::{Identity, IdentityError};
use super::worker::Worker;

const THREADS_MAX: u16 = 256;

/// How to serve a made-up web.
#[derive(Clone, Debug)]
pub struct FarmOptions {
    pub spec: SiteSpec,
    /// 0 takes a free one.
    pub port: u16,
    pub threads: u16,
    /// Thread n runs on the core at place n, and again from the front when threads outnumber them; none
    /// leaves it to the kernel.
    pub cores: Option<Vec<usize>>,
    /// Where names are told over UDP; 0 takes a free port, none tells them nowhere.
    pub dns_port: Option<u16>,
}

impl Default for FarmOptions {
    fn default() -> FarmOptions {
        FarmOptions { spec: SiteSpec::default(), port: 0, threads: 1, cores: None, dns_port: None }
    }
}

/// A farm that serves until it is stopped or dropped.
pub struct Farm {
    site: Arc<Site>,
    port: u16,
    identity: Option<Identity>,
    /// A port without a listener, for the hosts that refuse.
    deaf: Option<(OwnedFd, u16)>,
    name_server: Option<SocketAddr>,
    counters: Arc<[Counters]>,
    stop: Arc<AtomicBool>,
    threads: Vec<(Waker, JoinHandle<()>)>,
}

impl Farm {
    pub fn start(options: FarmOptions) -> Result<Farm, FarmError> {
        let FarmOptions { spec, port, threads, cores, dns_port } = options;
        if !(1..=THREADS_MAX).contains(&threads) {
            return Err(FarmError::Threads(threads));
        }
        let site = Arc::new(Site::new(spec).map_err(FarmError::Spec)?);
        let identity = match site.spec().tls {
            true => Some(Identity::new(site.spec().hosts).map_err(FarmError::Identity)?),
            false => None,
        };
        raise_nofile()?;
        let listeners = bind_all(port, threads)?;
        let port = listeners[0].local_addr().map_err(FarmError::Start)?.port();
        // One more for who tells names.
        let counters: Arc<[Counters]> = (0..=threads).map(|_| Counters::default()).collect();
        let deaf = if site.spec().slow_hosts > 0 { Some(bind_deaf()?) } else { None };
        // From here on an error drops the farm, which stops the threads already running.
        let mut farm = Farm {
            site,
            port,
            deaf,
            name_server: None,
            identity,
            counters,
            stop: Arc::default(),
            threads: Vec::new(),
        };
        for (thread, listener) in listeners.into_iter().enumerate() {
            let core =
                cores.as_deref().filter(|cores| !cores.is_empty()).map(|cores| cores[thread % cores.len()]);
            farm.spawn(thread, listener, core)?;
        }
        if let Some(port) = dns_port {
            farm.spawn_name_server(port)?;
        }
        Ok(farm)
    }

    fn spawn(&mut self, thread: usize, listener: TcpListener, core: Option<usize>) -> Result<(), FarmError> {
        let responder = Responder::new(self.site.clone(), self.port, self.counters.clone(), thread);
        let listener = mio::net::TcpListener::from_std(listener);
        let tls = self.identity.as_ref().map(|identity| identity.config.clone());
        let (worker, waker) =
            Worker::new(listener, responder, tls, self.stop.clone()).map_err(FarmError::Start)?;
        let (pinned, is_pinned) = mpsc::channel();
        let handle = std::thread::Builder::new()
            .name(format!("farm-{thread}"))
            .spawn(move || {
                let pin_result = core.map_or(Ok(()), pin);
                let go_on = pin_result.is_ok();
                // The starter waits for this one message.
                let _ = pinned.send(pin_result);
                if go_on {
                    worker.run();
                }
            })
            .map_err(FarmError::Start)?;
        self.threads.push((waker, handle));
        is_pinned.recv().expect("the thread answers before it serves")
    }

    fn spawn_name_server(&mut self, port: u16) -> Result<(), FarmError> {
        let names = FarmNames::new(self.site.spec().all_hosts());
        let (counters, thread) = (self.counters.clone(), self.counters.len() - 1);
        let (server, waker, addr) = NameServer::new(port, names, counters, thread, self.stop.clone())?;
        let thread = std::thread::Builder::new().name("farm-dns".to_string());
        let handle = thread.spawn(move || server.run()).map_err(FarmError::Start)?;
        self.threads.push((waker, handle));
        self.name_server = Some(addr);
        Ok(())
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Where names are told.
    pub fn name_server(&self) -> Option<SocketAddr> {
        self.name_server
    }

    /// The web that is served; its pages can be recomputed here.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// The authority behind the farm's certificate, as PEM; none without TLS.
    pub fn ca_pem(&self) -> Option<&str> {
        self.identity.as_ref().map(|identity| identity.ca_pem.as_str())
    }

    pub fn stats(&self) -> FarmStats {
        FarmStats::sum(&self.counters)
    }

    /// The URL of a page.
    pub fn url(&self, host: u32, page: u32) -> String {
        page_url(self.site.origin(host, self.port), page)
    }

    /// The URL of page 0 of every host, those that misbehave evenly among the good ones.
    pub fn seeds(&self) -> impl Iterator<Item = String> + use<> {
        let (site, port) = (self.site.clone(), self.port);
        let (hosts, all) = (site.spec().hosts, site.spec().all_hosts());
        let deaf_port = self.deaf.as_ref().map_or(port, |(_, port)| *port);
        let good_before =
            move |place: u32| (u64::from(place) * u64::from(hosts)).div_ceil(u64::from(all)) as u32;
        (0..all).map(move |place| {
            let good = good_before(place);
            if good < good_before(place + 1) {
                return page_url(site.origin(good, port), 0);
            }
            let number = place - good;
            let is_refused = Misbehaviour::of(number) == Misbehaviour::Refused;
            page_url(site.origin(hosts + number, if is_refused { deaf_port } else { port }), 0)
        })
    }

    /// Writes name and address of every host in the format of /etc/hosts.
    pub fn write_hosts_file(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        for host in 0..self.site.spec().all_hosts() {
            writeln!(file, "{} {}", host_addr(host), host_name(host))?;
        }
        file.flush()
    }

    /// The URLs of all feeds.
    pub fn feed_urls(&self) -> impl Iterator<Item = String> + use<'_> {
        (0..self.site.spec().news.feeds).map(|feed| self.site.feed_url(feed, self.port))
    }

    /// Writes a reflog over the pages of its good hosts.
    pub fn write_reflog(
        &self,
        mut spec: ReflogSpec,
        out: &mut (impl Write + ?Sized),
    ) -> io::Result<ReflogMade> {
        let (hosts, pages) = (u64::from(self.site.spec().hosts), u64::from(self.site.spec().pages));
        spec.urls = hosts * pages;
        let url = |rank: u64, text: &mut Vec<u8>| {
            text.extend_from_slice(self.url((rank % hosts) as u32, (rank / hosts) as u32).as_bytes());
        };
        write_lines(&spec, url, out)
    }

    /// Closes everything, waits for the threads and says what was served.
    pub fn stop(mut self) -> FarmStats {
        self.join();
        self.stats()
    }

    fn join(&mut self) {
        self.stop.store(true, Ordering::Release);
        for (waker, handle) in self.threads.drain(..) {
            // Without a wake-up the thread would sleep on, and this one with it.
            waker.wake().expect("the farm's own event descriptor fails");
            let ended = handle.join();
            if ended.is_err() && !std::thread::panicking() {
                panic!("a thread of the farm has panicked");
            }
        }
    }
}

impl Drop for Farm {
    fn drop(&mut self) {
        self.join();
    }
}

/// Why a farm did not start.
#[derive(Debug, Error)]
pub enum FarmError {
    #[error(transparent)]
    Spec(SpecError),
    #[error("{0} threads: from 1 to {THREADS_MAX}")]
    Threads(u16),
    #[error("port {port} is in use: choose another one, or 0 for any that is free")]
    AddressInUse { port: u16 },
    /// A port below 1024, without the right to it.
    #[error("no permission to listen on port {port}: choose one from 1024 on, or 0 for any that is free")]
    PortDenied { port: u16 },
    #[error("cannot listen on loopback: {}", .0.desc())]
    Listen(Errno),
    #[error("cannot raise the limit of open files: {}", .0.desc())]
    Nofile(Errno),
    #[error("cannot run on core {core} ({}): choose from those that nproc counts", .errno.desc())]
    Pin { core: usize, errno: Errno },
    /// No certificate could be made for TLS.
    #[error("cannot make a certificate: {0}")]
    Identity(IdentityError),
    #[error("cannot start the farm: {0}")]
    Start(io::Error),
}

fn page_url(origin: Origin, page: u32) -> String {
    let mut url = Vec::new();
    origin.push(&mut url);
    push_path(&mut url, page);
    String::from_utf8(url).expect("a URL of the farm is ASCII")
}

/// A descriptor per connection: as many as the administrator allows.
fn raise_nofile() -> Result<(), FarmError> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(FarmError::Nofile)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(FarmError::Nofile)?;
    }
    Ok(())
}

fn pin(core: usize) -> Result<(), FarmError> {
    let mut set = CpuSet::new();
    set.set(core)
        .and_then(|()| sched_setaffinity(Pid::from_raw(0), &set))
        .map_err(|errno| FarmError::Pin { core, errno })
}
