//! Hosts of several addresses in the model: which ones are dead, and what that may and may not lead to.

use super::model::{Model, Open};
use crate::base::Rng;
use crate::proto::record::ResultCode;
use crate::url_server::Report;
use std::net::IpAddr;
use std::sync::Arc;

impl Model {
    /// The addresses of a host as a name server gives them: in any order.
    pub(super) fn addresses(&mut self, n: usize) -> (IpAddr, Option<Arc<[IpAddr]>>) {
        let mut ips: Vec<IpAddr> = self.hosts[n].ips.iter().map(|&ip| address(ip)).collect();
        let turn = self.rng.below(ips.len() as u64) as usize;
        ips.rotate_left(turn);
        (ips[0], (ips.len() > 1).then(|| ips[1..].into()))
    }

    /// No connection was made, and the request comes again, at another address: the host was not asked.
    pub(super) fn moved_on(&mut self, open: Open, result: ResultCode) {
        let host = &mut self.hosts[open.host];
        assert!(host.ips.len() > 1, "{} has one address", host.url);
        self.moved_on += 1;
        host.moves += 1;
        let cut_short = open.more && result == ResultCode::ConnectTimeout;
        if !cut_short {
            host.tried.insert(open.ip);
        }
        // Alone at its host it is told exactly: each address once, and once more where it was cut short.
        let alone = !self.open.iter().any(|other| other.host == open.host);
        if alone && self.roomy && self.config.host.concurrent == 1 {
            assert!(host.tried.len() < host.ips.len(), "{} has been tried everywhere", host.url);
            assert!(host.moves < 2 * host.ips.len(), "{} goes round in circles", host.url);
        }
        if host.manners.last == Some(open.at) {
            host.manners.last = open.before;
        }
        self.wait_again(open);
    }

    /// The last address has failed, and with it the host.
    pub(super) fn all_failed(&mut self, open: &Open) {
        let host = &mut self.hosts[open.host];
        host.tried.insert(open.ip);
        if self.roomy && self.config.host.concurrent == 1 {
            assert_eq!(host.tried.len(), host.ips.len(), "{} has addresses left", host.url);
        }
        (host.tried, host.moves) = Default::default();
    }

    /// A connection was made, if anybody knows: the next round of addresses begins anew.
    pub(super) fn reached(&mut self, open: &Open, report: &Report) {
        if report.status != 0 || (open.sent && !open.dead) {
            let host = &mut self.hosts[open.host];
            (host.tried, host.moves) = Default::default();
        }
    }
}

/// One, two or three of the addresses.
pub(super) fn some_of(rng: &mut Rng, ip_count: usize) -> Vec<usize> {
    let mut ips: Vec<usize> = Vec::new();
    for _ in 0..1 + rng.below(3) * rng.below(2) {
        let ip = rng.below(ip_count as u64) as usize;
        if !ips.contains(&ip) {
            ips.push(ip);
        }
    }
    ips
}

pub(super) fn address(ip: usize) -> IpAddr {
    IpAddr::from([10, 0, 0, ip as u8])
}
