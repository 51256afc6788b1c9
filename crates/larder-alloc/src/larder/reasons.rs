//! A decision in words.

use super::memory::Known;
use super::promises::seconds;
use super::proportional::{Kept, Member};
use super::solver::Prices;
use super::{Chosen, Plan};
use crate::words::grouped;
use crate::{ConfiguredPolicy, Decision, Mode, Prediction, Tenant};

/// Of a tenant that gets the most that it can use at the price of SSD writes, of which it would hold so many blocks.
pub(super) fn at_price(held: u32) -> String {
    format!("no more: at the price of SSD writes its blocks take about {} of the cache", grouped(held))
}

/// What keeps a tenant from the proportion that its share gives it among those that have one; `None` where nothing does.
pub(super) fn of_share(share: f64, member: Option<Member>) -> Option<String> {
    let Some(Member { wanted, kept, .. }) = member else {
        return Some(format!(
            "its share of {share} is not kept: no proportions keep to the budget of SSD writes"
        ));
    };
    match kept {
        Kept::Yes => None,
        Kept::TooSlow => Some(format!(
            "its share of {share} asks for a lower latency than any size that it may have brings"
        )),
        Kept::TooFast => Some(format!(
            "its share of {share} would let it wait {} a request, but it may get no fewer blocks",
            seconds(wanted)
        )),
    }
}

/// The decision on tenant `at`, that gets `quota` blocks. `more` is what else is to be told of it.
pub(super) fn decide(
    tenant: &Tenant<'_>,
    known: &Known,
    plan: &Plan,
    at: usize,
    quota: u64,
    more: Option<&str>,
) -> Decision {
    let Chosen { choice, member } = plan.chosen[at];
    // No quota exceeds the cache.
    let quota_blocks = quota as u32;
    let and_more = more.map_or(String::new(), |words| format!("; {words}"));
    let Some(way) = known.menu.ways.get(choice.way as usize) else {
        let reason = format!("{} blocks: nothing is known of it yet{and_more}", grouped(quota));
        return Decision { quota_blocks, mode: unknown_mode(tenant), predicted: None, reason };
    };
    let point = way.at(quota);
    let latency = member.map_or(known.factor() * point.latency, |member| member.latency);
    let predicted = Prediction {
        latency,
        request_hit_ratio: point.request_hit_ratio,
        ssd_writes_per_second: point.ssd_writes,
    };
    let Mode { caching, write } = way.mode;
    let mut reason = format!(
        "{} blocks, {caching} {write}: {} a request (none cached: {}; {:.2} hits), {:.0} blocks/s to the SSD",
        grouped(quota),
        seconds(latency),
        seconds(known.factor() * way.at(0).latency),
        point.request_hit_ratio,
        point.ssd_writes
    );
    reason.push_str(&format!("; {}{and_more}", plan_words(plan)));
    Decision { quota_blocks, mode: way.mode, predicted: Some(predicted), reason }
}

fn unknown_mode(tenant: &Tenant<'_>) -> Mode {
    match tenant.configured_policy {
        ConfiguredPolicy::Fixed(write) => Mode { write, ..tenant.mode },
        ConfiguredPolicy::Auto => tenant.mode,
    }
}

/// How good the plan is of which this is a part.
fn plan_words(plan: &Plan) -> String {
    match &plan.solved {
        None => "no plan keeps to the budget of SSD writes: the one that writes the least".to_owned(),
        Some(solved) => {
            let quality = match solved.is_exact() {
                true => "the best plan there is".to_owned(),
                false => format!("within {:.2} % of the best plan", 100.0 * solved.gap()),
            };
            quality + &price_words(solved.prices)
        }
    }
}

/// What the limits cost where they bind: how much less all requests together would wait in a second.
fn price_words(prices: Prices) -> String {
    let price = |price: f64, words: &str| match price > 0.0 {
        true => format!(", {words} would save {} a second", seconds(1000.0 * price)),
        false => String::new(),
    };
    price(prices.block, "1,000 more blocks") + &price(prices.write, "1,000 more SSD writes a second")
}
