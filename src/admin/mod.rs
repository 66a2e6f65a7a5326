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
//! | file      | holds                                                            |
//! |-----------|------------------------------------------------------------------|
//! | `metrics` | the figures of a process, as Prometheus reads them          |
//! | `problem` | why a request is refused, as RFC 9457 has it                     |

pub(crate) mod metrics;
mod problem;
