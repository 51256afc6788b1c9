//! How long `larder` takes to decide about many tenants: `thousand [TENANTS [SIZES [WAYS [BUDGET_SHARE]]]]`.
//!
//! Menus are made up, which is not counted. Counted are the choices that are worth looking at, the plan, and the bound of
//! all choices. A budget share below 1 limits the writes to that part of what they would be with no cache at all.

#![allow(clippy::disallowed_methods, reason = "an example may look at the clock")]

use std::time::Instant;

use larder_alloc::larder::solver::{bound, corners, solve};
use larder_alloc::menu::{Menu, Point, Way};
use larder_alloc::optimal::Room;
use larder_alloc::{Candidates, Choice, Profile};
use larder_policy::Rng;

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<f64>().unwrap_or(f64::NAN));
    let mut next = |default: f64| arguments.next().unwrap_or(default);
    let (tenants, sizes, ways, share) = (next(1000.0), next(1000.0), next(12.0), next(0.5));
    let cache_blocks = (tenants * sizes * 10.0) as u64;
    let budget = (share < 1.0).then_some(share);
    let (mut menus, mut most_writes) = (Vec::new(), 0.0);
    for seed in 0..tenants as u64 {
        let menu = menu(&mut Rng::new(seed), sizes as u64, ways as u64);
        most_writes += menu.ways.iter().map(|way| way.points[0].ssd_writes).sum::<f64>() / ways;
        menus.push(menu);
    }
    let room = Room { blocks: cache_blocks, writes: budget.map(|share| share * most_writes) };

    let began = Instant::now();
    let lists: Vec<Candidates> =
        menus.iter().map(|menu| corners(&choices(menu), 0, budget.is_some())).collect();
    let listed = began.elapsed();
    let solved = solve(&lists, room, None);
    let planned = began.elapsed();
    let kept: usize = lists.iter().map(|list| list.choices.len()).sum();
    println!("{:.3} s: {kept} of {} choices kept", listed.as_secs_f64(), tenants * sizes * ways);
    match solved {
        Some(solved) => {
            let cheapest = menus.iter().filter_map(|menu| solved.prices.cheapest(&choices(menu)));
            let bound = bound(cheapest, room, solved.prices);
            let above = 100.0 * (solved.cost / bound - 1.0);
            println!("{:.3} s: a plan", (planned - listed).as_secs_f64());
            let all = began.elapsed().as_secs_f64();
            println!("{all:.3} s in all: cost {:.4}, at most {above:.4} % above the optimum", solved.cost);
        }
        None => println!("no plan"),
    }
}

fn choices(menu: &Menu) -> Vec<Choice> {
    let ways = (0..).zip(&menu.ways);
    let all = ways.flat_map(|(at, way)| way.points.iter().map(move |point| (at, point)));
    let choice = |(way, point): (u32, &Point)| Choice {
        blocks: point.blocks,
        writes: point.ssd_writes,
        cost: menu.requests_per_second * point.latency,
        way,
    };
    all.map(choice).collect()
}

/// Ways whose latency falls in uneven steps; one that writes more waits less.
fn menu(rng: &mut Rng, sizes: u64, ways: u64) -> Menu {
    let requests_per_second = 10.0 + 1000.0 * rng.unit();
    let way = |at: u64| {
        let (mut blocks, mut latency) = (0, 5e-3);
        let mut writes = requests_per_second * (0.2 + at as f64 / ways as f64 * (0.5 + rng.unit()));
        let steps = (0..sizes).map(|_| {
            let point = Point { blocks, latency, ssd_writes: writes, request_hit_ratio: 0.0 };
            blocks += 1 + rng.below(100);
            let jump = if rng.below(50) == 0 { 0.1 } else { 0.002 };
            latency -= (latency - 1e-3 / (1.0 + at as f64)) * jump * rng.unit();
            writes *= 1.0 - jump * 0.5 * rng.unit();
            point
        });
        Way { mode: Profile::default().mode, points: steps.collect() }
    };
    Menu { ways: (0..ways).map(way).collect(), requests_per_second }
}
