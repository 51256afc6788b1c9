//! A reactor: one thread, one ring, one engine with its devices, one frontend.

mod build;
mod come_and_go;
mod partitions;
mod run;
mod stop;
mod swap;
mod volumes;

pub use build::{ReactorBuilder, ReactorConfig, ReactorError, ReactorThread};

#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod socket_tests;
#[cfg(test)]
mod stop_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod turn_tests;
#[cfg(test)]
mod volume_tests;
