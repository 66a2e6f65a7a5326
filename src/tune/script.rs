use super::knob::Status;
use super::report::Finding;
use super::{Change, Plan};

/// Everything that is wanted and not there, as a shell script to be read and run; or the way back from it.
pub(crate) fn script(findings: &[Finding], revert: bool) -> String {
    let plan = Plan::of(findings);
    let what = match revert {
        false => "Sets what a crawl node wants of this machine and what it lacks",
        true => "Brings back what this machine has now, once the other script has changed it",
    };
    let mut text = format!(
        "#!/bin/sh\n# {what}, as nephila tune script found it.\n\
         # Read it, then run it as root. It holds until the next boot.\nset -eu\n\n\
         put() {{\n    printf '%s: %s\\n' \"$1\" \"$2\"\n    printf '%s\\n' \"$2\" > \"$1\"\n}}\n"
    );
    let changes: Vec<&(&str, Change)> = match revert {
        false => plan.changes().iter().collect(),
        true => plan.changes().iter().rev().collect(),
    };
    let mut last = "";
    for (name, change) in changes {
        if last != *name {
            let finding = findings.iter().find(|finding| finding.name == *name);
            let about =
                finding.map_or(String::new(), |found| format!(": {}, wanted {}", found.now, found.wanted));
            text += &format!("\n# {}\n", plain(&format!("{name}{about}")));
            last = name;
        }
        let (path, value) = if revert { change.way_back() } else { (&*change.path, &*change.to) };
        text += &put(path, value);
    }
    if plan.is_empty() {
        text += "\n# Nothing is to be changed while the machine runs.\n";
    }
    if revert {
        return text;
    }
    text += &by_hand(findings);
    text += &persistent(&plan);
    if !plan.is_empty() {
        text += "\n# The way back (nephila tune script --revert prints it as a script of its own):\n";
        for (_, change) in plan.changes().iter().rev() {
            let (path, value) = change.way_back();
            text += &format!("# {}", put(path, value));
        }
    }
    text
}

fn put(path: &str, value: &str) -> String {
    format!("put {} {}\n", quoted(&format!("/{path}")), quoted(value))
}

/// What no write to a file mends.
fn by_hand(findings: &[Finding]) -> String {
    let wrong = findings.iter().filter(|finding| {
        matches!(finding.status, Status::Slower | Status::Stops) && finding.changes().is_empty()
    });
    let lines: String =
        wrong.map(|found| format!("#   {}\n", plain(&format!("{}: {}", found.name, found.mend)))).collect();
    if lines.is_empty() {
        lines
    } else {
        format!("\n# By hand (nephila tune explain NAME tells more):\n{lines}")
    }
}

/// Sysctls that a file of its own keeps over a boot. In /etc a file hides that of the package if it has its name, and
/// here stands only what is lacking.
fn persistent(plan: &Plan) -> String {
    let sysctls = plan.changes().iter().filter_map(|(_, change)| {
        let name = change.path.strip_prefix("proc/sys/")?.replace('/', ".");
        Some(format!("#   {name} = {}\n", plain(&change.to)))
    });
    let lines: String = sysctls.collect();
    match lines.is_empty() {
        true => lines,
        false => {
            format!("\n# To keep the sysctls over a boot, in /etc/sysctl.d/91-nephila-local.conf:\n{lines}")
        }
    }
}

/// A word for the shell, whatever is in it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A comment ends with its line.
fn plain(text: &str) -> String {
    crate::base::shown(text, 300)
}
