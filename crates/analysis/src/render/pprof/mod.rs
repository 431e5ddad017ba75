//! pprof: every row of the profile with its labels, gzip-compressed.
//!
//! Addresses are file offsets inside ELF modules and plain addresses elsewhere, so a mapping begins
//! at its lowest address with that as its file offset. All frames carry their names (a frame without
//! a symbol is `module+0xoffset`), and mappings say so, which keeps pprof from looking for files.

pub mod message;

use std::{borrow::Cow, collections::HashMap, io::Write};

use flate2::{Compression, write::GzEncoder};
use profiler_model::{
    Clock, IdleShare, ModuleKind, NameSource, Profile, SampleRow, ThreadState, printable::printable,
};
use prost::Message;

use super::{RenderError, Value, names::lines, quality, wait_reasons::WaitReasons};

/// Addresses of a mapping are rounded to pages, as those of real mappings are.
const PAGE_BYTES: u64 = 4096;

pub(super) fn render(
    profile: &Profile,
    value: Value,
    title: &str,
    idle: Option<&IdleShare>,
) -> Result<Vec<u8>, RenderError> {
    let bytes = Writer::new(profile)
        .write(value, title, idle)
        .encode_to_vec();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(3));
    encoder.write_all(&bytes)?;
    Ok(encoder.finish()?)
}

/// The string table of the file; entry 0 is empty. What is in it is printable: pprof writes it to terminals as it is.
struct Strings<'a> {
    texts: Vec<Cow<'a, str>>,
    /// By the text that was given.
    known: HashMap<Cow<'a, str>, i64>,
}

impl<'a> Strings<'a> {
    fn add(&mut self, text: impl Into<Cow<'a, str>>) -> i64 {
        let text = text.into();
        if let Some(index) = self.known.get(&text) {
            return *index;
        }
        let index = i64::try_from(self.texts.len()).unwrap_or(0);
        self.texts.push(match text.clone() {
            Cow::Borrowed(text) => printable(text),
            Cow::Owned(text) => Cow::Owned(printable(&text).into_owned()),
        });
        self.known.insert(text, index);
        index
    }
}

/// String indexes of label keys and units.
struct Keys {
    pid: i64,
    tid: i64,
    thread: i64,
    process: i64,
    cpu: i64,
    time_ms: i64,
    id: i64,
    state: i64,
    reason: i64,
    milliseconds: i64,
}

struct Writer<'a> {
    profile: &'a Profile,
    strings: Strings<'a>,
    functions: Vec<message::Function>,
    known_functions: HashMap<(i64, i64), u64>,
}

impl<'a> Writer<'a> {
    fn new(profile: &'a Profile) -> Self {
        let mut strings = Strings {
            texts: Vec::new(),
            known: HashMap::new(),
        };
        strings.add("");
        Self {
            profile,
            strings,
            functions: Vec::new(),
            known_functions: HashMap::new(),
        }
    }

    fn write(mut self, value: Value, title: &'a str, idle: Option<&IdleShare>) -> message::Profile {
        let profile = self.profile;
        // Samples and switches make no sum, so a wall-clock profile has no count.
        let (count, time) = match profile.clock {
            Clock::CpuClock | Clock::Cycles => (Some("samples"), "cpu"),
            Clock::Switches => (Some("switches"), "off_cpu"),
            Clock::Wall => (None, "wall"),
            Clock::Unknown => (Some("samples"), "time"),
        };
        let count_type = count.map(|count| self.value_type(count, "count"));
        let period_type = self.value_type(time, "nanoseconds");
        let sample_type = count_type.into_iter().chain([period_type]).collect();
        let default_sample_type = self.strings.add(match value {
            Value::Count => count.unwrap_or(time),
            Value::Duration => time,
        });
        let keys = Keys {
            pid: self.strings.add("pid"),
            tid: self.strings.add("tid"),
            thread: self.strings.add("thread"),
            process: self.strings.add("process"),
            cpu: self.strings.add("cpu"),
            time_ms: self.strings.add("time_ms"),
            // Readers drop a number 0 without a unit, and CPU 0 is a CPU.
            id: self.strings.add("id"),
            state: self.strings.add("state"),
            reason: self.strings.add("reason"),
            milliseconds: self.strings.add("milliseconds"),
        };
        let mapping = self.mappings();
        let location = self.locations();
        let reasons = WaitReasons::of(profile);
        let sample = profile
            .samples
            .iter()
            .map(|row| self.sample(row, &keys, &reasons))
            .collect();
        let comment = self.comments(title, idle);
        // Waits have no period, nor have samples that share a measured time.
        let period = profile
            .samples
            .first()
            .filter(|row| row.state == ThreadState::OnCpu && profile.clock != Clock::Wall)
            .map_or(0, |row| row.total_ns.checked_div(row.count).unwrap_or(0));
        message::Profile {
            sample_type,
            sample,
            mapping,
            location,
            function: self.functions,
            string_table: self
                .strings
                .texts
                .into_iter()
                .map(Cow::into_owned)
                .collect(),
            time_nanos: signed(profile.origin_ns.saturating_add(profile.from_ns)),
            duration_nanos: signed(profile.to_ns.saturating_sub(profile.from_ns)),
            period_type: Some(period_type),
            period: signed(period),
            comment,
            default_sample_type,
        }
    }

    fn value_type(&mut self, kind: &'static str, unit: &'static str) -> message::ValueType {
        message::ValueType {
            r#type: self.strings.add(kind),
            unit: self.strings.add(unit),
        }
    }

    /// One mapping for each module, over the addresses that its frames use.
    fn mappings(&mut self) -> Vec<message::Mapping> {
        let profile = self.profile;
        let mut ranges: Vec<Option<(u64, u64)>> = vec![None; profile.modules.len()];
        for frame in &profile.frames {
            let range = &mut ranges[frame.module as usize];
            let (low, high) = range.unwrap_or((frame.offset, frame.offset));
            *range = Some((low.min(frame.offset), high.max(frame.offset)));
        }
        let mut mappings = Vec::with_capacity(ranges.len());
        for ((id, module), range) in (1..).zip(&profile.modules).zip(ranges) {
            let (low, high) = range.unwrap_or((0, 0));
            let start = low / PAGE_BYTES * PAGE_BYTES;
            let path = profile.text(module.path);
            let filename = match (path, module.kind) {
                ("", ModuleKind::Unknown) => self.strings.add("[unknown]"),
                ("", _) => self.strings.add(super::names::module_name(profile, module)),
                (path, _) => self.strings.add(path),
            };
            mappings.push(message::Mapping {
                id,
                memory_start: start,
                memory_limit: (high / PAGE_BYTES)
                    .saturating_add(1)
                    .saturating_mul(PAGE_BYTES),
                file_offset: start,
                filename,
                build_id: self.strings.add(hexadecimal(&module.build_id)),
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
            });
        }
        mappings
    }

    /// One location for each frame, with the same number plus one.
    fn locations(&mut self) -> Vec<message::Location> {
        let profile = self.profile;
        let mut locations = Vec::with_capacity(profile.frames.len());
        for (id, frame) in (1..).zip(&profile.frames) {
            let mut lines_of: Vec<message::Line> = lines(profile, frame)
                .into_iter()
                .map(|mut line| {
                    if frame.source == NameSource::Inferred {
                        line.name.to_mut().push_str(" [inferred]");
                    }
                    let file = line
                        .function
                        .map_or("", |function| profile.text(function.file));
                    message::Line {
                        function_id: self.function(line.name, file),
                        line: line.function.map_or(0, |function| i64::from(function.line)),
                    }
                })
                .collect();
            // pprof wants the innermost function first.
            lines_of.reverse();
            locations.push(message::Location {
                id,
                mapping_id: u64::from(frame.module) + 1,
                address: frame.offset,
                line: lines_of,
            });
        }
        locations
    }

    fn function(&mut self, name: Cow<'a, str>, file: &'a str) -> u64 {
        let name = self.strings.add(name);
        let filename = self.strings.add(file);
        let next = self.functions.len() as u64 + 1;
        let id = *self.known_functions.entry((name, filename)).or_insert(next);
        if id == next {
            // Without a system name pprof shows the name as it is; with the same one it would
            // demangle it again and cut template arguments off.
            self.functions.push(message::Function {
                id,
                name,
                system_name: 0,
                filename,
            });
        }
        id
    }

    fn sample(&mut self, row: &SampleRow, keys: &Keys, reasons: &WaitReasons) -> message::Sample {
        let profile = self.profile;
        let thread = &profile.threads[row.thread as usize];
        let pid = profile.processes[thread.process as usize].key.pid;
        let time_ns = u64::from(row.bucket).saturating_mul(profile.bucket_ns);
        let number = |key: i64, num: u64, num_unit: i64| message::Label {
            key,
            num: signed(num),
            num_unit,
            ..message::Label::default()
        };
        // A label with an empty string would be read as the number 0.
        let name = match profile.text(thread.name) {
            "" => "[no name]",
            name => name,
        };
        let name = message::Label {
            key: keys.thread,
            str: self.strings.add(name),
            ..message::Label::default()
        };
        let frames = &profile.stacks[row.stack as usize].frames;
        let mut label = vec![
            number(keys.pid, u64::from(pid), keys.id),
            number(keys.tid, u64::from(thread.tid), keys.id),
            name,
            number(keys.cpu, u64::from(row.cpu), keys.id),
            number(keys.time_ms, time_ns / 1_000_000, keys.milliseconds),
        ];
        let waits = row.state != ThreadState::OnCpu;
        let state = (waits || profile.clock == Clock::Wall).then(|| row.state.name());
        let reason = waits.then(|| reasons.of_row(row).name());
        let comm = profile.text(profile.processes[thread.process as usize].comm);
        let process = (!comm.is_empty()).then_some(comm);
        for (key, text) in [
            (keys.process, process),
            (keys.state, state),
            (keys.reason, reason),
        ] {
            if let Some(text) = text {
                label.push(message::Label {
                    key,
                    str: self.strings.add(text),
                    ..message::Label::default()
                });
            }
        }
        let value = match profile.clock {
            Clock::Wall => vec![signed(row.total_ns)],
            Clock::CpuClock | Clock::Cycles | Clock::Switches | Clock::Unknown => {
                vec![signed(row.count), signed(row.total_ns)]
            }
        };
        message::Sample {
            location_id: frames.iter().map(|id| u64::from(*id) + 1).collect(),
            value,
            label,
        }
    }

    fn comments(&mut self, title: &'a str, idle: Option<&IdleShare>) -> Vec<i64> {
        let profile = self.profile;
        let mut comments = Vec::new();
        if !title.is_empty() {
            comments.push(self.strings.add(title));
        }
        comments.push(
            self.strings
                .add(format!("sampled by {}", profile.clock.name())),
        );
        let names = quality::names(profile);
        if names.frames() > 0 {
            comments.push(self.strings.add(format!(
                "names of user frames: {:.1} % exact, {:.1} % inferred, {:.1} % missing",
                names.percent(names.exact),
                names.percent(names.inferred),
                names.percent(names.unnamed),
            )));
        }
        if let Some(line) = profile.stack_quality.line() {
            comments.push(self.strings.add(format!("stacks: {line}")));
        }
        if let Some(idle) = idle {
            comments.push(self.strings.add(idle.line()));
        }
        for (kind, count) in profile.losses.iter() {
            let text = format!("loss {}={count}: {}", kind.name(), kind.meaning());
            comments.push(self.strings.add(text));
        }
        comments
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn hexadecimal(bytes: &[u8]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _infallible = write!(text, "{byte:02x}");
    }
    text
}
