//! Nothing of a host is fetched before its robots rules are known: what is handed out when, and what the answers
//! to robots.txt mean.

use super::host::{HAS_REMOTE_ROBOTS, RobotsState, WaitsIn, Work, is_past, second_after, second_before};
use super::host_memory::{write_pace, write_robots};
use super::niceness::Report;
use super::order::{Acquired, Order, OrderKind, Refusal, RemoteRobots};
use super::release::{Ending, Taken, is_notable};
use super::server::UrlServer;
use super::spider_credits::LOCAL;
use crate::base::Now;
use crate::limits::ROBOTS_REDIRECTS_MAX;
use crate::proto::lines::{Job, TransId};
use crate::proto::robots::Robots;
use crate::proto::url::CrawlUrl;

/// What came of a request for robots.txt.
#[derive(Debug)]
pub enum Robotstxt<'a> {
    /// A status and, for 2xx, the document; for 3xx the target in normal form, if there is one.
    Answer { status: u16, body: &'a [u8], target: Option<&'a CrawlUrl> },
    /// No usable answer.
    Failed,
}

/// What an answer to robots.txt led to.
#[derive(Debug, PartialEq, Eq)]
pub enum RobotsStep {
    /// The word came late and changed nothing.
    Late,
    /// The rules are known; these sitemaps were named beside them.
    Known { crawl_delay_ms: Option<u32>, sitemaps: Vec<Box<str>> },
    /// Everything is disallowed for now.
    Unreachable,
    /// The next hop is on the same host and will be asked for from here.
    Hop,
    /// The next hop is on another host: whoever knows its address asks, and says what came of it with
    /// [`UrlServer::robots_elsewhere`].
    Elsewhere { url: CrawlUrl, hops: u8 },
}

/// Robots rules are asked for again after a day.
const ROBOTS_TTL_US: u64 = 86_400_000_000;
/// First pause after robots.txt could not be had; doubled up to a day.
const ROBOTS_RETRY_US: u64 = 60_000_000;
/// After a month without an answer there are no rules.
const ROBOTS_GIVE_UP_S: i64 = 30 * 86_400;
/// Rules of all hosts together. Beyond this a file is as good as out of reach: it is asked for again later.
const RULES_BYTES_MAX: usize = 256 << 20;

impl UrlServer {
    /// Chooses what to send for a host that may send.
    pub(super) fn hand_out(&mut self, slot: u32, now: Now) -> Acquired {
        let host = &mut self.table.rows[slot as usize];
        if host.is(HAS_REMOTE_ROBOTS) {
            return self.hand_out_remote_robots(slot, now);
        }
        match &host.robots {
            RobotsState::Known { until_s, .. } if is_past(*until_s, now) => self.forget_rules(slot),
            RobotsState::Unreachable { until_s, .. } if !is_past(*until_s, now) => {
                self.refuse_all(slot, Refusal::RobotsUnreachable);
                return match self.refused.pop_front() {
                    Some((job, refusal)) => self.refuse(job, refusal),
                    None => Acquired::Nothing,
                };
            }
            _ => {}
        }
        let more = self.has_more(slot);
        let host = &mut self.table.rows[slot as usize];
        let ip = self.addresses.get(host.ip).ip;
        let (url, hops) = match &mut host.robots {
            RobotsState::Known { rules, .. } => {
                let Some(front) = self.urls.front(host.queue) else {
                    return Acquired::Nothing;
                };
                let path = front.url.path_and_query().as_bytes();
                if rules.as_ref().is_some_and(|rules| !rules.allows(path)) {
                    let Some(candidate) = self.urls.pop_front(&mut host.queue) else {
                        return Acquired::Nothing;
                    };
                    self.refill(slot, now);
                    return self.refuse(Job::at(ip, candidate), Refusal::Robots);
                }
                let Some(spider) = self.spiders.take(slot, host.spider) else {
                    host.waits_in = WaitsIn::Spider;
                    return Acquired::Nothing;
                };
                host.spider = spider;
                let Some(candidate) = self.urls.pop_front(&mut host.queue) else {
                    return Acquired::Nothing;
                };
                let (doc_id, url, head_only) = (candidate.doc_id, candidate.url.clone(), candidate.head_only);
                let held = candidate.held.clone();
                let trans = self.open_window(slot, Work::Page(candidate), spider, more, now);
                let kind = OrderKind::Page;
                let order = Order { trans, doc_id, url, ip, more, kind, spider, head_only, held };
                return Acquired::Fetch(order);
            }
            RobotsState::Asked | RobotsState::Elsewhere { .. } => return Acquired::Nothing,
            RobotsState::Hop(next) => {
                let (url, hops) = (next.0.clone(), next.1);
                host.robots = RobotsState::Asked;
                (url, hops)
            }
            RobotsState::Unknown | RobotsState::Unreachable { .. } => {
                let Some(front) = self.urls.front(host.queue) else {
                    return Acquired::Nothing;
                };
                (front.url.with_path("/robots.txt"), 0)
            }
        };
        // How long it has been out of reach is remembered until there is an answer.
        if let RobotsState::Unreachable { until_s, .. } = &mut host.robots {
            *until_s = u32::MAX;
        } else {
            host.robots = RobotsState::Asked;
        }
        let trans = self.open_window(slot, Work::Robots { hops }, LOCAL, more, now);
        let kind = OrderKind::Robots;
        Acquired::Fetch(Order::ours(trans, url, ip, more, kind))
    }

    fn hand_out_remote_robots(&mut self, slot: u32, now: Now) -> Acquired {
        let errands = self.errands.get_mut(&slot);
        let errand = errands.and_then(|errands| errands.pop_front());
        let more = self.errands.get(&slot).is_some_and(|errands| !errands.is_empty());
        if !more {
            self.errands.remove(&slot);
            self.table.rows[slot as usize].set(HAS_REMOTE_ROBOTS, false);
        }
        let Some(errand) = errand else {
            return Acquired::Nothing;
        };
        let (id, url) = (errand.id, errand.url.clone());
        let ip = self.addresses.get(self.table.rows[slot as usize].ip).ip;
        let more = self.has_more(slot);
        let trans = self.open_window(slot, Work::RemoteRobots(Box::new(errand)), LOCAL, more, now);
        let kind = OrderKind::RemoteRobots(id);
        Acquired::Fetch(Order::ours(trans, url, ip, more, kind))
    }

    /// Takes a request for the robots rules of another host, which redirected here. It counts like any other to
    /// this host and address, and goes before the host's own pages. False if the host finds no slot.
    pub fn admit_remote_robots(&mut self, errand: RemoteRobots, now: Now) -> bool {
        let origin = errand.url.origin();
        let others = errand.others.as_deref();
        let slot = self.table.find(origin).or_else(|| self.place_host(origin, errand.ip, others, now));
        let Some(slot) = slot else {
            return false;
        };
        self.table.wake(slot);
        self.errands.entry(slot).or_default().push_back(errand);
        self.has_remote_robots(slot);
        self.settle(slot, now);
        true
    }

    pub fn is_remote_robots(&self, trans: TransId) -> bool {
        let host = self.table.rows.get(trans.host_slot() as usize);
        host.and_then(|host| host.active_ref(trans))
            .is_some_and(|active| matches!(active.work, Work::RemoteRobots(_)))
    }

    /// An errand is ours to do: a host that waits for its spider to have room need not wait for this.
    pub(super) fn has_remote_robots(&mut self, slot: u32) {
        let host = &mut self.table.rows[slot as usize];
        host.set(HAS_REMOTE_ROBOTS, true);
        if host.waits_in == WaitsIn::Spider {
            host.waits_in = WaitsIn::Rest;
            self.spiders.forget(slot);
        }
    }

    /// DONE for an errand: its number, if the word did not come late.
    pub fn release_remote_robots(&mut self, trans: TransId, report: &Report, now: Now) -> Option<u64> {
        let Taken { work: Work::RemoteRobots(errand), .. } =
            self.take_open(trans, Ending::Answered(report), now)?
        else {
            return None;
        };
        self.freed(trans.host_slot(), now);
        Some(errand.id)
    }

    /// The host that an open transaction is about.
    pub fn origin(&self, trans: TransId) -> Option<&str> {
        let host = self.table.rows.get(trans.host_slot() as usize)?;
        host.active_ref(trans).map(|_| self.table.names.get(host.name))
    }

    /// DONE for robots.txt: the host's pages may go out, are denied, or another hop is asked for.
    pub fn robots(
        &mut self,
        trans: TransId,
        answer: &Robotstxt<'_>,
        report: &Report,
        now: Now,
    ) -> RobotsStep {
        let slot = trans.host_slot();
        let taken = self.take_open(trans, Ending::Answered(report), now);
        let Some(Taken { work: Work::Robots { hops }, ip, reached }) = taken else {
            return RobotsStep::Late;
        };
        let step = self.learn_robots(slot, hops, answer, now);
        if reached && step != RobotsStep::Hop {
            self.reached(slot, ip);
        }
        self.freed(slot, now);
        step
    }

    /// What came of a hop that led to another host.
    pub fn robots_elsewhere(&mut self, origin: &str, answer: &Robotstxt<'_>, now: Now) -> RobotsStep {
        let Some(slot) = self.table.find(origin) else {
            return RobotsStep::Late;
        };
        let RobotsState::Elsewhere { hops } = self.table.rows[slot as usize].robots else {
            return RobotsStep::Late;
        };
        let step = self.learn_robots(slot, hops, answer, now);
        self.freed(slot, now);
        step
    }

    fn learn_robots(&mut self, slot: u32, hops: u8, answer: &Robotstxt<'_>, now: Now) -> RobotsStep {
        let origin = self.table.origin(slot);
        match answer {
            Robotstxt::Answer { status: 200..=299, body, .. } => {
                let mut rules = Robots::parse(body, &self.config.product_token);
                let sitemaps = rules.take_sitemaps();
                if self.rules_bytes + rules.heap_bytes() > RULES_BYTES_MAX {
                    return self.out_of_reach(slot, now);
                }
                self.know_rules(slot, Some(rules), sitemaps, now)
            }
            Robotstxt::Answer { status: 300..=399, target, .. } => match target {
                // A chain that is too long, or a redirect that says nowhere, is as good as no file.
                None => self.know_rules(slot, None, Vec::new(), now),
                Some(_) if hops >= ROBOTS_REDIRECTS_MAX => self.know_rules(slot, None, Vec::new(), now),
                Some(target) if target.origin() == origin => {
                    self.table.rows[slot as usize].robots =
                        RobotsState::Hop(Box::new(((*target).clone(), hops + 1)));
                    RobotsStep::Hop
                }
                Some(target) => {
                    let hops = hops + 1;
                    self.table.rows[slot as usize].robots = RobotsState::Elsewhere { hops };
                    RobotsStep::Elsewhere { url: (*target).clone(), hops }
                }
            },
            // 429 asks us to go away, which is not the same as having no rules.
            Robotstxt::Answer { status: 400..=499, .. } if !is_429(answer) => {
                self.know_rules(slot, None, Vec::new(), now)
            }
            Robotstxt::Answer { .. } | Robotstxt::Failed => self.out_of_reach(slot, now),
        }
    }

    fn know_rules(
        &mut self,
        slot: u32,
        rules: Option<Robots>,
        sitemaps: Vec<Box<str>>,
        now: Now,
    ) -> RobotsStep {
        self.forget_rules(slot);
        let host = &mut self.table.rows[slot as usize];
        let crawl_delay_ms = rules.as_ref().and_then(Robots::crawl_delay_ms);
        let before = host.pace;
        host.pace.set_crawl_delay(crawl_delay_ms);
        host.pace.stretch(&self.config.host);
        if is_notable(&before, &host.pace, &self.config.host, now) {
            write_pace(&mut self.journal, self.table.names.get(host.name), &host.pace, self.config.wall);
        }
        let rules = rules.filter(|rules| *rules != Robots::allow_all()).map(Box::new);
        self.rules_bytes += rules.as_ref().map_or(0, |rules| rules.heap_bytes());
        host.robots = RobotsState::Known { until_s: second_before(now, ROBOTS_TTL_US), rules };
        write_robots(&mut self.journal, self.table.names.get(host.name), &host.robots, self.config.wall);
        RobotsStep::Known { crawl_delay_ms, sitemaps }
    }

    /// Everything is disallowed, until it is tried again; after a month everything is allowed.
    fn out_of_reach(&mut self, slot: u32, now: Now) -> RobotsStep {
        let host = &mut self.table.rows[slot as usize];
        let now_s = (now.us() / 1_000_000).min(i32::MAX as u64) as i32;
        let (since_s, failures) = match host.robots {
            RobotsState::Unreachable { since_s, failures, .. } => (since_s, failures),
            _ => (now_s, 0),
        };
        if i64::from(now_s) - i64::from(since_s) >= ROBOTS_GIVE_UP_S {
            return self.know_rules(slot, None, Vec::new(), now);
        }
        let retry_us = (ROBOTS_RETRY_US << failures.min(11)).min(ROBOTS_TTL_US);
        let until_s = second_after(now, retry_us);
        host.robots = RobotsState::Unreachable { until_s, since_s, failures: failures.saturating_add(1) };
        write_robots(&mut self.journal, self.table.names.get(host.name), &host.robots, self.config.wall);
        self.refuse_all(slot, Refusal::RobotsUnreachable);
        RobotsStep::Unreachable
    }

    pub(super) fn forget_rules(&mut self, slot: u32) {
        let host = &mut self.table.rows[slot as usize];
        if let RobotsState::Known { rules: Some(rules), .. } = &host.robots {
            self.rules_bytes -= rules.heap_bytes();
        }
        host.robots = RobotsState::Unknown;
    }
}

fn is_429(answer: &Robotstxt<'_>) -> bool {
    matches!(answer, Robotstxt::Answer { status: 429, .. })
}
