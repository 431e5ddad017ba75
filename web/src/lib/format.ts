// Numbers and untrusted text as people read them.

const BINARY_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"] as const;

/** 1536 -> "1.5 KiB". */
export function bytes(value: number): string {
  let scaled = value;
  let unit = 0;
  while (scaled >= 1024 && unit < BINARY_UNITS.length - 1) {
    scaled /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || scaled >= 100 ? 0 : 1;
  return `${scaled.toFixed(digits)} ${BINARY_UNITS[unit]}`;
}

/**
 * 1234567 -> "1,234,567". Not in the reader's own grouping: "1.234" would be a thousand or one and a bit beside numbers with
 * a decimal point.
 */
export function count(value: number): string {
  return String(Math.round(value)).replaceAll(/\B(?=(\d{3})+$)/g, ",");
}

/** 1, "piece" -> "1 piece"; `more` is what several are called. */
export function plural(number: number, one: string, more = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : more}`;
}

/** What the numbers of a flame graph count: samples, or time where one unit is a nanosecond. */
export function amount(value: number, periodNs: number): string {
  return periodNs === 1 ? duration(value) : count(value);
}

/** Share of a whole with a precision that fits its size: "12.3 %", "0.04 %", "0 %". */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return "–";
  const value = (part / whole) * 100;
  if (value === 0) return "0 %";
  if (value < 0.01) return "< 0.01 %";
  return `${value.toFixed(value < 1 ? 2 : 1)} %`;
}

/** CPU percent of one core, or a dash before the second reading. */
export function cpu(value: number | null): string {
  if (value === null) return "–";
  return value === 0 ? "0.0 %" : `${value.toFixed(value < 10 ? 1 : 0)} %`;
}

/** Nanoseconds with a unit that keeps three digits: "12.3 ms". */
export function duration(ns: number): string {
  if (ns < 1e3) return `${ns.toFixed(0)} ns`;
  // 999.6 µs are 1.00 ms, as the agent writes them.
  if (ns < 999.5e3) return `${three(ns / 1e3)} µs`;
  if (ns < 999.5e6) return `${three(ns / 1e6)} ms`;
  const seconds = ns / 1e9;
  if (seconds < 100) return `${three(seconds)} s`;
  return clock(seconds);
}

function three(value: number): string {
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

/** Seconds as "2 min 5 s", "3 h 4 min", "2 d 3 h". */
export function clock(seconds: number): string {
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

/** Time of the day in the reader's zone: "14:03", or with seconds. */
export function clockTime(date: Date, seconds = false): string {
  const parts = [date.getHours(), date.getMinutes(), ...(seconds ? [date.getSeconds()] : [])];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}

/** Moment of nanoseconds since the epoch, in the reader's zone: "14:03:22", with the day when not today. */
export function moment(ns: number, now: Date = new Date()): string {
  const date = new Date(ns / 1e6);
  const time = clockTime(date, true);
  if (date.toDateString() === now.toDateString()) return time;
  return `${date.toLocaleDateString([], { day: "numeric", month: "short" })} ${time}`;
}

/**
 * Untrusted text made safe to look at: control characters and the marks that change the direction
 * of writing are shown as a box, so that a name cannot pretend to be another one.
 */
export function visible(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\u25af");
}

/** The same for text of several lines, which stay lines. */
export function visibleLines(text: string): string {
  return text.split("\n").map(visible).join("\n");
}

/** Last part of a path. */
export function fileName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** First 12 characters of a container id, as container tools print it. */
export function shortId(id: string): string {
  return /^[0-9a-f]{20,}$/.test(id) ? id.slice(0, 12) : id;
}

const FOLD_ABOVE = 40;

/** A C++ or Rust name with the insides of template arguments folded: `a::b<…>::c(…)`. */
export function shortName(name: string): string {
  if (name.length <= FOLD_ABOVE || name.includes("operator")) return name;
  let out = "";
  let depth = 0;
  for (let i = 0; i < name.length; i += 1) {
    const char = name[i]!;
    const opens = (char === "<" && i > 0) || char === "(";
    const closes = (char === ">" && name[i - 1] !== "-") || char === ")";
    if (opens) {
      if (depth === 0)
        out +=
          name[i + 1] === ")"
            ? "()"
            : char === "<"
              ? "<…>"
              : name.startsWith("(anonymous namespace)", i)
                ? "(anon)"
                : "(…)";
      depth += 1;
    } else if (closes && depth > 0) {
      depth -= 1;
    } else if (depth === 0) {
      out += char;
    }
  }
  return depth === 0 ? out : name;
}

/** Where each `::` part of a name begins; parts inside brackets do not count. */
export function partStarts(name: string): number[] {
  const starts = [0];
  let depth = 0;
  for (let i = 0; i < name.length; i += 1) {
    const char = name[i]!;
    if (char === "<" || char === "(") depth += 1;
    else if ((char === ">" && name[i - 1] !== "-") || char === ")") depth -= 1;
    else if (char === ":" && name[i + 1] === ":" && depth === 0) starts.push(i + 2);
  }
  return starts;
}

/** A name in `room` letters: outer namespaces go first, then the end is cut. */
export function fitName(name: string, starts: readonly number[], room: number): string {
  if (name.length <= room) return name;
  const from = starts.find((start) => name.length - start <= room) ?? starts[starts.length - 1] ?? 0;
  return name.length - from <= room ? name.slice(from) : `${name.slice(from, from + room - 1)}…`;
}
