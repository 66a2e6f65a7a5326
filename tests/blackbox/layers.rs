//! The promise: imports go down only, folders of one folder do not import each other in a circle, roles know nothing of
//! each other, of settings, drivers, clocks or sockets, only one file of commands prints, and unsafe code has two addresses.
//!
//! ```text
//!   5  commands, main
//!   4  admin  engine  farm  sim  archive   (sim may use engine and farm, admin may use engine, engine may use archive)
//!   3  url_server  spider  handler  extractor  store_server  doc_index  audit  resolver  master  feeds  search  peer
//!      config                       (reads the enums of roles and protocols by name; none of them knows it)
//!      tune                         (the machine; knows no role)
//!   2  driver  rings  storage
//!   1  proto
//!   0  base  limits                 (these may use each other)
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const LAYERS: [(u8, &[&str]); 8] = [
    (0, &["base", "limits"]),
    (1, &["proto"]),
    (2, &["driver", "rings", "storage"]),
    (3, ROLES),
    (3, &["config"]),
    (3, &["tune"]),
    (4, &["admin", "engine", "farm", "sim", "archive"]),
    (5, &["commands", "main"]),
];

const ROLES: &[&str] = &[
    "url_server",
    "spider",
    "handler",
    "extractor",
    "store_server",
    "doc_index",
    "audit",
    "resolver",
    "master",
    "feeds",
    "search",
    "peer",
];

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
    let admin_uses = from == "admin" && to == "engine";
    let engine_packs = from == "engine" && to == "archive";
    let config_reads = from == "config" && ROLES.contains(&to);
    let among_equals = upper == lower
        && (upper == 0 || sim_uses || admin_uses || engine_packs || config_reads || upper == 5);
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
    let tests = test_modules(&found);
    found.retain(|path| {
        !tests.iter().any(|module| path.starts_with(module) || *path == module.with_extension("rs"))
    });
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

/// Modules that are compiled for tests only, `#[cfg(test)] mod name;`: the folder `name`, or `name.rs`.
fn test_modules(all: &[PathBuf]) -> BTreeSet<PathBuf> {
    let mut tests = BTreeSet::new();
    for path in all {
        let text = bare_code(&std::fs::read_to_string(path).unwrap());
        for after in text.split("#[cfg(test)]").skip(1) {
            let Some((line, _)) = after.split_once(';') else { continue };
            let Some(name) = line.trim_start().trim_start_matches("pub(crate) ").strip_prefix("mod ") else {
                continue;
            };
            if name.contains('{') {
                continue;
            }
            let folder = if path.file_name().unwrap() == "mod.rs" {
                path.parent().unwrap().to_path_buf()
            } else {
                path.with_extension("")
            };
            tests.insert(folder.join(name.trim()));
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

/// Every path that the tree after a `::` names: `a::{b, c::d}` is `a::b` and `a::c::d`.
fn tree(after: &str, stem: &[String], found: &mut Vec<Vec<String>>) -> usize {
    let spaces = |text: &str| text.len() - text.trim_start().len();
    let mut at = spaces(after);
    if after[at..].starts_with('{') {
        at += 1;
        loop {
            at += tree(&after[at..], stem, found);
            at += spaces(&after[at..]);
            match after[at..].chars().next() {
                Some(',') => at += 1,
                Some('}') => return at + 1,
                // The code after an opening brace is no list of names.
                _ => return after.len(),
            }
        }
    }
    let name: String = after[at..].chars().take_while(|&c| is_word(c)).collect();
    at += name.len();
    let mut path = stem.to_vec();
    if !name.is_empty() && name != "self" {
        path.push(name);
    }
    let next = at + spaces(&after[at..]);
    if let Some(rest) = after[next..].strip_prefix("::") {
        // A turbofish ends a path.
        if rest.trim_start().starts_with(|c: char| is_word(c) || c == '{') {
            return next + 2 + tree(rest, &path, found);
        }
    } else if let Some(alias) = after[next..].strip_prefix("as ") {
        found.push(path);
        return after.len() - alias.trim_start_matches(is_word).len();
    }
    found.push(path);
    at
}

/// Every path of this crate that a file names, from the root on: by `crate::`, by our own name, by `super::`, by
/// `self::`.
fn paths(source: &Source) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let code = source.code.as_str();
    let is_mod = source.place.ends_with("mod.rs");
    for (word, up) in [("crate", None), ("nephila", None), ("self", Some(0)), ("super", Some(1))] {
        for at in word_at(code, word) {
            if code[..at].trim_end().ends_with("::") {
                continue;
            }
            let Some(mut rest) = code[at + word.len()..].trim_start().strip_prefix("::") else { continue };
            let mut above = up;
            while let (Some(levels), Some(further)) = (above, rest.trim_start().strip_prefix("super::")) {
                above = Some(levels + 1);
                rest = further;
            }
            let stem = match above {
                None => &[],
                Some(levels) => &source.path[..source.path.len().saturating_sub(levels)],
            };
            tree(rest, stem, &mut found);
        }
    }
    // What a folder's map re-exports, it names by its own children.
    if is_mod {
        for at in word_at(code, "use") {
            let rest = code[at + 3..].trim_start();
            let head: String = rest.chars().take_while(|&c| is_word(c)).collect();
            if !["crate", "self", "super", "std", "core", "alloc"].contains(&head.as_str()) {
                tree(rest, &source.path, &mut found);
            }
        }
    }
    found
}

/// Top modules that a file names.
fn imports(source: &Source) -> BTreeSet<String> {
    let tops = paths(source).into_iter().filter_map(|path| path.into_iter().next());
    tops.filter(|name| LAYERS.iter().any(|(_, modules)| modules.contains(&name.as_str()))).collect()
}

/// Folders of a folder and which of them name which others, with the files in which they do. A name that a folder's map
/// re-exports counts for the folder that it comes from.
type Neighbours = BTreeMap<Vec<String>, BTreeMap<String, BTreeMap<String, BTreeSet<String>>>>;

fn neighbours(sources: &[Source]) -> Neighbours {
    let maps: Vec<&Source> = sources.iter().filter(|source| source.place.ends_with("mod.rs")).collect();
    let folders: BTreeSet<&[String]> = maps.iter().map(|source| source.path.as_slice()).collect();
    let mut exported: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for map in &maps {
        for path in paths(map) {
            if let Some(name) = path.last().filter(|_| path.len() > map.path.len() + 1) {
                exported.insert([map.path.as_slice(), std::slice::from_ref(name)].concat(), path);
            }
        }
    }
    let mut found = Neighbours::new();
    for source in sources {
        for mut path in paths(source) {
            for _ in 0..8 {
                let known = (1..=path.len()).rev().find_map(|end| Some((end, exported.get(&path[..end])?)));
                let Some((end, origin)) = known else { break };
                path = [origin.as_slice(), &path[end..]].concat();
            }
            let shared = source.path.iter().zip(&path).take_while(|(from, to)| from == to).count();
            if source.path.len() <= shared || path.len() <= shared {
                continue;
            }
            if folders.contains(&source.path[..=shared]) && folders.contains(&path[..=shared]) {
                let of_parent = found.entry(path[..shared].to_vec()).or_default();
                let of_folder = of_parent.entry(source.path[shared].clone()).or_default();
                of_folder.entry(path[shared].clone()).or_default().insert(source.place.clone());
            }
        }
    }
    found
}

/// A way from a folder back to itself.
fn circle(uses: &BTreeMap<String, BTreeMap<String, BTreeSet<String>>>) -> Option<Vec<String>> {
    for start in uses.keys() {
        let mut ways = vec![vec![start.clone()]];
        let mut been = BTreeSet::new();
        while let Some(way) = ways.pop() {
            for to in uses.get(way.last().unwrap()).into_iter().flat_map(BTreeMap::keys) {
                let longer = [way.as_slice(), std::slice::from_ref(to)].concat();
                if to == start {
                    return Some(longer);
                }
                if been.insert(to.clone()) {
                    ways.push(longer);
                }
            }
        }
    }
    None
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
    for below in ["base", "limits", "proto", "driver", "rings", "storage"].iter().chain(ROLES) {
        assert!(!may_import(below, "config"), "{below} must not know the settings");
        assert!(
            !map.get(*below).is_some_and(|targets| targets.contains_key("config")),
            "{below} uses config"
        );
    }
}

#[test]
fn folders_do_not_import_each_other_in_a_circle() {
    let found = neighbours(&sources());
    let mut drawn = String::new();
    let mut wrong = String::new();
    for (parent, uses) in &found {
        let parent = Path::new("src").join(parent.join("/"));
        let _ = writeln!(drawn, "  {}", parent.display());
        for (from, targets) in uses {
            let names: Vec<&str> = targets.keys().map(String::as_str).collect();
            let _ = writeln!(drawn, "    {from:<13} → {}", names.join(" "));
        }
        if let Some(way) = circle(uses) {
            let _ = writeln!(wrong, "  {}: {}", parent.display(), way.join(" → "));
            for pair in way.windows(2) {
                let places: Vec<&str> = uses[&pair[0]][&pair[1]].iter().map(String::as_str).collect();
                let _ = writeln!(wrong, "    {} → {} in {}", pair[0], pair[1], places.join(", "));
            }
        }
    }
    // A reader that finds nothing would pass everything.
    for (from, to) in [("crawl", "runtime"), ("split", "links"), ("crawl", "inspect")] {
        let uses = found.get(&vec!["engine".to_string()]).and_then(|uses| uses.get(from));
        assert!(uses.is_some_and(|targets| targets.contains_key(to)), "{from} uses {to}:\n{drawn}");
    }
    assert!(wrong.is_empty(), "folders that import each other:\n{wrong}\nall of them:\n{drawn}");
}

/// The reader of imports, on samples: a re-exported name, a group, `super`, and a circle of three.
#[test]
fn a_circle_is_found_through_groups_supers_and_re_exports() {
    let file = |place: &str, code: &str| {
        let path = place.trim_end_matches(".rs").trim_end_matches("/mod").split('/').map(str::to_string);
        Source { place: place.to_string(), path: path.collect(), code: code.to_string() }
    };
    let sample = |last: &str| {
        vec![
            file("engine/mod.rs", "mod a; mod b; mod c; pub use c::{Deep as Other, Thing};"),
            file("engine/a/mod.rs", "mod x;"),
            file("engine/a/x.rs", "use super::super::b::{Y, z::{self, Z as W}}; fn f() {}"),
            file("engine/b/mod.rs", "pub use y::Y;"),
            file("engine/b/y.rs", "use crate::{base::Now, engine::Thing};"),
            file("engine/c/mod.rs", "mod thing; pub use thing::{Thing, Deep};"),
            file("engine/c/thing.rs", last),
        ]
    };
    let engine = vec!["engine".to_string()];
    assert_eq!(circle(&neighbours(&sample("use super::Deep;"))[&engine]), None);
    let found = neighbours(&sample("fn f() { crate::engine::a::x::g(); }"));
    assert_eq!(circle(&found[&engine]).unwrap(), ["a", "b", "c", "a"]);
    assert_eq!(found[&engine]["c"]["a"].first().unwrap(), "engine/c/thing.rs");
}

/// A library that another may take the place of has one address.
#[test]
fn one_folder_knows_the_stemmers() {
    let knows = |source: &Source| word_at(&source.code, "frostem").next().is_some();
    let places: Vec<String> = sources().into_iter().filter(knows).map(|source| source.place).collect();
    assert!(!places.is_empty() && places.iter().all(|place| place.starts_with("search/")), "{places:?}");
}

/// What is to be told goes out as values; commands decide where it is shown.
#[test]
fn nothing_prints_but_one_file() {
    // They panic where nothing can be written: commands use `say`, `print`, `tell` and `stream` of that file, and what
    // lies below them uses notices.
    let printed = |code: &str| {
        let words = ["println", "eprintln", "print", "eprint", "dbg"].into_iter();
        let macros =
            words.filter(|word| word_at(code, word).any(|at| code[at + word.len()..].starts_with('!')));
        let writers = ["stdout().lock", "stderr().lock"].into_iter().filter(|writer| code.contains(writer));
        macros.chain(writers).collect::<Vec<_>>()
    };
    let mut wrong = String::new();
    for source in sources() {
        match (source.place.as_str(), printed(&source.code)) {
            ("commands/shared/output.rs", found) => assert_eq!(found, ["stdout().lock", "stderr().lock"]),
            (_, found) if found.is_empty() => {}
            (place, found) => drop(writeln!(wrong, "  {place}: {found:?}")),
        }
    }
    assert!(wrong.is_empty(), "printed past commands/shared/output.rs:\n{wrong}");
    assert_eq!(printed("fn f() { eprintln!(); }"), ["eprintln"]);
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
