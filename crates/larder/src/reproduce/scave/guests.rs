//! The VMs of the co-runs: what is recorded in place of the paper's traces, and what stands in for that.

use crate::reproduce::guests::Known;

const WEB: Known = Known {
    name: "web",
    file: "recorded/web.csv.zst",
    stand_in: "zipf:theta=1.0,blocks=100000,requests=300000,read=0.98,seed=1",
};

const ROCKSDB: Known = Known {
    name: "rocksdb",
    file: "recorded/rocksdb.csv.zst",
    stand_in: "gaussian:centre=0.5,deviation=0.1,blocks=100000,requests=300000,read=0.99,seed=2",
};

/// Hardly a block comes again.
const WEB_1: Known = Known {
    name: "web_1",
    file: "msr_web_1.csv.gz",
    stand_in: "uniform:blocks=2000000,requests=200000,read=0.6,seed=3",
};

const DTRS: Known = Known {
    name: "dtrs",
    file: "mspc_DTRS1K.trace.zst",
    stand_in: "uniform:blocks=2000000,requests=200000,read=0.9,seed=4",
};

/// The co-runs: the paper's WebSearch2 and tpch_q9, tpch_q21 and proj_4, mds_1 and proj_4.
pub const PAIRS: [(&str, [Known; 2]); 3] =
    [("strong + strong", [WEB, ROCKSDB]), ("strong + weak", [ROCKSDB, DTRS]), ("weak + weak", [WEB_1, DTRS])];
