//! The `ret` instructions of a Go function, which are where its results are in their registers. Go
//! puts no data between instructions and never leaves a function by a jump, so that decoding from
//! its beginning to its end meets all of them. A changed return address would stop the runtime when
//! it moves a stack.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};

use super::{
    code::Bounds,
    graph::RegisterNumber,
    site::{ReturnSite, Site, SiteClass},
};

/// Most sites of one function: each is a probe.
const SITES_LIMIT: usize = 32;

/// None when the code is not understood.
pub(super) fn all(bounds: Bounds, code: &[u8]) -> Vec<ReturnSite> {
    let mut decoder = Decoder::with_ip(64, code, bounds.start, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    let mut sites = Vec::new();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        if instruction.is_invalid() {
            return Vec::new();
        }
        if instruction.flow_control() == FlowControl::Return {
            sites.push(ReturnSite {
                site: Site {
                    address: instruction.ip(),
                    class: SiteClass::of(&instruction),
                    frame_bytes: Some(0),
                },
                result: RegisterNumber::RAX,
            });
        }
    }
    if sites.len() > SITES_LIMIT {
        return Vec::new();
    }
    sites
}
