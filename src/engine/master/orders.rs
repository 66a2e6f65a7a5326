use crate::base::shown;
use crate::master::ServerId;
use crate::storage::{make_directory, replace};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What an operator asks of a running master: a file each in `orders` of its data directory, which is answered by a file
/// beside it. Who may write there may ask.
pub(super) struct Orders {
    folder: PathBuf,
}

pub(super) struct Order {
    path: PathBuf,
    pub what: OrderOf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OrderOf {
    Move { domain: String, to: ServerId, force: bool },
    Drain(ServerId),
}

const ORDER: &str = "order";
const ANSWER: &str = "answer";
const ORDERS_MAX: usize = 1_000;
const ORDER_BYTES_MAX: u64 = 1_024;

impl OrderOf {
    fn text(&self) -> String {
        match self {
            OrderOf::Move { domain, to, force } => {
                format!("move {domain} {}{}\n", to.0, if *force { " force" } else { "" })
            }
            OrderOf::Drain(server) => format!("drain {}\n", server.0),
        }
    }

    fn parse(text: &str) -> Option<OrderOf> {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["move", domain, to, rest @ ..] => {
                let force = match rest {
                    [] => false,
                    ["force"] => true,
                    _ => return None,
                };
                Some(OrderOf::Move { domain: (*domain).to_string(), to: ServerId(to.parse().ok()?), force })
            }
            ["drain", server] => Some(OrderOf::Drain(ServerId(server.parse().ok()?))),
            _ => None,
        }
    }
}

impl Orders {
    pub fn of(data: &Path) -> Orders {
        Orders { folder: data.join("orders") }
    }

    /// What is there to be done.
    pub fn take(&self) -> Vec<Order> {
        let Ok(found) = fs::read_dir(&self.folder) else { return Vec::new() };
        let paths = found.flatten().map(|entry| entry.path());
        let mut paths: Vec<PathBuf> = paths
            .filter(|path| path.extension().is_some_and(|ending| ending == ORDER))
            .take(ORDERS_MAX)
            .collect();
        paths.sort();
        let mut orders = Vec::new();
        for path in paths {
            let is_small =
                fs::symlink_metadata(&path).is_ok_and(|it| it.is_file() && it.len() <= ORDER_BYTES_MAX);
            let text = if is_small { fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
            match OrderOf::parse(&text) {
                Some(what) => orders.push(Order { path, what }),
                None => answer(&path, "this is no order"),
            }
        }
        orders
    }

    pub fn answer(&self, order: &Order, done: Result<(), String>) {
        answer(&order.path, &done.err().unwrap_or_default());
    }
}

/// Nobody waits any more if it cannot be written.
fn answer(order: &Path, refusal: &str) {
    let _ = replace(&answer_of(order), refusal.as_bytes());
    let _ = fs::remove_file(order);
}

/// Named apart from the order: files on their way have one name for all extensions, and whoever gave the order may still
/// be about to let go of its own.
fn answer_of(order: &Path) -> PathBuf {
    let stem = order.file_stem().unwrap_or_default().to_string_lossy();
    order.with_file_name(format!("{stem}-said.{ANSWER}"))
}

/// Asks the master that runs on a directory, and waits for what it says: a refusal, if it is one.
pub(crate) fn give_order(data: &Path, what: &OrderOf, patience: Duration) -> io::Result<Result<(), String>> {
    let orders = Orders::of(data);
    make_directory(&orders.folder)?;
    let name = format!("{}-{:016x}", std::process::id(), crate::base::random_u64());
    let order = orders.folder.join(&name).with_extension(ORDER);
    let answer = answer_of(&order);
    replace(&order, what.text().as_bytes())?;
    let until = Instant::now() + patience;
    loop {
        match fs::read_to_string(&answer) {
            Ok(refusal) => {
                fs::remove_file(&answer)?;
                return Ok(if refusal.is_empty() { Ok(()) } else { Err(shown(&refusal, 500)) });
            }
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Err(_) if Instant::now() > until => {
                let _ = fs::remove_file(&order);
                let text = "the master does not answer: it is busy or hangs (nephila master status)";
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::FRESH;

    #[test]
    fn an_order_is_answered_and_rubbish_is_refused() {
        let data = std::env::temp_dir().join(format!("nephila-orders-{}", std::process::id()));
        fs::create_dir_all(&data).unwrap();
        let asked = OrderOf::Move { domain: "a.ru".to_string(), to: ServerId(2), force: true };
        let asking = std::thread::spawn({
            let (data, asked) = (data.clone(), asked.clone());
            move || give_order(&data, &asked, Duration::from_secs(60))
        });
        let orders = Orders::of(&data);
        let order = loop {
            if let Some(order) = orders.take().pop() {
                break order;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(order.what, asked);
        orders.answer(&order, Err("a.ru is in no row".to_string()));
        assert_eq!(asking.join().unwrap().unwrap(), Err("a.ru is in no row".to_string()));
        for bad in ["", "move", "move a.ru x", "move a.ru 1 now", "drain", "drain -1", "stop"] {
            fs::write(data.join("orders/bad.order"), bad).unwrap();
            assert!(orders.take().is_empty(), "{bad}");
            assert!(!data.join("orders/bad.order").exists() && data.join("orders/bad-said.answer").exists());
        }
        let order = orders.folder.join("1-2.order");
        assert_ne!(order.with_extension(FRESH), answer_of(&order).with_extension(FRESH));
        assert_eq!(OrderOf::parse(&OrderOf::Drain(ServerId(7)).text()), Some(OrderOf::Drain(ServerId(7))));
        fs::remove_dir_all(data).unwrap();
    }
}
