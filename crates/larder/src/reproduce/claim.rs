//! What a paper claims about tenants that share a cache, beside what was found here.

use serde_json::{Value, json};

use super::larc::Verdict;
use super::sheet::Sheet;

/// A claim and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// A name for programs.
    pub id: &'static str,
    /// What is claimed.
    pub text: String,
    /// What the paper gives, and where.
    pub paper: String,
    /// What was found.
    pub here: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// In how far it does, or why not.
    pub because: String,
}

impl Claim {
    /// A claim that is untested as yet: what is claimed, and what the paper gives.
    pub fn new(id: &'static str, text: impl Into<String>, paper: impl Into<String>) -> Self {
        Self {
            id,
            text: text.into(),
            paper: paper.into(),
            here: "-".into(),
            verdict: Verdict::Untested,
            because: "nothing here is about it".into(),
        }
    }

    /// What was found, and what follows.
    pub fn found(self, here: impl Into<String>, verdict: Verdict, because: impl Into<String>) -> Self {
        Self { here: here.into(), verdict, because: because.into(), ..self }
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "id": self.id, "claim": self.text, "paper": self.paper, "here": self.here,
            "verdict": self.verdict.as_str(), "because": self.because,
        })
    }
}

/// The claims as a table.
pub fn sheet(claims: &[Claim]) -> Sheet {
    let headings = ["claim", "paper", "here", "verdict"];
    let mut sheet = Sheet::new("What the paper claims, and what was found here.", headings.len(), headings);
    for claim in claims {
        let verdict = format!("{}: {}", claim.verdict.as_str(), claim.because);
        sheet.row([claim.text.clone(), claim.paper.clone(), claim.here.clone(), verdict]);
    }
    sheet
}
