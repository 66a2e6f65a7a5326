//! The role as its callers know it.

mod polling;
