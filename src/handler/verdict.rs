use super::scope_kind::ScopeKind;
use crate::base::shown;
use crate::proto::url::RuleRef;
use std::fmt;

/// Whether a URL is in scope, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    In(WhyIn<'a>),
    Out(WhyOut<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyIn<'a> {
    /// By what `--scope` takes from the seeds.
    Seeds(ScopeKind),
    /// By a rule of `allow`.
    Allowed(RuleRef<'a>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyOut<'a> {
    /// No seed spans it.
    Seeds(ScopeKind),
    /// By a rule of `deny`.
    Denied(RuleRef<'a>),
    PathDepth {
        max: usize,
    },
    RepeatedSegment {
        segment: &'a str,
        max: usize,
    },
}

impl Verdict<'_> {
    pub fn is_in(&self) -> bool {
        matches!(self, Verdict::In(_))
    }

    /// The reason in a word for machines. These names stay.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::In(why) => why.name(),
            Verdict::Out(why) => why.name(),
        }
    }
}

impl WhyIn<'_> {
    pub fn name(&self) -> &'static str {
        match self {
            WhyIn::Seeds(ScopeKind::Host) => "seed_host",
            WhyIn::Seeds(ScopeKind::Domain) => "seed_domain",
            WhyIn::Seeds(ScopeKind::Prefix) => "seed_prefix",
            WhyIn::Seeds(ScopeKind::Any) => "any",
            WhyIn::Allowed(_) => "allowed",
        }
    }
}

impl WhyOut<'_> {
    pub fn name(&self) -> &'static str {
        match self {
            WhyOut::Seeds(_) => "out_of_scope",
            WhyOut::Denied(_) => "denied",
            WhyOut::PathDepth { .. } => "trap_path_depth",
            WhyOut::RepeatedSegment { .. } => "trap_repeated_segment",
        }
    }
}

/// What is shown of a rule or a segment.
const SHOWN_CHARS: usize = 100;

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::In(why) => write!(f, "in scope: {why}"),
            Verdict::Out(why) => write!(f, "out of scope: {why}"),
        }
    }
}

impl fmt::Display for WhyIn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyIn::Seeds(ScopeKind::Host) => f.write_str("its host is that of a seed"),
            WhyIn::Seeds(ScopeKind::Domain) => f.write_str("its domain is that of a seed"),
            WhyIn::Seeds(ScopeKind::Prefix) => f.write_str("it lies below a seed"),
            WhyIn::Seeds(ScopeKind::Any) => f.write_str("every URL is"),
            WhyIn::Allowed(RuleRef { number, text }) => {
                write!(f, "allow rule {number}, \"{}\"", shown(text, SHOWN_CHARS))
            }
        }
    }
}

impl fmt::Display for WhyOut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyOut::Seeds(ScopeKind::Host) => f.write_str("no seed has its host"),
            WhyOut::Seeds(ScopeKind::Domain) => f.write_str("no seed has its domain"),
            WhyOut::Seeds(ScopeKind::Prefix) => f.write_str("it lies below no seed"),
            WhyOut::Seeds(ScopeKind::Any) => f.write_str("no URL is"),
            WhyOut::Denied(RuleRef { number, text }) => {
                write!(f, "deny rule {number}, \"{}\"", shown(text, SHOWN_CHARS))
            }
            WhyOut::PathDepth { max } => {
                write!(f, "its path has more than {max} segments (path_depth_max)")
            }
            WhyOut::RepeatedSegment { segment, max } => write!(
                f,
                "\"{}\" stands more than {max} times in its path (segment_repeats_max)",
                shown(segment, SHOWN_CHARS)
            ),
        }
    }
}
