use super::host_name::HostName;
use domain::base::iana::Rtype;
use domain::base::{MessageBuilder, Name};

/// What is asked of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
}

/// One question as it went out: what its answer must repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    pub(super) id: u16,
    /// As spelled in the message.
    pub(super) name: Name<Vec<u8>>,
    pub(super) kind: RecordKind,
}

/// The largest answer we ask for over UDP: it fits in one packet on every path in use (DNS flag day 2020).
pub const UDP_ANSWER_BYTES: u16 = 1_232;

impl RecordKind {
    pub(super) fn rtype(self) -> Rtype {
        match self {
            RecordKind::A => Rtype::A,
            RecordKind::Aaaa => Rtype::AAAA,
        }
    }
}

impl Question {
    /// Id and case are random numbers: what somebody who forges an answer has to guess.
    pub fn new(name: &HostName, kind: RecordKind, id: u16, case: u64) -> Question {
        Question { id, name: name.spelled(case), kind }
    }

    /// The message for a datagram. Servers that do not know EDNS are asked without.
    pub fn datagram(&self, edns: bool) -> Vec<u8> {
        self.compose(Vec::with_capacity(self.name.len() + 32), edns)
    }

    /// The message for a stream: its length in two bytes, then itself.
    pub fn framed(&self, edns: bool) -> Vec<u8> {
        let message = self.datagram(edns);
        let mut framed = Vec::with_capacity(2 + message.len());
        framed.extend_from_slice(&(message.len() as u16).to_be_bytes());
        framed.extend_from_slice(&message);
        framed
    }

    fn compose(&self, into: Vec<u8>, edns: bool) -> Vec<u8> {
        let mut message = MessageBuilder::from_target(into).expect("a vector grows");
        message.header_mut().set_id(self.id);
        message.header_mut().set_rd(true);
        let mut message = message.question();
        message.push((&self.name, self.kind.rtype())).expect("a vector grows");
        let mut message = message.additional();
        if edns {
            message
                .opt(|opt| {
                    opt.set_udp_payload_size(UDP_ANSWER_BYTES);
                    Ok(())
                })
                .expect("a vector grows");
        }
        message.finish()
    }
}
