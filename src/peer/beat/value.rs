use crate::base::{u32_at, u64_at};
use crate::peer::register::Value;
use std::sync::Arc;

/// The beat of a node, in the order in which it grows: each start has the next generation, each renewal the next `n`, and a
/// sealed one is the last of its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Beat {
    pub generation: u32,
    pub n: u64,
    pub sealed: bool,
}

const VERSION: u8 = 1;
const BYTES: usize = 14;

impl Beat {
    /// The beat after this one.
    #[must_use]
    pub fn renewed(self) -> Beat {
        Beat { n: self.n + 1, ..self }
    }

    #[must_use]
    pub fn sealed(self) -> Beat {
        Beat { sealed: true, ..self }
    }

    /// The first beat after whatever the register holds.
    pub fn of_next_generation(held: Option<Beat>) -> Beat {
        Beat { generation: held.map_or(0, |beat| beat.generation) + 1, n: 0, sealed: false }
    }

    /// As the value of its register.
    pub fn value(self) -> Value {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend([VERSION, u8::from(self.sealed)]);
        bytes.extend(self.generation.to_le_bytes());
        bytes.extend(self.n.to_le_bytes());
        Some(Arc::from(bytes))
    }

    /// Nothing if it is no beat that this program knows. Numbers at their end are no beat: nothing comes after them.
    pub fn decode(bytes: &[u8]) -> Option<Beat> {
        if bytes.len() != BYTES || bytes[0] != VERSION || bytes[1] > 1 {
            return None;
        }
        let (generation, n) = (u32_at(bytes, 2), u64_at(bytes, 6));
        (generation < u32::MAX && n < u64::MAX).then_some(Beat { generation, n, sealed: bytes[1] == 1 })
    }

    pub fn of(value: &Value) -> Option<Beat> {
        value.as_deref().and_then(Beat::decode)
    }
}
