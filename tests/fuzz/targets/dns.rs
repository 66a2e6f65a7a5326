use nephila::base::Transport;
use nephila::limits::ADDRESSES_PER_NAME_MAX;
use nephila::proto::dns::{HostName, Question, RecordKind, Reply, Unfit};

/// The corpus answers these: id 0x1234, `www.example.test`, in lower case.
fn question(kind: RecordKind) -> Question {
    Question::new(&HostName::parse("www.example.test").expect("a name"), kind, 0x1234, 0)
}

pub fn run(bytes: &[u8]) {
    for kind in [RecordKind::A, RecordKind::Aaaa] {
        let question = question(kind);
        let tcp = question.read(bytes, Transport::Tcp);
        let udp = question.read(bytes, Transport::Udp);
        // Only the spelling is held against a datagram and not against a stream.
        assert!(udp == tcp || udp == Reply::Unfit(Unfit::Spelling), "{udp:?}, {tcp:?}");
        let is_answer = bytes.len() >= 12 && bytes[..2] == [0x12, 0x34] && bytes[2] & 0x80 != 0;
        assert!(is_answer || udp == Reply::Stray);
        if let Reply::Addresses { addresses, .. } = &tcp {
            assert!(!addresses.is_empty() && addresses.len() <= ADDRESSES_PER_NAME_MAX);
            assert!(addresses.iter().all(|ip| ip.is_ipv6() == (kind == RecordKind::Aaaa)));
            assert!((1..addresses.len()).all(|at| !addresses[..at].contains(&addresses[at])), "each once");
        }
        if is_answer {
            let other_id = [&[0x12, 0x35], &bytes[2..]].concat();
            assert_eq!(question.read(&other_id, Transport::Udp), Reply::Stray);
        }
    }
}
