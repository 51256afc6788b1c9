//! libnbd from Python: replies of both kinds, FUA, trim, zero, block status, refusals, several connections; on a unix socket and on TCP.

use crate::common::process::{program, run};
use crate::common::setup::{MIB, Setup, free_tcp_address};

#[test]
fn nbdsh_finds_the_protocol_kept() {
    let address = free_tcp_address();
    let size = 16 * MIB;
    let setup = Setup::new("4MiB").tenant("a", "write_policy = \"wt\"").volume("a0", size);
    let backing = setup.sparse_file("b0", size);
    let setup =
        setup.tenant("b", "write_policy = \"ro\"").volume_at("b0", &backing, &format!("tcp:{address}"));
    let larder = setup.start();

    let mut nbdsh = program("nbdsh");
    nbdsh.env("A", larder.uri("a0")).env("B", format!("nbd://{address}/b0")).env("SIZE", size.to_string());
    let said = run(nbdsh.args(["-c", include_str!("nbdsh.py")]), larder.folder());
    assert_eq!(said.trim(), "all held");
    larder.stop();
}
