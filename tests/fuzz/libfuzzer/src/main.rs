//! One program for all targets: `NEPHILA_FUZZ_TARGET` names the one to run.
#![no_main]

#[path = "../../targets/mod.rs"]
mod targets;

use std::sync::LazyLock;
use targets::{TARGETS, Target};

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("NEPHILA_FUZZ_TARGET").unwrap_or_default();
    let known = TARGETS.iter().find(|(known, _)| *known == name);
    known.unwrap_or_else(|| panic!("NEPHILA_FUZZ_TARGET names no target: {name:?}")).1
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| (*TARGET)(bytes));
