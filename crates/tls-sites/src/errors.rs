//! What a function's code shows about its errors: the constants that are loaded before the call that records
//! one, beside the path of the source file.
//!
//! `OPENSSL_PUT_ERROR` and `SSLerr` give library, function, reason, file and line as arguments one
//! to five; `ERR_raise` of OpenSSL 3 gives file, line and the function's name as arguments one to
//! three and the reason to a second call.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, Register,
};

use super::{
    code::Bounds,
    graph::{RegisterNumber, is_immediate, writes},
};

const REGISTERS: usize = 16;
/// Number of r8, the fifth argument.
const R8: usize = 8;

/// The constant arguments at one reference to the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorSite {
    /// `rdi`, `rsi`, `rdx` and `r8`, where they are constants: numbers, or addresses.
    pub(super) first: Option<u64>,
    pub(super) second: Option<u64>,
    pub(super) third: Option<u64>,
    pub(super) fifth: Option<u64>,
}

/// The constants at each of the references, which are addresses in the function.
pub(super) fn error_sites(bounds: Bounds, code: &[u8], references: &[u64]) -> Vec<ErrorSite> {
    let mut factory = InstructionInfoFactory::new();
    let mut decoder = Decoder::with_ip(64, code, bounds.start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut constants = [None; REGISTERS];
    let mut found = Vec::new();
    // The reference whose call has not come yet.
    let mut is_open = false;
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        is_open |= references.contains(&instruction.ip());
        let flow = instruction.flow_control();
        if flow == FlowControl::Next {
            load(&instruction, &mut constants, &mut factory);
            continue;
        }
        // A jump may lead to the call that several errors share.
        let records = matches!(flow, FlowControl::Call | FlowControl::UnconditionalBranch);
        if is_open && records {
            found.push(ErrorSite {
                first: constants[usize::from(RegisterNumber::RDI.number())],
                second: constants[usize::from(RegisterNumber::RSI.number())],
                third: constants[usize::from(RegisterNumber::RDX.number())],
                fifth: constants[R8],
            });
        }
        is_open = false;
        constants = [None; REGISTERS];
    }
    found
}

/// Remembers what an instruction loads.
fn load(
    instruction: &Instruction,
    constants: &mut [Option<u64>; REGISTERS],
    factory: &mut InstructionInfoFactory,
) {
    let to = RegisterNumber::of(instruction.op0_register());
    let value = match instruction.mnemonic() {
        Mnemonic::Mov if is_immediate(instruction) => Some(instruction.immediate(1)),
        Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
            Some(instruction.ip_rel_memory_address())
        }
        Mnemonic::Xor if instruction.op0_register() == instruction.op1_register() => Some(0),
        _ => None,
    };
    for (number, constant) in (0_u8..).zip(constants.iter_mut()) {
        let Some(register) = numbered(number) else {
            continue;
        };
        if writes(instruction, register, factory) {
            *constant = if to == Some(register) { value } else { None };
        }
    }
}

fn numbered(number: u8) -> Option<RegisterNumber> {
    const ORDER: [Register; 5] = [
        Register::RDX,
        Register::RSI,
        Register::RDI,
        Register::R8,
        Register::RCX,
    ];
    ORDER
        .into_iter()
        .filter_map(RegisterNumber::of)
        .find(|register| register.number() == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Envoy 1.39.3, `SSL_read`, from 0x5a7a6c4 on.
    const CODE: [u8; 30] = [
        0x48, 0x8d, 0x0d, 0x3c, 0xc1, 0xe4, 0xfa, // lea rcx, [rip - 0x51b3ec4]
        0xbf, 0x10, 0x00, 0x00, 0x00, // mov edi, 16
        0x31, 0xf6, // xor esi, esi
        0xba, 0x42, 0x00, 0x00, 0x00, // mov edx, 66
        0x41, 0xb8, 0xac, 0x03, 0x00, 0x00, // mov r8d, 940
        0xe8, 0x3e, 0x5b, 0x0a, 0x00, // call
    ];
    const BOUNDS: Bounds = Bounds {
        start: 0x5a7_a6c4,
        end: 0x5a7_a6e2,
    };

    #[test]
    fn constants_before_the_call_are_read() {
        let expected = ErrorSite {
            first: Some(16),
            second: Some(0),
            third: Some(66),
            fifth: Some(940),
        };
        assert_eq!(error_sites(BOUNDS, &CODE, &[BOUNDS.start]), [expected]);
        assert_eq!(error_sites(BOUNDS, &CODE, &[]), [], "without a reference");
        assert_eq!(
            error_sites(BOUNDS, &CODE[..25], &[BOUNDS.start]),
            [],
            "without a call"
        );
    }

    #[test]
    fn a_register_that_is_written_otherwise_is_no_constant() {
        let mut code = CODE.to_vec();
        // mov edx, eax and padding in place of mov edx, 66.
        code[14..19].copy_from_slice(&[0x89, 0xc2, 0x90, 0x90, 0x90]);
        let found = error_sites(BOUNDS, &code, &[BOUNDS.start]);
        assert_eq!(found[0].third, None);
        assert_eq!(found[0].fifth, Some(940));
    }
}
