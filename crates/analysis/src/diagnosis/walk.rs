//! What has been seen on the way from the leaf to the root of one stack.

use profiler_model::FrameId;

use super::rules::Decides;

/// One rule that holds for one function.
pub(super) struct Seen<'a> {
    pub(super) rule: usize,
    pub(super) decides: &'a Decides,
    pub(super) asks: bool,
    pub(super) boundary: bool,
    pub(super) otherwise: Option<usize>,
    pub(super) member: Option<&'a String>,
    pub(super) place: usize,
    pub(super) frame: FrameId,
    pub(super) level: usize,
}

/// The frame that gives the feature.
#[derive(Clone, Debug)]
pub(super) struct FeatureFrame {
    pub(super) feature: usize,
    pub(super) member: Option<String>,
    pub(super) rule: usize,
    pub(super) place: usize,
    pub(super) frame: FrameId,
    pub(super) level: usize,
}

/// What has been seen on the way from the leaf.
#[derive(Default)]
pub(super) struct Walk {
    pub(super) innermost: Option<FeatureFrame>,
    pub(super) asking: Option<FeatureFrame>,
    pub(super) stopped: bool,
    /// The mechanism, its rule and its place.
    pub(super) mechanism: Option<(usize, usize, usize)>,
    /// What the innermost rule for a feature says where no rule knows the mechanism.
    pub(super) otherwise: Option<usize>,
}

impl Walk {
    pub(super) fn see(&mut self, seen: Seen<'_>) {
        match seen.decides {
            Decides::Mechanism(mechanism) => {
                self.mechanism = self.mechanism.or(Some((*mechanism, seen.rule, seen.place)));
            }
            Decides::Feature(feature) => {
                let found = || FeatureFrame {
                    feature: *feature,
                    member: seen.member.cloned(),
                    rule: seen.rule,
                    place: seen.place,
                    frame: seen.frame,
                    level: seen.level,
                };
                if seen.asks && !self.stopped && self.asking.is_none() {
                    self.asking = Some(found());
                }
                if self.innermost.is_none() {
                    self.innermost = Some(found());
                    self.otherwise = seen.otherwise;
                }
            }
            Decides::Boundary => {}
        }
        // What is further to the root did not ask for this.
        if (seen.boundary || *seen.decides == Decides::Boundary) && self.asking.is_none() {
            self.stopped = true;
        }
    }

    /// The frame that gives the feature, as far as is known.
    pub(super) fn feature(&self) -> Option<&FeatureFrame> {
        self.asking.as_ref().or(self.innermost.as_ref())
    }

    /// Nothing further to the root can change it.
    pub(super) fn is_done(&self) -> bool {
        self.asking.is_some() || (self.stopped && self.innermost.is_some())
    }
}
