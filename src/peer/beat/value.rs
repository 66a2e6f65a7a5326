use crate::base::{u32_at, u64_at};
use crate::peer::register::Value;
use crate::proto::peer_wire::Beat;
use std::sync::Arc;

const VERSION: u8 = 1;
const BYTES: usize = 14;

/// A beat as it is kept in its register, and what follows it.
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

    /// Nothing if it is no beat that this program knows.
    pub fn decode(bytes: &[u8]) -> Option<Beat> {
        if bytes.len() != BYTES || bytes[0] != VERSION || bytes[1] > 1 {
            return None;
        }
        let beat = Beat { generation: u32_at(bytes, 2), n: u64_at(bytes, 6), sealed: bytes[1] == 1 };
        beat.is_beat().then_some(beat)
    }

    pub fn of(value: &Value) -> Option<Beat> {
        value.as_deref().and_then(Beat::decode)
    }
}
