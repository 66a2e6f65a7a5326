use crate::storage::{keep_secret, replace_secret};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::time::{Duration, Instant};

/// The file of a data directory with the token of its processes.
pub const TOKEN_FILE: &str = "admin.token";

/// What must be shown over TCP: 128 bits in hexadecimal digits.
pub struct Token(String);

const TOKEN_BYTES: usize = 16;

impl Token {
    /// Reads the token of a data directory, or makes one, for its owner alone.
    pub fn of(data: &Path) -> io::Result<Token> {
        let path = data.join(TOKEN_FILE);
        match File::open(&path) {
            Ok(file) => {
                keep_secret(&file);
                let mut text = String::new();
                file.take(4_096).read_to_string(&mut text)?;
                let text = text.trim();
                match text.len() == 2 * TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    true => Ok(Token(text.to_string())),
                    false => Err(io::Error::new(
                        ErrorKind::InvalidData,
                        format!("{} holds no token: remove it, and a new one is made", path.display()),
                    )),
                }
            }
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let token = Token::made()?;
                replace_secret(&path, format!("{}\n", token.0).as_bytes())?;
                Ok(token)
            }
            Err(e) => Err(e),
        }
    }

    fn made() -> io::Result<Token> {
        let mut bytes = [0; TOKEN_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Takes as long for any text of the right length.
    pub fn is(&self, given: &str) -> bool {
        let (ours, given) = (self.0.as_bytes(), given.as_bytes());
        let differ = ours.iter().zip(given).fold(0, |differ, (a, b)| differ | (a ^ b));
        ours.len() == given.len() && std::hint::black_box(differ) == 0
    }

    #[cfg(test)]
    pub fn sample(text: &str) -> Token {
        Token(text.to_string())
    }
}

/// How often a wrong token was shown in a row, and when the last time was.
#[derive(Default)]
pub struct Tries {
    wrong: u32,
    last: Option<Instant>,
}

/// So many wrong tokens are looked at as they come, then one in this time.
const TRIES_MAX: u32 = 10;
const PAUSE: Duration = Duration::from_secs(1);

impl Tries {
    /// Whether a token may be looked at.
    pub fn may_try(&mut self, now: Instant) -> bool {
        let is_early = self.last.is_some_and(|last| now.duration_since(last) < PAUSE);
        if self.wrong >= TRIES_MAX && is_early {
            return false;
        }
        self.last = Some(now);
        true
    }

    pub fn tried(&mut self, right: bool) {
        self.wrong = if right { 0 } else { self.wrong.saturating_add(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_kept_for_its_owner_and_a_broken_one_is_refused() {
        let folder = std::env::temp_dir().join(format!("nephila-token-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let token = Token::of(&folder).unwrap();
        assert_eq!(token.0.len(), 32);
        let path = folder.join(TOKEN_FILE);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let same = Token::of(&folder).unwrap();
        assert!(same.is(&token.0) && !same.is("") && !same.is(&token.0[1..]) && !same.is(&"0".repeat(32)));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "short").unwrap();
        assert!(Token::of(&folder).is_err_and(|e| e.to_string().contains("holds no token")));
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(!Token::made().unwrap().is(&Token::made().unwrap().0));
    }

    #[test]
    fn after_ten_wrong_tokens_one_a_second_is_looked_at() {
        let (mut tries, start) = (Tries::default(), Instant::now());
        for _ in 0..10 {
            assert!(tries.may_try(start));
            tries.tried(false);
        }
        let at = |ms| start + Duration::from_millis(ms);
        assert!(!tries.may_try(at(999)));
        assert!(tries.may_try(at(1_000)));
        tries.tried(false);
        assert!(!tries.may_try(at(1_500)));
        assert!(tries.may_try(at(2_100)));
        tries.tried(true);
        assert!(tries.may_try(at(2_101)) && tries.may_try(at(2_102)));
    }
}
