//! Between threads: bounded lock-free rings, and a doorbell that is rung only for a sleeper.
//!
//! ```text
//!   producer: push ──► is the other side asleep? ──► ring its bell
//!   consumer: drain ──► nothing left: say "asleep" ──► look once more ──► sleep
//! ```

mod doorbell;
mod ring;

pub use doorbell::{Doorbell, ThreadBell};
pub use ring::{Fill, Receiver, Sender, ring};
