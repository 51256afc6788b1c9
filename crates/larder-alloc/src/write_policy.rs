//! The write policy of a tenant: ECI-Cache's Algorithm 3.
//!
//! Where WAW and WAR make up a large share of all accesses, most cached writes would be overwritten before anybody
//! reads them: the writes go past the cache (`ro`), which spares the SSD. The paper chooses between `ro` and
//! write-back; where a cache cannot hold dirty data, `wt` stands in its place. The paper's pseudo-code sets `ro` and never
//! takes it back, its text re-assesses every interval; this follows the text.

use crate::{ConfiguredPolicy, Constraints, Tenant, WritePolicy};

/// The policy, and the half-sentence that gives the reason.
pub(crate) fn choose(tenant: &Tenant<'_>, constraints: &Constraints) -> (WritePolicy, String) {
    if let ConfiguredPolicy::Fixed(policy) = tenant.configured_policy {
        return (policy, format!("write policy {} as configured", policy.as_str()));
    }
    let Some(findings) = tenant.active() else {
        let policy = tenant.mode.write;
        return (policy, format!("write policy stays {policy}"));
    };
    let (ratio, threshold) = (findings.write_ratio(), constraints.write_threshold);
    let (policy, relation) = match ratio >= threshold {
        true => (WritePolicy::ReadOnly, ">="),
        false if constraints.write_back => (WritePolicy::WriteBack, "<"),
        false => (WritePolicy::WriteThrough, "<"),
    };
    let ratio = rounded_beside(ratio, threshold);
    (policy, format!("write ratio {ratio} {relation} {threshold:.2}: {}", policy.as_str()))
}

/// Two decimals, or as many as it takes (up to six) to be told from the threshold's two.
fn rounded_beside(ratio: f64, threshold: f64) -> String {
    let differs = |text: &String| {
        ratio == threshold || *text != format!("{threshold:.*}", text.len().saturating_sub(2))
    };
    let shortest = (2..6).map(|decimals| format!("{ratio:.decimals$}")).find(differs);
    shortest.unwrap_or_else(|| format!("{ratio:.6}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Findings, Goals, Mode};
    use WritePolicy::{ReadOnly, WriteThrough};
    use larder_locality::{ClassCounts, EpochFindings};
    use larder_policy::spec::CachingSpec;

    fn findings(waw: u64, war: u64, rar: u64) -> Findings {
        let classes = ClassCounts { waw, war, rar, ..ClassCounts::default() };
        EpochFindings { accesses: classes.total(), classes, ..EpochFindings::default() }.into()
    }

    fn decide(findings: Option<&Findings>, configured_policy: ConfiguredPolicy) -> (WritePolicy, String) {
        let tenant = Tenant {
            name: "t",
            quota_blocks: 10,
            mode: Mode { caching: CachingSpec::default(), write: ReadOnly },
            findings,
            configured_policy,
            configured_quota_blocks: None,
            min_blocks: 10,
            goals: Goals::default(),
        };
        choose(&tenant, &Constraints { write_back: false, ..Constraints::default() })
    }

    #[test]
    fn the_share_of_overwrites_decides() {
        let cases = [
            (findings(30, 20, 50), ReadOnly, "write ratio 0.50 >= 0.50: ro"),
            (findings(10, 2, 88), WriteThrough, "write ratio 0.12 < 0.50: wt"),
            (findings(4999, 0, 5001), WriteThrough, "write ratio 0.4999 < 0.50: wt"),
            (findings(1, 0, 0), ReadOnly, "write ratio 1.00 >= 0.50: ro"),
        ];
        for (findings, policy, words) in cases {
            assert_eq!(decide(Some(&findings), ConfiguredPolicy::Auto), (policy, words.to_owned()));
        }
    }

    #[test]
    fn an_idle_tenant_keeps_its_policy_and_a_configured_one_stands() {
        let stays = (ReadOnly, "write policy stays ro".to_owned());
        assert_eq!(decide(None, ConfiguredPolicy::Auto), stays);
        assert_eq!(decide(Some(&Findings::default()), ConfiguredPolicy::Auto), stays);
        let fixed = ConfiguredPolicy::Fixed(WriteThrough);
        let as_configured = (WriteThrough, "write policy wt as configured".to_owned());
        assert_eq!(decide(Some(&findings(9, 0, 0)), fixed), as_configured);
        assert_eq!(decide(None, fixed), as_configured);
    }
}
