use super::AskedNode;
use crate::base::{counted, shown};
use crate::commands::shared::{DataArg, Failure, tell};
use crate::engine::{ClusterView, CopyPart, CopyView, LeavingView, NodeTold, NodeView};
use crate::limits::PARTITIONS;
use clap::Args;
use serde::Serialize;

/// Show the nodes of a cluster as one of them sees them; exit 1 if something is short of its promise
#[derive(Args)]
#[command(
    after_help = "Examples:\n  nephila cluster status --data ./n1\n  nephila cluster status --data ./n1 --json\n\nExit status 0: every node is linked, every partition has an owner, and every node may ask its hosts; 1: not so, and\na line says what is short; 3: no node runs there.\n\nWhat a node told of itself is of a second ago. ready may be one or two seconds behind: nephila cluster wait is not."
)]
pub struct StatusArgs {
    #[command(flatten)]
    data: DataArg,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Found {
    running: bool,
    data: String,
    #[serde(flatten)]
    view: ClusterView,
    /// What is less than was promised.
    short: Vec<String>,
}

impl StatusArgs {
    pub fn run(self) -> Result<(), Failure> {
        let data = &self.data.path;
        let view = AskedNode::at(data)?.cluster()?;
        let short = short_of(&view);
        let found = Found { running: true, data: data.display().to_string(), view, short };
        tell(&found, self.json, Found::text)?;
        match found.short.is_empty() {
            true => Ok(()),
            false => Err(Failure::No(found.short.join("; "))),
        }
    }
}

/// What of a cluster is less than was promised, in words.
fn short_of(view: &ClusterView) -> Vec<String> {
    let mut short = Vec::new();
    let away = view.council.as_ref().filter(|council| !council.fault.is_empty());
    if let Some(council) = away {
        short.push(format!(
            "{} does not answer: {} (start it, or name where it is with --council)",
            shown(&council.kind, 40),
            shown(&council.fault, 400)
        ));
    }
    if view.epoch == 0 && !short.is_empty() {
        return short;
    }
    if view.epoch == 0 {
        return vec![
            "this node is not taken in by a cluster yet (the nodes named by --join must run)".to_string(),
        ];
    }
    let of = |node: &NodeView| format!("node {} at {}", node.number, shown(&node.address, 200));
    for node in view.members().filter(|node| !node.linked) {
        let number = node.number;
        let (until, mend) = match view.mode.as_str() {
            "frozen" => ("it is back", String::new()),
            _ if node.never_beat && node.partitions > 0 => (
                "it is back, as it was lost before the voters knew of its right",
                format!("; if it is gone for good, say so with nephila cluster forget {number}"),
            ),
            _ => ("it is back or taken over", String::new()),
        };
        short.push(format!(
            "{} is not linked: the hosts of its partitions wait until {until} (start it there with nephila node{mend})",
            of(node)
        ));
    }
    let is_fenced = |node: &&NodeView| node.told.as_ref().is_some_and(|told| told.state == "fenced");
    for node in view.members().filter(|node| node.linked).filter(is_fenced) {
        short.push(format!(
            "{} asks no hosts, as its right has ended (it goes on when it reaches {})",
            of(node),
            voters(view)
        ));
    }
    if let Some(what) = view.copy.as_ref().and_then(on_one_disk) {
        let follower = view.copy.as_ref().map_or(0, |copy| copy.node);
        short.push(format!(
            "{what} on the disk of node {} alone: node {follower} does not have all of it yet (it has to run and to be linked, and to have room)",
            view.node
        ));
    }
    let waits = view.leaving.as_ref().filter(|leaving| !leaving.has_left && leaving.waited_ms > LEAVE_MS);
    if let Some(LeavingView { waits_for, waited_ms, .. }) = waits.filter(|waits| !waits.waits_for.is_empty())
    {
        short.push(format!(
            "node {} has waited to leave for {} s, as {} did not say that all it has is on two disks (see its nephila cluster status)",
            view.node,
            waited_ms / 1_000,
            nodes(waits_for)
        ));
    }
    let owned: u64 = view.nodes.iter().map(|node| node.partitions).sum();
    let nobodys = (PARTITIONS as u64).saturating_sub(owned);
    if nobodys > 0 {
        let are = if nobodys == 1 { "is" } else { "are" };
        short.push(format!("{} {are} nobody's, and their URLs wait", counted(nobodys, "partition")));
    }
    short
}

/// What of a node its follower has not got for too long, and whether that is one thing or several.
fn on_one_disk(copy: &CopyView) -> Option<String> {
    let is_late = |part: &CopyPart| !part.in_step && part.behind_ms > COPY_MS;
    let told = |part: &CopyPart, since: &str, all: &str| {
        let behind_s = part.behind_ms / 1_000;
        is_late(part).then(|| if part.was_whole { format!("{since} {behind_s} s") } else { all.to_string() })
    };
    let knowledge = told(&copy.knowledge, "what it has learned for", "what it knows");
    match (knowledge, told(&copy.pages, "pages of the last", "its pages")) {
        (None, None) => None,
        (Some(knowledge), None) => Some(format!("{knowledge} is")),
        (None, Some(pages)) => Some(format!("{pages} are")),
        (Some(knowledge), Some(pages)) => Some(format!("{knowledge}, and {pages}, are")),
    }
}

fn voters(view: &ClusterView) -> String {
    let voters: Vec<String> = view.voters.iter().map(ToString::to_string).collect();
    match voters.len() {
        0 => "the etcd that keeps the table".to_string(),
        1 => format!("node {}, which keeps the table", voters[0]),
        _ => format!("a majority of the voters {}", voters.join(", ")),
    }
}

impl Found {
    fn text(&self) -> String {
        let ClusterView { cluster, node, epoch, spread, mode, ready, moving, .. } = &self.view;
        let seen_by = match node {
            0 => "a node without a number".to_string(),
            node => format!("node {node}"),
        };
        let mut text = format!("cluster {} as {seen_by} sees it", shown(cluster, 64));
        if *epoch == 0 {
            return text + ": no table yet\n" + &council(&self.view);
        }
        let ready = match ready {
            true => "ready: all is done everywhere, and all that was sent is counted",
            false => "not ready",
        };
        text += &format!(": epoch {epoch}, {}, spread by {spread}; {ready}\n", mode_text(mode, &self.view));
        text += &council(&self.view);
        if *moving > 0 {
            let are = if *moving == 1 { "is" } else { "are" };
            text += &format!("{} {are} on the way to another node\n", counted(*moving, "partition"));
        }
        if self.view.frozen {
            text += "the table is frozen by an operator: nobody is taken over, and who joins gets nothing (nephila cluster thaw)\n";
        }
        text += &table(&self.view);
        text += &copies(&self.view);
        text += &leaving(&self.view);
        text
    }
}

/// Where else it is known what this node knows.
fn copies(view: &ClusterView) -> String {
    let mut text = match &view.copy {
        Some(copy) if copy.in_step => {
            format!("what node {} has is on the disk of node {}, too\n", view.node, copy.node)
        }
        Some(copy) => {
            let told = |part: &CopyPart, what: &str| match part {
                CopyPart { in_step: true, .. } => format!("{what} in step"),
                CopyPart { was_whole: true, behind_ms, .. } => {
                    format!("{what} {} s behind", behind_ms / 1_000)
                }
                _ => format!("{what} being made"),
            };
            let (knowledge, pages) = (told(&copy.knowledge, "knowledge"), told(&copy.pages, "pages"));
            format!("the copy of node {} at node {}: {knowledge}, {pages}\n", view.node, copy.node)
        }
        None => String::new(),
    };
    if view.takes_in != 0 {
        text += &format!("node {} takes over what node {} knew\n", view.node, view.takes_in);
    }
    text
}

/// Nodes that have handed over everything, and are still there.
fn leaving(view: &ClusterView) -> String {
    let mut text = String::new();
    for node in view.members().filter(|node| node.is_about_to_leave(&view.voters)) {
        let of_itself = view.leaving.as_ref().filter(|_| node.number == view.node);
        let waits_for = of_itself.filter(|leaving| !leaving.waits_for.is_empty());
        let waits_for = waits_for
            .map_or(String::new(), |leaving| format!("; it waits for {}", nodes(&leaving.waits_for)));
        text += &format!(
            "node {} has handed over everything, and leaves once all of it is on two other disks{waits_for}\n",
            node.number
        );
    }
    text
}

fn nodes(numbers: &[u16]) -> String {
    let all: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    format!("node{} {}", if all.len() == 1 { "" } else { "s" }, all.join(", "))
}

/// How the council does, if it is outside of the nodes.
fn council(view: &ClusterView) -> String {
    let Some(council) = &view.council else { return String::new() };
    let endpoints = counted(council.endpoints.len() as u64, "endpoint");
    let answered = council.answered_ms.map(|ms| format!("answered {:.1} s ago", ms as f64 / 1_000.0));
    let answered = answered.unwrap_or_else(|| "not asked yet".to_string());
    let answered = if council.fault.is_empty() { answered } else { "does not answer".to_string() };
    format!("council {}, {endpoints}, {answered}\n", shown(&council.kind, 40))
}

fn mode_text(mode: &str, view: &ClusterView) -> String {
    match mode {
        "frozen" => format!("frozen (node {} keeps the table)", view.voters.first().copied().unwrap_or(0)),
        "etcd" => "council in etcd".to_string(),
        mode => format!("{mode} of {}", counted(view.voters.len() as u64, "voter")),
    }
}

/// A copy may be behind for so long before that is less than was promised.
const COPY_MS: u64 = 5_000;
/// So may a node that waits for the copies of others.
const LEAVE_MS: u64 = 60_000;

const HEADS: [&str; 10] =
    ["node", "address", "state", "linked", "partitions", "pending", "open", "pages", "outbox", "right left"];

fn table(view: &ClusterView) -> String {
    let mut rows = vec![HEADS.map(str::to_string)];
    rows.extend(view.members().map(|node| row(node, view.node)));
    let widths: Vec<usize> = (0..HEADS.len())
        .map(|at| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, &width))| match at {
            // Words to the left, figures to the right.
            1..=3 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

fn row(node: &NodeView, here: u16) -> [String; 10] {
    let told = node.told.as_ref();
    let figure = |of: fn(&NodeTold) -> u64| told.map_or("?".to_string(), |told| of(told).to_string());
    let linked = match (node.number == here, node.linked) {
        (true, _) => "here",
        (false, true) => "yes",
        (false, false) => "no",
    };
    let state = match (node.membership.as_str(), told) {
        ("member", told) => told.map_or("?".to_string(), |told| shown(&told.state, 40)),
        (membership, _) => shown(membership, 40),
    };
    [
        node.number.to_string(),
        shown(&node.address, 200),
        state,
        linked.to_string(),
        node.partitions.to_string(),
        figure(|told| told.pending),
        figure(|told| told.open),
        figure(|told| told.pages),
        figure(|told| told.outbox),
        told.map_or("?".to_string(), |told| match told.right_left_ms {
            // Where one node keeps the table, rights do not end.
            u32::MAX => "no end".to_string(),
            left_ms => format!("{} s", left_ms / 1_000),
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: u16, linked: bool, state: &str) -> NodeView {
        let told = linked.then(|| NodeTold { state: state.to_string(), ..NodeTold::default() });
        NodeView {
            number,
            address: format!("10.0.0.{number}:7174"),
            membership: "member".to_string(),
            linked,
            partitions: 2_048,
            told,
            ..NodeView::default()
        }
    }

    fn view(nodes: Vec<NodeView>) -> ClusterView {
        let (mode, spread) = ("frozen".to_string(), "domain".to_string());
        ClusterView { node: 1, epoch: 4, mode, spread, voters: vec![1], nodes, ..ClusterView::default() }
    }

    #[test]
    fn what_is_short_is_said() {
        let whole = view(vec![node(1, true, "crawling"), node(2, true, "crawling")]);
        assert_eq!(short_of(&whole), Vec::<String>::new());
        let one_gone = view(vec![node(1, true, "crawling"), node(2, false, "")]);
        let short = short_of(&one_gone);
        assert_eq!(short.len(), 1, "{short:?}");
        assert!(short[0].starts_with("node 2 at 10.0.0.2:7174 is not linked"), "{short:?}");
        let mut unborn = one_gone.clone();
        (unborn.mode, unborn.voters) = ("council".to_string(), vec![1, 3, 4]);
        assert!(short_of(&unborn)[0].contains("back or taken over"), "{:?}", short_of(&unborn));
        unborn.nodes[1].never_beat = true;
        assert!(short_of(&unborn)[0].ends_with("with nephila cluster forget 2)"), "{:?}", short_of(&unborn));
        let fenced = view(vec![node(1, true, "crawling"), node(2, true, "fenced")]);
        assert!(short_of(&fenced)[0].contains("its right has ended"), "{:?}", short_of(&fenced));
        let alone = view(vec![node(1, true, "crawling")]);
        assert_eq!(short_of(&alone), ["2048 partitions are nobody's, and their URLs wait"]);
        assert!(short_of(&ClusterView::default())[0].contains("not taken in"));
        // Who has left owes nothing.
        let mut left = node(2, false, "");
        (left.membership, left.partitions) = ("left".to_string(), 0);
        let mut first = node(1, true, "crawling");
        first.partitions = 4_096;
        let mut whole = view(vec![first, left]);
        assert_eq!(short_of(&whole), Vec::<String>::new());
        let part =
            |was_whole, behind_ms| CopyPart { was_whole, in_step: was_whole && behind_ms < 5_000, behind_ms };
        let set = |view: &mut ClusterView, knowledge: CopyPart, pages: CopyPart| {
            let in_step = knowledge.in_step && pages.in_step;
            view.copy = Some(CopyView { node: 2, in_step, knowledge, pages, bytes: 0 });
        };
        set(&mut whole, part(false, 61_000), part(false, 61_000));
        assert!(
            short_of(&whole)[0]
                .starts_with("what it knows, and its pages, are on the disk of node 1 alone: node 2 "),
            "{:?}",
            short_of(&whole)
        );
        assert_eq!(copies(&whole), "the copy of node 1 at node 2: knowledge being made, pages being made\n");
        set(&mut whole, part(true, 61_000), part(true, 900));
        assert!(short_of(&whole)[0].starts_with("what it has learned for 61 s is on the disk"));
        assert_eq!(copies(&whole), "the copy of node 1 at node 2: knowledge 61 s behind, pages in step\n");
        set(&mut whole, part(true, 900), part(true, 61_000));
        assert!(short_of(&whole)[0].starts_with("pages of the last 61 s are on the disk"));
        assert_eq!(copies(&whole), "the copy of node 1 at node 2: knowledge in step, pages 61 s behind\n");
        set(&mut whole, part(true, 900), part(false, 2_000));
        assert_eq!(short_of(&whole), Vec::<String>::new(), "it has only begun");
        set(&mut whole, part(true, 900), part(true, 0));
        whole.takes_in = 3;
        assert_eq!(short_of(&whole), Vec::<String>::new());
        let both = "what node 1 has is on the disk of node 2, too\nnode 1 takes over what node 3 knew\n";
        assert_eq!(copies(&whole), both);
    }

    #[test]
    fn who_waits_to_leave_says_for_whom() {
        let mut gone = node(2, true, "crawling");
        (gone.membership, gone.partitions) = ("draining".to_string(), 0);
        let mut first = node(1, true, "crawling");
        first.partitions = 4_096;
        let mut view = view(vec![first, gone]);
        let about = "node 2 has handed over everything, and leaves once all of it is on two other disks";
        assert_eq!(leaving(&view), format!("{about}\n"), "as another one sees it");
        view.node = 2;
        let waits = LeavingView { waits_for: vec![1, 3], waited_ms: 59_000, ..LeavingView::default() };
        view.leaving = Some(waits.clone());
        assert_eq!(leaving(&view), format!("{about}; it waits for nodes 1, 3\n"));
        assert_eq!(short_of(&view), Vec::<String>::new());
        view.leaving = Some(LeavingView { waited_ms: 61_000, waits_for: vec![3], ..waits.clone() });
        let short = short_of(&view);
        assert!(
            short.len() == 1
                && short[0].starts_with("node 2 has waited to leave for 61 s, as node 3 did not"),
            "{short:?}"
        );
        view.leaving = Some(LeavingView { waited_ms: 61_000, waits_for: Vec::new(), ..waits });
        assert_eq!(short_of(&view), Vec::<String>::new(), "only the table is not changed yet");
        view.voters = vec![1, 2, 3];
        assert_eq!(leaving(&view), "", "a voter stays");
    }

    #[test]
    fn a_council_outside_is_told_and_missed() {
        let (mut first, mut view) = (node(1, true, "crawling"), view(Vec::new()));
        first.partitions = 4_096;
        (view.mode, view.voters, view.nodes) = ("etcd".to_string(), Vec::new(), vec![first]);
        let council = view.council.get_or_insert_default();
        council.kind = "etcd".to_string();
        council.endpoints = ["a:2379", "b:2379", "c:2379"].map(str::to_string).to_vec();
        assert_eq!(super::council(&view), "council etcd, 3 endpoints, not asked yet\n");
        view.council.as_mut().unwrap().answered_ms = Some(412);
        assert_eq!(super::council(&view), "council etcd, 3 endpoints, answered 0.4 s ago\n");
        assert_eq!(short_of(&view), Vec::<String>::new());
        assert_eq!(mode_text("etcd", &view), "council in etcd");
        view.council.as_mut().unwrap().fault = "a:2379: no answer within 2 s\u{7}".to_string();
        assert_eq!(super::council(&view), "council etcd, 3 endpoints, does not answer\n");
        let short = short_of(&view);
        assert!(
            short.len() == 1 && short[0].starts_with("etcd does not answer: a:2379: no answer within 2 s")
        );
        assert!(!short[0].contains('\u{7}') && short[0].contains("--council"), "{short:?}");
        view.epoch = 0;
        assert_eq!(short_of(&view), short, "without an answer there is no table, either");
        let fenced = NodeView { told: node(1, true, "fenced").told, ..view.nodes[0].clone() };
        (view.epoch, view.nodes, view.council) = (4, vec![fenced], None);
        assert!(short_of(&view)[0].contains("when it reaches the etcd that keeps the table"));
    }

    #[test]
    fn the_table_stands_in_columns() {
        let view = view(vec![node(1, true, "crawling"), node(12, false, "")]);
        let text = table(&view);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(
            lines[1],
            "   1  10.0.0.1:7174   crawling  here          2048        0     0      0       0         0 s"
        );
        assert!(lines[2].starts_with("  12  10.0.0.12:7174  ?         no "), "{text}");
        let told = NodeTold { right_left_ms: u32::MAX, ..NodeTold::default() };
        let frozen = NodeView { told: Some(told), ..node(1, true, "crawling") };
        assert_eq!(row(&frozen, 1)[9], "no end");
    }
}
