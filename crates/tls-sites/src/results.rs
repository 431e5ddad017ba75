//! Where a function's result is read for the least price.
//!
//! Backwards from each `ret`, the result is followed through the registers that hold it. Instructions
//! that the kernel carries out itself, and from which every way on returns just that value, are
//! sites. A set of them serves when no call that has moved something can return around it: ways on
//! which the result is a constant that is not above zero, or was just found to be so, need no
//! site. Without such a set the sites are the `ret`s themselves, which stack walkers bear, other
//! than a changed return address.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind};

use super::{
    call::Convention,
    graph::{Graph, RegisterNumber, Step, is_immediate, writes},
    site::{ReturnSite, Site, SiteClass},
};

/// Rounds in which values are carried backwards through loops.
const ROUNDS_LIMIT: usize = 64;
/// Most sites of one function: each is a probe.
const SITES_LIMIT: usize = 8;

/// Where results are when functions return.
const RESULT: RegisterNumber = RegisterNumber::RAX;

/// Which register holds what the function will return, at one instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Returned {
    /// It does not return from here, as far as was seen.
    Never,
    In(RegisterNumber),
    /// Not decided yet, or different on different ways.
    Open,
}

impl Returned {
    fn meet(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, value) | (value, Self::Never) => value,
            (Self::In(one), Self::In(two)) if one == two => self,
            (Self::In(_) | Self::Open, Self::In(_) | Self::Open) => Self::Open,
        }
    }
}

/// What an instruction shows about the value in a register after it.
enum Origin {
    /// It is what this register held before.
    From(RegisterNumber),
    /// It is not above zero.
    Nothing,
    Unknown,
}

/// The sites for the result of a function; none when no set of them is passed by every call.
pub(super) fn return_sites(graph: &Graph, convention: Convention) -> Vec<ReturnSite> {
    if graph.is_cut || graph.steps.iter().any(Step::is_unknown_jump) {
        // What lies behind such a jump may return as well.
        return Vec::new();
    }
    let results = Results {
        graph,
        convention,
        returned: Vec::new(),
    }
    .solve();
    let sites = results
        .cheap_sites()
        .filter(|sites| sites.len() <= SITES_LIMIT)
        .unwrap_or_else(|| results.returns());
    if sites.is_empty() || sites.len() > SITES_LIMIT {
        return Vec::new();
    }
    let sites = sites.iter().filter_map(|(at, result)| {
        let step = graph.step(*at)?;
        Some(ReturnSite {
            site: Site {
                address: step.address(),
                class: SiteClass::of(&step.instruction),
                frame_bytes: step.frame.and_then(|bytes| u32::try_from(bytes).ok()),
            },
            result: *result,
        })
    });
    sites.collect()
}

struct Results<'graph> {
    graph: &'graph Graph,
    convention: Convention,
    /// Of each step, before its instruction.
    returned: Vec<Returned>,
}

impl Results<'_> {
    /// Carries the values backwards until nothing changes.
    fn solve(mut self) -> Self {
        let mut factory = InstructionInfoFactory::new();
        self.returned = vec![Returned::Never; self.graph.steps.len()];
        for _ in 0..ROUNDS_LIMIT {
            let mut changed = false;
            for (at, step) in self.graph.steps.iter().enumerate().rev() {
                let before = self.before(step, &mut factory);
                if let Some(known) = self.returned.get_mut(at)
                    && *known != before
                {
                    *known = before;
                    changed = true;
                }
            }
            if !changed {
                return self;
            }
        }
        self.returned.fill(Returned::Open);
        self
    }

    fn before(&self, step: &Step, factory: &mut InstructionInfoFactory) -> Returned {
        if step.is_return() {
            return Returned::In(RESULT);
        }
        let ways = [step.next, step.branch];
        let after = ways
            .iter()
            .flatten()
            .filter_map(|way| self.returned.get(*way))
            .fold(Returned::Never, |all, one| all.meet(*one));
        match after {
            Returned::In(register) => match self.origin(step, register, factory) {
                Origin::From(register) => Returned::In(register),
                Origin::Nothing | Origin::Unknown => Returned::Open,
            },
            Returned::Never | Returned::Open => after,
        }
    }

    /// Where the value that is in a register behind an instruction comes from.
    fn origin(
        &self,
        step: &Step,
        register: RegisterNumber,
        factory: &mut InstructionInfoFactory,
    ) -> Origin {
        let instruction = &step.instruction;
        if step.is_call() {
            return if self.convention.keeps(register) {
                Origin::From(register)
            } else {
                Origin::Unknown
            };
        }
        if !writes(instruction, register, factory) {
            return Origin::From(register);
        }
        if RegisterNumber::of(instruction.op0_register()) != Some(register) {
            return Origin::Unknown;
        }
        let is_wide = instruction.op0_register().size() >= 4;
        match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movsxd if is_wide => match instruction.op1_kind() {
                OpKind::Register if instruction.op1_register().size() >= 4 => {
                    RegisterNumber::of(instruction.op1_register())
                        .map_or(Origin::Unknown, Origin::From)
                }
                _ if is_nothing(instruction) => Origin::Nothing,
                _ => Origin::Unknown,
            },
            // Extends rax from its own half.
            Mnemonic::Cdqe => Origin::From(register),
            Mnemonic::Xor if instruction.op0_register() == instruction.op1_register() => {
                Origin::Nothing
            }
            Mnemonic::Or if is_nothing(instruction) && narrow(instruction) < 0 => Origin::Nothing,
            _ => Origin::Unknown,
        }
    }

    /// The cheap instructions nearest to the ends of all ways.
    fn cheap_sites(&self) -> Option<BTreeMap<usize, RegisterNumber>> {
        let mut allowed = BTreeMap::new();
        for (at, step) in self.graph.steps.iter().enumerate() {
            if let Some(Returned::In(register)) = self.returned.get(at)
                && self.graph.is_own(step)
                && SiteClass::of(&step.instruction).is_cheap()
            {
                allowed.insert(at, *register);
            }
        }
        let sites = self.covering(&allowed)?;
        Some(self.fewest(sites))
    }

    /// Leaves those sites away that others make needless.
    fn fewest(
        &self,
        mut sites: BTreeMap<usize, RegisterNumber>,
    ) -> BTreeMap<usize, RegisterNumber> {
        let all: Vec<usize> = sites.keys().copied().collect();
        for one in all {
            let mut fewer = sites.clone();
            fewer.remove(&one);
            if self.covering(&fewer).is_some() {
                sites = fewer;
            }
        }
        sites
    }

    /// Which of the sites are the last ones before the function returns something; none when it
    /// can return something without passing one.
    fn covering(
        &self,
        sites: &BTreeMap<usize, RegisterNumber>,
    ) -> Option<BTreeMap<usize, RegisterNumber>> {
        let mut factory = InstructionInfoFactory::new();
        let mut used = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut waiting: Vec<(usize, RegisterNumber)> = self
            .graph
            .steps
            .iter()
            .enumerate()
            .filter(|(_, step)| step.is_return())
            .map(|(at, _)| (at, RESULT))
            .collect();
        while let Some((at, register)) = waiting.pop() {
            if !seen.insert((at, register)) {
                continue;
            }
            if sites.get(&at) == Some(&register) {
                used.insert(at, register);
                continue;
            }
            let step = self.graph.step(at)?;
            if at == 0 {
                // What the register held when the function was called.
                return None;
            }
            for from in &step.from {
                let before = self.graph.step(*from)?;
                if self.is_found_empty(before, at, register) {
                    continue;
                }
                match self.origin(before, register, &mut factory) {
                    Origin::From(register) => waiting.push((*from, register)),
                    Origin::Nothing => {}
                    Origin::Unknown => return None,
                }
            }
        }
        Some(used)
    }

    /// Whether a conditional jump, on its way to `to`, says that the register is not above zero.
    fn is_found_empty(&self, jump: &Step, to: usize, register: RegisterNumber) -> bool {
        if jump.branch.is_none() || jump.branch == jump.next {
            return false;
        }
        let is_taken = jump.branch == Some(to);
        let says_so = match jump.instruction.mnemonic() {
            Mnemonic::Jle | Mnemonic::Js | Mnemonic::Je | Mnemonic::Jl => is_taken,
            Mnemonic::Jg | Mnemonic::Jns | Mnemonic::Jne | Mnemonic::Jge => !is_taken,
            _ => false,
        };
        let [test] = jump.from.as_slice() else {
            return false;
        };
        let Some(test) = self.graph.step(*test).map(|step| &step.instruction) else {
            return false;
        };
        let is_of = |candidate| RegisterNumber::of(candidate) == Some(register);
        let compares = match test.mnemonic() {
            Mnemonic::Test => {
                test.op0_register() == test.op1_register() && test.op0_register().size() >= 4
            }
            Mnemonic::Cmp => is_immediate(test) && test.immediate(1) == 0,
            _ => false,
        };
        says_so && compares && is_of(test.op0_register())
    }

    /// The `ret`s, without those before which nothing was moved.
    fn returns(&self) -> BTreeMap<usize, RegisterNumber> {
        let steps = self.graph.steps.iter().enumerate();
        let all = steps
            .filter(|(_, step)| step.is_return())
            .map(|(at, _)| (at, RESULT));
        self.fewest(all.collect())
    }
}

fn is_nothing(instruction: &Instruction) -> bool {
    is_immediate(instruction) && narrow(instruction) <= 0
}

/// The number in an instruction, as an `int`.
fn narrow(instruction: &Instruction) -> i32 {
    let low = instruction.immediate(1) & 0xffff_ffff;
    u32::try_from(low).unwrap_or(0).cast_signed()
}
