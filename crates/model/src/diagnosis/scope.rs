//! Whose CPU time a diagnosis is about.

use std::str::FromStr;

use serde::Serialize;
use utoipa::ToSchema;

/// Which processes of a target have their CPU time diagnosed. Latency is always that of the whole target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosisScope {
    /// The sidecar where there is just one beside other processes, else all.
    #[default]
    Sidecar,
    All,
}

impl DiagnosisScope {
    pub const ALL: [Self; 2] = [Self::Sidecar, Self::All];

    pub fn name(self) -> &'static str {
        match self {
            Self::Sidecar => "sidecar",
            Self::All => "all",
        }
    }
}

impl FromStr for DiagnosisScope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|scope| scope.name() == text);
        found.ok_or_else(|| {
            format!(
                "{text:?} is not one of {}",
                Self::ALL.map(Self::name).join(", ")
            )
        })
    }
}
