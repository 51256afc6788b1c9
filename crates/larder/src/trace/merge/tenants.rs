//! What tenants are called where traces are merged: no two traces share one.

use std::collections::HashMap;

use crate::input::TraceName;
use crate::trace::text;

/// Renamings that are told.
const TOLD_MAX: usize = 10;

/// A tenant of one of the traces, which are numbered.
type Tenant = (usize, String);

/// The names given so far.
#[derive(Debug, Default)]
pub struct Tenants {
    names: HashMap<Tenant, String>,
    owners: HashMap<String, Tenant>,
    /// A line for each of the first tenants that have another name than in their trace, and how many there are.
    told: String,
    renamed: usize,
}

impl Tenants {
    /// What the output calls `tenant` of the trace `number`: by its own name if it has one and no other trace has the same, else by
    /// the name of the file.
    pub fn name(&mut self, number: usize, trace: &TraceName, tenant: &str) -> String {
        let key = (number, tenant.to_owned());
        if let Some(known) = self.names.get(&key) {
            return known.clone();
        }
        let name = self.free(trace, tenant);
        self.owners.insert(name.clone(), key.clone());
        self.names.insert(key, name.clone());
        if !tenant.is_empty() && name != tenant {
            self.tell(trace, tenant, &name);
        }
        name
    }

    fn free(&self, trace: &TraceName, tenant: &str) -> String {
        let stem = trace.stem();
        let joined = format!("{stem}-{tenant}");
        let firsts =
            if tenant.is_empty() { vec![stem.clone()] } else { vec![tenant.to_owned(), stem, joined] };
        let last = firsts.last().cloned().unwrap_or_default();
        // There is always a number that no tenant has.
        let numbered = (2u64..).map(|number| format!("{last}-{number}"));
        let mut free = firsts.into_iter().chain(numbered).filter(|name| !self.owners.contains_key(name));
        free.next().unwrap_or_default()
    }

    fn tell(&mut self, trace: &TraceName, tenant: &str, name: &str) {
        self.renamed += 1;
        if self.renamed <= TOLD_MAX {
            let (tenant, name) = (text::name(tenant), text::name(name));
            self.told += &format!(
                "note: {trace}: another trace has a tenant {tenant} too: this one is called {name}\n"
            );
        }
    }

    /// The tenants with other names than in their traces.
    pub fn told(&self) -> String {
        match self.renamed.saturating_sub(TOLD_MAX) {
            0 => self.told.clone(),
            more => format!("{}note: {more} more have other names\n", self.told),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn tenants_of_different_traces_have_different_names() {
        let mut tenants = Tenants::default();
        let mut name =
            |number, file: &str, tenant| tenants.name(number, &OsString::from(file).into(), tenant);
        assert_eq!(name(0, "x/mon.csv", "web"), "web");
        assert_eq!(name(0, "x/mon.csv", ""), "mon");
        assert_eq!(name(1, "y/mon.csv", ""), "mon-2");
        assert_eq!(name(1, "y/mon.csv", "db"), "db");
        assert_eq!(name(2, "tue.csv", "web"), "tue");
        assert_eq!(name(2, "tue.csv", "db"), "tue-db");
        assert_eq!(name(2, "tue.csv", "web"), "tue");
        assert_eq!(name(3, "z/tue.csv", "db"), "tue-db-2");
        assert_eq!(name(4, "mon-2.csv", ""), "mon-2-2");
        let expected = "note: tue.csv: another trace has a tenant web too: this one is called tue\n\
            note: tue.csv: another trace has a tenant db too: this one is called tue-db\n\
            note: z/tue.csv: another trace has a tenant db too: this one is called tue-db-2\n";
        assert_eq!(tenants.told(), expected);
    }

    #[test]
    fn no_more_than_ten_renamings_are_told() {
        let mut tenants = Tenants::default();
        for number in 0..2 {
            for tenant in 0..12 {
                tenants.name(number, &OsString::from("x.csv").into(), &tenant.to_string());
            }
        }
        let told = tenants.told();
        assert_eq!((told.lines().count(), told.lines().last()), (11, Some("note: 2 more have other names")));
    }
}
