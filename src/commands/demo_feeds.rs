use super::bench::FarmProcess;
use super::demo_master::Player;
use super::shared::{Failure, Interrupt, Signals, Ticker, counted, now_ms, print};
use crate::base::{SortedMap, shown};
use crate::feeds::{StoriesView, Story, StoryId, StoryState};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// A farm whose feeds post stories by the clock, and a crawl that polls them.
pub(super) struct FeedsDemo<'a> {
    pub dir: &'a Path,
    pub hosts: u32,
    pub feeds: u32,
    /// How long it runs.
    pub seconds: u32,
    pub req_host_per_sec: f64,
}

/// Mean seconds from one story of a feed to the next.
const EVERY_S: u32 = 20;
/// Seconds between two polls, at the least. A crawl of the real web waits for minutes.
const POLL_S: u32 = 3;

/// What has come so far.
#[derive(Default)]
struct Arrivals {
    /// The first that is not fetched, or not known yet.
    next: u32,
    /// Those that had been posted before the crawl began.
    before: u64,
    /// Stories that are to be fetched, by number.
    pending: SortedMap<u32, Story>,
    /// Seconds from the posting of each to its discovery.
    delays_s: Vec<u32>,
}

impl Arrivals {
    /// Takes what is new on disk; says which stories were found and fetched since the last time.
    fn look(&mut self, data: &Path, began_s: u32) -> Result<Vec<Story>, Failure> {
        let Some(view) = StoriesView::open(data)? else { return Ok(Vec::new()) };
        for story in view.since(StoryId(self.next))? {
            let story = story?;
            self.next = story.id.0 + 1;
            match story.published_s < began_s {
                true => self.before += 1,
                false => drop(self.pending.insert(story.id.0, story)),
            }
        }
        let mut arrived = Vec::new();
        let mut still = SortedMap::new();
        for (number, story) in std::mem::take(&mut self.pending) {
            match view.story(StoryId(number))?.filter(|story| story.state != StoryState::Pending) {
                Some(story) => {
                    self.delays_s.push(story.seen_s.saturating_sub(story.published_s));
                    arrived.push(story);
                }
                None => drop(still.insert(number, story)),
            }
        }
        self.pending = still;
        Ok(arrived)
    }
}

fn stories(count: u64) -> String {
    if count == 1 { "1 story".to_string() } else { format!("{count} stories") }
}

impl FeedsDemo<'_> {
    pub fn run(&self, cores: &[usize], mut signals: Signals) -> Result<(), Failure> {
        let list = self.dir.join("farm.feeds");
        let name = list.display().to_string();
        let every = EVERY_S.to_string();
        let figures = [("--hosts", self.hosts), ("--feeds", self.feeds), ("--pages", 1)];
        let farm =
            FarmProcess::start(&figures, &["--feeds-file", &name, "--feed-every", &every], cores, self.dir)?;
        let config = self.dir.join("feeds.toml");
        fs::write(&config, format!("[feeds]\npoll_min = {POLL_S}\npoll_min_plain = {POLL_S}\n"))?;
        let [config, hosts, rate, data] = [
            config.display().to_string(),
            farm.hosts_file.display().to_string(),
            self.req_host_per_sec.to_string(),
            self.dir.join("news").display().to_string(),
        ];
        let what = ["crawl", "--feeds", &name, "--wait", "--config", &config, "--data", &data];
        let how = ["--hosts-file", &hosts, "--allow-net", "127.0.0.0/8", "--req-host-per-sec", &rate];
        let mut crawl = Player::start("news", self.dir, &[&what[..], &how[..]].concat())?;
        print(&format!(
            "a farm of {} on {} is up on 127.16.0.0 and following, port {}: a story every {EVERY_S} s in each, about\n\
             a crawl polls them, every {POLL_S} s at the most; it stops after {} s, or with Ctrl-C\n\n",
            counted(u64::from(self.feeds), "feed"),
            counted(u64::from(self.hosts), "host"),
            farm.port,
            self.seconds,
        ))?;
        let began = Instant::now();
        let began_s = u32::try_from(now_ms() / 1_000).unwrap_or(u32::MAX);
        let mut arrivals = Arrivals::default();
        let mut ticker = Ticker::with_plain(None);
        while began.elapsed() < Duration::from_secs(u64::from(self.seconds)) {
            if matches!(signals.wait(), Interrupt::Stop | Interrupt::AtOnce) {
                break;
            }
            crawl.ask()?;
            for story in arrivals.look(&crawl.data, began_s)? {
                let delay_s = story.seen_s.saturating_sub(story.published_s);
                print(&format!(
                    "  {delay_s:>3} s after it was posted: {} ({}, {})\n",
                    shown(&story.title, 60),
                    shown(&story.url, 80),
                    story.state.name()
                ))?;
            }
            ticker.show(|_| None);
        }
        ticker.end();
        crawl.stop();
        self.end(&arrivals, &data)
    }

    fn end(&self, arrivals: &Arrivals, data: &str) -> Result<(), Failure> {
        let mut delays_s = arrivals.delays_s.clone();
        delays_s.sort_unstable();
        let middle = delays_s.get(delays_s.len() / 2).copied().unwrap_or(0);
        print(&format!(
            "\n{} had been posted before, {} came while it ran: half of them within {middle} s, the last after {} s\n\n$ nephila audit --data {data}\n",
            stories(arrivals.before),
            delays_s.len(),
            delays_s.last().copied().unwrap_or(0),
        ))?;
        let ended = Command::new(std::env::current_exe()?).args(["audit", "--data", data]).status()?;
        if !ended.success() {
            return Err(Failure::No("audit is not clean".to_string()));
        }
        let program = std::env::current_exe()?;
        let program = program.display();
        print(&format!(
            "\nwhen each feed is asked next, and why then:\n  {program} feeds ls --data {data}\n\
             the stories:\n  {program} stories ls --data {data}\n\
             and follow feeds of your own: {program} help feeds\n"
        ))
    }
}
