//! Taking idle waits out of a profile, and saying how much that is.

use profiler_model::{IdleMode, IdleShare, Profile, RuleShare};

use super::IdleRules;

impl IdleRules {
    /// Takes out what `mode` does not show, and returns how much is idle; `None` when the profile has no
    /// waits.
    pub fn apply(&self, profile: &mut Profile, mode: IdleMode) -> Option<IdleShare> {
        self.apply_classified(profile, mode, self.classify(profile))
    }

    /// The same with what [`Self::classify`] found for this profile.
    pub fn apply_classified(
        &self,
        profile: &mut Profile,
        mode: IdleMode,
        found: Option<Vec<Option<usize>>>,
    ) -> Option<IdleShare> {
        let Some(found) = found else {
            if mode == IdleMode::Only {
                profile.samples.clear();
            }
            return None;
        };
        let mut shares: Vec<RuleShare> = self
            .names()
            .map(|name| RuleShare {
                name: name.to_owned(),
                count: 0,
                ns: 0,
            })
            .collect();
        let mut idle = IdleShare {
            mode,
            total_count: profile.total_count(),
            total_ns: profile.total_ns(),
            ..IdleShare::default()
        };
        for (row, rule) in profile.samples.iter().zip(&found) {
            if let Some(share) = rule.and_then(|rule| shares.get_mut(rule)) {
                idle.count = idle.count.saturating_add(row.count);
                idle.ns = idle.ns.saturating_add(row.total_ns);
                share.count = share.count.saturating_add(row.count);
                share.ns = share.ns.saturating_add(row.total_ns);
            }
        }
        shares.retain(|share| share.count > 0 || share.ns > 0);
        shares.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
        idle.rules = shares;
        let mut rules = found.into_iter();
        profile.samples.retain(|_row| {
            let is_idle = rules.next().flatten().is_some();
            match mode {
                IdleMode::Show => true,
                IdleMode::Hide => !is_idle,
                IdleMode::Only => is_idle,
            }
        });
        Some(idle)
    }
}
