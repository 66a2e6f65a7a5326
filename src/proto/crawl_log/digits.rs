//! Numbers as digits and back, without the formatting machinery: a line is written for every page.

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The last `N` decimal digits of a number, zeros in front.
pub(super) fn padded<const N: usize>(mut number: u32) -> [u8; N] {
    let mut digits = [b'0'; N];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    digits
}

/// 32 hex digits.
pub(super) fn hex(number: u128) -> [u8; 32] {
    let mut digits = [0; 32];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        pair.copy_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
    digits
}

/// A decimal number: digits only, at least one, no more than fit.
pub(super) fn read_decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

/// A decimal number of a smaller type.
pub(super) fn read<T: TryFrom<u64>>(text: &[u8]) -> Option<T> {
    T::try_from(read_decimal(text)?).ok()
}

/// Exactly 32 hex digits in lower case.
pub(super) fn read_hex(text: &[u8]) -> Option<u128> {
    if text.len() != 32 {
        return None;
    }
    text.iter().try_fold(0u128, |number, digit| {
        let digit = HEX.iter().position(|hex| hex == digit)?;
        Some(number << 4 | digit as u128)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::push_decimal;

    #[test]
    fn numbers_come_back() {
        for number in [0, 9, 10, 12_345_678_901, u64::MAX] {
            let mut out = Vec::new();
            push_decimal(&mut out, number);
            assert_eq!(out, number.to_string().as_bytes());
            assert_eq!(read_decimal(&out), Some(number));
        }
        assert_eq!(&padded::<3>(7), b"007");
        assert_eq!(&padded::<2>(1_234), b"34");
        assert_eq!(&hex(0xab), b"000000000000000000000000000000ab");
        assert_eq!(read_hex(&hex(u128::MAX - 7)), Some(u128::MAX - 7));
        for text in [&b""[..], b"+1", b"-1", b"1 ", b"0x1", b"18446744073709551616"] {
            assert_eq!(read_decimal(text), None, "{}", text.escape_ascii());
        }
        assert_eq!(read::<u8>(b"256"), None);
        assert_eq!(read_hex(&[b'A'; 32]), None, "one spelling only");
    }
}
