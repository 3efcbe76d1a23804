//! The contract, with real processes and real pipes.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod asking_back;
mod bounded;
mod bursts;
mod cancelling;
mod children;
mod closing;
mod completion;
mod config;
mod death;
mod garbage;
mod http;
mod kept_bytes;
mod names;
mod rules;
mod signals;
mod supervised;
mod support;
mod terminal;
mod unread_stderr;
mod unread_stdout;
mod urls;
mod usage;
mod warnings;
