use super::{ConnectFate, Reaction, SimWeb};
use crate::base::{Now, Rng};
use std::net::SocketAddr;

/// A web that nobody asks: nothing but the processes of a test can be connected to.
pub struct NoWeb;

impl SimWeb for NoWeb {
    fn connect(&mut self, _: SocketAddr, _: Now, _: &mut Rng) -> ConnectFate {
        ConnectFate::Refuse { after_us: 100 }
    }

    fn request(&mut self, _: u64, _: SocketAddr, _: &[u8], _: Now, _: &mut Rng) -> Vec<Reaction> {
        Vec::new()
    }

    fn closed(&mut self, _: u64) {}
}
