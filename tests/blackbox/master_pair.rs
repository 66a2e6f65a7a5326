//! The promise: two masters that nothing but a hash keeps together do not change their servers silently.

use crate::master_process::{config, start};
use crate::support::*;
use nix::sys::signal::Signal;

#[test]
fn the_servers_of_a_pair_without_a_database_do_not_change() {
    let dir = TempDir::new();
    let more = "assign = \"rendezvous\"\npeer = \"127.0.0.1:9\"\n";
    let one = "[[server]]\nid = 1\n[[server]]\nid = 2\n";
    let begun = start(&dir, &config(&dir, more, one));
    wait_for("it runs", PATIENCE, || begun.stderr().contains("listening on").then_some(()));
    begun.signal(Signal::SIGINT);
    begun.wait(PATIENCE);
    let refused = start(&dir, &config(&dir, more, "[[server]]\nid = 1\n[[server]]\nid = 3\n")).wait(PATIENCE);
    assert_ne!(refused.code(), 0);
    assert!(refused.stderr.contains("then: server 2 capacity 1 active"), "{}", refused.stderr);
    let again = start(&dir, &config(&dir, more, one));
    wait_for("it runs again", PATIENCE, || again.stderr().contains("listening on").then_some(()));
    again.signal(Signal::SIGINT);
    again.wait(PATIENCE);
}
