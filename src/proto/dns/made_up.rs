//! Answers for tests: made from the very question that came, as a server does.

use domain::base::iana::{Rcode, Rtype};
use domain::base::{Message, MessageBuilder, Name, Serial, Ttl};
use domain::rdata::{A, Aaaa, Cname, Soa};
use std::net::IpAddr;

/// A question as a server reads it.
#[derive(Clone, Debug)]
pub struct Heard {
    pub id: u16,
    /// In lower case.
    pub name: String,
    pub wants_v6: bool,
    pub edns: bool,
    bytes: Vec<u8>,
}

/// What goes into an answer.
#[derive(Clone, Debug, Default)]
pub struct MadeUp {
    pub rcode: u8,
    pub truncated: bool,
    /// Owner, target, seconds.
    pub aliases: Vec<(String, String, u32)>,
    /// Owner, address, seconds.
    pub addresses: Vec<(String, IpAddr, u32)>,
    /// Seconds of the record and of its field.
    pub soa: Option<(u32, u32)>,
    /// Name servers of the zone.
    pub referral: bool,
}

pub fn name(text: &str) -> Name<Vec<u8>> {
    text.parse().unwrap()
}

impl Heard {
    pub fn read(bytes: &[u8]) -> Heard {
        let message = Message::from_octets(bytes).unwrap();
        let question = message.sole_question().unwrap();
        assert!(message.header().rd() && !message.header().qr());
        Heard {
            id: message.header().id(),
            name: question.qname().to_string().to_ascii_lowercase(),
            wants_v6: question.qtype() == Rtype::AAAA,
            edns: message
                .opt()
                .is_some_and(|opt| opt.udp_payload_size() == super::question::UDP_ANSWER_BYTES),
            bytes: bytes.to_vec(),
        }
    }

    pub fn answer(&self, made: &MadeUp) -> Vec<u8> {
        let asked = Message::from_octets(&self.bytes[..]).unwrap();
        let mut answer =
            MessageBuilder::new_vec().start_answer(&asked, Rcode::masked_from_int(made.rcode)).unwrap();
        answer.header_mut().set_tc(made.truncated);
        for (owner, target, ttl_s) in &made.aliases {
            answer.push((name(owner), Ttl::from_secs(*ttl_s), Cname::new(name(target)))).unwrap();
        }
        for (owner, ip, ttl_s) in &made.addresses {
            let ttl = Ttl::from_secs(*ttl_s);
            match ip {
                IpAddr::V4(v4) => answer.push((name(owner), ttl, A::new(*v4))).unwrap(),
                IpAddr::V6(v6) => answer.push((name(owner), ttl, Aaaa::new(*v6))).unwrap(),
            }
        }
        let mut answer = answer.authority();
        if let Some((ttl_s, minimum_s)) = made.soa {
            let zero = Ttl::from_secs(0);
            let soa = Soa::new(
                name("ns.test"),
                name("root.test"),
                Serial(1),
                zero,
                zero,
                zero,
                Ttl::from_secs(minimum_s),
            );
            answer.push((name("test"), Ttl::from_secs(ttl_s), soa)).unwrap();
        }
        if made.referral {
            let ns = domain::rdata::Ns::new(name("ns.test"));
            answer.push((name("test"), Ttl::from_secs(60), ns)).unwrap();
        }
        answer.finish()
    }

    /// Addresses of the asked kind out of these, or a name without any.
    pub fn addresses(&self, ips: &[&str], ttl_s: u32) -> Vec<u8> {
        let ips = ips.iter().map(|ip| ip.parse::<IpAddr>().unwrap());
        let addresses: Vec<_> =
            ips.filter(|ip| ip.is_ipv6() == self.wants_v6).map(|ip| (self.name.clone(), ip, ttl_s)).collect();
        let soa = addresses.is_empty().then_some((ttl_s, ttl_s));
        self.answer(&MadeUp { addresses, soa, ..MadeUp::default() })
    }
}
