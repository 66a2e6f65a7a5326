use crate::peer::ticket::TICKET_US;
use thiserror::Error;

const S: u64 = 1_000_000;

/// How long things take, in microseconds of a clock whose rate is within 1 % of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From one renewal to the next.
    pub(in crate::peer) beat_us: u64,
    /// A right ends so long after its renewal was sent.
    pub(in crate::peer) hold_us: u64,
    /// A beat that was seen first so long ago may be sealed.
    pub(in crate::peer) wait_us: u64,
    /// The second on the ring waits so much longer, the third twice that; and each of them a random part of `stagger_us`.
    pub(in crate::peer) step_us: u64,
    pub(in crate::peer) stagger_us: u64,
    /// What may still be open when a right ends.
    pub(in crate::peer) request_us: u64,
}

/// Why a node cannot be started with these times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TimingError {
    #[error(
        "takeover of {} s is too short: a right of {} s and timeout_req of {} s need {} s at least",
        .wait_us / S, .hold_us / S, .request_us / S, .least_us.div_ceil(S)
    )]
    Wait { wait_us: u64, hold_us: u64, request_us: u64, least_us: u64 },
    #[error("beats every {} s do not renew a right of {} s: four of them have to fit", .beat_us / S, .hold_us / S)]
    Beat { beat_us: u64, hold_us: u64 },
}

impl Timing {
    /// The times for a takeover after `wait_us`, with requests that take `request_us` at most: rights of 0.4 times that, renewed
    /// every 5 s or four times in a right.
    pub fn for_takeover(wait_us: u64, request_us: u64) -> Result<Timing, TimingError> {
        let hold_us = wait_us / 5 * 2;
        let beat_us = (5 * S).min(hold_us / 4);
        let timing = Timing { beat_us, hold_us, wait_us, step_us: 30 * S, stagger_us: 10 * S, request_us };
        timing.check()?;
        Ok(timing)
    }

    /// A right is over, and what it left open has ended, before anybody can have sealed it: the holder's clock may run at 0.99
    /// and the heir's at 1.01, so wait / 1.01 ≥ hold / 0.99 + what may be open.
    pub fn check(&self) -> Result<(), TimingError> {
        let Timing { beat_us, hold_us, wait_us, request_us, .. } = *self;
        if beat_us == 0 || beat_us > hold_us / 4 {
            return Err(TimingError::Beat { beat_us, hold_us });
        }
        let needed = u128::from(hold_us) * 10_100 + u128::from(request_us) * 9_999;
        if u128::from(wait_us) * 9_900 < needed {
            let least_us = u64::try_from(needed.div_ceil(9_900)).unwrap_or(u64::MAX);
            return Err(TimingError::Wait { wait_us, hold_us, request_us, least_us });
        }
        Ok(())
    }

    pub fn hold_us(&self) -> u64 {
        self.hold_us
    }

    /// A change of a register has its outcome within this: disks of voters that also crawl may take seconds to keep what is
    /// promised, and three attempts fit into a right.
    pub fn patience_us(&self) -> u64 {
        (self.hold_us / 3).clamp(4 * S, 15 * S)
    }

    pub fn wait_us(&self) -> u64 {
        self.wait_us
    }

    /// Whether who took partitions over has to wait before it lends addresses: tickets that the keeper before it lent at the
    /// very end of its right may be good longer than the wait, and what was asked with them open.
    pub fn new_keeper_waits(&self) -> bool {
        let in_use = u128::from(self.hold_us) + u128::from(TICKET_US) + u128::from(self.request_us);
        u128::from(self.wait_us) * 99 < in_use * 101
    }

    /// After an answer that did not come, or told nothing.
    pub(super) fn again_us(&self) -> u64 {
        (self.beat_us / 5).max(1)
    }
}
