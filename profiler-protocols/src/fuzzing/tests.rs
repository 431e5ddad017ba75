use super::{TARGETS, input};
use crate::testing::Numbers;

const RECORDED: [&str; 4] = [
    include_str!("../../../tests/fixtures/protocols/redis.txt"),
    include_str!("../../../tests/fixtures/protocols/postgresql.txt"),
    include_str!("../../../tests/fixtures/protocols/mysql.txt"),
    include_str!("../../../tests/fixtures/protocols/tls.txt"),
];

#[test]
fn damaged_transcripts_break_no_reader() {
    for text in RECORDED {
        let original = input(text);
        for target in TARGETS {
            (target.run)(&original);
            for seed in 0..30 {
                let mut numbers = Numbers::new(seed);
                let mut bytes = original.clone();
                for _ in 0..1 + numbers.below(20) {
                    let at = numbers.below(bytes.len());
                    bytes[at] = u8::try_from(numbers.below(256)).unwrap();
                }
                (target.run)(&bytes);
            }
        }
    }
}
