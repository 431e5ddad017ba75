//! The few DWARF expressions that compilers and hand-written code use, recognised by their form.
//!
//! Nothing is evaluated: an expression either has one of these forms or is not supported.

/// What an expression for the canonical frame address computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CfaExpression {
    /// `*(register + offset) + add`.
    Deref { register: u8, offset: i64, add: i64 },
    /// `*(register + offset + 8 * index) + add`.
    DerefScaled {
        register: u8,
        offset: i64,
        index: u8,
        add: i64,
    },
    /// A PLT entry whose word is pushed before this byte of its 16.
    Plt { pushed_at: u8 },
}

const DEREF: u8 = 0x06;
const CONST1U: u8 = 0x08;
const AND: u8 = 0x1a;
const MUL: u8 = 0x1e;
const PLUS: u8 = 0x22;
const PLUS_UCONST: u8 = 0x23;
const SHL: u8 = 0x24;
const GE: u8 = 0x2a;
const LIT0: u8 = 0x30;
const LIT31: u8 = 0x4f;
const BREG0: u8 = 0x70;
const BREG31: u8 = 0x8f;

const RSP: u8 = 7;
const RIP: u8 = 16;

/// The form of an expression for the canonical frame address.
pub(crate) fn cfa(bytes: &[u8]) -> Option<CfaExpression> {
    let mut rest = Operations { bytes };
    let (register, offset) = rest.base()?;
    if rest.next_is(DEREF) {
        let add = rest.addend()?;
        return rest.end(CfaExpression::Deref {
            register,
            offset,
            add,
        });
    }
    let (index, zero) = rest.base()?;
    if zero != 0 {
        return None;
    }
    if rest.next_is(LIT0 + 8) && rest.all(&[MUL, PLUS, DEREF]) {
        let add = rest.addend()?;
        return rest.end(CfaExpression::DerefScaled {
            register,
            offset,
            index,
            add,
        });
    }
    if register == RSP && offset == 8 && index == RIP && rest.all(&[LIT0 + 15, AND]) {
        let pushed_at = rest.literal().filter(|byte| *byte < 16)?;
        if rest.all(&[GE, LIT0 + 3, SHL, PLUS]) {
            return rest.end(CfaExpression::Plt { pushed_at });
        }
    }
    None
}

/// The form `register + offset` of an expression for the place of a saved register.
pub(crate) fn place(bytes: &[u8]) -> Option<(u8, i64)> {
    let mut rest = Operations { bytes };
    let base = rest.base()?;
    rest.end(base)
}

struct Operations<'bytes> {
    bytes: &'bytes [u8],
}

impl Operations<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    fn next_is(&mut self, operation: u8) -> bool {
        let is = self.bytes.first() == Some(&operation);
        if is {
            self.bytes = &self.bytes[1..];
        }
        is
    }

    fn all(&mut self, operations: &[u8]) -> bool {
        let is = self.bytes.starts_with(operations);
        if is {
            self.bytes = &self.bytes[operations.len()..];
        }
        is
    }

    fn end<Form>(&self, form: Form) -> Option<Form> {
        self.bytes.is_empty().then_some(form)
    }

    /// `DW_OP_bregN offset`.
    fn base(&mut self) -> Option<(u8, i64)> {
        let operation = self.byte()?;
        if !(BREG0..=BREG31).contains(&operation) {
            return None;
        }
        Some((operation - BREG0, self.signed()?))
    }

    fn literal(&mut self) -> Option<u8> {
        let operation = self.byte()?;
        (LIT0..=LIT31)
            .contains(&operation)
            .then(|| operation - LIT0)
    }

    /// What is added at the end: nothing, or a constant.
    fn addend(&mut self) -> Option<i64> {
        if self.bytes.is_empty() {
            return Some(0);
        }
        if self.next_is(PLUS_UCONST) {
            return i64::try_from(self.unsigned()?).ok();
        }
        let value = if self.next_is(CONST1U) {
            self.byte()?
        } else {
            self.literal()?
        };
        self.next_is(PLUS).then_some(i64::from(value))
    }

    fn unsigned(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn signed(&mut self) -> Option<i64> {
        let mut value: i64 = 0;
        for shift in (0..56).step_by(7) {
            let byte = self.byte()?;
            value |= i64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                let unused = 64 - (shift + 7);
                return Some((value << unused) >> unused);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Option<CfaExpression>) {
        assert_eq!(cfa(bytes), expected, "{bytes:02x?}");
    }

    #[test]
    fn the_forms_of_hand_written_code_are_recognised() {
        let deref = |offset, add| {
            Some(CfaExpression::Deref {
                register: RSP,
                offset,
                add,
            })
        };
        check(&[0x77, 0x28, 0x06, 0x23, 0x08], deref(40, 8));
        check(&[0x77, 0x78, 0x06, 0x23, 0x08], deref(-8, 8));
        check(&[0x77, 0xa0, 0x01, 0x06], deref(160, 0));
        let scaled = CfaExpression::DerefScaled {
            register: RSP,
            offset: 8,
            index: 9,
            add: 8,
        };
        check(
            &[0x77, 0x08, 0x79, 0x00, 0x38, 0x1e, 0x22, 0x06, 0x23, 0x08],
            Some(scaled),
        );
    }

    #[test]
    fn plt_entries_are_recognised_with_the_byte_of_their_push() {
        let plt = [
            0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22,
        ];
        check(&plt, Some(CfaExpression::Plt { pushed_at: 11 }));
        let mut ibt = plt;
        ibt[6] = 0x3a;
        check(&ibt, Some(CfaExpression::Plt { pushed_at: 10 }));
    }

    #[test]
    fn other_expressions_are_not_guessed() {
        check(&[], None);
        check(&[0x77], None);
        check(&[0x77, 0x80], None);
        check(&[0x77, 0x08, 0x06, 0x23, 0x08, 0x06], None);
        check(&[0x77; 64], None);
        check(
            &[0x77, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            None,
        );
        assert_eq!(place(&[0x76, 0x70]), Some((6, -16)));
        assert_eq!(place(&[0x76, 0x70, 0x06]), None);
    }
}
