//! Tickets and beats: what is refused, and what fits.

use super::*;
use crate::limits::{TICKET_HOST_BYTES_MAX, TICKET_LINE_BYTES_MAX, TICKETS_PER_WORD_MAX};

fn refused(kind: FrameKind, body: &[u8]) -> String {
    words([&framed(kind, body)[..]]).1.unwrap_err().to_string()
}

#[test]
fn the_longest_tickets_fit_in_a_frame_and_more_are_refused() {
    let key = TicketKey::of_host(&"x".repeat(TICKET_HOST_BYTES_MAX)).unwrap();
    let line: Box<[u8]> = vec![7; TICKET_LINE_BYTES_MAX].into();
    let grant = Grant { key, ask: 1, for_us: 2, due_in_us: 3, slots: 4, pause_us: 5, line };
    let word = PeerWord::Grant(vec![grant; TICKETS_PER_WORD_MAX]);
    only_word(&written(&word), |read| assert_eq!(read, word)).unwrap();
    let wants = |count: u16| {
        [&count.to_le_bytes()[..], &[4, 192, 0, 2, 7, 1, 0, 0, 0, 0, 0, 0, 0, 1].repeat(501)].concat()
    };
    assert_eq!(refused(FrameKind::Want, &wants(501)), "WANT frame with more tickets than a word may have");
    assert_eq!(refused(FrameKind::Want, &wants(500)), "WANT frame with 14 bytes behind its last field");
    let line = [&[1, 0, 4, 192, 0, 2, 7][..], &[0; 17], &1_025u32.to_le_bytes(), &[0; 1_025]].concat();
    assert_eq!(refused(FrameKind::Back, &line), "BACK frame with a value over its bound");
}

#[test]
fn a_key_has_one_form() {
    let [plain, within] =
        ["192.0.2.7", "::ffff:192.0.2.7"].map(|ip| TicketKey::of_address(ip.parse().unwrap()));
    assert_eq!(plain, within);
    assert_eq!((plain.to_string(), plain.host()), ("192.0.2.7".to_string(), None));
    let host = TicketKey::of_host("a.example").unwrap();
    assert_eq!((host.to_string(), host.address()), ("a.example".to_string(), None));
    for no_host in ["", "A.example", "a b", "ü.example", &"x".repeat(TICKET_HOST_BYTES_MAX + 1)] {
        assert_eq!(TicketKey::of_host(no_host), None, "{no_host}");
    }
    let is = |key: &[u8], what: &str| {
        let body = [&[1, 0][..], key, &[0; 9]].concat();
        assert_eq!(refused(FrameKind::Want, &body), format!("WANT frame {what}"));
    };
    is(&[5, 1, 2, 3, 4], "with a ticket that this version does not know");
    is(&[6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7], "with an address that has another form");
    is(&[0, 0, 0], "with a host that is not in normal form");
    is(&[0, 1, 0, b'A'], "with a host that is not in normal form");
    is(&[0, 1, 0, 0xff], "with a host that is not in normal form");
}

#[test]
fn a_beat_has_one_after_it() {
    let body =
        |generation: u32, n: u64| [&[7, 0][..], &generation.to_le_bytes(), &n.to_le_bytes(), &[0]].concat();
    for (generation, n) in [(u32::MAX, 1), (1, u64::MAX)] {
        let said = refused(FrameKind::Beat, &body(generation, n));
        assert_eq!(said, "BEAT frame with a beat after which there is none");
    }
    assert_eq!(words([&framed(FrameKind::Beat, &body(1, 1))[..]]).1, Ok(0));
}
