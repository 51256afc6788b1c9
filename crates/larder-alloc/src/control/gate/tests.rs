//! What enters at which price.

use super::*;

const NOMINAL: Latencies =
    Latencies { read_hit: 1e-4, read_miss: 5e-3, cached_write: 1e-4, backing_write: 2e-3, write_back: 0.0 };

const WB: [Option<WritePolicy>; 1] = [Some(WritePolicy::WriteBack)];

fn gate(tenants: usize) -> Gate {
    Gate::new(tenants, 1 << 18, NOMINAL, 0.25)
}

/// A request of so many blocks for which the backing takes its nominal time.
fn request(gate: &mut Gate, tenant: usize, write: bool, first: u64, blocks: u64, now: f64) -> bool {
    let keys: Vec<u64> = (first..first + blocks).collect();
    let (kind, enters) = gate.ask(tenant, write, &keys, now);
    let (by, seconds) = match write {
        true => (ServedBy::BackingWrite, NOMINAL.backing_write),
        false => (ServedBy::ReadMiss, NOMINAL.read_miss),
    };
    gate.served(tenant, kind, by, blocks, seconds);
    enters
}

#[test]
fn everything_enters_until_there_is_a_price() {
    let mut gate = gate(1);
    assert!((0..100).all(|at| request(&mut gate, 0, at % 2 == 0, at * 10, 1 + at % 9, 0.0)));
}

/// A hundred requests a second, every other a write of one block, the others writes of 50: after a second, how many of the next hundred enter.
fn small_and_large(rate: f64) -> [usize; 2] {
    let mut gate = gate(1);
    let mut entered = [0; 2];
    for at in 0..200u64 {
        if at == 100 {
            gate.price(1.0, rate, 100.0, 1.0, &WB);
            entered = [0; 2];
        }
        let blocks = [1, 50][at as usize % 2];
        let enters = request(&mut gate, 0, true, at * 100, blocks, at as f64 / 100.0);
        entered[at as usize % 2] += usize::from(enters);
    }
    entered
}

#[test]
fn small_writes_enter_first_and_of_the_last_kind_a_part() {
    assert_eq!(small_and_large(25.0), [25, 0]);
    assert_eq!(small_and_large(50.0), [50, 0]);
    assert_eq!(small_and_large(50.0 + 50.0 * 25.0), [50, 25]);
    assert_eq!(small_and_large(1e9), [50, 50]);
}

#[test]
fn reads_of_those_who_read_again_enter_before_those_of_who_does_not() {
    let mut gate = gate(2);
    let mut entered = [0; 2];
    for at in 0..4000u64 {
        let now = at as f64 / 100.0;
        if at % 100 == 0 {
            gate.price(now, 60.0, 20.0, 1.0, &[WB[0], WB[0]]);
        }
        let (again, anew) = (at % 500, 1_000_000 + at);
        let enters =
            [request(&mut gate, 0, false, again, 1, now), request(&mut gate, 1, false, anew, 1, now)];
        if at >= 3000 {
            entered.iter_mut().zip(enters).for_each(|(count, enters)| *count += u64::from(enters));
        }
    }
    // There is room for 600 of 2000, about: the price follows what is offered.
    assert!((500..=800).contains(&entered[0]) && entered[1] < 50, "{entered:?}");
}

#[test]
fn who_is_not_there_takes_nothing_and_who_comes_anew_is_let_in() {
    let mut gate = gate(2);
    for at in 0..100 {
        request(&mut gate, 0, true, at, 1, 0.0);
        request(&mut gate, 1, true, 1000 + at, 1, 0.0);
    }
    gate.price(1.0, 100.0, 100.0, 1.0, &[None, WB[0]]);
    assert!((0..50).all(|at| request(&mut gate, 1, true, 2000 + at, 1, 1.0)));
    gate.price(2.0, 0.0, 100.0, 1.0, &[WB[0], WB[0]]);
    assert!(!request(&mut gate, 1, true, 3000, 1, 2.0));
    gate.restart(1, 2.0);
    assert!(request(&mut gate, 1, true, 3001, 1, 2.0));
}
