use super::beside::Beside;
use crate::engine::{Counter, Figures, Group, MasterStatus, Readings, Role, ServerStatus};

/// One family of figures: its name, type and labels stay as they are, for dashboards and alerts go by them.
pub(crate) struct Family {
    pub name: &'static str,
    pub kind: Kind,
    pub labels: &'static [&'static str],
    /// One sentence, with the unit.
    pub help: &'static str,
    /// Processes that have it.
    pub roles: &'static [Role],
    pub(super) read: Read,
}

type Read = fn(&Readings, &Beside, &mut Samples);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// The samples of one family: values of its labels, and a number.
#[derive(Default)]
pub(super) struct Samples(pub Vec<(Vec<String>, Value)>);

pub(super) enum Value {
    Whole(u64),
    Real(f64),
    /// Buckets by [`Durations::BOUNDS_US`](crate::base::Durations::BOUNDS_US), and their sum in microseconds.
    Durations {
        counts: Vec<u64>,
        sum_us: u64,
    },
}

impl Samples {
    pub(super) fn one(&mut self, value: u64) {
        self.0.push((Vec::new(), Value::Whole(value)));
    }

    pub(super) fn real(&mut self, value: f64) {
        self.0.push((Vec::new(), Value::Real(value)));
    }

    pub(super) fn labelled(&mut self, label: &str, value: u64) {
        self.0.push((vec![label.to_string()], Value::Whole(value)));
    }

    pub(super) fn group(&mut self, figures: &Figures, group: Group) {
        figures.named(group).for_each(|(label, value)| self.labelled(label, value));
    }

    pub(super) fn named(&mut self, labels: &[&str], values: &[u64]) {
        labels.iter().zip(values).for_each(|(label, value)| self.labelled(label, *value));
    }

    pub(super) fn shards(&mut self, readings: &Readings, counter: Counter) {
        for (number, shard) in readings.shards.iter().enumerate() {
            self.labelled(&number.to_string(), shard.get(counter));
        }
    }

    /// Those of a master.
    pub(super) fn master(&mut self, readings: &Readings, read: impl FnOnce(&MasterStatus, &mut Samples)) {
        if let Some(status) = &readings.master {
            read(status, self);
        }
    }

    pub(super) fn servers(&mut self, status: &MasterStatus, read: impl Fn(&ServerStatus) -> f64) {
        for server in &status.servers {
            self.0.push((vec![server.id.to_string()], Value::Real(read(server))));
        }
    }

    pub(super) fn durations(&mut self, figures: &Figures, group: Group) {
        if let Some((&sum_us, counts)) = figures.all(group).split_last() {
            self.0.push((Vec::new(), Value::Durations { counts: counts.to_vec(), sum_us }));
        }
    }

    pub(super) fn microseconds(&mut self, figures: &Figures, group: Group) {
        for (label, us) in figures.named(group) {
            self.0.push((vec![label.to_string()], Value::Real(us as f64 / 1e6)));
        }
    }
}

pub(super) const ALL: &[Role] = &Role::ALL;
pub(super) const FETCH: &[Role] = &[Role::Crawl, Role::UrlServer, Role::Spider];
pub(super) const QUEUE: &[Role] = &[Role::Crawl, Role::UrlServer];
pub(super) const CRAWL: &[Role] = &[Role::Crawl];
pub(super) const STORE: &[Role] = &[Role::Crawl, Role::Spider, Role::StoreServer];
pub(super) const MASTER: &[Role] = &[Role::Master];
pub(super) const NONE: &[&str] = &[];

pub(super) const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    roles: &'static [Role],
    help: &'static str,
    read: Read,
) -> Family {
    Family { name, kind: Kind::Counter, labels, help, roles, read }
}

pub(super) const fn gauge(
    name: &'static str,
    labels: &'static [&'static str],
    roles: &'static [Role],
    help: &'static str,
    read: Read,
) -> Family {
    Family { name, kind: Kind::Gauge, labels, help, roles, read }
}

pub(super) const fn histogram(
    name: &'static str,
    roles: &'static [Role],
    help: &'static str,
    read: Read,
) -> Family {
    Family { name, kind: Kind::Histogram, labels: NONE, help, roles, read }
}

impl Family {
    /// Whether a process that reads so has it.
    pub(super) fn is_of(&self, readings: &Readings) -> bool {
        let keeps_records = readings.has_store || self.roles != STORE;
        self.roles.contains(&readings.role) && keeps_records
    }
}
