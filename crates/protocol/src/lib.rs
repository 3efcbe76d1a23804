//! The Model Context Protocol without I/O.
#![doc = "
```text
 bytes ──► framing ──► jsonrpc ──► engine ──► events      (to the application)
 bytes ◄── framing ◄── jsonrpc ◄── engine ◄── verbs       (from the application)
```
"]

pub mod engine;
pub mod framing;
pub mod jsonrpc;
pub mod types;
