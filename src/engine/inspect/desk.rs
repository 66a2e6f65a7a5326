use crate::doc_index::IndexStats;
use crate::engine::inspect::cluster_view::ClusterReport;
use crate::engine::inspect::crawl_rules::CrawlRules;
use crate::engine::inspect::master_line::{MasterLine, MasterReport};
use crate::engine::inspect::node_status::{Gauges, NodeStatus};
use crate::engine::inspect::questions::{Ask, Questions, Reply};
use crate::engine::runtime::counters::Snapshot;
use crate::engine::runtime::events::Event;
use crate::engine::runtime::master_status::{MasterBoard, MasterStatus};
use crate::engine::runtime::notices::Fields;
use crate::engine::runtime::readings::{Meter, MeterParts, Readings};
use crate::engine::runtime::running::StopSwitch;
use crate::engine::runtime::settings_news::SettingsNews;
use crate::rings::Doorbell;
use std::sync::Arc;
use std::time::Instant;

/// Where a running process is asked and told things, from any thread. Nothing here waits.
pub struct Desk {
    gauges: Gauges,
    meter: Meter,
    stop: StopSwitch,
    /// Where URLs are asked about and handed in; a process without a doc index has none.
    questions: Option<Arc<Questions>>,
    /// What became of settings that were read again, where they may change.
    news: Option<Arc<SettingsNews>>,
    /// The rules that it began with, where it has any.
    rules: Option<CrawlRules>,
    /// How it stands with its masters, where it has any.
    master: Option<MasterReport>,
    /// How its cluster stands, where it is a node of one.
    cluster: Option<ClusterReport>,
    /// How a master is, where it is one.
    board: Option<MasterBoard>,
}

impl Desk {
    /// The desk of a process that has no doc index; the bells are of those who must hear of a stop.
    pub(crate) fn new(parts: MeterParts, bells: Vec<Arc<Doorbell>>) -> Desk {
        let stop = StopSwitch::new(parts.stop.clone(), bells);
        let gauges = Gauges::new(&parts);
        Desk {
            gauges,
            meter: Meter::new(parts),
            stop,
            questions: None,
            news: None,
            rules: None,
            master: None,
            cluster: None,
            board: None,
        }
    }

    /// The same for a process that has one, and goes by these rules.
    pub(crate) fn with_urls(self, questions: Arc<Questions>, rules: CrawlRules) -> Desk {
        Desk { questions: Some(questions), rules: Some(rules), ..self }
    }

    /// The same for a master.
    pub(crate) fn with_board(self, board: MasterBoard) -> Desk {
        Desk { board: Some(board), ..self }
    }

    /// The same for a process whose settings may change.
    pub(crate) fn with_news(self, news: Arc<SettingsNews>) -> Desk {
        Desk { news: Some(news), ..self }
    }

    /// The same for one that takes URLs from masters.
    pub(crate) fn with_master(self, master: Option<MasterReport>) -> Desk {
        Desk { master, ..self }
    }

    /// How it stands with its masters.
    pub(crate) fn master(&self) -> Option<MasterLine> {
        self.master.as_ref().map(MasterReport::get)
    }

    /// The same for a node of a cluster.
    pub(crate) fn with_cluster(self, cluster: Option<ClusterReport>) -> Desk {
        Desk { cluster, ..self }
    }

    /// How its cluster stands.
    pub(crate) fn cluster(&self) -> Option<&ClusterReport> {
        self.cluster.as_ref()
    }

    /// Asks the scheduler: `answer` is called on its thread, or dropped if there will be no answer.
    pub(crate) fn ask(&self, ask: Ask, answer: impl FnOnce(Reply) + Send + 'static) {
        if let Some(questions) = &self.questions {
            questions.ask(ask, answer);
        }
    }

    /// Whether it knows of URLs: it can be asked about them, and paused.
    pub(crate) fn has_urls(&self) -> bool {
        self.questions.is_some()
    }

    pub(crate) fn rules(&self) -> Option<&CrawlRules> {
        self.rules.as_ref()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.gauges.table)
    }

    /// How the process is; what was counted by its index came later than the snapshot.
    pub(crate) fn status(&self, snapshot: &Snapshot, counted: Option<IndexStats>) -> NodeStatus {
        NodeStatus {
            master: self.master(),
            dealing: self.board().map(Box::new),
            cluster: self.cluster.as_ref().map(|cluster| cluster.get().line()),
            ..self.gauges.status(snapshot, counted)
        }
    }

    /// What the process waits for, if it is more than the network.
    pub(crate) fn waiting_for(&self) -> Option<String> {
        self.gauges.health.waiting_for()
    }

    /// Everything that is counted.
    pub fn readings(&self) -> Readings {
        Readings { master: self.board().map(Box::new), ..self.meter.read() }
    }

    /// How a master is.
    pub(crate) fn board(&self) -> Option<MasterStatus> {
        self.board.as_ref().map(MasterBoard::read)
    }

    /// Changes of settings that hold, whether the last reading was good, and when, in seconds since 1970, one last was.
    pub(crate) fn settings_news(&self) -> Option<(u64, bool, u64)> {
        let news = self.news.as_ref()?;
        let (is_good, at_s) = news.last_reload();
        Some((news.changes(), is_good, at_s))
    }

    /// To be called about once a second.
    pub(crate) fn sample(&self) {
        self.gauges.sample(Instant::now());
    }

    pub(crate) fn stop_switch(&self) -> &StopSwitch {
        &self.stop
    }

    /// The ordinary stop. Whether it was asked for the first time.
    pub(crate) fn stop(&self, why: &str) -> bool {
        let first = !self.stop.is_stopped();
        if first {
            let text = format!("stopping, as nephila stop asked{why}: open fetches may end (5 s at most)");
            self.gauges.health.tell(Event::Stopping, vec![("by", "nephila stop".into())], text);
        }
        self.stop.stop();
        first
    }

    /// Tells the user something that somebody else asked for.
    pub(crate) fn note(&self, event: Event, fields: Fields, text: String) {
        self.gauges.health.tell(event, fields, text);
    }
}
