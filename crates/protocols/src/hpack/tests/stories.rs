//! Blocks by another encoder (tests/fixtures/protocols/hpack/stories.py): read whole they are exact, and
//! read from any block on, or with blocks that were cut or missed, nothing is wrong.

use serde::Deserialize;

use super::{HpackDecoder, HpackError, hex};
use crate::replay::Numbers;

const STORIES: &str = include_str!("../../../../../tests/fixtures/protocols/hpack/stories.json");

#[derive(Debug, Deserialize)]
struct Story {
    story: String,
    blocks: Vec<Block>,
}

#[derive(Debug, Deserialize)]
struct Block {
    wire: String,
    headers: Vec<(String, String)>,
}

/// A name and a value, where they are known.
type Found = (Option<Vec<u8>>, Option<Vec<u8>>);

fn stories() -> Vec<Story> {
    serde_json::from_str(STORIES).expect("stories")
}

fn read(decoder: &mut HpackDecoder, wire: &[u8]) -> (Vec<Found>, Result<(), HpackError>) {
    let mut found = Vec::new();
    let result = decoder.decode(wire, |field| {
        found.push((
            field.name.map(<[u8]>::to_vec),
            field.value.map(<[u8]>::to_vec),
        ));
    });
    (found, result)
}

fn sent(block: &Block) -> Vec<Found> {
    let bytes = |text: &str| Some(text.as_bytes().to_vec());
    let pairs = block.headers.iter();
    pairs
        .map(|(name, value)| (bytes(name), bytes(value)))
        .collect()
}

/// Counts texts that are known and such that are not.
#[derive(Debug, Default)]
struct Knowledge {
    known: usize,
    unknown: usize,
}

impl Knowledge {
    /// What was found of the first fields must be right.
    fn check(&mut self, found: &[Found], sent: &[Found], whose: &str) {
        for (found, sent) in found.iter().zip(sent) {
            for (found, sent) in [(&found.0, &sent.0), (&found.1, &sent.1)] {
                assert!(found.is_none() || found == sent, "{whose}");
                if found.is_some() {
                    self.known += 1;
                } else {
                    self.unknown += 1;
                }
            }
        }
    }
}

#[test]
fn stories_from_their_beginning_are_exact() {
    for Story { story, blocks } in stories() {
        // Where nothing was said before, joining loses nothing.
        for joined in [false, true] {
            let mut decoder = HpackDecoder::new(joined);
            for block in &blocks {
                let (found, result) = read(&mut decoder, &hex(&block.wire));
                assert_eq!(result, Ok(()), "{story}");
                assert_eq!(found, sent(block), "{story}");
            }
        }
    }
}

#[test]
fn stories_joined_at_any_block_are_right_or_unknown() {
    for Story { story, blocks } in stories() {
        let mut knowledge = Knowledge::default();
        for joined in 1..blocks.len() {
            let mut decoder = HpackDecoder::new(true);
            for block in &blocks[joined..] {
                let (found, result) = read(&mut decoder, &hex(&block.wire));
                assert_eq!(result, Ok(()), "{story} from {joined}");
                assert_eq!(found.len(), block.headers.len(), "{story} from {joined}");
                knowledge.check(&found, &sent(block), &story);
            }
        }
        let Knowledge { known, unknown } = knowledge;
        // Without a table there is nothing that could be unknown.
        assert_eq!(unknown == 0, story == "no table at all", "{story}");
        // What a browser says once and then only by its index stays unknown.
        assert!(2 * known > unknown, "{story}: {known} of {unknown}");
    }
}

#[test]
fn an_emptied_table_ends_what_is_unknown() {
    for Story { story, blocks } in stories() {
        let emptied = match story.as_str() {
            "answers, a table that shrinks, is emptied and grows" => 12,
            "strange fields, a table that is emptied on the way" => 10,
            _ => continue,
        };
        for joined in 1..=emptied {
            let mut decoder = HpackDecoder::new(true);
            for (number, block) in blocks.iter().enumerate().skip(joined) {
                let (found, _result) = read(&mut decoder, &hex(&block.wire));
                assert!(number < emptied || found == sent(block), "{story} {number}");
            }
        }
    }
}

#[test]
fn stories_with_blocks_cut_and_missed_are_right_or_unknown() {
    let mut knowledge = Knowledge::default();
    for Story { story, blocks } in stories() {
        for seed in 0..60 {
            let mut numbers = Numbers::new(seed);
            let mut decoder = HpackDecoder::new(numbers.below(2) == 0);
            let mut is_new = true;
            for block in &blocks {
                let wire = hex(&block.wire);
                let end = match numbers.below(10) {
                    0 => 0,
                    1 => numbers.below(wire.len()),
                    _ => wire.len(),
                };
                if end == 0 {
                    decoder.lose();
                    is_new = false;
                    continue;
                }
                let (found, result) = read(&mut decoder, &wire[..end]);
                assert_ne!(result, Err(HpackError::Malformed), "{story} {seed}");
                assert!(found.len() <= block.headers.len(), "{story} {seed}");
                knowledge.check(&found, &sent(block), &story);
                if is_new && end == wire.len() {
                    assert_eq!(found, sent(block), "{story} {seed}");
                }
                if end < wire.len() {
                    decoder.lose();
                    is_new = false;
                }
            }
        }
    }
    assert!(knowledge.unknown > 1000, "{knowledge:?}");
    assert!(knowledge.known > 2 * knowledge.unknown, "{knowledge:?}");
}
