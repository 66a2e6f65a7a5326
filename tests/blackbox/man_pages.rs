//! The promise: every command and every topic of the manual has a manual page, and every shell of the list a script that
//! completes. Their own programs judge them: mandoc and groff the pages, each shell its script.

use crate::support::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

#[track_caller]
fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

/// What a program prints that must end well.
#[track_caller]
fn said(command: &mut Command) -> String {
    let ended = output(command);
    let (out, err) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{command:?}: {out}{err}");
    out.into_owned()
}

/// The names of all pages, as files.
fn all_pages(dir: &Path) -> BTreeSet<String> {
    run(["man", "--out", dir.to_str().unwrap()]).done();
    let files = std::fs::read_dir(dir).unwrap();
    files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
}

/// The commands that a help lists, each below the one that has it.
fn commands(words: &[&str], found: &mut BTreeSet<String>) {
    let help = run(words.iter().chain(&["--help"])).done().text();
    found.insert(["nephila"].iter().chain(words).copied().collect::<Vec<_>>().join("-") + ".1");
    let end = help.find("\nOptions:").unwrap_or(help.len());
    let listed = help[..end].lines().filter_map(|line| line.strip_prefix("  "));
    // What is more deeply indented goes on with the line before.
    for name in listed.filter(|line| !line.starts_with(' ') && line.contains("  ")) {
        let name = name.split_whitespace().next().unwrap();
        if name.chars().all(|c| c.is_ascii_lowercase() || c == '-') {
            commands(&[words, &[name]].concat(), found);
        }
    }
}

#[test]
fn every_command_and_every_topic_has_a_page() {
    let dir = TempDir::new();
    let pages = all_pages(dir.path());
    let mut expected = BTreeSet::new();
    commands(&[], &mut expected);
    assert!(expected.contains("nephila-store-ls.1") && expected.contains("nephila-man.1"), "{expected:?}");
    let manual = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/manual")).unwrap();
    for page in manual {
        let page = page.unwrap().file_name().into_string().unwrap();
        expected.insert(format!("nephila-{}.7", page.strip_suffix(".md").unwrap()));
    }
    assert_eq!(pages, expected);
    // One page alone is the one that is written with all.
    for (typed, page) in [
        (&["man"][..], "nephila.1"),
        (&["man", "crawl"], "nephila-crawl.1"),
        (&["man", "store", "ls"], "nephila-store-ls.1"),
        (&["man", "store"], "nephila-store.1"),
        (&["man", "7", "store"], "nephila-store.7"),
        (&["man", "politeness"], "nephila-politeness.7"),
    ] {
        let written = std::fs::read_to_string(dir.join(page)).unwrap();
        assert_eq!(run(typed).done().text(), written, "{typed:?}");
    }
}

#[test]
fn no_page_has_a_fault_that_mandoc_or_groff_sees() {
    let dir = TempDir::new();
    let pages = all_pages(dir.path());
    // A page has no date: it is made from the program, at any time. Where a list of values ends, the lines of the library
    // ask for room twice.
    let known = ["missing date", "skipping paragraph macro: br"];
    let lint =
        output(Command::new("mandoc").args(["-Tlint", "-Wwarning"]).args(&pages).current_dir(dir.path()));
    let lint = String::from_utf8_lossy(&lint.stdout).into_owned();
    let faults: Vec<&str> =
        lint.lines().filter(|line| !known.iter().any(|known| line.contains(known))).collect();
    assert!(lint.contains("missing date") && faults.is_empty(), "{faults:#?}");
    for page in &pages {
        let mut groff = Command::new("groff");
        groff.args(["-man", "-Tutf8", "-ww", "-b", "-z", page]).current_dir(dir.path());
        let ended = output(&mut groff);
        let faults = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success() && faults.is_empty(), "{page}: {faults}");
    }
}

/// What a reader of the page sees, without room that differs.
fn read(dir: &Path, page: &str) -> String {
    let text = said(
        Command::new("mandoc")
            .args(["-Tutf8", "-Owidth=100", page])
            .env("LC_ALL", "C.UTF-8")
            .current_dir(dir),
    );
    // A sign, a step back and the same sign again is how a printer makes it bold.
    let mut plain: Vec<char> = Vec::new();
    for c in text.chars() {
        match c {
            '\u{8}' => drop(plain.pop()),
            c => plain.push(c),
        }
    }
    plain.into_iter().collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is written in the manual arrives at the reader, sign for sign.
#[test]
fn a_page_reads_as_the_manual_does() {
    let dir = TempDir::new();
    all_pages(dir.path());
    for topic in ["crawling", "protocols", "settings"] {
        let page = read(dir.path(), &format!("nephila-{topic}.7"));
        let manual = run(["help", topic]).done().text();
        let mut count = 0;
        for code in manual.lines().filter_map(|line| line.strip_prefix("    ")) {
            let code = code.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(page.contains(&code), "{topic}: {code}");
            count += 1;
        }
        for heading in manual.lines().filter_map(|line| line.strip_prefix("## ")) {
            assert!(page.contains(&heading.replace('`', "")), "{topic}: {heading}");
        }
        assert!(count > 10, "{topic}: {count}");
    }
    let page = read(dir.path(), "nephila-crawl.1");
    for flag in ["--req-host-per-sec", "--allow-net", "nephila crawl [OPTIONS] [URL]", "EXAMPLES"] {
        assert!(page.contains(flag), "{flag}: {page}");
    }
}

#[test]
fn what_has_no_page_is_said_so() {
    // A page is found by the name that it has, too.
    for (name, words) in [
        ("nephila-store-ls", &["store", "ls"][..]),
        ("nephila-first-crawl", &["first-crawl"]),
        ("nephila", &[]),
    ] {
        let by_words = run(["man"].iter().chain(words)).done().text();
        assert_eq!(run(["man", name]).done().text(), by_words, "{name}");
    }
    for (typed, hint) in [
        (&["man", "crawll"][..], "did you mean crawl?"),
        (&["man", "store", "lss"], "no command is called store lss"),
        (&["man", "1", "politeness"], "politeness"),
        (&["man", "crawl", "--out", "x"], "cannot be used with"),
    ] {
        let ended = run(typed);
        assert_eq!((ended.code(), ended.text()), (2, String::new()), "{typed:?}");
        assert!(ended.stderr.contains(hint) && ended.stderr.lines().count() == 1, "{}", ended.stderr);
    }
    let ended = run(["man", "--out", "/proc/none"]);
    assert!(ended.code() == 3 && ended.stderr.contains("/proc/none"), "{}", ended.stderr);
}

#[test]
fn each_shell_takes_its_script_and_completes_by_it() {
    let dir = TempDir::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = run(["completions", shell]).done().text();
        let file = dir.join(shell);
        std::fs::write(&file, script).unwrap();
        said(Command::new(shell).arg("-n").arg(&file));
    }
    // As a session has it: the loader of bash-completion finds the script by the name of the command.
    let completions = dir.join("bash-completion/completions");
    std::fs::create_dir_all(&completions).unwrap();
    std::fs::copy(dir.join("bash"), completions.join("nephila")).unwrap();
    let complete = "
        . /usr/share/bash-completion/bash_completion
        _completion_loader nephila
        COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1))
        $(complete -p nephila | sed 's/.* -F \\([^ ]*\\) .*/\\1/') nephila \"${@: -1}\" \"${@: -2:1}\"
        printf '%s\\n' \"${COMPREPLY[@]}\"";
    let by_bash = |words: &[&str]| {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", complete, "bash"]).args(words).env("XDG_DATA_HOME", dir.path());
        said(&mut bash)
    };
    assert_eq!(
        by_bash(&["nephila", "stor"]).split_whitespace().collect::<Vec<_>>(),
        ["store", "stories", "storeserver"]
    );
    assert_eq!(by_bash(&["nephila", "store", "ver"]).trim(), "verify");
    assert_eq!(by_bash(&["nephila", "crawl", "--scope", ""]).split_whitespace().count(), 4);
    let by_fish = |line: &str| {
        let load = format!("source {}; complete -C '{line}'", dir.join("fish").display());
        said(Command::new("fish").args(["--no-config", "-c", &load]).env("HOME", dir.path()))
    };
    let listed = by_fish("nephila stor");
    assert!(listed.starts_with("store\t") && listed.contains("\nstoreserver\t"), "{listed}");
    assert!(by_fish("nephila crawl --req-host-p").starts_with("--req-host-per-sec"));
    // Zsh has the same words by its own function.
    let script = std::fs::read_to_string(dir.join("zsh")).unwrap();
    assert!(script.starts_with("#compdef nephila") && script.contains("--req-host-per-sec"));
}
