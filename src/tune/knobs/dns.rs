use super::super::Machine;
use super::super::knob::{Knob, Look, Status};
use super::super::parse;
use super::super::runbook::Runbook;
use std::net::Ipv4Addr;

pub(super) const KNOBS: &[Knob] = &[Knob { name: "resolver", runbook: Runbook::Dns, look: resolver }];

/// Stubs on this machine that only pass questions on: systemd-resolved's and those of container engines.
const STUBS: [Ipv4Addr; 3] =
    [Ipv4Addr::new(127, 0, 0, 53), Ipv4Addr::new(127, 0, 0, 54), Ipv4Addr::new(127, 0, 0, 11)];

/// A crawl asks for more names than a resolver for people is made for.
fn resolver(machine: &Machine) -> Look {
    let (at, wanted) = ("etc/resolv.conf", "one of its own");
    let servers =
        match machine.read_as(at, |text| Some(parse::nameservers(text)).filter(|list| !list.is_empty())) {
            Err(why) => return Look::unread(machine, &why, wanted, at),
            Ok(servers) => servers,
        };
    let look = Look::ok(servers[0], wanted, at);
    let is_stub = STUBS.iter().any(|stub| servers[0] == *stub);
    match servers[0].is_loopback() && !is_stub {
        true => look,
        false => look.by_hand(Status::Slower, "unbound on this machine, and --dns 127.0.0.1:53"),
    }
}
