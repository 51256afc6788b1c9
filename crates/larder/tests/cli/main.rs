//! The real binary, from the outside: what it says, what it serves, what it leaves behind.

mod analyze;
mod cache;
mod doctor;
mod experiments;
mod help;
mod lab;
mod plan;
mod replay;
mod reproduce;
mod serve;
mod simulate;
mod startup_errors;
mod tenants;
mod trace;
mod volume;
mod wear;
