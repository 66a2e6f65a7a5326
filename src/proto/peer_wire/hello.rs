use super::FrameError;
use super::fields::{Fields, put_text};
use crate::limits::{PEER_LISTEN_BYTES_MAX, PEER_VERSION_BYTES_MAX};
use crate::proto::partition::Spread;

/// How a node introduces itself. What differs between two of them is for the one who answers to judge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello<'a> {
    /// The cluster's id, as its key file has it.
    pub cluster: [u8; 16],
    /// Drawn when its disk was new: whoever lost the disk is another node.
    pub id: u64,
    pub node: u16,
    /// Grows whenever a node of this number begins anew.
    pub generation: u32,
    /// Of the table that it knows; 0 without one.
    pub epoch: u64,
    /// Of its program. At most [`PEER_VERSION_BYTES_MAX`] bytes.
    pub version: &'a str,
    /// A digest of the rules that it crawls by.
    pub rules: u64,
    /// Where other nodes reach it, an address with a port. At most [`PEER_LISTEN_BYTES_MAX`] bytes.
    pub listen: &'a str,
    /// Its share of the partitions, in relation to the weights of the others.
    pub weight: u16,
    /// It is in no table yet and asks to be.
    pub joining: bool,
    /// Its council is outside of the nodes.
    pub outside: bool,
    /// What keeps URLs together: of its table, or what it was told before it has one. `None` if it takes whatever the cluster has.
    pub spread: Option<Spread>,
}

const JOINING: u8 = 1;
const OUTSIDE: u8 = 2;
/// In the place of a spread, which are counted from the next number on.
const ANY_SPREAD: u8 = 0;

impl<'a> Hello<'a> {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.cluster);
        out.extend_from_slice(&self.id.to_le_bytes());
        out.extend_from_slice(&self.node.to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.epoch.to_le_bytes());
        put_text(out, self.version, PEER_VERSION_BYTES_MAX);
        out.extend_from_slice(&self.rules.to_le_bytes());
        put_text(out, self.listen, PEER_LISTEN_BYTES_MAX);
        out.extend_from_slice(&self.weight.to_le_bytes());
        let flag = |is_so: bool, flag: u8| if is_so { flag } else { 0 };
        out.push(flag(self.joining, JOINING) | flag(self.outside, OUTSIDE));
        out.push(self.spread.map_or(ANY_SPREAD, |spread| 1 + spread as u8));
    }

    pub(super) fn read(fields: &mut Fields<'a>) -> Result<Hello<'a>, FrameError> {
        let mut hello = Hello {
            cluster: fields.array()?,
            id: fields.u64()?,
            node: fields.u16()?,
            generation: fields.u32()?,
            epoch: fields.u64()?,
            version: fields.text(PEER_VERSION_BYTES_MAX)?,
            rules: fields.u64()?,
            listen: fields.text(PEER_LISTEN_BYTES_MAX)?,
            weight: fields.u16()?,
            joining: false,
            outside: false,
            spread: None,
        };
        let flags = fields.flags(JOINING | OUTSIDE)?;
        (hello.joining, hello.outside) = (flags & JOINING != 0, flags & OUTSIDE != 0);
        hello.spread = match fields.u8()? {
            ANY_SPREAD => None,
            number => match Spread::ALL.get(usize::from(number) - 1) {
                Some(&spread) => Some(spread),
                None => return fields.unreadable("with a spread that means nothing"),
            },
        };
        Ok(hello)
    }
}
