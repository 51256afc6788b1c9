//! What the API asks of the daemon: the same that the control socket does.

use std::sync::Arc;

use larder_export::ExportCommand;

use crate::analyzer::AnalyzerHandle;
use crate::collector::Collector;
use crate::keeper::KeeperHandle;
use crate::record::Recorders;
use crate::server::Reloader;
use crate::volumes::Volumes;

/// Those who do things.
pub(crate) struct Services {
    /// Who is here, and what they tell.
    pub collector: Arc<Collector<ExportCommand>>,
    /// What can be done to volumes.
    pub volumes: Volumes<ExportCommand>,
    /// Looks after the cache device.
    pub keeper: KeeperHandle,
    /// Knows the last decisions.
    pub analyzer: AnalyzerHandle,
    /// Reads the configuration file again, and keeps what is set besides.
    pub reloader: Arc<Reloader>,
    /// The recordings under way.
    pub recorders: Recorders,
}
