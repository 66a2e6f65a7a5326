#![deny(unsafe_code)]
pub mod base;
pub mod commands;
pub mod config;
pub mod doc_index;
pub mod driver;
pub mod engine;
pub mod farm;
pub mod handler;
pub mod limits;
pub mod proto;
pub mod rings;
pub mod sim;
pub mod spider;
pub mod store_server;
pub mod url_server;
