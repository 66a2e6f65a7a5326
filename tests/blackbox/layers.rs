//! The promise: imports go down only, roles know nothing of each other, of drivers, clocks or sockets, and unsafe
//! code has two addresses.
//!
//! ```text
//!   5  commands, main
//!   4  engine  farm  sim  archive   (sim may use engine and farm)
//!   3  url_server  spider  handler  store_server  doc_index  audit  resolver
//!      config                       (reads the enums of roles and protocols by name; none of them knows it)
//!   2  driver  rings  storage
//!   1  proto
//!   0  base  limits                 (these may use each other)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const LAYERS: [(u8, &[&str]); 7] = [
    (0, &["base", "limits"]),
    (1, &["proto"]),
    (2, &["driver", "rings", "storage"]),
    (3, ROLES),
    (3, &["config"]),
    (4, &["engine", "farm", "sim", "archive"]),
    (5, &["commands", "main"]),
];

const ROLES: &[&str] = &["url_server", "spider", "handler", "store_server", "doc_index", "audit", "resolver"];

const UNSAFE_HOMES: [&str; 2] = ["driver/uring", "store_server/mmap"];

fn layer(module: &str) -> u8 {
    LAYERS
        .iter()
        .find(|(_, modules)| modules.contains(&module))
        .unwrap_or_else(|| panic!("{module} has no layer: give it one here"))
        .0
}

fn may_import(from: &str, to: &str) -> bool {
    let (upper, lower) = (layer(from), layer(to));
    let wants_mechanism = upper == 3 && ["driver", "rings"].contains(&to);
    let sim_uses = from == "sim" && ["engine", "farm"].contains(&to);
    let config_reads = from == "config" && ROLES.contains(&to);
    let among_equals = upper == lower && (upper == 0 || sim_uses || config_reads || upper == 5);
    from == to || (upper > lower && !wants_mechanism) || among_equals
}

/// A source file: its place below `src`, its module path, its text without comments, strings and tests.
struct Source {
    place: String,
    path: Vec<String>,
    code: String,
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    let test_files = test_files(&found);
    found.retain(|path| !test_files.contains(path));
    found.iter().map(|path| source(&root, path)).collect()
}

fn source(root: &Path, path: &Path) -> Source {
    let place = path.strip_prefix(root).unwrap();
    let mut module: Vec<String> = place
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_str().unwrap().to_string())
        .collect();
    if module.last().is_some_and(|last| last == "mod") {
        module.pop();
    }
    let code = bare_code(&std::fs::read_to_string(path).unwrap());
    let place = place.to_str().unwrap().to_string();
    Source { code: without_tests(&code), path: module, place }
}

/// Files that are compiled for tests only: `#[cfg(test)] mod name;`.
fn test_files(all: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut tests = BTreeSet::new();
    for path in all {
        let text = bare_code(&std::fs::read_to_string(path).unwrap());
        for after in text.split("#[cfg(test)]").skip(1) {
            let Some(name) = after.trim_start().strip_prefix("mod ").and_then(|rest| {
                let (name, _) = rest.split_once(';')?;
                (!name.contains('{')).then(|| name.trim().to_string())
            }) else {
                continue;
            };
            let folder = if path.file_name().unwrap() == "mod.rs" {
                path.parent().unwrap().to_path_buf()
            } else {
                path.with_extension("")
            };
            tests.insert(folder.join(format!("{name}.rs")));
        }
    }
    tests
}

/// The text with comments, strings and character literals blanked out.
fn bare_code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skip = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else if let Some(hashes) = raw_string(rest) {
            let close = format!("\"{}", "#".repeat(hashes));
            let open = rest.find('"').unwrap() + 1;
            rest[open..].find(&close).map_or(rest.len(), |at| open + at + close.len())
        } else if c == '"' {
            string_end(rest, '"')
        } else if c == '\'' && is_char_literal(rest) {
            string_end(rest, '\'')
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        };
        out.push(' ');
        rest = &rest[skip..];
    }
    out
}

/// `r"`, `r#"`, `br##"`: the number of hashes.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("br").or_else(|| rest.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    after[hashes..].starts_with('"').then_some(hashes)
}

fn string_end(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// A character, not a lifetime.
fn is_char_literal(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    matches!((chars.next(), chars.next()), (Some('\\'), _) | (Some(_), Some('\'')))
}

/// Without `#[cfg(test)] mod … { … }`.
fn without_tests(code: &str) -> String {
    let mut out = String::new();
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        out.push_str(&rest[..at]);
        rest = &rest[at + "#[cfg(test)]".len()..];
        let (brace, semicolon) = (rest.find('{'), rest.find(';'));
        if brace.is_some() && (semicolon.is_none() || brace < semicolon) {
            let mut depth = 0;
            let end = rest.char_indices().find(|(_, c)| {
                depth += i32::from(*c == '{') - i32::from(*c == '}');
                *c == '}' && depth == 0
            });
            rest = end.map_or("", |(at, _)| &rest[at + 1..]);
        }
    }
    out + rest
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Where a word stands by itself.
fn word_at<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        !code[..at].chars().next_back().is_some_and(is_word)
            && !code[at + word.len()..].chars().next().is_some_and(is_word)
    })
}

/// The first names after a path's `::`, through one level of braces.
fn heads(after: &str) -> Vec<String> {
    let after = after.trim_start();
    let Some(group) = after.strip_prefix('{') else {
        return vec![after.chars().take_while(|&c| is_word(c)).collect()];
    };
    let mut depth = 1;
    let mut heads = vec![String::new()];
    let mut in_head = true;
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => {
                heads.push(String::new());
                in_head = true;
                continue;
            }
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if is_word(c) && in_head {
            heads.last_mut().unwrap().push(c);
        } else if !c.is_whitespace() {
            in_head = false;
        }
    }
    heads
}

/// Top modules that a file names, by `crate::`, by our own name, or by `super::` up to the root.
fn imports(source: &Source) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for root in ["crate", "nephila"] {
        for at in word_at(&source.code, root) {
            if let Some(after) = source.code[at + root.len()..].trim_start().strip_prefix("::") {
                found.extend(heads(after));
            }
        }
    }
    let to_root = "super::".repeat(source.path.len());
    for (at, _) in source.code.match_indices(&to_root) {
        let before = &source.code[..at];
        if !before.ends_with("::") && !before.chars().next_back().is_some_and(is_word) {
            found.extend(heads(&source.code[at + to_root.len()..]));
        }
    }
    found.retain(|name| LAYERS.iter().any(|(_, modules)| modules.contains(&name.as_str())));
    found
}

#[test]
fn imports_go_down_only() {
    let mut map: BTreeMap<String, BTreeMap<String, Vec<String>>> = BTreeMap::new();
    for source in sources() {
        let from = source.path[0].clone();
        if from == "lib" {
            continue;
        }
        for to in imports(&source) {
            if to != from {
                map.entry(from.clone()).or_default().entry(to).or_default().push(source.place.clone());
            }
        }
    }
    let mut drawn = String::new();
    let mut wrong = String::new();
    for (from, targets) in &map {
        let names: Vec<&str> = targets.keys().map(String::as_str).collect();
        let _ = writeln!(drawn, "  {} {from:<13} → {}", layer(from), names.join(" "));
        for (to, places) in targets.iter().filter(|(to, _)| !may_import(from, to)) {
            let _ = writeln!(wrong, "  {from} → {to} in {}", places.join(", "));
        }
    }
    // A reader that finds nothing would pass everything.
    for (from, to) in [
        ("commands", "engine"),
        ("engine", "driver"),
        ("spider", "proto"),
        ("proto", "limits"),
        ("sim", "engine"),
    ] {
        assert!(map.get(from).is_some_and(|targets| targets.contains_key(to)), "{from} uses {to}:\n{drawn}");
    }
    assert!(wrong.is_empty(), "imports that do not go down:\n{wrong}\nall imports:\n{drawn}");
    for below in ["base", "limits", "proto", "driver", "rings"].iter().chain(ROLES) {
        assert!(!may_import(below, "config"), "{below} must not know the settings");
    }
}

#[test]
fn every_top_module_has_a_layer() {
    let modules: BTreeSet<String> =
        sources().into_iter().map(|source| source.path[0].clone()).filter(|name| name != "lib").collect();
    let layered: BTreeSet<String> =
        LAYERS.iter().flat_map(|(_, modules)| modules.iter().map(|name| name.to_string())).collect();
    assert_eq!(modules, layered);
}

/// Bytes and time come in: neither the protocols nor the roles have a clock, a socket or a thread of their own.
#[test]
fn roles_have_no_clock_no_socket_and_no_thread() {
    let mut wrong = String::new();
    let mut seen = 0;
    for source in sources() {
        let top = source.path[0].as_str();
        if top != "proto" && !ROLES.contains(&top) {
            continue;
        }
        seen += 1;
        for word in ["Instant", "SystemTime", "TcpStream", "TcpListener", "UdpSocket", "JoinHandle", "thread"]
        {
            if word_at(&source.code, word).next().is_some() {
                let _ = writeln!(wrong, "  {}: {word}", source.place);
            }
        }
    }
    assert!(seen > 20, "{seen} files");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn unsafe_code_has_two_addresses() {
    let mut homes = BTreeSet::new();
    let mut wrong = String::new();
    for source in sources() {
        let home = UNSAFE_HOMES.iter().find(|home| source.place.starts_with(*home));
        for word in ["unsafe", "allow(unsafe_code)", "unsafe_code"] {
            if word == "unsafe_code" && (source.place == "lib.rs" || home.is_some()) {
                continue;
            }
            // The two homes are opened by their parent's `mod` line or by themselves.
            let opens_home =
                ["driver/mod.rs", "store_server/mod.rs"].contains(&source.place.as_str()) && word != "unsafe";
            if word_at(&source.code, word).next().is_some() && !opens_home {
                match home {
                    Some(home) => drop(homes.insert(*home)),
                    None => drop(writeln!(wrong, "  {}: {word}", source.place)),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert_eq!(homes.len(), 2, "both are in use: {homes:?}");
    let root = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    assert!(root.contains("#![deny(unsafe_code)]") || root.contains("#![forbid(unsafe_code)]"));
}
