// Features and mechanisms that diagnoses of the stand-in share out.

export const MECHANISMS = [
  ["parse", "Parse, serialise"],
  ["crypto", "Crypto"],
  ["allocation", "Allocation"],
  ["copy", "Copy"],
  ["hash_format", "Hash, format"],
  ["lock", "Locks"],
  ["syscall", "System calls"],
  ["kernel_tcp", "Kernel TCP"],
  ["netfilter", "Netfilter"],
  ["scheduler", "Scheduler"],
  ["page_fault", "Page faults"],
  ["other", "Other"],
].map(([id, title]) => ({ id, title }));

export const FEATURES = [
  ["tracing", "Tracing", "Spans: made, tagged, serialised and reported", true],
  ["http_codec", "HTTP codec", "Reading and writing HTTP/1 and HTTP/2", true],
  ["routing", "Routing", "Finding the route and the cluster of a request", false],
  ["pools", "Connection pools", "Connections to upstreams and their streams", true],
  ["access_log_format", "Access-log format", "Making the lines of the access log", true],
  ["access_log_write", "Access-log write", "Writing the lines to a file or pipe", true],
  ["stats_record", "Statistics, record", "Counters and histograms on the request path", true],
  ["filter:lua", "Filter: lua", "The HTTP filter envoy.filters.http.lua", true],
  ["event_loop", "Event loop", "libevent and the dispatcher", false],
  ["kernel_receive", "Kernel receive path", "Packets handled while the worker ran", false],
  ["xds", "xDS", "Configuration from the control plane", true],
  ["unattributed", "Unattributed", "Named, and no rule holds", false],
  ["no_symbols", "No symbols", "Neither named nor matched by a rule", false],
].map(([id, title, about, settings]) => ({ id, title, about, settings }));

export const titleOf = (id) => FEATURES.find((feature) => feature.id === id)?.title ?? id;
