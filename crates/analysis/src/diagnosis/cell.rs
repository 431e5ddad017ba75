//! Cells by name: `FEATURE`, `FEATURE:MECHANISM` or `:MECHANISM`; and the feature of each stack.

use profiler_model::{Profile, diagnosis::CellChoice};

use super::{DiagnosisRules, attribute::Attributions};
use crate::render::Features;

impl DiagnosisRules {
    /// The cell, row or column that `text` names. Members of a family of features are taken as they
    /// are written. The error says what is known.
    pub fn cell(&self, text: &str) -> Result<CellChoice, String> {
        // `filter:rbac` is a feature: what follows the last colon must be a mechanism.
        let (feature, mechanism) = match text.rsplit_once(':') {
            Some((feature, mechanism))
                if feature.is_empty() || self.mechanism(mechanism).is_some() =>
            {
                (feature, Some(mechanism))
            }
            _ => (text, None),
        };
        let known = |ids: Vec<&str>| ids.join(", ");
        if let Some(id) = mechanism
            && self.mechanism(id).is_none()
        {
            return Err(format!(
                "cell {text:?}: the mechanism {id:?} is not one of {}",
                known(self.mechanism_ids().collect())
            ));
        }
        if !(feature.is_empty() && mechanism.is_some()) && self.member_of(feature).is_none() {
            return Err(format!(
                "cell {text:?}: the feature {feature:?} is not one of {}",
                known(self.feature_ids().collect())
            ));
        }
        Ok(CellChoice {
            feature: (!feature.is_empty()).then(|| feature.to_owned()),
            mechanism: mechanism.map(str::to_owned),
        })
    }

    /// The feature, unless `id` is a whole family.
    fn member_of(&self, id: &str) -> Option<usize> {
        self.feature(id).filter(|_| !id.ends_with('*'))
    }

    /// Takes out all samples that are not in the cell.
    pub fn keep_cell(&self, profile: &mut Profile, cell: &CellChoice) {
        let attributions = Attributions::of(self, profile);
        let keeps: Vec<bool> = profile
            .samples
            .iter()
            .map(|row| {
                let found = attributions.of_row(row);
                let feature = attributions.feature_id(found.feature);
                let mechanism = attributions.mechanism_id(found.mechanism);
                cell.feature.as_deref().is_none_or(|id| id == feature)
                    && cell.mechanism.as_deref().is_none_or(|id| id == mechanism)
            })
            .collect();
        let mut keeps = keeps.into_iter();
        profile.samples.retain(|_row| keeps.next().unwrap_or(false));
    }

    /// Which feature asked for the work of each stack, for a picture of the profile, which must have passed
    /// [`Profile::check`].
    pub fn features(&self, profile: &Profile) -> Features {
        let attributions = Attributions::of(self, profile);
        let titles = (0..attributions.features()).map(|feature| attributions.title(feature));
        let mut features = Features::new(titles.collect());
        for row in &profile.samples {
            let process = profile.threads[row.thread as usize].process;
            features.note(process, row.stack, attributions.of_row(row).feature);
        }
        features
    }
}
