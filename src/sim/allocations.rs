//! How often a shard asks for memory while it fetches page after page: hardly ever, once every host is known and pages
//! lead to nothing new. What a page leads to travels to the doc index in memory of its own.

use super::judge::Judge;
use super::plan::Plan;
use super::web::{MisbehavingWeb, PORT, addresses_of};
use crate::base::{Key, NetEvent, Now, Transport, Wall};
use crate::config::Bytes;
use crate::doc_index::{DocIndex, IndexRules};
use crate::driver::{Bell, Driver, SimDriver, SimNet};
use crate::engine::{
    Actor, CrawlStore, CrawlTask, HostsFile, MemoryFiles, Names, Networked, NodeSetup, OpenIndex, ShardMaker,
    Turned, assemble,
};
use crate::farm::{Site, host_name};
use crate::proto::url::CrawlUrl;
use allocation_counter::{measure, opt_out};
use std::cell::RefCell;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

/// The simulated network allocates for itself, which is not counted.
struct Uncounted {
    driver: SimDriver,
    sent: u64,
}

impl Driver for Uncounted {
    fn now(&self) -> Now {
        self.driver.now()
    }

    fn connect(&mut self, conn: Key, addr: SocketAddr, transport: Transport) {
        opt_out(|| self.driver.connect(conn, addr, transport));
    }

    fn send(&mut self, conn: Key, bytes: Vec<u8>) {
        opt_out(|| self.driver.send(conn, bytes));
    }

    fn close(&mut self, conn: Key) {
        opt_out(|| self.driver.close(conn));
    }

    fn wait(&mut self, until: Option<Now>, busy: usize) -> io::Result<()> {
        uncounted(|| self.driver.wait(until, busy))
    }

    fn next(&mut self) -> Option<(Key, NetEvent<'_>)> {
        let next = uncounted(|| self.driver.next());
        self.sent += u64::from(matches!(next, Some((_, NetEvent::Sent(_)))));
        next
    }

    fn bell(&self) -> Arc<dyn Bell> {
        self.driver.bell()
    }

    fn conns_max(&self) -> usize {
        self.driver.conns_max()
    }

    fn syscalls(&self) -> u64 {
        self.driver.syscalls()
    }
}

fn uncounted<T>(work: impl FnOnce() -> T) -> T {
    let mut result = None;
    opt_out(|| result = Some(work()));
    result.expect("it was called")
}

/// Requests, and allocations of the shard, of each tenth of a crawl.
fn tenths(hosts: u32, pages: u32) -> Vec<(u64, u64)> {
    let mut plan = Plan::of_pages(hosts * pages);
    plan.site.hosts = hosts;
    plan.site.pages = pages;
    plan.addresses = hosts;
    plan.config.store.commit_ms.0 = 0;
    plan.config.store.segment_bytes = Bytes(64 << 20);
    plan.config.cores = vec![0];
    let site = Rc::new(Site::new(plan.site.clone()).unwrap());
    let judge = Rc::new(RefCell::new(Judge::new(&plan)));
    let web = MisbehavingWeb::new(&plan, site, judge);
    let net = SimNet::new(plan.seed, plan.shards, Box::new(web));
    let seeds = vec![CrawlUrl::parse(&format!("http://{}:{PORT}/", host_name(0))).unwrap()];
    let mut names = String::new();
    for host in 0..plan.site.hosts {
        for ip in addresses_of(&plan, host) {
            let _ = writeln!(names, "{ip} {}", host_name(host));
        }
    }
    let index = OpenIndex::over(DocIndex::in_memory(IndexRules::default()), &plan.config);
    let store = CrawlStore::Memory(MemoryFiles::default());
    let task = CrawlTask { seeds, feeds: Vec::new(), store, index };
    let names = |_, _| Ok(Names::table(HostsFile::parse(&names)));
    let wall = Wall { unix_ms_at_zero: 1_800_000_000_000 };
    let mut node = assemble(&NodeSetup::new(plan.config.clone()), task, names, wall).unwrap();
    let driver = Uncounted { driver: SimDriver::new(net.clone(), 0, plan.conns_max), sent: 0 };
    let mut shard = node.shards[0].maker.make(driver, 0);
    let mut tenths = vec![(0, 0); 10];
    let mut before = 0;
    loop {
        let now = net.borrow().now();
        if node.scheduler.actor.turn(now) == Turned::Finished {
            return tenths;
        }
        node.index.actor.turn(now);
        node.log_writer.actor.turn(now);
        node.keeper.turn(now);
        let allocated = measure(|| {
            shard.turn(now);
        });
        shard.driver().wait(Some(Now::ZERO), 0).unwrap();
        let sent = shard.driver().sent;
        let tenth = &mut tenths[(sent * 10 / u64::from(hosts * pages)).min(9) as usize];
        tenth.0 += sent - before;
        tenth.1 += allocated.count_total;
        before = sent;
        let next = shard.next_due().into_iter().chain(net.borrow().next_at()).min();
        net.borrow_mut().advance(next.unwrap_or(now).max(now.plus_us(plan.tick_us)));
    }
}

#[test]
fn a_page_of_a_known_host_allocates_nothing_on_its_shard() {
    let tenths = tenths(16, 200);
    let (requests, allocations) =
        tenths[4..9].iter().fold((0, 0), |(r, a), tenth| (r + tenth.0, a + tenth.1));
    assert!(requests > 1_500, "{tenths:?}");
    // What is left: the simulation loses the buffer of every tenth request, whose answer overtakes the news that it is
    // out; the log is handed on by batches; and what robots rules refuse has its reason.
    assert!(allocations * 3 < requests, "requests and allocations of each tenth: {tenths:?}");
}
