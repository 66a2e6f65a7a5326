//! What traps crawlers: URLs that a program makes up as they are asked for, and redirects that lead nowhere.
//!
//! ```text
//!   /calendar/2026/1/       the month before, the next one, the next year, …
//!   /agenda?day=0           the same by a parameter
//!   /deeper/                one folder more in each
//!   /tail/                  a relative link that lands below its own page: /tail/about/tail/about/tail/…
//!   /session/0.html?sid=…   three pages, and a session for each look at them
//!   /loop/0, /loop/9        redirects in a circle of three, and to itself
//!   /chain/0                redirects without an end
//!   /same/0.html            one page under sixty URLs
//!   /gone/0.html            whatever is missing, with status 200
//! ```
//!
//! The first page of every host links to each of these. Nothing here has an end of its own: a crawl ends by its own
//! rules. What a trap answers follows from its URL, the seed and the host, like all pages.

use super::answer::{Then, number, page_number};
use super::rng::{Purpose, Rng};
use super::site::Site;
use crate::base;

/// Where they begin.
pub(super) const TRAP_ENTRANCES: [&str; 12] = [
    "/calendar/2026/1/",
    "/agenda?day=0",
    "/deeper/",
    "/tail/",
    "/session/0.html",
    "/loop/0",
    "/loop/9",
    "/chain/0",
    "/same/0.html",
    "/gone/0.html",
    "/gone/1.html",
    "/gone/2.html",
];

/// Pages that sessions are made up for.
const SESSION_PAGES: u32 = 3;
const LOOP_STEPS: u32 = 3;
/// Names of one page, once as a file and once by a parameter.
const ALIASES: u32 = 30;

/// A place in a trap.
#[derive(Clone, Copy, Debug, PartialEq, Hash, Eq)]
pub enum Trap {
    /// `month` is 1 to 12.
    Month {
        year: u32,
        month: u32,
    },
    Day(u32),
    /// By the fingerprint of its path.
    Folder(u32),
    Tail(u32),
    Session {
        page: u32,
        /// The fingerprint of its query.
        session: u32,
    },
    Loop(u32),
    Chain(u32),
    Alias,
    /// No page has this name.
    Missing,
}

impl Trap {
    /// The trap behind a path that no page has.
    pub(super) fn at(path: &[u8], query: &[u8]) -> Trap {
        let known = || {
            if let Some(rest) = path.strip_prefix(b"/calendar/") {
                return month(rest.strip_suffix(b"/")?);
            }
            if path == b"/agenda" {
                return query.strip_prefix(b"day=").and_then(number).map(Trap::Day);
            }
            if path.starts_with(b"/deeper/") {
                return Some(Trap::Folder(fingerprint(path)));
            }
            if path.starts_with(b"/tail/") {
                return Some(Trap::Tail(fingerprint(path)));
            }
            if let Some(page) = path.strip_prefix(b"/session/").and_then(page_number) {
                let session = fingerprint(query);
                return (page < SESSION_PAGES).then_some(Trap::Session { page, session });
            }
            if let Some(step) = path.strip_prefix(b"/loop/").and_then(number) {
                return Some(Trap::Loop(step));
            }
            if let Some(step) = path.strip_prefix(b"/chain/").and_then(number) {
                return Some(Trap::Chain(step));
            }
            path.starts_with(b"/same/").then_some(Trap::Alias)
        };
        known().unwrap_or(Trap::Missing)
    }

    /// Where it redirects to, if it does.
    fn place(self) -> Option<String> {
        match self {
            Trap::Loop(step) if step < LOOP_STEPS => Some(format!("/loop/{}", (step + 1) % LOOP_STEPS)),
            Trap::Loop(step) => Some(format!("/loop/{step}")),
            Trap::Chain(step) => Some(format!("/chain/{}", step.saturating_add(1))),
            _ => None,
        }
    }

    /// What tells its page from the others of its host.
    fn key(self) -> u32 {
        let (kind, low, high) = match self {
            Trap::Month { year, month } => (0, year, month),
            Trap::Day(day) => (1, day, 0),
            Trap::Folder(path) => (2, path, 0),
            Trap::Tail(path) => (3, path, 0),
            Trap::Session { page, session } => (4, session, page),
            Trap::Loop(step) => (5, step, 0),
            Trap::Chain(step) => (6, step, 0),
            Trap::Alias => (7, 0, 0),
            Trap::Missing => (8, 0, 0),
        };
        base::Rng::mix(base::Rng::mix(kind << 32 | u64::from(high)) ^ u64::from(low)) as u32
    }

    /// The links of its page, `fresh` being a number that no other page has.
    fn links(self, fresh: u32) -> Vec<String> {
        match self {
            Trap::Month { year, month } => {
                let before = if month > 1 { (year, month - 1) } else { (year.saturating_sub(1), 12) };
                let next = if month < 12 { (year, month + 1) } else { (year.saturating_add(1), 1) };
                [before, next, (year.saturating_add(1), month)]
                    .map(|(year, month)| format!("/calendar/{year}/{month}/"))
                    .to_vec()
            }
            Trap::Day(day) => [day.saturating_sub(1), day.saturating_add(1)]
                .map(|day| format!("/agenda?day={day}"))
                .to_vec(),
            Trap::Folder(_) => vec![format!("d{fresh:08x}/")],
            Trap::Tail(_) => vec!["about/tail/".to_string()],
            Trap::Session { .. } => {
                (0..SESSION_PAGES).map(|page| format!("/session/{page}.html?sid={fresh:08x}")).collect()
            }
            Trap::Alias => {
                let files = (0..ALIASES).map(|alias| format!("/same/{alias}.html"));
                files.chain((0..ALIASES).map(|alias| format!("/same/?ref={alias}"))).collect()
            }
            Trap::Loop(_) | Trap::Chain(_) | Trap::Missing => vec!["/".to_string()],
        }
    }
}

impl Site {
    /// Appends the answer of a trap.
    pub(super) fn push_trap(&self, host: u32, trap: Trap, head_only: bool, out: &mut Vec<u8>) -> Then {
        match trap.place() {
            Some(place) => self.push_location(302, place.as_bytes(), head_only, out),
            None => self.push_whole(out, head_only, |out| self.push_trap_page(host, trap, out)),
        }
    }

    fn push_trap_page(&self, host: u32, trap: Trap, out: &mut Vec<u8>) {
        let start = out.len();
        let mut rng = Rng::of_page(self.spec.seed, Purpose::Trap, host, trap.key());
        let fresh = rng.next() as u32;
        self.push_opening(host, &mut rng, out);
        if trap == Trap::Missing {
            out.extend_from_slice(b"<p>There is no such page.</p>\n");
        }
        out.extend_from_slice(b"<nav>\n<ul class=\"links\">\n");
        for link in trap.links(fresh) {
            self.push_item(&mut rng, out, |_, out| out.extend_from_slice(link.as_bytes()));
        }
        out.extend_from_slice(b"</ul>\n</nav>\n<main>\n");
        self.push_rest(start, self.spec.page_bytes, &mut rng, out);
    }
}

/// `2026/11`.
fn month(path: &[u8]) -> Option<Trap> {
    let slash = path.iter().position(|&byte| byte == b'/')?;
    let (year, month) = (number(&path[..slash])?, number(&path[slash + 1..])?);
    (1..=12).contains(&month).then_some(Trap::Month { year, month })
}

fn fingerprint(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0u64, |sum, &byte| base::Rng::mix(sum ^ u64::from(byte)).wrapping_add(1)) as u32
}

#[cfg(test)]
mod tests {
    use super::super::answer::Resource;
    use super::super::site_spec::SiteSpec;
    use super::*;
    use crate::base::SortedSet;

    fn site() -> Site {
        Site::new(SiteSpec { hosts: 3, traps: true, page_bytes: 3_000, ..SiteSpec::default() }).unwrap()
    }

    fn ask(site: &Site, target: &str) -> String {
        let mut out = Vec::new();
        site.answer(1, target.as_bytes(), 80, false, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn hrefs(answer: &str) -> Vec<String> {
        let links = answer.split("<li><a href=\"").skip(1);
        links.map(|rest| rest.split('"').next().unwrap().to_string()).collect()
    }

    fn location(answer: &str) -> &str {
        answer.split("Location: ").nth(1).unwrap().split("\r\n").next().unwrap()
    }

    #[test]
    fn the_first_page_leads_into_each_and_no_other_page_does() {
        let site = site();
        let first = hrefs(&ask(&site, "/"));
        for entrance in TRAP_ENTRANCES {
            assert!(first.iter().any(|href| href == entrance), "{entrance} in {first:?}");
            let Resource::Trap(trap) = site.resource(entrance.as_bytes()) else { panic!("{entrance}") };
            assert_eq!(trap == Trap::Missing, entrance.starts_with("/gone/"), "{entrance}");
        }
        assert!(!hrefs(&ask(&site, "/p/1.html")).iter().any(|href| TRAP_ENTRANCES.contains(&href.as_str())));
        let plain = Site::new(SiteSpec { hosts: 3, ..SiteSpec::default() }).unwrap();
        assert!(TRAP_ENTRANCES.iter().all(|at| plain.resource(at.as_bytes()) == Resource::Missing));
        assert!(!hrefs(&ask(&plain, "/")).iter().any(|href| TRAP_ENTRANCES.contains(&href.as_str())));
    }

    #[test]
    fn an_answer_follows_from_its_url() {
        let (one, two) = (site(), site());
        let targets = ["/deeper/", "/deeper/d1/", "/session/1.html?sid=7", "/agenda?day=9", "/tail/", "/zzz"];
        let forth: Vec<String> = targets.iter().map(|target| ask(&one, target)).collect();
        let back: Vec<String> = targets.iter().rev().map(|target| ask(&two, target)).collect();
        assert!(forth.iter().eq(back.iter().rev()));
        assert_eq!(forth.iter().collect::<SortedSet<_>>().len(), targets.len());
        let mut elsewhere = Vec::new();
        one.answer(2, b"/deeper/", 80, false, &mut elsewhere);
        assert_ne!(elsewhere, forth[0].as_bytes(), "another host is another page");
    }

    #[test]
    fn calendars_and_days_go_on_in_both_directions() {
        let site = site();
        assert_eq!(
            hrefs(&ask(&site, "/calendar/2026/1/")),
            ["/calendar/2025/12/", "/calendar/2026/2/", "/calendar/2027/1/"]
        );
        assert_eq!(hrefs(&ask(&site, "/calendar/2026/12/"))[1], "/calendar/2027/1/");
        assert_eq!(hrefs(&ask(&site, "/agenda?day=7")), ["/agenda?day=6", "/agenda?day=8"]);
        // At the end of all numbers there is no panic, and no way on.
        assert_eq!(hrefs(&ask(&site, "/calendar/4294967295/12/"))[1], "/calendar/4294967295/1/");
        assert_eq!(hrefs(&ask(&site, "/agenda?day=4294967295"))[1], "/agenda?day=4294967295");
        assert_eq!(location(&ask(&site, "/chain/4294967295")), "/chain/4294967295");
    }

    #[test]
    fn folders_deepen_and_sessions_are_never_the_same() {
        let site = site();
        let (mut path, mut names) = ("/deeper/".to_string(), SortedSet::new());
        let mut session = "/session/0.html".to_string();
        for _ in 0..200 {
            let links = hrefs(&ask(&site, &path));
            assert_eq!(links.len(), 1);
            path += &links[0];
            names.insert(links[0].clone());
            session = hrefs(&ask(&site, &session))[2].clone();
            names.insert(session.clone());
        }
        assert_eq!(names.len(), 400, "no name comes again");
        assert_eq!(hrefs(&ask(&site, "/tail/about/tail/")), ["about/tail/"]);
    }

    #[test]
    fn redirects_lead_nowhere() {
        let site = site();
        let mut at = "/loop/0".to_string();
        for expected in ["/loop/1", "/loop/2", "/loop/0"] {
            let answer = ask(&site, &at);
            assert!(answer.starts_with("HTTP/1.1 302 "), "{answer}");
            assert_eq!(location(&answer), expected);
            at = expected.to_string();
        }
        assert_eq!(location(&ask(&site, "/loop/9")), "/loop/9");
        assert_eq!(location(&ask(&site, "/chain/41")), "/chain/42");
    }

    #[test]
    fn one_page_has_many_names_and_what_is_missing_is_found() {
        let site = site();
        let same = ask(&site, "/same/0.html");
        assert_eq!(hrefs(&same).len(), 60);
        assert!(hrefs(&same).iter().all(|alias| ask(&site, alias) == same));
        let missing = ask(&site, "/gone/0.html");
        assert!(missing.starts_with("HTTP/1.1 200 ") && missing.contains("There is no such page."));
        for other in ["/gone/1.html", "/calendar/2026/13/", "/session/3.html", "/agenda", "/x?day=1"] {
            assert_eq!(ask(&site, other), missing, "{other}");
        }
    }
}
