use nephila::base::Transport;
use nephila::farm::{DNS_ANSWER_BYTES_MAX, FarmNames};
use nephila::proto::dns::{HostName, Question, RecordKind, Reply};

pub fn run(bytes: &[u8]) {
    let names = FarmNames::new(300);
    let Some(answer) = names.answer(bytes) else {
        // A whole question is answered whatever was asked before it.
        let question = Question::new(&HostName::parse("h7.farm.test").expect("a name"), RecordKind::A, 7, 0);
        let answer = names.answer(&question.datagram(true)).expect("an answer");
        assert!(matches!(question.read(&answer, Transport::Udp), Reply::Addresses { .. }));
        return;
    };
    assert!(bytes.len() >= 12 && bytes[2] & 0x80 == 0, "only a question is answered");
    assert!((12..=DNS_ANSWER_BYTES_MAX).contains(&answer.len()), "{} bytes", answer.len());
    // The same id, and an answer.
    assert_eq!(answer[..2], bytes[..2]);
    assert_eq!(answer[2] & 0x80, 0x80);
    assert_eq!(names.answer(&answer), None, "no answer is answered");
    // At most one record, with one address or none.
    assert_eq!(answer[4..6], [0, 1]);
    assert!(answer[6] == 0 && answer[7] <= 1);
}
