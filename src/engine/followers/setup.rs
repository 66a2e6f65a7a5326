use super::follower::{Follower, FollowerActor, Step};
use super::postgres::PostgresTarget;
use super::s3::S3Target;
use super::target::{SendError, Target};
use super::walk::{Walk, WalkError};
use crate::base::counted;
use crate::config::{Config, DatabaseAccess};
use crate::engine::runtime::actor::{ActorBell, ActorThread, Seated};
use crate::engine::runtime::counters::CounterTable;
use crate::engine::runtime::database_url::DatabaseUrl;
use crate::engine::runtime::health::{Health, NodeError};
use crate::engine::runtime::notices::Notice;
use crate::proto::tls::{TlsClient, TlsSettings};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Which followers the settings ask for.
pub(crate) struct FollowersSetup {
    targets: Vec<Box<dyn Target>>,
}

/// What a follower has copied in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    pub follower: &'static str,
    /// Where to, as it may be shown.
    pub place: String,
    pub documents: u64,
    pub refused: u64,
    /// Segments that went before they were copied, and those that still wait.
    pub gone: u64,
    pub waiting: u64,
    /// Why it did not go on.
    pub failed: Option<String>,
}

impl FollowersSetup {
    /// Reads what they name: files, and the environment. An error names the setting.
    pub fn of(config: &Config) -> Result<FollowersSetup, String> {
        let environment = |name: &str| std::env::var(name).ok();
        let mut targets: Vec<Box<dyn Target>> = Vec::new();
        if let Some(DatabaseAccess(text)) = config.content.postgres_access(environment)? {
            targets.push(Box::new(PostgresTarget::new(DatabaseUrl::parse(&text)?)));
        }
        if let Some((url, access)) = config.content.s3_access(environment)? {
            targets.push(Box::new(S3Target::new(url, access, tls(config)?)?));
        }
        Ok(FollowersSetup { targets })
    }

    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// Copies all that is sealed, one follower after the other.
    pub fn catch_up(self, data: &Path, mut tell: impl FnMut(Notice)) -> Vec<Copied> {
        let copied = self.targets.into_iter().map(|target| {
            let (follower, place) = (target.name(), target.place());
            let mut copied =
                Copied { follower, place, documents: 0, refused: 0, gone: 0, waiting: 0, failed: None };
            if let Err(cause) = copy_all(data, target, &mut copied, &mut tell) {
                copied.failed = Some(cause);
            }
            copied
        });
        copied.collect()
    }
}

fn copy_all(
    data: &Path,
    target: Box<dyn Target>,
    copied: &mut Copied,
    tell: &mut impl FnMut(Notice),
) -> Result<(), String> {
    let told = |error: WalkError| error.to_string();
    let walk = Walk::open(data, target.name(), &target.place()).map_err(told)?;
    let (refused, gone) = (walk.cursor().refused, walk.cursor().gone);
    let mut follower = Follower::new(walk, target);
    let ended = loop {
        let step = match follower.must_look() {
            true => {
                follower.look().map_err(told).and_then(|()| follower.step().map_err(|SendError(cause)| cause))
            }
            false => follower.step().map_err(|SendError(cause)| cause),
        };
        follower.notices().into_iter().for_each(&mut *tell);
        match step {
            Ok(Step::Copied(documents)) => copied.documents += documents,
            Ok(Step::AllThere) if follower.must_look() => {}
            Ok(Step::AllThere) => break Ok(()),
            Err(cause) => break Err(cause),
        }
    };
    let cursor = follower.walk().cursor();
    copied.refused = cursor.refused - refused;
    copied.gone = cursor.gone - gone;
    copied.waiting = cursor.waiting();
    ended.map_err(|cause| match copied.waiting {
        0 => cause,
        waiting => format!("{cause}; {} wait", counted(waiting, "segment")),
    })
}

/// With the certificates that spiders go by.
fn tls(config: &Config) -> Result<TlsClient, String> {
    let named = |path: &Path, cause: &dyn std::fmt::Display| {
        format!("{}: {cause} (name a file of certificates in PEM with ca_file)", path.display())
    };
    let roots_pem = match &config.spider.ca_file {
        Some(path) => Some(std::fs::read(path).map_err(|cause| named(path, &cause))?),
        None => None,
    };
    let path = config.spider.ca_file.as_deref().unwrap_or(Path::new("ca_file"));
    let settings = TlsSettings { roots_pem, insecure: false, sessions_max: 1 };
    TlsClient::new(&settings).map_err(|cause| named(path, &cause))
}

/// The followers of a crawl, before they have threads. They have looked once, before anything can be let go.
pub(crate) struct SeatedFollowers(Vec<(&'static str, Seated<FollowerActor>)>);

/// Threads of followers.
pub(crate) struct ContentThreads(Vec<ActorThread<FollowerActor>>);

/// What is being sent when a process is to end has so long.
const LAST_BATCH: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(5);

impl ContentThreads {
    /// Opens cursors; neither database nor bucket need be there.
    pub fn seat(
        config: &Config,
        table: &mut CounterTable,
        health: &Arc<Health>,
    ) -> Result<SeatedFollowers, NodeError> {
        let setup = FollowersSetup::of(config).map_err(NodeError::Content)?;
        let seated = setup.targets.into_iter().map(|target| {
            let name = target.name();
            let walk = Walk::open(&config.store.data, name, &target.place())?;
            let mut follower = Follower::new(walk, target);
            follower.look()?;
            let actor = FollowerActor::new(follower, health.clone(), table.thread());
            Ok((name, Seated { actor, bell: ActorBell::default() }))
        });
        let seated: Result<_, WalkError> = seated.collect();
        seated.map(SeatedFollowers).map_err(|error| NodeError::Content(error.to_string()))
    }

    pub fn start(
        seated: SeatedFollowers,
        started: Instant,
        health: &Arc<Health>,
    ) -> Result<ContentThreads, NodeError> {
        let start = |(name, seated)| ActorThread::start_unwatched(name, seated, started, health);
        seated.0.into_iter().map(start).collect::<Result<_, _>>().map(ContentThreads)
    }

    /// Everything is sealed. They may go on for so long, as nothing else is left to do; then what they send is sent, and the
    /// rest waits for the next run. A thread whose other side says nothing is left to itself.
    pub fn end(self, catch_up: Duration, health: &Health) {
        self.0.iter().for_each(ActorThread::tell_end);
        let is_done = || self.0.iter().all(ActorThread::is_finished);
        let wait = |patience: Duration, is_over: &dyn Fn() -> bool| {
            let until = Instant::now() + patience;
            while !is_done() && !is_over() && Instant::now() < until {
                std::thread::sleep(PAUSE);
            }
        };
        wait(catch_up, &|| health.in_haste.load(Ordering::Acquire));
        health.in_haste.store(true, Ordering::Release);
        wait(LAST_BATCH, &|| false);
    }
}
