//! The best choices with as many reservations as can be kept together.

use super::solve::{Room, Solution, Unsolved, solve, thrifty};
use crate::choices::{self, outstanding};
use crate::menu::Menu;
use crate::{AllocError, Candidates, Choice, Constraints, Findings, Goals, Reservation, Tenant};

/// What became of a tenant's reservation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Promise {
    /// It has none.
    None,
    /// The choice meets it.
    Granted(Reservation),
    /// It cannot be met.
    Refused { promised: Reservation, best: Reservation },
}

impl Promise {
    fn words(self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Granted(promised) => Some(format!("the reservation of {} is met", reserved(promised))),
            Self::Refused { promised, best } => Some(format!(
                "the reservation of {} is refused: {} is the best that can be had",
                reserved(promised),
                reserved(best)
            )),
        }
    }
}

fn reserved(promised: Reservation) -> String {
    match promised {
        Reservation::Latency(seconds) => format!("{:.3} ms", seconds * 1000.0),
        Reservation::Iops(iops) => format!("{iops:.0} IOPS"),
    }
}

/// One choice of each tenant.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Plan {
    pub choices: Vec<Choice>,
    pub promises: Vec<Promise>,
    /// All tenants' cost together.
    cost: f64,
    /// Every combination exceeds the budget of SSD writes; this one by the least.
    over_budget: bool,
}

impl Plan {
    /// Why these are the choices, and what became of the reservation of the tenant at `at`.
    pub(super) fn words(&self, at: usize) -> String {
        let why = match self.over_budget {
            true => "every choice exceeds the budget of SSD writes, this one by the least".to_owned(),
            false => {
                format!(
                    "the tenants' requests wait {:.3} s per second in all, weighted: the least",
                    self.cost
                )
            }
        };
        match self.promises[at].words() {
            Some(promise) => format!("{why}; {promise}"),
            None => why,
        }
    }
}

/// The best for these tenants and their menus. The tenants' minima fit the cache together.
///
/// # Errors
/// [`AllocError::TooLarge`]
pub(super) fn plan(
    tenants: &[Tenant<'_>],
    menus: &[Menu],
    constraints: &Constraints,
) -> Result<Plan, AllocError> {
    let room = Room { blocks: constraints.cache_blocks.into(), writes: constraints.ssd_writes_per_second };
    let mut planner = Planner { tenants, menus, constraints, room, lists: Vec::new(), promises: Vec::new() };
    (0..tenants.len()).for_each(|at| planner.add(at));
    planner.plan()
}

struct Planner<'a> {
    tenants: &'a [Tenant<'a>],
    menus: &'a [Menu],
    constraints: &'a Constraints,
    room: Room,
    /// What each tenant may choose from: what meets its reservation, where it is granted.
    lists: Vec<Candidates>,
    promises: Vec<Promise>,
}

impl Planner<'_> {
    /// The choices of the next tenant: a reservation that can be met by the whole cache is granted at first.
    fn add(&mut self, at: usize) {
        let (list, promise) = match (self.of(at, &self.tenants[at]), self.tenants[at].goals.reservation) {
            (Ok(list), None) => (list, Promise::None),
            (Ok(list), Some(promised)) => (list, Promise::Granted(promised)),
            (Err(unmet), _) => {
                (self.free(at), Promise::Refused { promised: unmet.promised, best: unmet.best })
            }
        };
        self.lists.push(list);
        self.promises.push(promise);
    }

    fn of(&self, at: usize, tenant: &Tenant<'_>) -> Result<Candidates, choices::Unmet> {
        choices::of(tenant, &self.menus[at], self.constraints)
    }

    /// The choices of a tenant whose reservation is not looked at.
    fn free(&self, at: usize) -> Candidates {
        let tenant = &self.tenants[at];
        let goals = Goals { reservation: None, ..tenant.goals };
        self.of(at, &Tenant { goals, ..*tenant }).expect("only a reservation can be unmet")
    }

    fn plan(mut self) -> Result<Plan, AllocError> {
        if let Some(solution) = self.solved(&self.lists)? {
            return Ok(self.carried_out(&solution));
        }
        let free = (0..self.tenants.len()).map(|at| self.free(at)).collect();
        let wanted = std::mem::replace(&mut self.lists, free);
        match self.solved(&self.lists)? {
            None => self.over_budget(),
            Some(free) => self.one_by_one(wanted, free),
        }
    }

    /// Grant the reservations of the first tenants, as far as they can be kept together. `solution` is without any.
    fn one_by_one(mut self, wanted: Vec<Candidates>, mut solution: Solution) -> Result<Plan, AllocError> {
        for (at, wanted) in wanted.into_iter().enumerate() {
            let Promise::Granted(promised) = self.promises[at] else { continue };
            let free = std::mem::replace(&mut self.lists[at], wanted);
            if let Some(with) = self.solved(&self.lists)? {
                solution = with;
                continue;
            }
            self.lists[at] = free;
            let best = self.best(at, promised)?;
            self.promises[at] = Promise::Refused { promised, best };
        }
        Ok(self.carried_out(&solution))
    }

    /// The best that the tenant at `at` can have beside what the others may choose from.
    fn best(&self, at: usize, promised: Reservation) -> Result<Reservation, AllocError> {
        let mut lists = self.lists.clone();
        for (other, list) in lists.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let costless = self.lists[other].choices.iter().map(|choice| Choice { cost: 0.0, ..*choice });
            *list = Candidates::new(costless.collect(), self.room.writes.is_some());
        }
        let pick = self.solved(&lists)?.map_or(0, |solution| solution.picks[at]);
        Ok(self.reached(at, &self.lists[at].choices[pick], promised))
    }

    /// What a choice brings, in the terms of the promise.
    fn reached(&self, at: usize, choice: &Choice, promised: Reservation) -> Reservation {
        let way = self.menus[at].ways.get(choice.way as usize);
        let latency = way.map_or(0.0, |way| way.at(choice.blocks).latency);
        let outstanding = self.tenants[at].found().map_or(1.0, |found: &Findings| outstanding(found));
        match promised {
            Reservation::Latency(_) => Reservation::Latency(latency),
            Reservation::Iops(_) => Reservation::Iops(outstanding / latency),
        }
    }

    /// What writes the least, whatever it costs.
    fn over_budget(mut self) -> Result<Plan, AllocError> {
        self.lists = thrifty(&self.lists);
        self.room.writes = None;
        let solution = self.solved(&self.lists)?;
        let picks = solution.map_or_else(|| vec![0; self.lists.len()], |solution| solution.picks);
        for (at, pick) in picks.iter().enumerate() {
            if let Promise::Granted(promised) = self.promises[at] {
                let best = self.reached(at, &self.lists[at].choices[*pick], promised);
                self.promises[at] = Promise::Refused { promised, best };
            }
        }
        let choices = self.taken(&picks);
        Ok(Plan { choices, promises: self.promises, cost: 0.0, over_budget: true })
    }

    fn carried_out(self, solution: &Solution) -> Plan {
        let choices = self.taken(&solution.picks);
        Plan { choices, promises: self.promises, cost: solution.cost, over_budget: false }
    }

    fn taken(&self, picks: &[usize]) -> Vec<Choice> {
        self.lists.iter().zip(picks).map(|(list, &pick)| list.choices[pick]).collect()
    }

    /// The best of these lists; none where nothing fits.
    fn solved(&self, lists: &[Candidates]) -> Result<Option<Solution>, AllocError> {
        match solve(lists, self.room) {
            Ok(solution) => Ok(Some(solution)),
            Err(Unsolved::Infeasible) => Ok(None),
            Err(Unsolved::TooLarge) => Err(AllocError::TooLarge { tenants: lists.len() }),
        }
    }
}
