use std::hash::{BuildHasher, RandomState};

/// A number that nobody can foresee: from the system's own randomness, as the standard library gets it for its hash
/// maps.
pub fn random_u64() -> u64 {
    RandomState::new().hash_one(0u8)
}
