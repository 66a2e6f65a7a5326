//! CPU time, user and system, in microseconds: it holds on a noisy machine, wall time does not.

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

pub(super) fn thread_us() -> f64 {
    clock_us(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

pub(super) fn process_us() -> f64 {
    clock_us(ClockId::CLOCK_PROCESS_CPUTIME_ID)
}

fn clock_us(clock: ClockId) -> f64 {
    clock_gettime(clock).map_or(0.0, |time| time.tv_sec() as f64 * 1e6 + time.tv_nsec() as f64 / 1e3)
}

/// Of the children that have ended and were waited for.
pub(super) fn children_us() -> f64 {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN)
        .map(|usage| usage.user_time().num_microseconds() + usage.system_time().num_microseconds());
    used.unwrap_or(0) as f64
}
