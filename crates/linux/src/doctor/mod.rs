//! The abilities of this machine for labs, found by doing it: each probe uses the ability that it reports on.
//! Those that change namespaces or scheduling run in a forked child, so that the caller is left as it was.

mod limits;
mod namespaces;
mod probe;
mod switches;
mod timing;

use serde_json::Value;

/// The finding about one ability.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// The ability.
    pub ability: &'static str,
    /// `true` if it is all that labs can use.
    pub ok: bool,
    /// The observation.
    pub found: String,
    /// The consequence for labs.
    pub follows: String,
    /// The remedy; empty when there is nothing to do.
    pub remedy: String,
}

impl Finding {
    fn good(ability: &'static str, found: impl Into<String>, follows: impl Into<String>) -> Self {
        Self { ability, ok: true, found: found.into(), follows: follows.into(), remedy: String::new() }
    }

    fn bad(
        ability: &'static str,
        found: impl Into<String>,
        follows: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self { ability, ok: false, found: found.into(), follows: follows.into(), remedy: remedy.into() }
    }
}

/// Examines the machine; takes about a tenth of a second.
#[must_use]
pub fn findings() -> Vec<Finding> {
    let mut findings = namespaces::findings();
    findings.extend(timing::findings());
    findings.extend(limits::findings());
    findings.extend(switches::findings());
    findings
}

/// Examines the machine; gives the findings as a JSON array.
#[must_use]
pub fn examine() -> Value {
    serde_json::to_value(findings()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_says_what_follows_and_every_fault_has_a_remedy() {
        let findings = findings();
        assert!(findings.len() >= 10, "{findings:#?}");
        for finding in &findings {
            assert!(!finding.found.is_empty() && !finding.follows.is_empty(), "{finding:?}");
            assert_eq!(finding.ok, finding.remedy.is_empty(), "{finding:?}");
        }
    }
}
