//! Metrics of the volumes: what guests ask of them, their backings, and the states in which they are.

use larder_io::{DeviceStats, VolumeSnapshot};

use super::family::{Family, Page, flag};
use crate::collector::Observed;
use crate::status::{RequestsOfKind, VolumeState, VolumeStatus};

/// A volume with its tenant, and what only its reactor tells.
struct Told<'a> {
    tenant: &'a str,
    status: &'a VolumeStatus,
    backing: &'a DeviceStats,
}

pub(super) fn tell(page: &mut Page, observed: &Observed) {
    let of_tenants = observed
        .status
        .tenants
        .iter()
        .flat_map(|tenant| tenant.volumes.iter().map(move |volume| (tenant, volume)));
    let told = of_tenants.filter_map(|(tenant, status)| {
        let backing = &find(observed, &status.name)?.backing;
        Some(Told { tenant: &tenant.name, status, backing })
    });
    let volumes: Vec<Told<'_>> = told.collect();
    requests(page, &volumes);
    states(page, &volumes);
    troubles(page, &volumes);
    backings(page, &volumes);
}

fn find<'a>(observed: &'a Observed, name: &str) -> Option<&'a VolumeSnapshot> {
    let (_, place) = observed.hosted.volume(name)?;
    observed.snapshots.get(place.reactor)?.volumes.iter().find(|volume| volume.volume == place.volume)
}

impl Told<'_> {
    fn labels(&self) -> [(&str, &str); 2] {
        [("tenant", self.tenant), ("volume", &self.status.name)]
    }

    fn labels_for<'a>(&'a self, op: &'a str) -> [(&'a str, &'a str); 3] {
        let [tenant, volume] = self.labels();
        [tenant, volume, ("op", op)]
    }
}

fn requests(page: &mut Page, volumes: &[Told<'_>]) {
    let by_op = |family: &mut Family, value: fn(RequestsOfKind) -> u64| {
        for volume in volumes {
            for (op, requests) in volume.status.requests.by_kind() {
                family.add(&volume.labels_for(op), value(requests) as f64);
            }
        }
    };
    page.counter("larder_volume_requests_total", "Requests of guests that have ended.", |family| {
        by_op(family, |requests| requests.requests);
    });
    page.counter("larder_volume_request_bytes_total", "Bytes of these requests.", |family| {
        by_op(family, |requests| requests.bytes);
    });
    page.counter("larder_volume_request_errors_total", "Requests that ended with an error.", |family| {
        by_op(family, |requests| requests.errors);
    });
}

/// Something of each volume.
fn each(family: &mut Family, volumes: &[Told<'_>], value: impl Fn(&VolumeStatus) -> f64) {
    volumes.iter().for_each(|volume| family.add(&volume.labels(), value(volume.status)));
}

fn states(page: &mut Page, volumes: &[Told<'_>]) {
    page.gauge("larder_volume_size_bytes", "Size of the volume.", |family| {
        each(family, volumes, |volume| volume.size_bytes as f64);
    });
    page.gauge("larder_volume_clients", "Clients that use the volume now.", |family| {
        each(family, volumes, |volume| volume.clients as f64);
    });
    page.gauge(
        "larder_volume_dirty_bytes",
        "Bytes that are newer on the cache device than on the backing.",
        |family| each(family, volumes, |volume| volume.dirty_bytes as f64),
    );
    page.gauge("larder_volume_draining", "1 while nothing of the volume may become dirty.", |family| {
        each(family, volumes, |volume| flag(matches!(volume.draining.as_str(), "on" | "done")));
    });
    page.gauge("larder_volume_quiet", "1 while its writes wait until it is thawed.", |family| {
        each(family, volumes, |volume| flag(volume.quiet));
    });
    page.gauge("larder_volume_migrating", "1 while its guest leaves for another host.", |family| {
        each(family, volumes, |volume| flag(volume.migrating));
    });
}

fn troubles(page: &mut Page, volumes: &[Told<'_>]) {
    page.gauge(
        "larder_volume_failed",
        "1 where nothing is served: the cache device failed with data that the backing does not have.",
        |family| each(family, volumes, |volume| flag(volume.state == VolumeState::Failed)),
    );
    page.gauge(
        "larder_volume_lost_bytes",
        "Bytes that only the failed cache device has, or dirty ones that are damaged on it.",
        |family| each(family, volumes, |volume| volume.lost_bytes as f64),
    );
    page.gauge(
        "larder_volume_slow_cache",
        "1 while reads pass the cache by, since it is slower than the backing.",
        |family| each(family, volumes, |volume| flag(volume.slow_cache)),
    );
    page.gauge(
        "larder_volume_backing_failing_seconds",
        "For how long the backing has not taken what is to be written back; 0 where it does.",
        |family| each(family, volumes, |volume| volume.backing_failing_seconds.unwrap_or(0.0)),
    );
    page.gauge(
        "larder_volume_epochs_behind",
        "Under ordered write-back, how many flushes the backing is behind.",
        |family| {
            for volume in volumes {
                let behind = volume.status.epochs_behind.map(|epochs| epochs as f64);
                family.add_some(&volume.labels(), behind);
            }
        },
    );
}

fn backings(page: &mut Page, volumes: &[Told<'_>]) {
    page.summary(
        "larder_volume_backing_operation_duration_seconds",
        "Reads and writes of the backing, and the time that they took.",
        |family| {
            for volume in volumes {
                let DeviceStats { reads, read_ns, writes, write_ns, .. } = *volume.backing;
                family.add_times(&volume.labels_for("read"), reads, read_ns);
                family.add_times(&volume.labels_for("write"), writes, write_ns);
            }
        },
    );
    page.counter("larder_volume_backing_errors_total", "Failed operations on the backing.", |family| {
        volumes.iter().for_each(|volume| family.add(&volume.labels(), volume.backing.errors as f64));
    });
    page.gauge("larder_volume_backing_operations_in_flight", "Operations on the backing now.", |family| {
        volumes.iter().for_each(|volume| family.add(&volume.labels(), f64::from(volume.backing.in_flight)));
    });
}
