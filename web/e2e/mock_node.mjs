// What the stand-in says of itself and of the names of processes.

const file = (path, change = {}) => ({
  path,
  build_id: "9e558093aa01",
  names_from: ["elf_symbol"],
  complete: true,
  lines: false,
  unwind_table: true,
  refusal: null,
  remedy: "",
  ...change,
});

const REMEDY =
  "give its debug file or unstripped build: --symbol-dir DIR, or upload it (build-id 9e558093aa01)";

/** Envoy is stripped, one library cannot be opened, everything else has names. */
export function processSymbols(process) {
  const own = process.exe ?? "";
  return {
    files: [
      process.comm === "envoy"
        ? file(own, { complete: false, remedy: REMEDY })
        : process.comm === "httpbin"
          ? file(own, { names_from: ["dwarf"], lines: true })
          : file(own),
      file("/usr/lib/x86_64-linux-gnu/libc.so.6", { names_from: ["elf_symbol", "debug_file"] }),
      file('/tmp/<b>lib\u202e"&.so', {
        refusal: "it cannot be opened: deleted or replaced since, or no permission",
      }),
    ],
    anonymous_executable_mappings: process.comm === "node" ? 2 : 0,
    refusal: null,
  };
}

/** Two readings with a time between them in which runs were measured. */
export function measuredRuns(agent, { duration_ms }) {
  const before = kernelObjects(agent, true);
  const after = kernelObjects(agent, true, duration_ms);
  return { before, after, elapsed_ns: duration_ms * 1e6 };
}

export function kernelObjects(agent, on = false, laterMs = 0) {
  const seconds = (Date.now() - agent.startedAt + laterMs) / 1000;
  const program = (id, name, rate, ns, instructions) => ({
    id,
    name,
    run_count: on ? Math.round(rate * seconds) : null,
    run_time_ns: on ? Math.round(rate * seconds * ns) : null,
    missed_runs: 0,
    verified_instructions: instructions,
    memory_bytes: 20480,
  });
  const map = (id, name, kind, entries, max_entries, memory_bytes, reason = null) => ({
    id,
    name,
    kind,
    max_entries,
    entries,
    reason,
    memory_bytes,
  });
  return {
    programs: [
      program(11, "on_cpu", 83, 2100, 18231),
      program(12, "process_exec", 3, 900, 412),
      program(13, "network_send", 5200, 310, 2312),
      program(14, "network_recv", 4800, 290, 2207),
    ],
    maps: [
      map(21, "STACKS", "hash", 8123, 16384, 1_400_000),
      map(22, "COUNTS_A", "hash", 58_000, 65_536, 9_000_000),
      map(23, "CONNECTIONS", "hash", 212, 65_536, 48_000_000),
      map(
        24,
        "EVENTS",
        "ring buffer",
        null,
        4_194_304,
        8_400_000,
        "a ring buffer: what does not fit is counted as a loss",
      ),
      map(25, "COUNTERS", "per-CPU array", null, 24, 2048, "an array: every entry exists from the start"),
    ],
    statistics: { on, by: on ? "request" : null },
  };
}

export const FEATURES = [
  {
    name: "btf",
    verdict: "ok",
    minimum_kernel: "5.4",
    detail: "/sys/kernel/btf/vmlinux, 6012345 bytes",
    remedy: "",
  },
  {
    name: "sampling_clock",
    verdict: "ok",
    minimum_kernel: "4.9",
    detail: "cpu-clock; hardware cycles are not offered: ENOENT",
    remedy: "",
  },
  {
    name: "kernel_names",
    verdict: "degraded",
    minimum_kernel: "",
    detail: "/proc/kallsyms shows no addresses: kernel frames stay without names",
    remedy: "run with CAP_SYSLOG, or set kernel.kptr_restrict=0",
  },
];

export const CONFIG = [
  { name: "listen", value: '"127.0.0.1:7117"' },
  { name: "data_dir", value: '"/var/lib/profiler-agent"' },
  { name: "token_file", value: '"/etc/profiler/token"' },
  { name: "debuginfod", value: '"https://***@debug.example"' },
  { name: "allow_tls_capture", value: "true" },
  { name: "retention_age", value: '"7days"' },
];
