//! The fuzzed reader that is private to HTTP/2.

use super::hpack::HpackDecoder;

/// Header blocks, one behind the other.
pub fn hpack(bytes: &[u8]) {
    for joined in [false, true] {
        let mut decoder = HpackDecoder::new(joined);
        let mut fields = 0_u64;
        for block in bytes.chunks(97) {
            // An error is an answer.
            if decoder.decode(block, |_| fields += 1).is_err() {
                decoder.lose();
            }
        }
        assert!(fields <= bytes.len() as u64, "a field takes a byte");
    }
}
