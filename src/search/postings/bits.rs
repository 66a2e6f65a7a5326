/// Stories of a block.
pub const BLOCK: usize = 128;

/// Numbers stand in rows of four lanes, each lane packed by itself: what is done to a row is done to all four at once.
const LANES: usize = 4;
const ROWS: usize = BLOCK / LANES;

/// Bits of the largest number.
pub fn width(numbers: &[u32; BLOCK]) -> u32 {
    u32::BITS - numbers.iter().fold(0, |all, number| all | number).leading_zeros()
}

/// Bytes of a block whose numbers have so many bits.
pub fn packed_bytes(width: u32) -> usize {
    width as usize * LANES * 4
}

pub fn pack(numbers: &[u32; BLOCK], width: u32, out: &mut Vec<u8>) {
    let mut words = [0_u32; BLOCK + LANES];
    for (row, four) in numbers.as_chunks::<LANES>().0.iter().enumerate() {
        let (word, shift) = (row as u32 * width / 32, row as u32 * width % 32);
        let at = word as usize * LANES;
        for (lane, number) in four.iter().enumerate() {
            words[at + lane] |= number << shift;
            words[at + LANES + lane] |= number.checked_shr(32 - shift).unwrap_or(0);
        }
    }
    words[..width as usize * LANES].iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

/// None if there are not enough bytes, or too many bits.
pub fn unpack(bytes: &[u8], width: u32, numbers: &mut [u32; BLOCK]) -> Option<()> {
    if width > u32::BITS {
        return None;
    }
    let packed = bytes.get(..packed_bytes(width))?;
    let mut words = [[0_u32; LANES]; ROWS + 1];
    for (row, sixteen) in words.iter_mut().zip(packed.as_chunks::<16>().0) {
        for (word, four) in row.iter_mut().zip(sixteen.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*four);
        }
    }
    let mask = u32::MAX.checked_shr(32 - width).unwrap_or(0);
    for (row, four) in numbers.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let (word, shift) = (row as u32 * width / 32, row as u32 * width % 32);
        let (low, high) = (&words[word as usize], &words[word as usize + 1]);
        // A shift by 32 is none of a 32-bit number: it is done by two.
        for lane in 0..LANES {
            four[lane] = (low[lane] >> shift | high[lane] << (31 - shift) << 1) & mask;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Rng;

    #[test]
    fn numbers_come_back_by_any_width() {
        let mut rng = Rng::new(5);
        for bits in 0..=32_u32 {
            let below = 1_u64 << bits;
            let mut numbers = [0; BLOCK];
            numbers.iter_mut().for_each(|number| *number = rng.below(below) as u32);
            numbers[rng.below(128) as usize] = (below - 1) as u32;
            assert_eq!(width(&numbers), bits);
            let (mut packed, mut unpacked) = (vec![9], [7; BLOCK]);
            pack(&numbers, bits, &mut packed);
            assert_eq!(packed.len(), 1 + packed_bytes(bits));
            assert_eq!((unpack(&packed[1..], bits, &mut unpacked), unpacked), (Some(()), numbers));
            assert!(bits == 0 || unpack(&packed[2..], bits, &mut unpacked).is_none());
        }
        assert_eq!(unpack(&[0; 1_000], 33, &mut [0; BLOCK]), None);
    }
}
