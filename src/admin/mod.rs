//! What an operator looks at: the figures of a process, said as others read them.

pub(crate) mod metrics;
