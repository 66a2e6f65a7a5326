use super::Machine;
use super::machine::Unread;
use super::runbook::Runbook;
use crate::base::named_enum;
use serde::{Deserialize, Serialize};

named_enum! {
    /// How a setting stands to a crawl.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Status {
        Ok = "ok",
        /// Fewer pages for the same machine, or a wall that a large crawl meets.
        Slower = "slower",
        /// A crawl does not start here, stops, or loses what it was told is safe.
        Stops = "stops",
        /// It is not there, may not be read, or is hidden by a container.
        CannotTell = "cannot tell",
        /// The machine has no such thing.
        NotHere = "not here",
    }
}

/// A setting of kernel or hardware that a crawl node cares about.
pub(crate) struct Knob {
    /// Its name is that of its section in the runbook.
    pub name: &'static str,
    pub runbook: Runbook,
    pub(super) look: fn(&Machine) -> Look,
}

/// What a look at a setting found.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub status: Status,
    pub now: String,
    pub wanted: String,
    /// The file that said so.
    pub read_from: String,
    pub mend: Mend,
}

/// How to make a setting what it should be.
#[derive(Clone, Debug)]
pub(crate) enum Mend {
    Nothing,
    /// Files to write to while the machine runs.
    Write(Vec<Change>),
    /// What needs a restart, another tool or a decision.
    ByHand(String),
}

/// A file that is to say something else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Change {
    /// Below the root.
    pub path: String,
    pub form: Form,
    pub was: String,
    pub to: String,
    /// What to write to go back, where the file does not take what it said: another file, and its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<(String, String)>,
}

named_enum! {
    /// How a file's text is to be understood.
    pub enum Form {
        /// Words, between which any space is the same.
        Words = "words",
        /// The word in brackets; what is written is the bare word.
        Choice = "choice",
        /// A set of CPUs in hexadecimal.
        Mask = "mask",
    }
}

impl Form {
    /// What a file says, the same for all ways to write it.
    pub fn value(self, text: &str) -> String {
        match self {
            Form::Words => text.split_whitespace().collect::<Vec<_>>().join(" "),
            Form::Choice => super::parse::chosen(text).unwrap_or_else(|| text.trim()).to_string(),
            Form::Mask => {
                let digits = text.trim().replace(',', "");
                let digits = digits.trim_start_matches('0');
                if digits.is_empty() { "0".to_string() } else { digits.to_string() }
            }
        }
    }
}

impl Change {
    pub(super) fn words(path: &str, was: &str, to: impl ToString) -> Change {
        Change::of(Form::Words, path, was, to)
    }

    pub(super) fn of(form: Form, path: &str, was: &str, to: impl ToString) -> Change {
        Change { path: path.to_string(), form, was: form.value(was), to: to.to_string(), back: None }
    }

    /// Every file that it may write to.
    pub(super) fn paths(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&*self.path).chain(self.back.iter().map(|(path, _)| &**path))
    }

    /// The file and the value that bring the old state back.
    pub fn way_back(&self) -> (&str, &str) {
        self.back.as_ref().map_or((&self.path, &self.was), |(path, value)| (path, value))
    }
}

impl Look {
    pub(super) fn ok(now: impl ToString, wanted: impl ToString, read_from: &str) -> Look {
        Look {
            status: Status::Ok,
            now: now.to_string(),
            wanted: wanted.to_string(),
            read_from: read_from.to_string(),
            mend: Mend::Nothing,
        }
    }

    /// As it is, but not as wanted.
    pub(super) fn but(self, status: Status, mend: Mend) -> Look {
        Look { status, mend, ..self }
    }

    pub(super) fn by_hand(self, status: Status, mend: impl ToString) -> Look {
        self.but(status, Mend::ByHand(mend.to_string()))
    }

    pub(super) fn not_here(why: impl ToString, read_from: &str) -> Look {
        Look { status: Status::NotHere, ..Look::ok(why, "", read_from) }
    }

    pub(super) fn cannot_tell(why: impl ToString, wanted: impl ToString, read_from: &str) -> Look {
        Look { status: Status::CannotTell, ..Look::ok(why, wanted, read_from) }
    }

    pub(super) fn unread(machine: &Machine, why: &Unread, wanted: impl ToString, path: &str) -> Look {
        let why = match (why, machine.is_container()) {
            (Unread::Missing, true) => "hidden by the container",
            (Unread::Missing, false) => "missing",
            (Unread::Denied, _) => "may not be read",
            (Unread::Strange, _) => "not understood",
        };
        Look::cannot_tell(why, wanted, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_the_same_however_it_is_written() {
        assert_eq!(Form::Words.value("10240\t65535\n"), Form::Words.value("10240 65535"));
        assert_eq!(Form::Choice.value("always [madvise] never\n"), Form::Choice.value("madvise"));
        assert_eq!(Form::Mask.value("00000000,00000003\n"), Form::Mask.value("3"));
        assert_eq!(Form::Mask.value("0000\n"), "0");
    }
}
