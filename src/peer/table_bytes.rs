//! A table as bytes: the value of the register, and what travels to other nodes. The frame around it has the checksum.
//!
//! | bytes | what                                                                                              |
//! |-------|---------------------------------------------------------------------------------------------------|
//! | 1     | version                                                                                           |
//! | 1     | flags: 1 frozen, 2 partitions move                                                                |
//! | 1     | spread                                                                                            |
//! | 1     | voters                                                                                            |
//! | 8     | epoch                                                                                             |
//! | 8     | digest of the rules                                                                               |
//! | 2, 2  | nodes, takeovers                                                                                  |
//! | 8,192 | owners, two bytes a partition; as many again for owners to be if partitions move                   |
//! | 2 each| voters                                                                                            |
//! | 18 +  | a node: number, id, generation, weight, state, length of the address; the address                  |
//! | 20 +  | a takeover: taker, stamp, epoch, ranges; then four bytes a range, or without any the node          |

use super::table::{NodeState, PartitionRange, Table, TableError, TableNode, Taken, Taking};
use crate::base::{u16_at, u32_at, u64_at};
use crate::limits::PARTITIONS;
use crate::proto::partition::Spread;

/// The version that is written. A table of another one is refused.
pub const TABLE_VERSION: u8 = 1;

const FROZEN: u8 = 1;
const MOVES: u8 = 2;

impl Table {
    /// The one form that this table has as bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + 4 * PARTITIONS + 64 * self.nodes.len());
        let flags = if self.frozen { FROZEN } else { 0 } | if self.next.is_some() { MOVES } else { 0 };
        out.extend([TABLE_VERSION, flags, self.spread as u8, self.voters.len() as u8]);
        out.extend(self.epoch.to_le_bytes());
        out.extend(self.rules.to_le_bytes());
        out.extend((self.nodes.len() as u16).to_le_bytes());
        out.extend((self.takings.len() as u16).to_le_bytes());
        let next = self.next.iter().flat_map(|next| next.iter());
        for number in self.owners.iter().chain(next).chain(&self.voters) {
            out.extend(number.to_le_bytes());
        }
        for node in &self.nodes {
            out.extend(node.number.to_le_bytes());
            out.extend(node.id.to_le_bytes());
            out.extend(node.generation.to_le_bytes());
            out.extend(node.weight.to_le_bytes());
            out.extend([node.state as u8, node.address.len() as u8]);
            out.extend(node.address.as_bytes());
        }
        for taking in &self.takings {
            out.extend(taking.taker.to_le_bytes());
            out.extend(taking.stamp_ms.to_le_bytes());
            out.extend(taking.epoch.to_le_bytes());
            match &taking.taken {
                Taken::Node(node) => {
                    out.extend(0u16.to_le_bytes());
                    out.extend(node.to_le_bytes());
                }
                Taken::Ranges(ranges) => {
                    out.extend((ranges.len() as u16).to_le_bytes());
                    for range in ranges {
                        out.extend(range.first.to_le_bytes());
                        out.extend(range.last.to_le_bytes());
                    }
                }
            }
        }
        out
    }

    /// Reads a table and checks it. What comes from elsewhere is never more than refused.
    pub fn decode(bytes: &[u8]) -> Result<Table, TableError> {
        let mut rest = Rest(bytes);
        match rest.u8()? {
            TABLE_VERSION => {}
            other => return Err(TableError::Version(other)),
        }
        let flags = rest.u8()?;
        if flags & !(FROZEN | MOVES) != 0 {
            return Err(TableError::Unknown { what: "flags", number: flags });
        }
        let spread = rest.u8()?;
        let spread = Spread::ALL
            .get(usize::from(spread))
            .copied()
            .ok_or(TableError::Unknown { what: "spread", number: spread })?;
        let voters = usize::from(rest.u8()?);
        let (epoch, rules) = (rest.u64()?, rest.u64()?);
        let (nodes, takings) = (usize::from(rest.u16()?), usize::from(rest.u16()?));
        let owners = rest.numbers(PARTITIONS)?.into_boxed_slice();
        let next = match flags & MOVES {
            0 => None,
            _ => Some(rest.numbers(PARTITIONS)?.into_boxed_slice()),
        };
        let voters = rest.numbers(voters)?;
        // A count is believed as far as there are bytes for it.
        let nodes = (0..nodes).map(|_| node(&mut rest)).collect::<Result<_, _>>()?;
        let takings = (0..takings).map(|_| taking(&mut rest)).collect::<Result<_, _>>()?;
        if !rest.0.is_empty() {
            return Err(TableError::Long(rest.0.len()));
        }
        let frozen = flags & FROZEN != 0;
        let table = Table { epoch, owners, next, nodes, voters, spread, rules, frozen, takings };
        table.check()?;
        if table.next.as_ref().is_some_and(|next| next.iter().all(|&node| node == super::NOBODY)) {
            return Err(TableError::Unknown { what: "flags", number: flags });
        }
        Ok(table)
    }
}

fn node(rest: &mut Rest<'_>) -> Result<TableNode, TableError> {
    let (number, id, generation, weight) = (rest.u16()?, rest.u64()?, rest.u32()?, rest.u16()?);
    let state = rest.u8()?;
    let state =
        NodeState::from_number(state).ok_or(TableError::Unknown { what: "a node's state", number: state })?;
    let bytes = usize::from(rest.u8()?);
    let address = std::str::from_utf8(rest.take(bytes)?).map_err(|_| TableError::Address(number))?;
    Ok(TableNode { number, id, generation, address: address.to_string(), weight, state })
}

fn taking(rest: &mut Rest<'_>) -> Result<Taking, TableError> {
    let (taker, stamp_ms, epoch) = (rest.u16()?, rest.u64()?, rest.u64()?);
    let taken = match usize::from(rest.u16()?) {
        0 => Taken::Node(rest.u16()?),
        ranges => {
            let numbers = rest.numbers(2 * ranges)?;
            let ranges = numbers.chunks_exact(2).map(|pair| PartitionRange { first: pair[0], last: pair[1] });
            Taken::Ranges(ranges.collect())
        }
    };
    Ok(Taking { taken, taker, stamp_ms, epoch })
}

/// The bytes that are still to be read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, bytes: usize) -> Result<&'a [u8], TableError> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(TableError::Short)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u8(&mut self) -> Result<u8, TableError> {
        Ok(self.take(1)?[0])
    }

    fn u16(&mut self) -> Result<u16, TableError> {
        Ok(u16_at(self.take(2)?, 0))
    }

    fn u32(&mut self) -> Result<u32, TableError> {
        Ok(u32_at(self.take(4)?, 0))
    }

    fn u64(&mut self) -> Result<u64, TableError> {
        Ok(u64_at(self.take(8)?, 0))
    }

    fn numbers(&mut self, count: usize) -> Result<Vec<u16>, TableError> {
        Ok(self.take(2 * count)?.chunks_exact(2).map(|pair| u16_at(pair, 0)).collect())
    }
}
