use super::signals::Sender;
use super::{Failure, now_ms};
use crate::base::shown;
use crate::config::{CLUSTER_RULES, Change, Changed, Config, Layered};
use crate::engine::{Event, Fields, Running};
use std::sync::Arc;

/// Reads the settings of a process again while it runs, and lets hold what can.
pub(crate) struct Reload<'a> {
    read: Box<dyn Fn() -> Result<Layered, Failure> + 'a>,
    /// What the process was told, as far as that holds.
    told: Config,
    /// Its data directory keeps settings, and a log of their changes.
    keeps: bool,
    /// It is a node of a cluster, where others count on its rules.
    is_node: bool,
}

/// What is shown of a value.
const VALUE_CHARS_MAX: usize = 200;

impl<'a> Reload<'a> {
    pub fn new(told: &Config, keeps: bool, read: impl Fn() -> Result<Layered, Failure> + 'a) -> Reload<'a> {
        Reload { read: Box::new(read), told: told.clone(), keeps, is_node: false }
    }

    /// Of a node of a cluster.
    #[must_use]
    pub fn of_node(self) -> Reload<'a> {
        Reload { is_node: true, ..self }
    }

    /// Takes all that can be taken, or nothing; what became of it, in lines.
    pub fn again<N: Running>(&mut self, node: &N, by: Sender) -> (Event, Fields, String) {
        let read = (self.read)().and_then(|layered| self.take(node, &layered, by));
        node.settings_news().inspect(|news| news.reloaded(read.is_ok(), now_ms() / 1_000));
        let by = ("by", by.to_string().into());
        match read {
            Ok(lines) => (Event::SettingsReloaded, vec![by], lines.join("\n")),
            Err(Failure::No(cause) | Failure::Usage(cause) | Failure::CannotRun(cause)) => {
                let text = format!("SIGHUP: all settings stay as they are:\n{cause}");
                (Event::SettingsRefused, vec![by, ("cause", cause.into())], text)
            }
        }
    }

    fn take<N: Running>(&mut self, node: &N, layered: &Layered, by: Sender) -> Result<Vec<String>, Failure> {
        let running = node.settings();
        let running = running.as_deref().unwrap_or(&self.told);
        let change = Change::new(running, &self.told, &layered.config, |key| node.takes(key));
        if change.is_nothing() {
            return Ok(vec!["SIGHUP: settings were read again; nothing has changed".to_string()]);
        }
        if self.is_node {
            leaves_rules(&change)?;
        }
        if self.keeps {
            let data = &self.told.store.data;
            let cannot = |cause| {
                Failure::CannotRun(format!("cannot keep them in {}: {cause} (make room)", data.display()))
            };
            change.write_down(data, &by.to_string(), "SIGHUP", now_ms()).map_err(cannot)?;
            layered.kept.write(data).map_err(cannot)?;
        }
        if !change.taken.is_empty() {
            if !node.set(Arc::new(change.config.clone())) {
                return Err(Failure::CannotRun("it ends, and takes nothing more".to_string()));
            }
            node.settings_news().inspect(|news| news.taken(change.taken.len() as u64));
        }
        change.taken.iter().for_each(|changed| self.told.adopt(&changed.key, &layered.config));
        Ok(said(&change))
    }
}

/// What a node was granted, and what others wait for when it is silent, was counted by the rules that all of them began with.
/// While some go by other ones, nothing that is promised holds: they change when no node runs.
fn leaves_rules(change: &Change) -> Result<(), Failure> {
    let changed = change.taken.iter().chain(&change.waiting).map(|changed| changed.key.as_str());
    let changed: Vec<&str> = changed.collect();
    let rules: Vec<&str> = CLUSTER_RULES.into_iter().filter(|rule| changed.contains(rule)).collect();
    match rules.len() {
        0 => Ok(()),
        count => Err(Failure::No(format!(
            "{}: {} of the whole cluster, which no node changes by itself (stop all nodes, then start each of them with it)",
            rules.join(", "),
            if count == 1 { "a rule" } else { "rules" },
        ))),
    }
}

fn said(change: &Change) -> Vec<String> {
    let (taken, all) = (change.taken.len(), change.taken.len() + change.waiting.len());
    let plural = if all == 1 { "" } else { "s" };
    let needs: Vec<&str> = change.waiting.iter().map(|changed| changed.key.as_str()).collect();
    let needs = match needs.len() {
        0 => String::new(),
        1 => format!("; {} needs a restart", needs[0]),
        _ => format!("; {} need a restart", needs.join(", ")),
    };
    let mut lines = vec![format!("SIGHUP: took {taken} of {all} change{plural}{needs}")];
    let value = |text: &Option<String>| shown(text.as_deref().unwrap_or("unset"), VALUE_CHARS_MAX);
    lines.extend(
        change
            .taken
            .iter()
            .map(|Changed { key, old, new }| format!("  {key} = {}, was {}", value(new), value(old))),
    );
    lines
}
