/// An HTTP status as one byte: its place in [`HttpCode::TABLE`] plus one, 0 without a response, 255 for a status
/// that is not in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HttpCode(u8);

impl HttpCode {
    pub const NONE: HttpCode = HttpCode(0);
    pub const OTHER: HttpCode = HttpCode(255);

    /// Only ever appended to: a place in this table is a number on disk.
    pub const TABLE: [u16; 64] = [
        100, 101, 102, 103, 200, 201, 202, 203, 204, 205, 206, 207, 208, 226, 300, 301, 302, 303, 304, 305,
        306, 307, 308, 400, 401, 402, 403, 404, 405, 406, 407, 408, 409, 410, 411, 412, 413, 414, 415, 416,
        417, 418, 421, 422, 423, 424, 425, 426, 428, 429, 431, 451, 500, 501, 502, 503, 504, 505, 506, 507,
        508, 509, 510, 511,
    ];

    pub fn from_status(status: u16) -> HttpCode {
        match HttpCode::TABLE.binary_search(&status) {
            Ok(place) => HttpCode(place as u8 + 1),
            Err(_) => HttpCode::OTHER,
        }
    }

    /// Of a fetch that may have had no response: 0 is none.
    pub fn of(status: u16) -> HttpCode {
        if status == 0 { HttpCode::NONE } else { HttpCode::from_status(status) }
    }

    pub fn as_u8(self) -> u8 {
        self.0
    }

    /// The status behind a code; `None` for no response and for a status outside the table.
    pub fn status(self) -> Option<u16> {
        HttpCode::TABLE.get(usize::from(self.0).checked_sub(1)?).copied()
    }
}

impl From<u8> for HttpCode {
    fn from(byte: u8) -> HttpCode {
        HttpCode(byte)
    }
}

const _: () = assert!(HttpCode::TABLE.len() < 255);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_of_the_table_survives() {
        assert!(HttpCode::TABLE.is_sorted(), "searched by halves");
        for status in HttpCode::TABLE {
            assert_eq!(HttpCode::from(HttpCode::from_status(status).as_u8()).status(), Some(status));
        }
        assert_eq!(HttpCode::from_status(299), HttpCode::OTHER);
        assert_eq!(HttpCode::NONE.status(), None);
        assert_eq!(HttpCode::OTHER.status(), None);
    }
}
