//! The names of a farm, as a name server tells them: a question in, an answer out.
//!
//! ```text
//!   A h7.farm.test        127.16.0.7        AAAA h7.farm.test     no record of that kind
//!   A h9999.farm.test     no such name      A example.org         refused: not of this server
//! ```
//!
//! Whatever is no question of one name gets no answer at all, so that two servers never talk to each other.

use domain::base::iana::{Class, Opcode, Rcode, Rtype};
use domain::base::message_builder::AnswerBuilder;
use domain::base::{Message, MessageBuilder, Name, ParsedName, Serial, ToName, Ttl};
use domain::rdata::{A, Soa};
use std::str::FromStr;

use super::answer::number;
use super::site_spec::host_addr;

/// An answer is a header, a question of at most 259 bytes and one record.
pub const DNS_ANSWER_BYTES_MAX: usize = 512;
/// Names of a farm do not change while it runs.
const TTL: Ttl = Ttl::from_secs(3_600);
/// That a name is not there is not remembered for longer than a test takes.
const NEGATIVE_TTL: Ttl = Ttl::from_secs(60);

/// The zone `farm.test`.
pub struct FarmNames {
    hosts: u32,
    zone: Name<Vec<u8>>,
    server: Name<Vec<u8>>,
}

/// What is known of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Host(u32),
    /// The zone itself, which has no address.
    Zone,
    Nothing,
    Foreign,
}

impl FarmNames {
    /// Of so many hosts.
    pub fn new(hosts: u32) -> FarmNames {
        let name = |text| Name::from_str(text).expect("a name");
        FarmNames { hosts, zone: name("farm.test"), server: name("ns.farm.test") }
    }

    /// The answer to a datagram, if it is a question.
    pub fn answer(&self, datagram: &[u8]) -> Option<Vec<u8>> {
        let message = Message::from_octets(datagram).ok()?;
        let header = message.header();
        // What is an answer itself is never answered.
        if header.qr() {
            return None;
        }
        let question = message.sole_question().ok()?;
        let known = self.known(question.qname());
        let is_ours = question.qclass() == Class::IN && known != Known::Foreign;
        let rcode = match (header.opcode() == Opcode::QUERY, is_ours, known) {
            (false, _, _) => Rcode::NOTIMP,
            (true, false, _) => Rcode::REFUSED,
            (true, true, Known::Nothing) => Rcode::NXDOMAIN,
            (true, true, _) => Rcode::NOERROR,
        };
        // The question goes back as it was spelled.
        let mut answer = MessageBuilder::new_vec().start_answer(&message, rcode).ok()?;
        if rcode == Rcode::NOTIMP || rcode == Rcode::REFUSED {
            return Some(answer.finish());
        }
        answer.header_mut().set_aa(true);
        match (known, question.qtype()) {
            (Known::Host(host), Rtype::A) => {
                answer.push((question.qname(), TTL, A::new(host_addr(host)))).ok()?;
                Some(answer.finish())
            }
            _ => self.without_records(answer),
        }
    }

    /// The record that says for how long there is nothing.
    fn without_records(&self, answer: AnswerBuilder<Vec<u8>>) -> Option<Vec<u8>> {
        let mut answer = answer.authority();
        let (server, zone) = (self.server.clone(), self.zone.clone());
        let soa = Soa::new(server, zone, Serial(1), TTL, TTL, TTL, NEGATIVE_TTL);
        answer.push((&self.zone, NEGATIVE_TTL, soa)).ok()?;
        Some(answer.finish())
    }

    fn known(&self, name: &ParsedName<&[u8]>) -> Known {
        if name.name_eq(&self.zone) {
            return Known::Zone;
        }
        if !name.ends_with(&self.zone) {
            return Known::Foreign;
        }
        // The name, the zone's two labels and the root.
        let is_direct = name.iter().count() == 4;
        let first = name.iter().next().filter(|_| is_direct);
        let number = first.and_then(|label| match label.as_slice() {
            [b'h' | b'H', digits @ ..] => number(digits),
            _ => None,
        });
        number.filter(|&host| host < self.hosts).map_or(Known::Nothing, Known::Host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Transport;
    use crate::proto::dns::{HostName, Question, RecordKind, Reply};
    use std::net::{IpAddr, Ipv4Addr};

    /// What our own reader makes of the answer.
    fn ask(name: &str, kind: RecordKind) -> Reply {
        let question = Question::new(&HostName::parse(name).unwrap(), kind, 77, 0x5a5a_a5a5);
        let answers = [true, false]
            .map(|edns| FarmNames::new(300).answer(&question.datagram(edns)).expect("an answer"));
        assert!(answers.iter().all(|answer| answer.len() <= DNS_ANSWER_BYTES_MAX));
        let [with, without] = answers.map(|answer| question.read(&answer, Transport::Udp));
        assert_eq!(with, without);
        with
    }

    #[test]
    fn every_host_has_its_address_and_no_other() {
        for (name, addr) in [
            ("h0.farm.test", [127, 16, 0, 0]),
            ("h299.farm.test", [127, 16, 1, 43]),
            ("h7.farm.test.", [127, 16, 0, 7]),
        ] {
            let addresses = vec![IpAddr::V4(Ipv4Addr::from(addr))];
            assert_eq!(ask(name, RecordKind::A), Reply::Addresses { addresses, ttl_s: 3_600 }, "{name}");
            assert_eq!(ask(name, RecordKind::Aaaa), Reply::NoAddress { ttl_s: Some(60) }, "{name}");
        }
        assert_eq!(ask("farm.test", RecordKind::A), Reply::NoAddress { ttl_s: Some(60) });
    }

    #[test]
    fn what_is_not_there_is_not_there_and_others_are_refused() {
        for name in [
            "h300.farm.test",
            "h01.farm.test",
            "h.farm.test",
            "www.farm.test",
            "www.h0.farm.test",
            "h99999999999.farm.test",
        ] {
            assert_eq!(ask(name, RecordKind::A), Reply::NoSuchName { ttl_s: Some(60) }, "{name}");
        }
        for name in ["example.org", "test", "h0.farm.test.org", "h0.xfarm.test"] {
            assert_eq!(ask(name, RecordKind::A), Reply::Fault(5), "{name}");
        }
    }

    #[test]
    fn what_is_no_question_is_not_answered() {
        let names = FarmNames::new(300);
        let whole = Question::new(&HostName::parse("h1.farm.test").unwrap(), RecordKind::A, 1, 0);
        let whole = whole.datagram(false);
        for cut in 0..whole.len() {
            assert_eq!(names.answer(&whole[..cut]), None, "cut at {cut}");
        }
        let answer = names.answer(&whole).unwrap();
        assert_eq!(names.answer(&answer), None, "an answer");
        let changed = |at: usize, to: u8| {
            let mut bytes = whole.clone();
            bytes[at] = to;
            names.answer(&bytes)
        };
        assert_eq!(changed(5, 0), None, "no question");
        assert_eq!(changed(5, 2), None, "two questions, and bytes for one");
        // The low four bits of the fourth byte are the code: 4 is not implemented, 5 refused.
        assert_eq!(changed(2, 0x28).unwrap()[3] & 15, 4, "an update");
        assert_eq!(changed(whole.len() - 1, 3).unwrap()[3] & 15, 5, "another class");
        assert_eq!(changed(whole.len() - 3, 16).unwrap()[3] & 15, 0, "a text: none");
    }
}
