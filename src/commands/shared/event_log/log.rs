use super::forms::Plain;
use super::journal::{self, Journal};
use super::limiter::Limiter;
use crate::commands::shared::output::{put_line, say_failure};
use crate::commands::shared::{Verbosity, now_ms};
use crate::engine::{EXTRACTOR_THREAD, Event, Fields, Level, Notice, Untaken, count_messages};
use clap::{Args, ValueEnum};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How a node logs.
#[derive(Args)]
pub(in crate::commands) struct LogArgs {
    /// How events are logged: text, json (an object a line on stderr), or journal (systemd's, with fields); auto is journal
    /// if stderr goes there, else text (see nephila help logs)
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Auto, hide_possible_values = true, help_heading = "Output")]
    log_format: LogFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    Auto,
    Text,
    Json,
    Journal,
}

/// The event log of this process. Until a node begins, and in commands that run none, it is text.
static LOG: LazyLock<Mutex<EventLog>> = LazyLock::new(|| {
    Mutex::new(EventLog { form: Form::Text, limiter: Limiter::default(), began: Instant::now() })
});

struct EventLog {
    form: Form,
    limiter: Limiter,
    began: Instant,
}

enum Form {
    Text,
    Json,
    /// Without a socket: lines on stderr that begin with their level.
    Journal(Option<Journal>),
}

impl LogArgs {
    /// Says how this process logs, before it says anything.
    pub fn begin(&self) {
        let form = match self.log_format {
            LogFormat::Json => Form::Json,
            LogFormat::Journal => Form::Journal(Journal::open()),
            LogFormat::Auto if journal::has_stderr() => Form::Journal(Journal::open()),
            LogFormat::Auto | LogFormat::Text => {
                let usual = std::panic::take_hook();
                std::panic::set_hook(Box::new(move |panic| {
                    if !is_of_a_page() {
                        usual(panic);
                    }
                }));
                return;
            }
        };
        log().form = form;
        // The one line that would not be an event.
        std::panic::set_hook(Box::new(|panic| {
            if is_of_a_page() {
                return;
            }
            let thread = std::thread::current().name().unwrap_or("without a name").to_string();
            tell(Event::Panicked, vec![("thread", thread.into())], panic.to_string());
        }));
    }
}

/// A parser that panics over a page is caught, and the page marked with what it said, which may be the page's own text.
fn is_of_a_page() -> bool {
    std::thread::current().name() == Some(EXTRACTOR_THREAD)
}

/// Tells of an event.
pub(in crate::commands) fn tell(event: Event, fields: Fields, text: impl Into<String>) {
    show(Notice::new(event, fields, text));
}

/// Tells what the threads of a node have to tell.
pub(in crate::commands) fn tell_more(untaken: Untaken) {
    untaken.notices.into_iter().for_each(show);
    for (event, count) in untaken.more {
        count_messages(event, count);
        if is_on(event) {
            let mut log = log();
            let at = log.began.elapsed();
            log.limiter.hold(event, count, at);
        }
    }
}

/// Tells programs of an event that people read of in another way.
pub(in crate::commands::shared) fn tell_aside(event: Event, fields: Fields, text: impl Into<String>) {
    if !is_text() {
        tell(event, fields, text);
    }
}

/// Says how many lines were held back in the seconds that are over; at the end, of all.
pub(in crate::commands::shared) fn settle(at_the_end: bool) {
    log().settle(at_the_end);
}

/// Whether people read it, and may be shown a line that rewrites itself.
pub(in crate::commands::shared) fn is_text() -> bool {
    matches!(log().form, Form::Text)
}

/// Whoever panicked while it told something has left the log whole.
fn log() -> MutexGuard<'static, EventLog> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether `-q` and `-v` let an event through.
fn is_on(event: Event) -> bool {
    match event.level() {
        Level::Debug => Verbosity::Verbose,
        Level::Info | Level::Warn => Verbosity::Normal,
        Level::Error => Verbosity::Quiet,
    }
    .is_on()
}

fn show(notice: Notice) {
    let event = notice.event;
    count_messages(event, 1);
    if !is_on(event) {
        return;
    }
    let mut log = log();
    log.settle(false);
    let at = log.began.elapsed();
    // Why a process ends is never one line too many.
    if event == Event::Failed || log.limiter.admit(event, at) {
        log.write(&Plain::new(notice));
    }
}

impl EventLog {
    fn settle(&mut self, at_the_end: bool) {
        let held = match at_the_end {
            true => self.limiter.rest(),
            false => self.limiter.over(self.began.elapsed()),
        };
        for (event, count) in held {
            self.write(&Plain::more(event, count, matches!(self.form, Form::Text)));
        }
    }

    fn write(&self, notice: &Plain) {
        match &self.form {
            Form::Text => say_failure(&notice.text),
            Form::Json => drop(put_line(&notice.json(now_ms()))),
            Form::Journal(journal) => {
                let is_taken = journal.as_ref().is_some_and(|journal| journal.send(&notice.datagram()));
                if !is_taken {
                    put_line(&notice.prefixed());
                }
            }
        }
    }
}
