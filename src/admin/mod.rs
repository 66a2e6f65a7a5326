//! The listener of a process: what an operator, a script and a monitor ask it, over HTTP/1.1.
//!
//! ```text
//!   unix DATA/admin.sock ─┐         ┌──────────── control thread: tokio, on tokio-uring where there is io_uring ───────────┐
//!   tcp 127.0.0.1:7180 ───┴ accept ►│ hyper ► guard: Host, Origin, token ► axum: a row of ROUTES ► Desk ► JSON, or a Problem │
//!                                   └──────────────────────────────────────────┬───────────────────────────────────────────┘
//!                                                   questions with a way back ─┴► scheduler ► index, shards
//! ```
//!
//! Asynchronous code is here and nowhere else, on one thread that no other waits for. The engine knows nothing of HTTP: it
//! offers a desk that answers questions. What decides (who may ask, what an answer says) is plain functions over values.
//!
//! | file      | holds                                                             |
//! |-----------|-------------------------------------------------------------------|
//! | `doors`   | where a process listens, taken before it starts                   |
//! | `socket`  | the socket in the data directory                                  |
//! | `server`  | the control thread, its runtime, and a place for each connection  |
//! | `conn`    | one connection: bounds, deadlines, the headers of every answer    |
//! | `guard`   | who may ask; `token`: what must be shown over TCP                 |
//! | `routes`  | every path, in one table                                          |
//! | `office`  | what answers are made from                                        |
//! | `answers` | what is done under each path; `now`: a process at one moment      |
//! | `metrics` | the figures of a process, as Prometheus reads them                |
//! | `problem` | why a request is refused, as RFC 9457 has it                      |

mod answers;
mod conn;
mod doors;
mod guard;
pub(crate) mod metrics;
mod now;
mod office;
mod problem;
mod routes;
mod server;
mod socket;
#[cfg(test)]
mod tests;
mod token;

pub use doors::{Doors, DoorsError};
pub use server::Listener;
pub(crate) use socket::{ADMIN_SOCKET, connect};
pub(crate) use token::TOKEN_FILE;
