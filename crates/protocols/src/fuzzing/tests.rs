use super::{connection, dns, input, kafka, mongodb, mysql, postgresql, redis, tls};
use crate::testing::Numbers;

const READERS: [fn(&[u8]); 8] = [
    connection, tls, dns, redis, postgresql, mysql, kafka, mongodb,
];

const RECORDED: [&str; 7] = [
    include_str!("../../../../tests/fixtures/protocols/dns.txt"),
    include_str!("../../../../tests/fixtures/protocols/kafka.txt"),
    include_str!("../../../../tests/fixtures/protocols/mongodb.txt"),
    include_str!("../../../../tests/fixtures/protocols/redis.txt"),
    include_str!("../../../../tests/fixtures/protocols/postgresql.txt"),
    include_str!("../../../../tests/fixtures/protocols/mysql.txt"),
    include_str!("../../../../tests/fixtures/protocols/tls.txt"),
];

#[test]
fn damaged_transcripts_break_no_reader() {
    for text in RECORDED {
        let original = input(text);
        for read in READERS {
            read(&original);
            for seed in 0..30 {
                let mut numbers = Numbers::new(seed);
                let mut bytes = original.clone();
                for _ in 0..=numbers.below(20) {
                    let at = numbers.below(bytes.len());
                    bytes[at] = u8::try_from(numbers.below(256)).unwrap();
                }
                read(&bytes);
            }
        }
    }
}
