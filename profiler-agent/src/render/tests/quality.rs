use std::collections::BTreeMap;

use crate::{
    model::ModuleKind,
    render::quality::{NameQuality, PoorModule, names},
};

use super::sketch::{Sketch, empty};

#[test]
fn user_frames_are_counted_by_samples_and_source() {
    let mut sketch = Sketch::new();
    let (main, kernel) = (sketch.user("main"), sketch.kernel("do_syscall_64"));
    let traced = sketch.dwarf(0x500, &[("inner", "a.c", 1), ("outer", "a.c", 2)]);
    let unnamed = sketch.unnamed("/usr/bin/stripped", ModuleKind::Elf, 0x10);
    let code = sketch.unnamed("", ModuleKind::Anonymous, 0x7000);
    sketch.sample(10, vec![main, traced, kernel]);
    sketch.sample(3, vec![main, unnamed, unnamed]);
    sketch.sample(2, vec![unnamed, code]);
    sketch.sample(4, vec![kernel]);
    let quality = names(&sketch.finish());
    let poor = |path: &str, unnamed| PoorModule {
        path: path.into(),
        build_id: Vec::new(),
        unnamed,
        inferred: 0,
    };
    let expected = NameQuality {
        exact: 10 + 10 + 3,
        inferred: 0,
        unnamed: 3 + 3 + 2 + 2,
        sources: BTreeMap::from([("elf_symbol", 13), ("dwarf", 10), ("none", 10)]),
        samples: 15,
        samples_with_a_name: 13,
        modules: vec![poor("/usr/bin/stripped", 8), poor("[anonymous]", 2)],
    };
    assert_eq!(quality, expected);
    assert_eq!(quality.frames(), 33);
    assert!((quality.percent(quality.unnamed) - 30.30).abs() < 0.01);
}

#[test]
fn a_profile_without_samples_has_no_share() {
    let quality = names(&empty());
    assert_eq!(quality, NameQuality::default());
    assert!(quality.percent(quality.exact).abs() < f64::EPSILON);
}
