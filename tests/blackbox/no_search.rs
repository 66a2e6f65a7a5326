//! The promise: a build without the feature `search` says so in one line.

use crate::support::*;

#[test]
fn a_build_without_search_says_so() {
    for args in [&["search", "river"][..], &["search", "reindex"], &["search", "stat"]] {
        let run = run(args);
        assert_eq!((run.code(), run.stderr.lines().count()), (3, 1), "{}", run.stderr);
        assert!(run.stderr.contains("this build has no search"), "{}", run.stderr);
    }
}
