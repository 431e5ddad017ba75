// Makes PFG1 files of any size: a tree like that of a proxy, deep and wide, always the same for
// the same seed.

const KIND = { root: 0, user: 1, kernel: 2, inlinedUser: 3, marker: 5, jit: 6, process: 8 };
const SOURCE = { none: 0, elf: 1, dwarf: 2, kallsyms: 3, perfMap: 5, marker: 6 };

/** Small generator of pseudo-random numbers (mulberry32). */
export function random(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
}

const USER_NAMES = [
  "main",
  "Envoy::MainCommon::run()",
  "Envoy::Server::InstanceBase::run()",
  "Envoy::Event::DispatcherImpl::run(Envoy::Event::Dispatcher::RunType)",
  "event_base_loop",
  "Envoy::Network::ConnectionImpl::onFileEvent(unsigned int)",
  "Envoy::Network::ConnectionImpl::onReadReady()",
  "Envoy::Network::FilterManagerImpl::onContinueReading(Envoy::Network::FilterManagerImpl::ActiveReadFilter*, Envoy::Network::ReadBufferSource&)",
  "Envoy::Http::ConnectionManagerImpl::onData(Envoy::Buffer::Instance&, bool)",
  "Envoy::Http::Http1::ConnectionImpl::dispatch(Envoy::Buffer::Instance&)",
  "Envoy::Http::Http1::BalsaParser::execute(char const*, int)",
  "quiche::BalsaFrame::ProcessInput(char const*, unsigned long)",
  "Envoy::Http::FilterManager::decodeHeaders(Envoy::Http::ActiveStreamDecoderFilter*, Envoy::Http::RequestHeaderMap&, bool)",
  "Envoy::Router::Filter::decodeHeaders(Envoy::Http::RequestHeaderMap&, bool)",
  "Envoy::Extensions::Tracers::Zipkin::Span::finishSpan()",
  "Envoy::Formatter::FormatterImpl::formatWithContext(Envoy::Formatter::HttpFormatterContext const&, Envoy::StreamInfo::StreamInfo const&) const",
  "std::_Function_handler<void (unsigned int), Envoy::Event::FileEventImpl::assignEvents(unsigned int, event_base*)::$_0>::_M_invoke(std::_Any_data const&, unsigned int&&)",
  "tcmalloc::allocator_impl<tcmalloc::tcmalloc_internal::CppPolicy>::AllocFast<unsigned long>(unsigned long)",
  "operator new(unsigned long)",
  "absl::container_internal::raw_hash_set<absl::container_internal::FlatHashMapPolicy<std::string, int>>::find<std::string_view>(std::string_view const&)",
  "<tokio::runtime::task::core::Core<T,S> as core::future::Future>::poll",
  "re2::DFA::InlinedSearchLoop<false, true, false>(re2::DFA::SearchParams*)",
];
/** What all stacks of a thread begin with. */
const START_NAMES = [
  "clone3",
  "start_thread",
  "Envoy::Thread::PosixThreadFactory::createThread(std::function<void ()>)",
  "Envoy::Server::WorkerImpl::threadRoutine(Envoy::OptRef<Envoy::Server::GuardDog>, std::function<void ()> const&)",
];
const KERNEL_NAMES = [
  "entry_SYSCALL_64_after_hwframe",
  "do_syscall_64",
  "__x64_sys_writev",
  "vfs_writev",
  "sock_write_iter",
  "tcp_sendmsg",
  "tcp_sendmsg_locked",
  "__tcp_push_pending_frames",
  "tcp_write_xmit",
  "__tcp_transmit_skb",
  "ip_queue_xmit",
  "__dev_queue_xmit",
  "nf_hook_slow",
  "ipt_do_table",
  "__netif_receive_skb_core",
  "tcp_v4_rcv",
];

function bytesOf() {
  const out = [];
  const varint = (value) => {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${value} is not a count`);
    let rest = value;
    while (rest >= 128) {
      out.push((rest % 128) | 128);
      rest = Math.floor(rest / 128);
    }
    out.push(rest);
  };
  return { out, varint, byte: (value) => out.push(value) };
}

/** Writes columns in the PFG1 format. */
export function encode({ periodNs, labels, depth, self, label, features }) {
  const { out, varint, byte } = bytesOf();
  const ids = new Map([["", 0]]);
  const id = (text) => {
    if (!ids.has(text)) ids.set(text, ids.size);
    return ids.get(text);
  };
  for (const item of labels) [item.name, item.module, item.file].forEach(id);
  for (const title of features?.titles ?? []) id(title);
  for (const char of "PFG1") byte(char.charCodeAt(0));
  varint(features === undefined ? 0 : 2);
  varint(periodNs);
  varint(ids.size);
  for (const text of ids.keys()) {
    const utf8 = Buffer.from(text);
    varint(utf8.length);
    for (const value of utf8) byte(value);
  }
  varint(labels.length);
  for (const item of labels) {
    for (const text of [item.name, item.module, item.file]) varint(id(text));
    varint(item.line);
    byte(item.kind);
    byte(item.source);
  }
  varint(depth.length);
  for (const column of [depth, self, label]) for (const value of column) varint(value);
  if (features !== undefined) {
    varint(features.titles.length);
    for (const title of features.titles) varint(id(title));
    for (const [node, feature] of features.own.entries()) varint(self[node] === 0 ? 0 : feature + 1);
  }
  return Uint8Array.from(out);
}

const FEATURES = [
  ["Routing", /Router|Upstream/],
  ["Tracing", /Zipkin/],
  ["Access logs", /Formatter/],
  ["RBAC", /RBAC/],
  ["Not attributed", /^/],
];

/** The graph with the feature of own samples of each frame: that of the innermost name that has one. */
export function attributed(graph) {
  const { labels, depth, label } = graph;
  const path = [];
  const own = depth.map((level, node) => {
    const found = FEATURES.findIndex(([, names], i) => i < 4 && names.test(labels[label[node]].name));
    path.length = level;
    path.push(found >= 0 ? found : (path.at(-1) ?? 4));
    return path[level];
  });
  return { ...graph, features: { titles: FEATURES.map(([title]) => title), own } };
}

function makeLabels(next, rename) {
  const labels = [
    { name: "all", module: "", file: "", line: 0, kind: KIND.root, source: SOURCE.none },
    { name: "envoy", module: "", file: "", line: 0, kind: KIND.process, source: SOURCE.none },
    { name: "httpbin", module: "", file: "", line: 0, kind: KIND.process, source: SOURCE.none },
    { name: "[stack lost]", module: "", file: "", line: 0, kind: KIND.marker, source: SOURCE.marker },
  ];
  const add = (name, module, file, line, kind, source) =>
    labels.push({ name: rename(name), module: rename(module), file, line, kind, source });
  for (const name of USER_NAMES)
    add(
      name,
      "/usr/local/bin/envoy",
      "source/common/network/connection_impl.cc",
      632,
      KIND.user,
      SOURCE.dwarf,
    );
  for (let i = 0; i < 900; i += 1) {
    const owner = [
      "Http::Http2",
      "Router",
      "Upstream",
      "Stats",
      "Buffer",
      "Config",
      "Extensions::HttpFilters::RBAC",
    ][i % 7];
    const inlined = next() < 0.18;
    add(
      `Envoy::${owner}::step${i}(Envoy::Buffer::Instance&, unsigned long)`,
      "/usr/local/bin/envoy",
      "source/common/http/codec.cc",
      40 + i,
      inlined ? KIND.inlinedUser : KIND.user,
      SOURCE.dwarf,
    );
  }
  for (let i = 0; i < 40; i += 1)
    add(`memcpy_variant_${i}`, "/usr/lib/x86_64-linux-gnu/libc.so.6", "", 0, KIND.user, SOURCE.elf);
  for (let i = 0; i < 60; i += 1)
    add(
      `libcrypto.so.3+0x${(4096 + i * 977).toString(16)}`,
      "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
      "",
      0,
      KIND.user,
      SOURCE.none,
    );
  for (let i = 0; i < 20; i += 1)
    add(`LazyCompile:*handler${i} /app/server.js`, "/tmp/perf-42.map", "", 0, KIND.jit, SOURCE.perfMap);
  const startFrom = labels.length;
  for (const name of START_NAMES) add(name, "/usr/local/bin/envoy", "", 0, KIND.user, SOURCE.elf);
  const kernelFrom = labels.length;
  for (const name of KERNEL_NAMES) add(name, "[kernel]", "", 0, KIND.kernel, SOURCE.kallsyms);
  for (let i = 0; i < 120; i += 1)
    add(`kernel_helper_${i}`, i % 5 === 0 ? "nf_tables" : "[kernel]", "", 0, KIND.kernel, SOURCE.kallsyms);
  return { labels, startFrom, kernelFrom };
}

/**
 * A profile of `frames` nodes: the samples of each frame are divided among a few children, most of
 * them to the first ones, as real programs do. The tree is grown where the samples are. `rename`
 * gives other texts to frames and modules.
 */
export function synthetic(frames, seed = 7, samples = 4_000_000, rename = (text) => text) {
  const next = random(seed);
  const { labels, startFrom, kernelFrom } = makeLabels(next, rename);
  const userFrom = 4;
  const nodes = [{ label: 0, total: samples, children: [], kernel: false, level: 0 }];
  const add = (parent, label, total, kernel) => {
    const node = { label, total, children: [], kernel, level: parent.level + 1 };
    parent.children.push(node);
    nodes.push(node);
    return node;
  };
  // Rounded down: together they must not have more than the root.
  let envoy = add(nodes[0], 1, Math.floor(samples * 0.83), false);
  for (let i = startFrom; i < startFrom + START_NAMES.length; i += 1)
    envoy = add(envoy, i, envoy.total, false);
  for (let i = 0; i < 9; i += 1) envoy = add(envoy, userFrom + i, Math.floor(envoy.total * 0.995), false);
  const httpbin = add(nodes[0], 2, Math.floor(samples * 0.16), false);
  add(nodes[0], 3, Math.floor(samples * 0.01), false);
  const open = [envoy, httpbin];
  for (let at = 0; at < open.length && nodes.length < frames; at += 1) {
    const parent = open[at];
    const fanout = 1 + Math.floor(next() ** 2 * 5);
    let left = parent.total * (0.86 + 0.13 * next());
    for (let i = 0; i < fanout && nodes.length < frames; i += 1) {
      const total = Math.floor(i === fanout - 1 ? left : left * (0.35 + 0.55 * next()));
      left -= total;
      if (total < 1) break;
      const kernel = parent.kernel || (parent.level > 6 && next() < 0.07);
      const from = kernel ? kernelFrom : userFrom;
      const to = kernel ? labels.length : startFrom;
      open.push(add(parent, from + Math.floor(next() ** 2 * (to - from)), total, kernel));
    }
  }
  const graph = { periodNs: 10101010, labels, ...columns(nodes[0]) };
  return { bytes: encode(graph), graph, samples };
}

/** The tree in pre-order. */
function columns(root) {
  const depth = [];
  const self = [];
  const label = [];
  const stack = [root];
  while (stack.length > 0) {
    const node = stack.pop();
    depth.push(node.level);
    self.push(node.total - node.children.reduce((sum, child) => sum + child.total, 0));
    label.push(node.label);
    stack.push(...node.children.toReversed());
  }
  return { depth, self, label };
}
