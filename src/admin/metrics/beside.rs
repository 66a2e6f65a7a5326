/// Figures that are kept beside the engine, by the parts that serve an operator.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Beside {
    /// Messages of the event log, in the order of [`Beside::LEVELS`].
    pub log_messages: [u64; Beside::LEVELS.len()],
    /// Settings that were changed while the process ran, in the order of [`Beside::SOURCES`].
    pub settings_changes: [u64; Beside::SOURCES.len()],
    /// The settings were read again, last time, without a mistake in them.
    pub reload_succeeded: bool,
    /// When they were last taken, in seconds since 1970; `None` for the start of the process.
    pub reloaded_seconds: Option<f64>,
    /// Settings of the machine, in the order of [`Beside::CHECKS`].
    pub tune_checks: [u64; Beside::CHECKS.len()],
    /// Requests to the listener by handler and class of status, such as `metrics` and `2xx`.
    pub admin_requests: Vec<(&'static str, &'static str, u64)>,
    pub admin_connections: u64,
    /// The process is a node of a cluster.
    pub is_among_nodes: bool,
}

impl Beside {
    pub const LEVELS: [&str; 4] = ["error", "warn", "info", "debug"];
    pub const SOURCES: [&str; 2] = ["file", "api"];
    pub const CHECKS: [&str; 4] = ["ok", "slower", "stops", "cannot_tell"];
}

impl Default for Beside {
    fn default() -> Beside {
        Beside {
            log_messages: Default::default(),
            settings_changes: Default::default(),
            reload_succeeded: true,
            reloaded_seconds: None,
            tune_checks: Default::default(),
            admin_requests: Vec::new(),
            admin_connections: 0,
            is_among_nodes: false,
        }
    }
}
