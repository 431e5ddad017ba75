//! pprof files: of this program with all that it wrote, of others with what they have.

use std::{borrow::Cow, collections::HashMap};

use profiler_model::{
    Clock, Frame, FrameId, FrameSpace, Function, ImportFormat, ImportValues, ImportedFile,
    ModuleKind, NameSource, ProcessKey, ProfileBuilder, ProfileProcess, ProfileThread, SampleRow,
    ThreadState,
};

use super::{
    BUCKET_NS, ImportError, Imported, MAX_DEPTH, MAX_ITEMS, MAX_STACK_NAMES, Memory, bounded_notes,
    fields::{Field, Fields},
    pprof_tables::{SAMPLE, Tables, decode_sample, malformed},
};
use crate::render::pprof::message;

/// Bytes of one sample: stack, values and labels.
const MAX_SAMPLE_BYTES: usize = 256 << 10;
/// Kernel addresses on the machines that are profiled.
const KERNEL_START: u64 = 1 << 63;
/// What this program writes behind names that it concluded.
const INFERRED: &str = " [inferred]";
/// What begins the comment in which this program names its clock.
const SAMPLED_BY: &str = "sampled by ";
/// Labels that are understood.
const LABELS: [&str; 8] = [
    "pid", "tid", "thread", "process", "cpu", "time_ms", "state", "reason",
];
/// Other labels that are named in the note.
const LABELS_NAMED: usize = 8;

pub(super) fn read(raw: &[u8], now_ns: u64, memory: Memory) -> Result<Imported, ImportError> {
    let tables = Tables::read(raw, memory)?;
    let columns = Columns::choose(&tables)?;
    let comments = tables.comments();
    let clock = comments.iter().find_map(|comment| clock_of(comment));
    let began_ns = Some(tables.time_ns).filter(|time| *time > 0);
    let builder = ProfileBuilder::new(
        began_ns.unwrap_or(now_ns),
        BUCKET_NS,
        clock.unwrap_or(Clock::Unknown),
    );
    let mut reader = Reader {
        tables: &tables,
        columns: &columns,
        builder,
        frames: HashMap::new(),
        stack_names: 0,
        has_times: false,
        has_threads: false,
        end_ns: tables.duration_ns,
        other_labels: Vec::new(),
    };
    let mut samples = 0;
    for field in Fields::of(raw) {
        let (number, value) = field.map_err(|error| malformed(error, raw))?;
        let Field::Bytes(bytes) = value else { continue };
        if number != SAMPLE {
            continue;
        }
        samples += 1;
        if samples > MAX_ITEMS {
            return Err(ImportError::TooMany {
                what: "samples",
                limit: MAX_ITEMS,
            });
        }
        reader
            .sample(bytes)
            .map_err(|problem| ImportError::Sample {
                sample: samples,
                problem,
            })?;
        if reader.stack_names > MAX_STACK_NAMES {
            return Err(ImportError::TooMany {
                what: "names in its stacks",
                limit: MAX_STACK_NAMES,
            });
        }
        memory.check(tables.bytes + reader.builder.bytes())?;
    }
    let notes = comments.into_iter().chain(reader.notes());
    let notes = bounded_notes(notes);
    let Reader {
        mut builder,
        has_times,
        has_threads,
        end_ns,
        ..
    } = reader;
    builder.cover(0, end_ns);
    Ok(Imported {
        profile: builder.finish(),
        file: ImportedFile {
            name: String::new(),
            format: ImportFormat::Pprof,
            values: columns.values(),
            has_times,
            has_threads,
        },
        began_ns,
        duration_ns: Some(tables.duration_ns).filter(|duration| *duration > 0),
        frequency_hz: frequency(&tables),
        notes,
    })
}

/// The clock that this program's comment names.
fn clock_of(comment: &str) -> Option<Clock> {
    let name = comment.strip_prefix(SAMPLED_BY)?;
    [Clock::CpuClock, Clock::Cycles, Clock::Switches, Clock::Wall]
        .into_iter()
        .find(|clock| clock.name() == name)
}

/// Nanoseconds of a unit; `None` when it is not a time.
fn nanoseconds(unit: &str) -> Option<u64> {
    match unit {
        "nanoseconds" | "nanosecond" | "ns" => Some(1),
        "microseconds" | "microsecond" | "us" | "µs" => Some(1_000),
        "milliseconds" | "millisecond" | "ms" => Some(1_000_000),
        "seconds" | "second" | "s" => Some(1_000_000_000),
        _ => None,
    }
}

fn frequency(tables: &Tables<'_>) -> Option<u32> {
    let unit = tables.text(tables.period_type?.unit);
    let period_ns = tables.period.checked_mul(nanoseconds(&unit)?)?;
    let frequency = 1_000_000_000_u64.checked_div(period_ns)?;
    u32::try_from(frequency).ok().filter(|hz| *hz > 0)
}

/// Which values of each sample are taken.
struct Columns {
    count: Option<usize>,
    /// With the nanoseconds of its unit.
    time: Option<(usize, u64)>,
    width: usize,
    /// What is taken and what is left out, in words.
    note: Option<String>,
}

impl Columns {
    fn choose(tables: &Tables<'_>) -> Result<Self, ImportError> {
        let types: Vec<(Cow<'_, str>, Cow<'_, str>)> = tables
            .types
            .iter()
            .map(|kind| (tables.text(kind.r#type), tables.text(kind.unit)))
            .collect();
        let default = tables.text(tables.default_type);
        // What this program calls its counts, then what the file shows first, then any.
        let pick = |fits: &dyn Fn(&str) -> bool| {
            let candidates = || (0..types.len()).filter(|index| fits(&types[*index].1));
            candidates()
                .find(|index| matches!(types[*index].0.as_ref(), "samples" | "switches"))
                .or_else(|| candidates().find(|index| types[*index].0 == default))
                .or_else(|| candidates().next())
        };
        let count = pick(&|unit| unit == "count");
        let time = pick(&|unit| nanoseconds(unit).is_some())
            .and_then(|index| Some((index, nanoseconds(&types[index].1)?)));
        let describe = |index: usize| format!("{} ({})", types[index].0, types[index].1);
        let taken: Vec<usize> = count
            .into_iter()
            .chain(time.map(|(index, _)| index))
            .collect();
        let left: Vec<String> = (0..types.len())
            .filter(|index| !taken.contains(index))
            .map(describe)
            .collect();
        if taken.is_empty() {
            return Err(ImportError::NoUsableValue(left.join(", ")));
        }
        let note = (!left.is_empty()).then(|| {
            let taken: Vec<String> = taken.into_iter().map(describe).collect();
            format!(
                "of the file's values {} are shown; left out: {}",
                taken.join(", "),
                left.join(", ")
            )
        });
        Ok(Self {
            count,
            time,
            width: types.len(),
            note,
        })
    }

    fn values(&self) -> ImportValues {
        match (self.count, self.time) {
            (Some(_), Some(_)) => ImportValues::Both,
            (Some(_), None) => ImportValues::Counts,
            (None, _) => ImportValues::Durations,
        }
    }
}

struct Reader<'a> {
    tables: &'a Tables<'a>,
    columns: &'a Columns,
    builder: ProfileBuilder,
    /// By location; what is missing in the file is one marker.
    frames: HashMap<u64, FrameId>,
    stack_names: usize,
    has_times: bool,
    has_threads: bool,
    end_ns: u64,
    other_labels: Vec<String>,
}

/// What the labels of a sample say.
#[derive(Default)]
struct Labels<'a> {
    pid: u32,
    tid: u32,
    cpu: u32,
    time_ms: u64,
    thread: Cow<'a, str>,
    process: Cow<'a, str>,
    state: Option<ThreadState>,
}

impl Reader<'_> {
    fn sample(&mut self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() > MAX_SAMPLE_BYTES {
            return Err(format!("it is larger than {MAX_SAMPLE_BYTES} bytes"));
        }
        let sample = decode_sample(bytes).map_err(|error| error.to_string())?;
        let names = |id: &u64| {
            let location = self.tables.locations.get(id);
            location.map_or(1, |location| location.line.len().max(1))
        };
        let names: usize = sample.location_id.iter().map(names).sum();
        if names > MAX_DEPTH {
            return Err(format!("its stack has more than {MAX_DEPTH} names"));
        }
        let width = self.columns.width;
        if sample.value.len() != width {
            let got = sample.value.len();
            return Err(format!("it has {got} values where {width} are announced"));
        }
        let value = |index: usize| {
            let value = sample.value[index];
            u64::try_from(value).map_err(|_| {
                format!("the value {value} is below zero: this is a difference of two profiles")
            })
        };
        let count = self.columns.count.map_or(Ok(0), value)?;
        let total_ns = match self.columns.time {
            Some((index, unit_ns)) => value(index)?.saturating_mul(unit_ns),
            None => 0,
        };
        let labels = self.labels(&sample.label);
        self.stack_names += names;
        let frames = sample
            .location_id
            .iter()
            .map(|id| self.frame(*id))
            .collect();
        let stack = self.builder.stack(frames);
        let thread = self.thread(&labels);
        let time_ns = labels.time_ms.saturating_mul(1_000_000);
        // Beyond this nothing can be drawn; such a time is taken for none.
        let bucket = u32::try_from(time_ns / BUCKET_NS).unwrap_or(0);
        self.end_ns = self
            .end_ns
            .max((u64::from(bucket) + 1).saturating_mul(BUCKET_NS));
        self.builder.sample(SampleRow {
            thread,
            stack,
            cpu: labels.cpu,
            bucket,
            state: labels.state.unwrap_or(ThreadState::OnCpu),
            waker: None,
            count,
            total_ns,
        });
        Ok(())
    }

    fn labels(&mut self, given: &[message::Label]) -> Labels<'static> {
        let mut labels = Labels::default();
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        for label in given {
            let key = self.tables.text(label.key);
            let small = u32::try_from(label.num).unwrap_or(0);
            match key.as_ref() {
                "pid" => labels.pid = small,
                "tid" => {
                    labels.tid = small;
                    self.has_threads = true;
                }
                "cpu" => labels.cpu = small,
                "time_ms" => {
                    labels.time_ms = u64::try_from(label.num).unwrap_or(0);
                    self.has_times = true;
                }
                "thread" => {
                    labels.thread = own(self.tables.text(label.str));
                    self.has_threads = true;
                }
                "process" => labels.process = own(self.tables.text(label.str)),
                "state" => {
                    let name = self.tables.text(label.str);
                    labels.state = ThreadState::ALL
                        .into_iter()
                        .find(|state| state.name() == name);
                }
                other => {
                    let known = LABELS.contains(&other)
                        || self.other_labels.iter().any(|seen| seen == other);
                    if !known && self.other_labels.len() < LABELS_NAMED {
                        self.other_labels.push(other.to_owned());
                    }
                }
            }
        }
        labels
    }

    fn thread(&mut self, labels: &Labels<'_>) -> u32 {
        let comm = match labels.process.as_ref() {
            "" => self.main_program(),
            name => name.to_owned(),
        };
        let name = match labels.thread.as_ref() {
            "[no name]" => "",
            name => name,
        };
        let (comm, name) = (self.builder.string(&comm), self.builder.string(name));
        let process = self.builder.process(ProfileProcess {
            key: ProcessKey {
                pid: labels.pid,
                start_ticks: 0,
            },
            comm,
            exe: 0,
            container: 0,
        });
        self.builder.thread(ProfileThread {
            process,
            tid: labels.tid,
            name,
        })
    }

    /// pprof's first mapping is the program itself.
    fn main_program(&self) -> String {
        let first = self.tables.mappings.get(&1);
        let path = first.map(|mapping| self.tables.text(mapping.filename));
        let path = path.unwrap_or_default();
        let name = path.rsplit('/').find(|part| !part.is_empty());
        name.filter(|name| !name.starts_with('['))
            .unwrap_or("[imported]")
            .to_owned()
    }

    fn frame(&mut self, id: u64) -> FrameId {
        if let Some(frame) = self.frames.get(&id) {
            return *frame;
        }
        let frame = match self.tables.locations.get(&id) {
            Some(location) => self.new_frame(location),
            None => self.builder.marker("[location is missing in the file]"),
        };
        self.frames.insert(id, frame);
        frame
    }

    fn new_frame(&mut self, location: &message::Location) -> FrameId {
        let tables = self.tables;
        let mapping = tables.mappings.get(&location.mapping_id);
        let path = mapping.map_or(Cow::Borrowed(""), |mapping| tables.text(mapping.filename));
        let address = location.address;
        let offset = mapping
            .filter(|mapping| (mapping.memory_start..mapping.memory_limit).contains(&address))
            .map_or(address, |mapping| {
                (address - mapping.memory_start).saturating_add(mapping.file_offset)
            });
        let in_kernel = address >= KERNEL_START || path.starts_with("[kernel");
        let kind = module_kind(&path, in_kernel);
        let names: Vec<(Cow<'_, str>, message::Line)> = location
            .line
            .iter()
            .map(|line| {
                let name = tables.functions.get(&line.function_id).map(|function| {
                    match tables.text(function.name) {
                        name if name.is_empty() => tables.text(function.system_name),
                        name => name,
                    }
                });
                (name.unwrap_or_default(), *line)
            })
            .collect();
        if let [(name, _)] = names.as_slice()
            && offset == 0
            && kind == ModuleKind::Unknown
            && name.starts_with('[')
            && name.ends_with(']')
        {
            return self.builder.marker(name);
        }
        let path = match (path.as_ref(), kind) {
            ("[unknown]" | "[anonymous]", _) => "",
            (path, _) => path,
        };
        let build_id =
            mapping.map_or_else(Vec::new, |mapping| build_id(&tables.text(mapping.build_id)));
        let module = self.builder.module(path, &build_id, kind);
        // This program writes an unnamed frame as its place; symbol files may still name it.
        let place = format!(
            "{}+{offset:#x}",
            path.rsplit('/')
                .find(|part| !part.is_empty())
                .unwrap_or("[unknown]")
        );
        let mut inferred = false;
        let mut functions = Vec::new();
        for (name, line) in names {
            if name.is_empty() || name == place {
                continue;
            }
            let name = match name.strip_suffix(INFERRED) {
                Some(name) => {
                    inferred = true;
                    name
                }
                None => name.as_ref(),
            };
            let file = tables
                .functions
                .get(&line.function_id)
                .map_or(Cow::Borrowed(""), |function| tables.text(function.filename));
            functions.push(Function {
                name: self.builder.string(name),
                file: self.builder.string(&file),
                line: u32::try_from(line.line).unwrap_or(0),
            });
        }
        let source = match (functions.is_empty(), inferred) {
            (true, _) => NameSource::None,
            (false, true) => NameSource::Inferred,
            (false, false) => NameSource::Imported,
        };
        self.builder.frame(Frame {
            space: if in_kernel {
                FrameSpace::Kernel
            } else {
                FrameSpace::User
            },
            module,
            offset,
            functions,
            source,
        })
    }

    /// What a reader of the picture has to know.
    fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.columns.note.iter().cloned().collect();
        if !self.other_labels.is_empty() {
            notes.push(format!(
                "labels of the file that are not used: {}",
                self.other_labels.join(", ")
            ));
        }
        notes
    }
}

fn module_kind(path: &str, in_kernel: bool) -> ModuleKind {
    match path {
        _ if path.starts_with("[kernel") => ModuleKind::Kernel,
        _ if in_kernel => ModuleKind::KernelModule,
        "[vdso]" => ModuleKind::Vdso,
        "[anonymous]" | "//anon" => ModuleKind::Anonymous,
        "" | "[unknown]" => ModuleKind::Unknown,
        _ => ModuleKind::Elf,
    }
}

/// Bytes of a build-id in hexadecimal digits; empty when it is written otherwise.
fn build_id(text: &str) -> Vec<u8> {
    let digits = text.as_bytes();
    if digits.len() > 128 || !digits.len().is_multiple_of(2) {
        return Vec::new();
    }
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    bytes.unwrap_or_default()
}
