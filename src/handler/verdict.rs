use super::scope_kind::ScopeKind;
use crate::base::shown;
use crate::proto::url::RuleRef;
use std::fmt;

/// Whether a URL is in scope, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict<'a> {
    /// In, by what `--scope` takes from the seeds.
    Spanned(ScopeKind),
    /// In, by a rule of `allow`.
    Allowed(RuleRef<'a>),
    /// Out: no seed spans it.
    NotSpanned(ScopeKind),
    /// Out, by a rule of `deny`.
    Denied(RuleRef<'a>),
    /// Out, as it is more links from a seed than this crawl follows.
    TooDeep { depth: u16, max: u16 },
    /// Out, as its path has too many segments.
    PathDepth { max: usize },
    /// Out, as its path repeats a segment.
    RepeatedSegment { segment: &'a str, max: usize },
}

impl Verdict<'_> {
    pub fn is_in(&self) -> bool {
        matches!(self, Verdict::Spanned(_) | Verdict::Allowed(_))
    }

    /// The reason as one word for machines. These names stay.
    pub fn name(&self) -> &'static str {
        match self {
            Verdict::Spanned(ScopeKind::Host) => "seed_host",
            Verdict::Spanned(ScopeKind::Domain) => "seed_domain",
            Verdict::Spanned(ScopeKind::Prefix) => "seed_prefix",
            Verdict::Spanned(ScopeKind::Any) => "any",
            Verdict::Allowed(_) => "allowed",
            Verdict::NotSpanned(_) => "out_of_scope",
            Verdict::Denied(_) => "denied",
            Verdict::TooDeep { .. } => "too_deep",
            Verdict::PathDepth { .. } => "trap_path_depth",
            Verdict::RepeatedSegment { .. } => "trap_repeated_segment",
        }
    }

    /// The reason as a sentence.
    pub fn reason(&self) -> String {
        let rule = |list: &str, rule: &RuleRef<'_>| {
            format!("{list} rule {}, \"{}\"", rule.number, shown(rule.text, SHOWN_CHARS))
        };
        let fixed = match self {
            Verdict::Spanned(ScopeKind::Host) => "its host is that of a seed",
            Verdict::Spanned(ScopeKind::Domain) => "its domain is that of a seed",
            Verdict::Spanned(ScopeKind::Prefix) => "it lies below a seed",
            Verdict::Spanned(ScopeKind::Any) => "every URL is",
            Verdict::NotSpanned(ScopeKind::Host) => "no seed has its host",
            Verdict::NotSpanned(ScopeKind::Domain) => "no seed has its domain",
            Verdict::NotSpanned(ScopeKind::Prefix) => "it lies below no seed",
            Verdict::NotSpanned(ScopeKind::Any) => "no URL is",
            Verdict::Allowed(allow) => return rule("allow", allow),
            Verdict::Denied(deny) => return rule("deny", deny),
            Verdict::TooDeep { depth, max } => {
                let links = if *depth == 1 { "link" } else { "links" };
                return format!("it is {depth} {links} from a seed, and this crawl follows {max} (depth)");
            }
            Verdict::PathDepth { max } => {
                return format!("its path has more than {max} segments (path_depth_max)");
            }
            Verdict::RepeatedSegment { segment, max } => {
                let segment = shown(segment, SHOWN_CHARS);
                return format!(
                    "\"{segment}\" stands more than {max} times in its path (segment_repeats_max)"
                );
            }
        };
        fixed.to_string()
    }
}

/// Characters shown of a rule or a segment.
const SHOWN_CHARS: usize = 100;

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = if self.is_in() { "in" } else { "out of" };
        write!(f, "{side} scope: {}", self.reason())
    }
}
