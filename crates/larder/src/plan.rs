//! `larder plan`: which SSD to buy as a cache for some workloads.

mod advice;
mod endurance;
mod notes;
mod offer;
mod options;
mod page;
mod rows;
mod trials;

use std::path::Path;

use larder_daemon::units::HumanSize;
use larder_sim::BlockSize;
use larder_sim::tenants::{Caching, TenantsPlan};
use serde_json::{Value, json};

use crate::problem::Problem;
use crate::simulate::size::{self, SizeChoice};
use crate::simulate::tenants::{self, Common, DEFAULT_ALLOCATOR, FOOTPRINT_BLOCK, Surveyed, Workload, grid};
use crate::{output, table};
use advice::Advice;
use offer::{Offer, Without};
pub use options::Options;
use trials::Trial;

/// Shares of the footprint where no sizes are given.
const SHARES: [f64; 5] = [0.05, 0.1, 0.2, 0.4, 0.8];

/// What was found for one workload.
pub struct Planned {
    name: String,
    footprint_bytes: u64,
    requests: u64,
    tenants: usize,
    years: f64,
    offers: Vec<Offer>,
    without: Without,
    /// Some tenant's requests wait for those before, so that SSDs differ in IOPS.
    is_closed: bool,
    advice: Option<Advice>,
}

/// Simulate every size under every endurance, and tell which to buy.
pub fn run(options: &Options) -> Result<(), Problem> {
    check(options)?;
    let all = tenants::workloads(&options.asked, &options.arrivals, options.limit, &options.traces)?;
    let openers = all
        .iter()
        .map(|workload| tenants::openers(workload, options.format, &options.arrivals))
        .collect::<Result<Vec<_>, _>>()?;
    let surveys = tenants::survey(
        &all,
        options.format,
        |workload| block(options, workload),
        options.limit,
        options.quiet,
    )?;
    let mut trials = Vec::new();
    for (at, (workload, surveyed)) in all.iter().zip(&surveys).enumerate() {
        let length = workload.length(&options.arrivals, Some(surveyed));
        let trial =
            |plan| Trial { owner: at, plan, length, sources: &openers[at], requests: surveyed.requests };
        let plans = free_plans(options, workload, surveyed)?;
        length.check()?;
        trials.extend(plans.into_iter().map(trial));
    }
    let without = trials::without(options, &trials, all.len())?;
    let offers = trials::offers(options, &trials)?;
    let of_workload = |(at, (workload, surveyed))| {
        let (own, offers): (Vec<_>, Vec<_>) =
            trials.iter().zip(&offers).filter(|(trial, _)| trial.owner == at).unzip();
        let is_closed = own.iter().any(|trial| trial.is_closed());
        Planned::new(
            options,
            workload,
            surveyed,
            (offers.into_iter().flatten().cloned().collect(), without[at], is_closed),
        )
    };
    let planned: Vec<_> = all.iter().zip(&surveys).enumerate().map(of_workload).collect();
    tell(options, &planned)
}

/// What cannot be is told before the work.
fn check(options: &Options) -> Result<(), Problem> {
    let (prices, classes) = (options.price.len(), options.endurance.len());
    if prices > 1 && prices != classes {
        let what = format!("{prices} prices do not fit {classes} endurances");
        return Err(Problem::new(what, "give one price for all, or one for each of --endurance"));
    }
    let json = options.json.iter().flatten().map(AsRef::<Path>::as_ref);
    json.chain(options.html.as_deref()).try_for_each(output::check)
}

fn block(options: &Options, workload: &Workload) -> BlockSize {
    options.block.or(workload.block).unwrap_or(FOOTPRINT_BLOCK)
}

/// The runs over a workload without a limit of SSD writes, by size.
fn free_plans(
    options: &Options,
    workload: &Workload,
    surveyed: &Surveyed,
) -> Result<Vec<TenantsPlan>, Problem> {
    let block = block(options, workload);
    if surveyed.footprint_blocks == 0 {
        let what = format!(
            "the traces of {} hold no reads or writes: no SSD would bring them anything",
            workload.title()
        );
        return Err(Problem::new(what, "give other traces"));
    }
    let sizes = match sizes(options, workload) {
        [] => default_sizes(surveyed.footprint_blocks * u64::from(block.bytes())),
        sizes => size::resolve(sizes, block, surveyed.footprint_blocks)?
            .into_iter()
            .map(|blocks| blocks * u64::from(block.bytes()))
            .collect(),
    };
    let caching = Caching {
        block: options.block.or(workload.block),
        epoch_seconds: options.machine.epoch.or(workload.epoch),
        mover_seconds: options.machine.mover,
        ..Caching::default()
    };
    let common = Common { limit: options.limit, seed: options.seed, caching };
    let plan = |bytes| {
        tenants::least_fits(workload, &options.machine, DEFAULT_ALLOCATOR, bytes, "--size")?;
        Ok(tenants::plan(workload, &options.arrivals, &options.machine, DEFAULT_ALLOCATOR, bytes, common))
    };
    sizes.into_iter().map(plan).collect()
}

/// Sizes that are asked for: those of the command line go before those of the scenario.
fn sizes<'a>(options: &'a Options, workload: &'a Workload) -> &'a [SizeChoice] {
    if options.size.is_empty() { &workload.sizes } else { &options.size }
}

/// Shares of the footprint, rounded up to powers of two: what a part of an SSD, or a whole one, is like.
fn default_sizes(footprint_bytes: u64) -> Vec<u64> {
    let size =
        |share: f64| ((footprint_bytes as f64 * share) as u64).max(1 << 20).checked_next_power_of_two();
    let mut sizes: Vec<u64> = SHARES.into_iter().filter_map(size).collect();
    sizes.dedup();
    sizes
}

impl Planned {
    fn new(
        options: &Options,
        workload: &Workload,
        surveyed: &Surveyed,
        (mut offers, without, is_closed): (Vec<Offer>, Without, bool),
    ) -> Self {
        let (asked, block) = (sizes(options, workload), block(options, workload));
        offers.iter_mut().for_each(|offer| offer.asked = size::decimal(asked, block, offer.bytes));
        Self {
            name: workload.title(),
            footprint_bytes: surveyed.footprint_blocks * u64::from(block.bytes()),
            requests: surveyed.requests,
            tenants: workload.tenants.len(),
            years: options.years,
            advice: advice::advise(&offers, &without, options.years, options.worth),
            offers,
            without,
            is_closed,
        }
    }

    fn head(&self) -> String {
        let tenants = if self.tenants == 1 { "1 tenant".into() } else { format!("{} tenants", self.tenants) };
        format!(
            "{tenants}, {} requests, footprint {}",
            crate::number::grouped(self.requests),
            HumanSize(self.footprint_bytes)
        )
    }

    fn json(&self) -> Value {
        json!({
            "workload": self.name,
            "footprint_bytes": self.footprint_bytes,
            "requests": self.requests,
            "offers": self.offers,
            "without_ssd": self.without,
            "recommended": self.best().map(|at| &self.offers[at]),
            "reason": self.advice.as_ref().map(|advice| &advice.reason),
        })
    }

    /// The place of the recommended one.
    fn best(&self) -> Option<usize> {
        self.advice.as_ref()?.at
    }

    /// What is had without an SSD, and every offer.
    fn rows(&self) -> Vec<[String; 12]> {
        [rows::without(&self.without)].into_iter().chain(self.offers.iter().map(rows::row)).collect()
    }

    /// A table, and what to buy below it.
    fn report(&self, width: u16) -> String {
        let best = self.best().map_or(0, |at| at + 1);
        let mut rows = self.rows();
        rows.iter_mut().enumerate().for_each(|(at, row)| row[0] += if at == best { "*" } else { " " });
        let table = if self.is_closed {
            grid(rows::HEADINGS, rows, &[1], width)
        } else {
            grid(rows::but_last(rows::HEADINGS), rows.into_iter().map(rows::but_last), &[1], width)
        };
        let advice = self.advice.as_ref().map_or("", |advice| &advice.reason);
        let note = notes::unlimited(&self.offers).map_or_else(String::new, |note| format!("{note}\n"));
        format!("{}: {}\n\n{table}\n* {advice}\n{note}", self.name, self.head())
    }
}

fn tell(options: &Options, all: &[Planned]) -> Result<(), Problem> {
    if let Some(file) = &options.json {
        let values: Vec<_> = all.iter().map(Planned::json).collect();
        let text = match &values[..] {
            [one] => format!("{one:#}\n"),
            several => format!("{:#}\n", Value::from(several)),
        };
        file.as_deref().map_or_else(|| output::print(&text), |file| output::save(file, &text))?;
    }
    if let Some(file) = &options.html {
        output::save(file, &page::html(all))?;
    }
    if options.json == Some(None) || options.quiet {
        return Ok(());
    }
    let sections: Vec<_> = all.iter().map(|planned| planned.report(table::terminal_width())).collect();
    output::print(&sections.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_double() {
        assert_eq!(default_sizes(1 << 30), [1 << 26, 1 << 27, 1 << 28, 1 << 29, 1 << 30]);
        assert_eq!(default_sizes(4096), [1 << 20]);
    }
}
