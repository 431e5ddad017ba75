//! Blobs: a header of our own, then zstd, then postcard.
//!
//! ```text
//! 0  magic "PAB1"   4  version (8)   5  stream   6  zero   7  zero   8  raw length, u32 LE
//! 12 zstd frame with checksum
//! ```
//!
//! Decoding trusts nothing: the raw length is bounded, no more than it is ever decompressed, and
//! the checksum has to hold before postcard sees the bytes.

use std::io::Read;

use profiler_model::{
    ContentionRow, CpuHolder, EdgeNamespaces, EdgeTable, LoggedFlagged, LoggedRequests, Profile,
    RequestTable, SideMetrics,
};
use serde::{Serialize, de::DeserializeOwned};

use super::Stream;

/// Largest blob before compression. A minute of a busy node has some megabytes.
pub const MAX_RAW_BYTES: usize = 64 << 20;

const MAGIC: [u8; 4] = *b"PAB1";
const VERSION: u8 = 8;
const HEADER_BYTES: usize = 12;
/// Fastest level: blobs are written twice a second beside the workload that is measured.
const FAST_LEVEL: i32 = 1;
/// For segments that are complete and stay.
const DENSE_LEVEL: i32 = 6;
/// Frames that would need a larger window than ours are refused.
const MAX_WINDOW_LOG: u32 = 27;

/// How much work to spend on a small result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Density {
    Fast,
    Dense,
}

#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    #[error("blob is {0} bytes, shorter than its header")]
    TooShort(usize),
    #[error("not a blob of this program")]
    Magic,
    #[error("blob version {0} is not known")]
    Version(u8),
    #[error("blob of stream {found} where {expected} was expected")]
    Stream { found: u8, expected: u8 },
    #[error("blob of {0} bytes exceeds the limit of {MAX_RAW_BYTES}")]
    TooLarge(usize),
    #[error("compress: {0}")]
    Compress(std::io::Error),
    #[error("decompress: {0}")]
    Decompress(std::io::Error),
    #[error("blob holds {found} bytes, its header says {expected}")]
    Length { found: usize, expected: usize },
    #[error("{0}")]
    Encoding(#[from] postcard::Error),
    #[error("{0} bytes follow the value")]
    Trailing(usize),
    #[error("{0}")]
    Inconsistent(&'static str),
}

/// Encodes a profile, then who had the CPU while its threads waited for one; fails when it exceeds [`MAX_RAW_BYTES`].
pub fn encode_profile(profile: &Profile, density: Density) -> Result<Vec<u8>, CodecError> {
    let contention = (&profile.holders, &profile.contention);
    encode(&(profile, contention), Stream::Profile, density)
}

/// Decodes and checks a profile: every id in the result points into its table.
pub fn decode_profile(bytes: &[u8]) -> Result<Profile, CodecError> {
    let raw = unpack(bytes, Stream::Profile)?;
    let (mut profile, rest): (Profile, _) = postcard::take_from_bytes(&raw)?;
    // The recorded demo data have nothing there.
    if !rest.is_empty() {
        let (contention, rest): ((Vec<CpuHolder>, Vec<ContentionRow>), _) =
            postcard::take_from_bytes(rest)?;
        if !rest.is_empty() {
            return Err(CodecError::Trailing(rest.len()));
        }
        (profile.holders, profile.contention) = contention;
    }
    profile.check().map_err(CodecError::Inconsistent)?;
    Ok(profile)
}

/// The smallest round-trip times of both ends of an edge.
type MinRtt = (Option<u64>, Option<u64>);

/// Encodes a table of edges: the table, then the namespaces and the smallest round-trip times of its edges in
/// their order.
pub fn encode_edges(table: &EdgeTable, density: Density) -> Result<Vec<u8>, CodecError> {
    let edges = || table.edges.iter();
    let namespaces: Vec<EdgeNamespaces> = edges().map(|edge| edge.namespaces).collect();
    let min_rtt = |side: &Option<SideMetrics>| side.as_ref().and_then(|side| side.min_rtt_us);
    let min_rtts: Vec<MinRtt> = edges()
        .map(|edge| (min_rtt(&edge.client), min_rtt(&edge.server)))
        .collect();
    encode(&(table, namespaces, min_rtts), Stream::Edges, density)
}

/// Decodes a table of edges.
pub fn decode_edges(bytes: &[u8]) -> Result<EdgeTable, CodecError> {
    let (mut table, namespaces, min_rtts): (EdgeTable, Vec<EdgeNamespaces>, Vec<MinRtt>) =
        decode(bytes, Stream::Edges)?;
    for (edge, namespaces) in table.edges.iter_mut().zip(namespaces) {
        edge.namespaces = namespaces;
    }
    for (edge, (client, server)) in table.edges.iter_mut().zip(min_rtts) {
        for (side, min_rtt_us) in [(&mut edge.client, client), (&mut edge.server, server)] {
            if let Some(side) = side {
                side.min_rtt_us = min_rtt_us;
            }
        }
    }
    Ok(table)
}

/// Encodes a table of requests, then its timeline, then what the kernel counted, then what access logs say where they were asked for, then
/// where the flagged requests of each of its Envoys went.
pub fn encode_requests(table: &RequestTable, density: Density) -> Result<Vec<u8>, CodecError> {
    let parts = (table, &table.timeline, &table.counted);
    match &table.logged {
        Some(logged) => {
            let envoys = logged.envoys.iter();
            let flagged: Vec<&[LoggedFlagged]> =
                envoys.map(|envoy| envoy.flagged.as_slice()).collect();
            encode(&(parts, logged, flagged), Stream::Requests, density)
        }
        None => encode(&parts, Stream::Requests, density),
    }
}

/// Decodes a table of requests.
pub fn decode_requests(bytes: &[u8]) -> Result<RequestTable, CodecError> {
    let raw = unpack(bytes, Stream::Requests)?;
    let (table, rest): (RequestTable, _) = postcard::take_from_bytes(&raw)?;
    // Older results have nothing there. What cannot be read takes nothing with it of what is before it.
    let Some((timeline, rest)) = behind(rest) else {
        return Ok(table);
    };
    let table = RequestTable { timeline, ..table };
    let Some((counted, rest)) = behind(rest) else {
        return Ok(table);
    };
    let table = RequestTable { counted, ..table };
    let Some((mut logged, rest)): Option<(LoggedRequests, _)> = behind(rest) else {
        return Ok(table);
    };
    if let Some((flagged, rest)) = behind::<Vec<Vec<LoggedFlagged>>>(rest) {
        if !rest.is_empty() {
            return Err(CodecError::Trailing(rest.len()));
        }
        for (envoy, flagged) in logged.envoys.iter_mut().zip(flagged) {
            envoy.flagged = flagged;
        }
    }
    Ok(RequestTable {
        logged: Some(logged),
        ..table
    })
}

/// A part behind others, with what follows; `None`: it is missing or damaged.
fn behind<T: DeserializeOwned>(rest: &[u8]) -> Option<(T, &[u8])> {
    if rest.is_empty() {
        return None;
    }
    postcard::take_from_bytes(rest).ok()
}

/// Encodes any value as a blob of `stream`.
pub fn encode<T: Serialize>(
    value: &T,
    stream: Stream,
    density: Density,
) -> Result<Vec<u8>, CodecError> {
    let raw = postcard::to_stdvec(value)?;
    let length = u32::try_from(raw.len()).map_err(|_| CodecError::TooLarge(raw.len()))?;
    if raw.len() > MAX_RAW_BYTES {
        return Err(CodecError::TooLarge(raw.len()));
    }
    let level = match density {
        Density::Fast => FAST_LEVEL,
        Density::Dense => DENSE_LEVEL,
    };
    let mut blob = Vec::with_capacity(HEADER_BYTES + raw.len() / 2);
    blob.extend_from_slice(&MAGIC);
    blob.extend_from_slice(&[VERSION, stream.code(), 0, 0]);
    blob.extend_from_slice(&length.to_le_bytes());
    let mut encoder =
        zstd::stream::write::Encoder::new(blob, level).map_err(CodecError::Compress)?;
    encoder
        .include_checksum(true)
        .map_err(CodecError::Compress)?;
    encoder
        .set_pledged_src_size(Some(u64::from(length)))
        .map_err(CodecError::Compress)?;
    std::io::Write::write_all(&mut encoder, &raw).map_err(CodecError::Compress)?;
    encoder.finish().map_err(CodecError::Compress)
}

/// Decodes a blob of `stream`. Memory is bounded by [`MAX_RAW_BYTES`] for the decompressed bytes.
pub fn decode<T: DeserializeOwned>(bytes: &[u8], stream: Stream) -> Result<T, CodecError> {
    let raw = unpack(bytes, stream)?;
    let (value, rest) = postcard::take_from_bytes(&raw)?;
    if !rest.is_empty() {
        return Err(CodecError::Trailing(rest.len()));
    }
    Ok(value)
}

/// The bytes of the value in a blob.
fn unpack(bytes: &[u8], stream: Stream) -> Result<Vec<u8>, CodecError> {
    let Some((header, compressed)) = bytes.split_first_chunk::<HEADER_BYTES>() else {
        return Err(CodecError::TooShort(bytes.len()));
    };
    let [m0, m1, m2, m3, version, found, _, _, l0, l1, l2, l3] = *header;
    if [m0, m1, m2, m3] != MAGIC {
        return Err(CodecError::Magic);
    }
    if version != VERSION {
        return Err(CodecError::Version(version));
    }
    if found != stream.code() {
        return Err(CodecError::Stream {
            found,
            expected: stream.code(),
        });
    }
    let expected = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
    if expected > MAX_RAW_BYTES {
        return Err(CodecError::TooLarge(expected));
    }
    decompress(compressed, expected)
}

fn decompress(compressed: &[u8], expected: usize) -> Result<Vec<u8>, CodecError> {
    let mut decoder =
        zstd::stream::read::Decoder::with_buffer(compressed).map_err(CodecError::Decompress)?;
    decoder
        .window_log_max(MAX_WINDOW_LOG)
        .map_err(CodecError::Decompress)?;
    let mut raw = Vec::new();
    // One byte more than announced is enough to see that the header lies.
    let limit = expected as u64 + 1;
    decoder
        .take(limit)
        .read_to_end(&mut raw)
        .map_err(CodecError::Decompress)?;
    if raw.len() != expected {
        return Err(CodecError::Length {
            found: raw.len(),
            expected,
        });
    }
    Ok(raw)
}
