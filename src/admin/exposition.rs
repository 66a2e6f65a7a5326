use super::office::Office;
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// What the listener knows of itself.
pub fn exposition(office: &Office, is_open: bool) -> String {
    let mut text = String::new();
    let counted = if is_open { "nephila_admin_requests" } else { "nephila_admin_requests_total" };
    let _ = writeln!(text, "# HELP {counted} Requests to the listener.\n# TYPE {counted} counter");
    for (handler, class, count) in office.traffic.requests() {
        let _ = writeln!(
            text,
            "nephila_admin_requests_total{{handler=\"{handler}\",class=\"{class}\"}} {count}"
        );
    }
    let connections = office.traffic.connections.load(Ordering::Relaxed);
    let _ = writeln!(
        text,
        "# HELP nephila_admin_connections Connections to the listener.\n# TYPE nephila_admin_connections gauge\nnephila_admin_connections {connections}"
    );
    if is_open {
        text += "# EOF\n";
    }
    text
}
