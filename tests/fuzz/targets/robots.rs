use nephila::proto::robots::{
    CLEAN_PARAM_BYTES_MAX, CLEAN_PARAMS_MAX, CleanParam, RULES_MAX, Robots, SITEMAP_BYTES_MAX, SITEMAPS_MAX,
    clean_params,
};

const PATHS: [&str; 8] = ["/", "/a", "/a/b.html", "/a/b.html?q=1", "/private/x", "//", "/A", "/robots.txt?x"];

pub fn run(bytes: &[u8]) {
    let rules = clean_params(bytes);
    assert!(rules.len() <= CLEAN_PARAMS_MAX);
    for rule in rules {
        assert!(rule.len() <= CLEAN_PARAM_BYTES_MAX && !rule.chars().any(|c| "\r\n".contains(c)));
        let rule = CleanParam::parse(rule).expect("what is told can be read");
        assert!(rule.names().all(|name| !name.is_empty()));
        assert!(PATHS.iter().filter(|path| rule.holds_for(path)).count() <= PATHS.len());
    }
    for agent in ["nephila", "*"] {
        let robots = Robots::parse(bytes, agent);
        assert!(robots.patterns().count() <= RULES_MAX);
        assert!(robots.sitemaps().count() <= SITEMAPS_MAX);
        assert!(robots.sitemaps().all(|sitemap| sitemap.len() <= SITEMAP_BYTES_MAX));
        assert!(robots.heap_bytes() <= bytes.len() * 3 + bytes.len() * 8);
        assert!(robots.allows(b"/robots.txt"));
        robots.allows(bytes);
        // Paths that come near the rules: operators filled in, or left out.
        let near = robots.patterns().take(20).flat_map(|(_, pattern)| {
            ["", "x", "/x/", "$"].map(|fill| pattern.replace('*', fill).replace('$', ""))
        });
        let near: Vec<String> = near.collect();
        for path in near.iter().map(String::as_str).chain(PATHS) {
            longest_decides(&robots, path);
        }
        if !bytes.contains(&b'\r') {
            let with_cr: Vec<u8> = bytes
                .iter()
                .flat_map(|byte| if *byte == b'\n' { &b"\r\n"[..] } else { std::slice::from_ref(byte) })
                .copied()
                .collect();
            assert_eq!(Robots::parse(&with_cr, agent), robots);
        }
    }
}

/// Paths without a byte that is written in two ways, so that they are their own canonical form.
fn longest_decides(robots: &Robots, path: &str) {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~?=&".contains(&byte);
    if path == "/robots.txt" || path.is_empty() || !path.bytes().all(plain) {
        return;
    }
    let matching = robots.patterns().filter(|(_, pattern)| matches(pattern.as_bytes(), path.as_bytes()));
    let best = matching.map(|(allow, pattern)| (pattern.len(), allow)).max();
    let verdict = robots.verdict(path.as_bytes());
    assert_eq!(verdict.allowed, best.is_none_or(|(_, allow)| allow), "{path}");
    assert_eq!(verdict.rule.map(str::len), best.map(|(len, _)| len), "{path}");
}

/// As the rule is told, without care for speed: places that may be reached in the path, pattern byte by byte.
fn matches(pattern: &[u8], path: &[u8]) -> bool {
    let mut reached = vec![false; path.len() + 1];
    reached[0] = true;
    for (index, &byte) in pattern.iter().enumerate() {
        let mut next = vec![false; path.len() + 1];
        for (at, _) in reached.iter().enumerate().filter(|(_, reached)| **reached) {
            match byte {
                b'*' => next[at..].fill(true),
                b'$' if index + 1 == pattern.len() => next[at] = at == path.len(),
                _ if path.get(at) == Some(&byte) => next[at + 1] = true,
                _ => {}
            }
        }
        reached = next;
    }
    reached.contains(&true)
}
